"""Builds the real adapters, importing each room when it is first needed, and runs the use cases with them."""

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.errors import WorkloadError
from advisor.records.imported import ImportedCurves, ImportRequest
from advisor.records.measurement import Throughput
from advisor.records.plan import DeviceOption, WhatIf
from advisor.records.recommendation import Advice, Prices, RuleOfThumb, SpendingPlan
from advisor.records.report import Report
from advisor.records.requests import (
    BatchSizes,
    MeasureRequest,
    Provenance,
    RecommendRequest,
    SessionOptions,
    TuneRequest,
    WorkloadReference,
)
from advisor.records.storage_url import parse_storage_url
from advisor.records.trials import Study
from advisor.records.tuning import TuningResult
from advisor.records.workload import Workload

if TYPE_CHECKING:
    from advisor.records.budget_comparison import Budget, BudgetComparison
    from advisor.records.pilot import Pilot
    from advisor.records.study_file import StudyFile
    from advisor.workflows.ports import Progress, SessionFactory
    from advisor.workflows.tools import Tools

DEFAULT_STORAGE = "sqlite:///advisor.db"
DEFAULT_STUDY_FILE = "advisor.toml"
BUNDLED_WORKLOAD = "advisor.training.digits:workload"
SESSION_ENTRY = "advisor.training.keras_session:open_session"

RETUNABLE = ("learning_rate", "momentum", "beta_1", "weight_decay")

WorkloadArgument = str | Path | Workload | None


@dataclass(frozen=True)
class Question:
    """A workload as the user named it, with what its study file adds; ``said`` tells what was assumed."""

    reference: WorkloadReference
    argument: str
    study_file: "StudyFile | None" = None
    said: str = ""


def measure(
    workload: WorkloadArgument = None,
    *,
    storage: str = DEFAULT_STORAGE,
    progress: "Progress | None" = None,
    memory_limit: str | int | None = None,
    timeout_s: float | None = None,
    compare: str | Sequence[str] = (),
    xla: bool = False,
    mixed_precision: bool = False,
    **choices: Any,
) -> Throughput:
    """Measure time per step and throughput at each batch size, and what limits it.

    ``workload`` is a :class:`Workload`, ``file.py[:name]``, ``package.module:name`` or a study file.
    ``memory_limit`` bounds each training process, in bytes or as text such as ``8GiB``; all that are open
    at once together never get more than is available. A call that is not answered within ``timeout_s``
    (seconds) is a hang. ``compare`` names options to measure side by side: ``xla``, ``mixed_precision``,
    ``steps_per_call=N``; one that is on already is left out instead. ``choices`` are fields of
    :class:`~advisor.records.requests.MeasureRequest`. Raises :class:`~advisor.errors.SpecError` where one of
    these cannot be.
    """
    from advisor.execution.memory import equal_share_bytes
    from advisor.specs.byte_size import parse_bytes
    from advisor.specs.choices import check_numbers
    from advisor.specs.variants import parse_variants
    from advisor.workflows.measure import measure as run

    check_numbers({"timeout_s": timeout_s})
    options = SessionOptions(xla=xla, mixed_precision=mixed_precision)
    variants = parse_variants(compare, options)
    limits = {
        "memory_limit_bytes": None if memory_limit is None else parse_bytes(memory_limit),
        "memory_share_bytes": equal_share_bytes(1 + len(variants)) if variants else None,
        "timeout_advice": "allow more with --timeout",
        **({} if timeout_s is None else {"call_timeout_s": timeout_s}),
    }
    question = ask(workload)
    request = MeasureRequest(**_joined(_from_study_file(question, ("batch_sizes",)), choices))
    tools = _tools(question, storage, progress, _sessions(question, options, **limits))
    others = {name: _sessions(question, changed, **limits) for name, changed in variants.items()}
    return run(tools, request, others)


def recommend(
    workload: WorkloadArgument = None,
    *,
    storage: str = DEFAULT_STORAGE,
    progress: "Progress | None" = None,
    **choices: Any,
) -> Advice:
    """Find the batch size to use; ``choices`` are fields of RecommendRequest."""
    from advisor.reporting.note import search_note
    from advisor.workflows.recommend import recommend as run

    tools, request = _recommending(workload, storage, progress, choices)
    return run(tools, request, search_note)


