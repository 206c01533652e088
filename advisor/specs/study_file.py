"""Study files: a question and its limits as TOML."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from advisor.errors import SpecError, WorkloadError
from advisor.records.recommendation import Prices
from advisor.records.requests import BatchSizes
from advisor.records.study_file import StudyFile
from advisor.records.target import Target
from advisor.specs.hyperparameters import EXAMPLE as SEARCH_EXAMPLE
from advisor.specs.hyperparameters import SearchChoices, read_search_space
from advisor.specs.sections import AMOUNT, COUNT, NUMBER, TEXT, Kind, Section, shown

_TOP = ("workload", "target", "batch_sizes", "search_space", "budget", "cost")
_TARGET = ("metric", "at_least", "at_most")
_BATCH_SIZES = ("min", "max")
_BUDGET = ("trials_per_batch_size", "max_examples_per_trial", "seeds", "trials", "max_train_steps")
_COST = ("price_per_device_hour", "currency", "power_w", "upfront")

_HOMES = (
    dict.fromkeys(_TOP, "at the top of the file, before any [section]")
    | dict.fromkeys(_TARGET, "in [target]")
    | dict.fromkeys(_BATCH_SIZES, "in [batch_sizes]")
    | dict.fromkeys(_BUDGET, "in [budget]")
    | dict.fromkeys(_COST, "in [cost]")
)

_WORKLOAD = Kind(
    'the path of a Python file, as in "model.py" or "model.py:name", or "package.module:name"', TEXT.read
)
_IN_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_IN_FILE = re.compile(r"(?P<file>[^\0]+\.py)(?P<name>:[^\W\d]\w*)?")


def load_study_file(path: Path) -> StudyFile:
    """Return what the file says.

    Raises :class:`SpecError` with all faults of the file: where each stands, what was received and what is
    valid.
    """
    faults: list[str] = []
    top = Section("", _parsed(path), _TOP, faults, _HOMES)
    study_file = _read(top, path.absolute().parent)
    if faults:
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise SpecError(f"{path} has {count}:\n" + "\n".join(f"  {fault}" for fault in faults))
    return study_file


def _parsed(path: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise SpecError(
            f"There is no study file {path}. Name one that exists, or a workload as file.py[:name]."
        ) from None
    except OSError as error:
        raise SpecError(
            f"The study file {path} cannot be read: {error.strerror}. Make it readable, or name another."
        ) from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{path} is not text in UTF-8; save it in that encoding.") from error
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{path} is not valid TOML: {error}.") from error


def _read(top: Section, folder: Path) -> StudyFile:
    """Read the tables in the order in which people write them, which is then that of the faults."""
    workload, target, batch_sizes = _workload(top, folder), _target(top), _batch_sizes(top)
    search = top.table("search_space", None, f"{{ learning_rate = {SEARCH_EXAMPLE} }}")
    choices = read_search_space(search) if search else SearchChoices()
    budget = top.table("budget", _BUDGET, "{ trials_per_batch_size = 8 }")
    cost = top.table("cost", _COST, '{ price_per_device_hour = 2.5, currency = "EUR" }')
    return StudyFile(
        workload=workload,
        target=target,
        batch_sizes=batch_sizes,
        search_space=choices.search_space,
        fixed=choices.fixed,
        roles=choices.roles,
        **{key: budget.get(key, COUNT) for key in _BUDGET if budget},
        prices=_prices(cost) if cost else None,
    )


def _workload(top: Section, folder: Path) -> str:
    """Return the reference with its path made absolute; paths are relative to the study file."""
    text = top.require("workload", _WORKLOAD) or ""
    in_file = _IN_FILE.fullmatch(text)
    if in_file:
        file = Path(folder, in_file["file"]).resolve()
        if not file.is_file():
            top.fault("workload", f"got {shown(text)}, which is {file}, and there is no such file")
        return f"{file}{in_file['name'] or ''}"
    if text and not _IN_MODULE.fullmatch(text):
        top.fault("workload", f"got {shown(text)}; valid is {_WORKLOAD.valid}")
    return text


def _target(top: Section) -> Target | None:
    table = top.table("target", _TARGET, '{ metric = "accuracy", at_least = 0.97 }')
    if table is None:
        return None
    metric = table.require("metric", TEXT)
    at_least, at_most = table.get("at_least", NUMBER), table.get("at_most", NUMBER)
    if ("at_least" in table.values) == ("at_most" in table.values):
        table.fault("", "give exactly one of at_least and at_most, the value that the metric has to reach")
    try:
        return Target(metric or "", at_least, at_most)
    except WorkloadError:
        return None  # Said above, or one of the values is no number.


def _batch_sizes(top: Section) -> BatchSizes | None:
    if isinstance(top.values.get("batch_sizes"), list):
        listed = top.get("batch_sizes", Kind("a list of different whole numbers of at least 1", _counts))
        return BatchSizes(listed=listed or ())
    table = top.table("batch_sizes", _BATCH_SIZES, "{ min = 8, max = 4096 }, or a list such as [64, 256]")
    if table is None:
        return None
    minimum, maximum = table.get("min", COUNT) or 1, table.get("max", COUNT)
    if maximum is not None and maximum < minimum:
        table.fault("max", f"got {maximum}; valid is a whole number of at least min, which is {minimum}")
    return BatchSizes(minimum, maximum)


def _counts(value: object) -> tuple[int, ...] | None:
    counts = {COUNT.read(item) for item in value} if isinstance(value, list) else set()
    sizes = sorted(count for count in counts if count is not None)
    return tuple(sizes) if sizes and isinstance(value, list) and len(sizes) == len(value) else None


def _prices(cost: Section) -> Prices:
    currency = cost.get("currency", TEXT)
    prices = Prices(
        cost.get("price_per_device_hour", AMOUNT),
        power_w=cost.get("power_w", AMOUNT),
        upfront_cost=cost.get("upfront", AMOUNT),
    )
    return replace(prices, currency=currency) if currency else prices
