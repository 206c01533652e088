"""Studies as Optuna keeps them, for its sampler and its dashboard."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import optuna
from optuna.storages import BaseStorage, RDBStorage, get_storage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, create_trial

from advisor.errors import StorageError
from advisor.records.search_space import HyperparameterValue, SearchSpace
from advisor.records.storage_url import StorageURL, parse_storage_url
from advisor.records.trials import Study, StudyKind, Trial, TrialState
from advisor.tuning.database import faults_in_words, open_tables, quiet
from advisor.tuning.distributions import described, given_value, kept_distribution, kept_name
from advisor.tuning.sampler import SeededTPESampler
from advisor.tuning.trials import (
    PRUNED,
    constraints,
    ending,
    finished_trial,
    outcome,
    own_number,
    running_trial,
)


@dataclass(frozen=True)
class _OpenStudy:
    study: optuna.Study
    study_id: int
    search_space: SearchSpace
    metric: str


class OptunaBoard:
    """Implements :class:`~advisor.workflows.ports.StudyBoard`."""

    def __init__(self, tables: RDBStorage, url: StorageURL) -> None:
        self._tables = tables
        self._storage: BaseStorage = get_storage(tables)
        self._url = url
        self._open_studies: dict[str, _OpenStudy] = {}

    def close(self) -> None:
        """Close the connections to the database."""
        self._storage.remove_session()
        self._tables.engine.dispose()

    def open(self, study: Study, search_space: SearchSpace, seed: int) -> None:
        """Create the Optuna study of that name unless it exists.

        Raises StorageError where it exists with another search space.
        """
        _require_distinct_names(search_space)
        with faults_in_words(self._url), quiet():
            kept = optuna.create_study(
                storage=self._storage,
                sampler=SeededTPESampler(seed),
                study_name=study.name,
                direction=_direction(study),
                load_if_exists=True,
            )
            words = {name: described(distribution) for name, distribution in search_space.items()}
            begun_with = kept.user_attrs.get("search_space")
            if begun_with is None:
                _describe(kept, study, words)
            elif begun_with != words:
                raise StorageError(_changed(study.name, begun_with, words))
            study_id = self._storage.get_study_id_from_name(study.name)
        self._open_studies[study.name] = _OpenStudy(kept, study_id, search_space, study.target.metric)

    def ask(self, study: str) -> tuple[int, Mapping[str, HyperparameterValue]]:
        """Start a trial where the sampler proposes; return its number and values."""
        opened = self._opened(study)
        with faults_in_words(self._url):
            space = {
                kept_name(name, distribution): kept_distribution(distribution)
                for name, distribution in sorted(opened.search_space.items())
            }
            trial = opened.study.ask(space)
        values = {
            name: given_value(distribution, trial.params[kept_name(name, distribution)])
            for name, distribution in opened.search_space.items()
        }
        return trial.number, values

    def ask_at(self, study: str, hyperparameters: Mapping[str, HyperparameterValue]) -> int:
        """Start a trial at given values; return its number.

        The search space's hyperparameters are all given, within their ranges; others are kept as attributes
        of the trial.
        """
        opened = self._opened(study)
        return self._create(opened, running_trial(study, opened.search_space, hyperparameters))

    def add(self, study: str, trial: Trial, value: float | None) -> None:
        """Add a finished trial with its curve, as :meth:`ask_at` and :meth:`tell` would have left it.

        Its number on the board is the next free one; the trial's own number is kept as an attribute, and
        so is a value outside of its range. A trial whose number the board has is left as it is.
        """
        opened = self._opened(study)
        with faults_in_words(self._url):
            kept = self._storage.get_all_trials(opened.study_id, deepcopy=False)
        if trial.number in map(own_number, kept):
            return
        self._create(opened, finished_trial(opened.search_space, trial, opened.metric, value))

    def report(self, study: str, number: int, step: int, value: float) -> None:
        """Show an intermediate value of a running trial."""
        trial_id, ended = self._found(study, number)
        if ended is not None:
            raise _not_running(study, number)
        with faults_in_words(self._url):
            self._storage.set_trial_intermediate_value(trial_id, step, value)

    def tell(self, study: str, number: int, state: TrialState, value: float | None, reason: str) -> None:
        """End a trial; an infeasible one is told to the sampler as such, with its reason.

        A trial that has ended is left as it is where Optuna would keep ``state`` as the same state again, and
        is a StorageError where not.
        """
        trial_id, ended = self._found(study, number)
        kept_state, told = ending(state, value)
        if ended == kept_state:
            return
        if ended is not None:
            raise _not_running(study, number)
        # A trial in a database takes constraints as attributes, which Optuna alone can spell.
        spelled = create_trial(state=PRUNED, constraints=constraints(state)).system_attrs
        with faults_in_words(self._url):
            for name, said in outcome(state, reason).items():
                self._storage.set_trial_user_attr(trial_id, name, said)
            for name, constraint in spelled.items():
                self._storage.set_trial_system_attr(trial_id, name, constraint)
            self._opened(study).study.tell(number, told, state=kept_state)

    def set_note(self, study: str, note: str) -> None:
        """Write the note that the dashboard shows on the study."""
        from optuna_dashboard import save_note

        with faults_in_words(self._url):
            save_note(self._opened(study).study, note)

    def _opened(self, study: str) -> _OpenStudy:
        if study not in self._open_studies:
            raise StorageError(f"The study {study} has not been opened.")
        return self._open_studies[study]

    def _found(self, study: str, number: int) -> tuple[int, optuna.trial.TrialState | None]:
        """Return Optuna's identity of a trial and the state that it ended in, None where it is running."""
        opened = self._opened(study)
        with faults_in_words(self._url):
            try:
                trial_id = self._storage.get_trial_id_from_study_id_trial_number(opened.study_id, number)
                state = self._storage.get_trial(trial_id).state
            except KeyError as error:
                raise _not_running(study, number) from error
        return trial_id, state if state.is_finished() else None

    def _create(self, opened: _OpenStudy, trial: FrozenTrial) -> int:
        # Not enqueued, as another process that asks at the same moment would be given the point.
        with faults_in_words(self._url):
            trial_id = self._storage.create_new_trial(opened.study_id, template_trial=trial)
            return self._storage.get_trial_number_from_id(trial_id)