def rule_of_thumb(
    workload: WorkloadArgument = None,
    *,
    storage: str = DEFAULT_STORAGE,
    progress: "Progress | None" = None,
    **choices: Any,
) -> RuleOfThumb:
    """Return the largest batch size that the hardware supports, training nothing to a target."""
    from advisor.workflows.rule_of_thumb import rule_of_thumb as run

    tools, request = _recommending(workload, storage, progress, choices)
    return run(tools, request)


def plan(
    workload: WorkloadArgument = None,
    *,
    storage: str = DEFAULT_STORAGE,
    progress: "Progress | None" = None,
    **choices: Any,
) -> SpendingPlan:
    """Return what :func:`recommend` may spend, training nothing to the target."""
    from advisor.workflows.recommend import plan as run

    tools, request = _recommending(workload, storage, progress, choices)
    return run(tools, request)


def compare_at(
    workload: WorkloadArgument = None,
    *,
    budget: "str | Budget",
    metric: str | None = None,
    storage: str = DEFAULT_STORAGE,
    progress: "Progress | None" = None,
    **choices: Any,
) -> "BudgetComparison":
    """Compare batch sizes by their best validation result within ``budget``; no target is needed.

    ``budget`` is ``steps=N`` or ``examples=N``. ``metric`` is the target's by default, else loss; one that is
    neither, nor accuracy, has its direction behind it, as in ``f1:at_least``. ``choices`` are fields of
    RecommendRequest.
    """
    from advisor.specs.budget import parse_budget
    from advisor.workflows.budget_comparison import compare_at as run

    parsed = parse_budget(budget)
    tools, request = _recommending(workload, storage, progress, choices)
    return run(tools, request, parsed, metric)


def plan_comparison(
    workload: WorkloadArgument = None,
    *,
    budget: "str | Budget",
    metric: str | None = None,
    storage: str = DEFAULT_STORAGE,
    progress: "Progress | None" = None,
    **choices: Any,
) -> SpendingPlan:
    """Return what :func:`compare_at` may spend, training nothing."""
    from advisor.specs.budget import parse_budget
    from advisor.workflows.budget_comparison import plan as run

    parsed = parse_budget(budget)
    tools, request = _recommending(workload, storage, progress, choices)
    return run(tools, request, parsed, metric)


def pilot(
    workload: WorkloadArgument = None,
    *,
    metric: str | None = None,
    storage: str = DEFAULT_STORAGE,
    progress: "Progress | None" = None,
    **choices: Any,
) -> "Pilot":
    """Propose a target from a short tuned run with several seeds.

    ``metric`` is accuracy by default where the model reports it, else loss, and spelled as in
    :func:`compare_at`. ``choices`` are fields of RecommendRequest.
    """
    from advisor.workflows.pilot import pilot as run

    tools, request = _recommending(workload, storage, progress, choices)
    return run(tools, request, metric)


def plan_pilot(
    workload: WorkloadArgument = None,
    *,
    metric: str | None = None,
    storage: str = DEFAULT_STORAGE,
    progress: "Progress | None" = None,
    **choices: Any,
) -> SpendingPlan:
    """Return what :func:`pilot` may spend, training nothing."""
    from advisor.workflows.pilot import plan as run

    tools, request = _recommending(workload, storage, progress, choices)
    return run(tools, request, metric)


def tune(
    workload: WorkloadArgument = None,
    *,
    batch_size: int,
    storage: str = DEFAULT_STORAGE,
    artifacts: Path | None = None,
    progress: "Progress | None" = None,
    **choices: Any,
) -> TuningResult:
    """Run an Optuna study at ``batch_size``; ``choices`` are fields of TuneRequest."""
    from advisor.reporting.note import study_note
    from advisor.workflows.tune import tune as run

    question = ask(workload)
    known = _from_study_file(question, ("trials", "max_train_steps"))
    fields = _joined(known, {"batch_size": batch_size, **choices})
    request = TuneRequest(**_given(question, storage), **fields)
    tools = _tools(question, storage, progress)
    result = run(tools, request, artifacts or default_artifacts(storage))
    note = study_note(result)
    tools.store.set_note(result.study.name, note)
    tools.board.set_note(result.study.name, note)
    return result


def import_curve(
    file: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    where: Mapping[str, str] | None = None,
    progress: "Progress | None" = None,
    **choices: Any,
) -> ImportedCurves:
    """Fit the curves of steps to target in a CSV file; where it has times per step, recommend a batch size.

    ``columns`` maps the names that are read to those that the file uses instead, ``where`` columns of the
    file to the values of the lines to keep; ``choices`` are the other fields of
    :class:`~advisor.records.imported.ImportRequest`. Nothing is stored. Raises
    :class:`~advisor.errors.SpecError` with all faults of the file.
    """
    from advisor.reporting.progress import QuietProgress
    from advisor.specs.choices import check_price
    from advisor.specs.curve_file import load_curve_file
    from advisor.workflows.import_curve import import_curves

    request = ImportRequest(Path(file), columns or {}, where or {}, **_joined({}, choices))
    check_price(request.prices, request.max_cost)
    runs = load_curve_file(request.file, request.columns, request.where)
    return import_curves(runs, request, progress or QuietProgress())


def report(workload: str | None = None, *, storage: str = DEFAULT_STORAGE) -> Report:
    """Return everything recorded of the workload of that name, by default of the one used last."""
    from advisor.storage.store import open_store
    from advisor.workflows.report import report as run

    return run(open_store(storage), workload)


def what_if(
    workload: str | None,
    options: Sequence[DeviceOption],
    *,
    storage: str = DEFAULT_STORAGE,
    assumed_share: float | None = None,
    prices: Mapping[str, Any],
) -> WhatIf:
    """Return what other device counts and prices would give, from what is recorded of that workload.

    ``prices`` are fields of :class:`~advisor.records.recommendation.Prices`; for the rest see
    :func:`advisor.workflows.plan.what_if`.
    """
    from advisor.storage.store import open_store
    from advisor.workflows.plan import what_if as run

    return run(open_store(storage), workload, options, prices, assumed_share)


def studies(name: str | None = None, *, storage: str = DEFAULT_STORAGE) -> Sequence[Study]:
    """Return the recorded studies, oldest first: the one of that name, those of that workload, or all.

    Raises WorkloadError for a name that no recorded one has.
    """
    from advisor.storage.store import open_store

    recorded = open_store(storage).studies()
    found = [study for study in recorded if name in (None, study.workload, study.name)]
    if recorded and not found:
        workloads = ", ".join(sorted({study.workload for study in recorded}))
        raise WorkloadError(
            f"No study and no workload is called {name!r}. There are studies of {workloads}; "
            "`advisor studies` without a name lists them all."
        )
    return found