def open_board(url: str) -> OptunaBoard:
    """Return the board at ``url``, Optuna's tables created where there are none.

    ``url`` is ``sqlite:///FILE`` or ``postgresql://…``. Raises StorageError where the database cannot be
    reached or was written by another version of Optuna.
    """
    parsed = parse_storage_url(url)
    return OptunaBoard(open_tables(parsed), parsed)


def _not_running(study: str, number: int) -> StorageError:
    return StorageError(f"Trial {number} of the study {study} is not running.")


def _direction(study: Study) -> StudyDirection:
    if study.kind is StudyKind.STEPS_TO_TARGET or not study.target.maximize:
        return StudyDirection.MINIMIZE
    return StudyDirection.MAXIMIZE


def _describe(kept: optuna.Study, study: Study, search_space: Mapping[str, str]) -> None:
    attributes = {
        "workload": study.workload,
        "batch_size": study.batch_size,
        "command": study.command,
        "configuration": asdict(study.configuration),
        "search_space": search_space,
    }
    for name, value in attributes.items():
        kept.set_user_attr(name, value)


def _require_distinct_names(search_space: SearchSpace) -> None:
    names = [kept_name(name, distribution) for name, distribution in search_space.items()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise StorageError(
            f"The search space uses the name {twice[0]} itself, under which the logarithm of 1 - "
            f"{twice[0].removeprefix('one_minus_')} is searched. Rename one of the two."
        )


def _changed(study: str, begun_with: Mapping[str, str], now: Mapping[str, str]) -> str:
    changes = [
        f"{name} was {begun_with.get(name, 'not searched')} and is now {now.get(name, 'not searched')}"
        for name in sorted(begun_with.keys() | now.keys())
        if begun_with.get(name) != now.get(name)
    ]
    return (
        f"The study {study} was begun with another search space: {'; '.join(changes)}. "
        "Take the earlier one back, or name another database with --storage to begin anew."
    )