def dashboard(storage: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve the Optuna dashboard on 127.0.0.1 until it is interrupted; tell ``ready`` its address."""
    from advisor.storage.store import open_store
    from advisor.tuning.dashboard import serve_dashboard

    open_store(storage)
    serve_dashboard(storage, port=port, ready=ready)


def default_artifacts(storage: str) -> Path:
    """Return where checkpoints go unless the user says: beside an SQLite file, else here.

    Named after the database, so that two in one folder keep their checkpoints apart.
    """
    url = parse_storage_url(storage)
    if url.sqlite_path:
        return url.sqlite_path.parent / f"{url.sqlite_path.stem}-artifacts"
    return Path(f"{storage.rpartition('/')[2].partition('?')[0]}-artifacts")


def ask(workload: WorkloadArgument) -> Question:
    """Return the question that names ``workload``; where none is named, ``advisor.toml`` or the digits."""
    if isinstance(workload, Workload):
        return Question(WorkloadReference(workload.name, pickled=_pickled(workload)), "WORKLOAD")
    if workload is None and not Path(DEFAULT_STUDY_FILE).exists():
        said = (
            "No workload was named: using the bundled handwritten digits (see advisor --help for your own)."
        )
        return Question(WorkloadReference(BUNDLED_WORKLOAD), "", said=said)
    source = DEFAULT_STUDY_FILE if workload is None else str(workload)
    if not source.strip():
        raise WorkloadError(
            f"Got {source!r} as the name of a workload. Name one as file.py[:name], package.module:name or a "
            "study file.toml, or leave the name out."
        )
    if source.endswith(".toml"):
        return _from_toml(Path(source), "" if workload is None else source)
    return Question(WorkloadReference(source), source)


def _from_toml(path: Path, argument: str) -> Question:
    from advisor.specs import load_study_file

    study_file = load_study_file(path)
    reference = WorkloadReference(
        study_file.workload,
        target=study_file.target,
        search_space=study_file.search_space,
        fixed=study_file.fixed,
    )
    said = "" if argument else f"Using {path}."
    return Question(reference, argument, study_file, said)


def _pickled(workload: Workload) -> bytes:
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(workload))
    except Exception as error:
        raise WorkloadError(
            f"Workload {workload.name!r} cannot be sent to a training process ({error}). Make build_model "
            "and data functions that create what they need themselves, or pass the path of a file."
        ) from error


def _tools(
    question: Question,
    storage: str,
    progress: "Progress | None",
    sessions: "SessionFactory | None" = None,
) -> "Tools":
    from advisor.execution.load import LoadWatch
    from advisor.reporting.progress import QuietProgress
    from advisor.storage.store import open_store
    from advisor.tuning.board import open_board
    from advisor.workflows.tools import Tools

    progress = progress or QuietProgress()
    if question.said:
        progress.say(question.said)
    sessions = sessions or _sessions(question, SessionOptions())
    return Tools(sessions, open_store(storage), open_board(storage), progress, LoadWatch())


def _sessions(question: Question, options: SessionOptions, **limits: Any) -> "SessionFactory":
    from advisor.execution.local import LocalSessions

    return LocalSessions(SESSION_ENTRY, replace(question.reference, options=options), **limits)


def _recommending(
    workload: WorkloadArgument, storage: str, progress: "Progress | None", choices: Mapping[str, Any]
) -> "tuple[Tools, RecommendRequest]":
    """Return what ``recommend`` and its neighbours run with."""
    from advisor.specs.choices import check_price

    question = ask(workload)
    names = ("batch_sizes", "trials_per_batch_size", "seeds", "max_examples_per_trial", "prices")
    known = _from_study_file(question, names) | _retuned(question)
    request = RecommendRequest(**_given(question, storage), **_joined(known, choices))
    check_price(request.prices, request.max_cost)
    return _tools(question, storage, progress), request


def _joined(known: Mapping[str, Any], choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return the study file's choices with the caller's in their place, field by field.

    Raises SpecError where the caller's hold a number that cannot be.
    """
    from advisor.specs.choices import check_numbers

    check_numbers(choices)
    joined = {**known, **choices}
    if isinstance(choices.get("prices"), Mapping):
        joined["prices"] = replace(known.get("prices", Prices()), **choices["prices"])
    asked = choices.get("batch_sizes")
    if isinstance(asked, Mapping):
        bounds = replace(known.get("batch_sizes", BatchSizes()), **{"listed": (), **asked})
        joined["batch_sizes"] = bounds
    elif isinstance(asked, list | tuple):
        joined["batch_sizes"] = BatchSizes(listed=tuple(asked))
    return joined


def _retuned(question: Question) -> dict[str, Any]:
    """Return which hyperparameters of the optimizer the study file wants retuned at each batch size."""
    if question.study_file is None or not question.study_file.search_space:
        return {}
    searched = [name for name in RETUNABLE if name in question.study_file.search_space]
    return {"tune": tuple(searched)} if searched else {}


def _given(question: Question, storage: str) -> dict[str, Any]:
    from advisor.execution.revision import revision

    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    file = Path(question.argument.partition(":")[0])
    commit, diff = revision(file.parent if file.is_file() else Path.cwd())
    named = [question.argument] if question.argument else []
    stored = [] if storage == DEFAULT_STORAGE else ["--storage", storage]
    return {
        "workload_argument": shlex.join([*named, *stored]),
        "provenance": Provenance(command, commit, diff),
    }


def _from_study_file(question: Question, names: Sequence[str]) -> dict[str, Any]:
    """Return what the study file says of ``names``; what it leaves open keeps its default."""
    if question.study_file is None:
        return {}
    values = {name: getattr(question.study_file, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}
