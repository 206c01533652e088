"""A workload with its data, checked: what can be asked of it, and what it is."""

from collections.abc import Mapping

from advisor.errors import SessionError, WorkloadError
from advisor.records.description import WorkloadDescription
from advisor.records.requests import WorkloadReference
from advisor.records.search_space import HyperparameterValue, default_value
from advisor.training import devices
from advisor.training.checks import check_losses, check_names_are_read, check_splits, check_target
from advisor.training.data import load_splits
from advisor.training.fingerprint import Parts, code_of, fingerprint
from advisor.training.loading import load_workload
from advisor.training.optimizers import CUSTOM, Values, check_values, defaults_of
from advisor.training.program import Program
from advisor.training.randomness import seed_everything

_LOADING_SEED = 0


class Problem:
    """The workload of a reference, its splits, and the values that hold where nobody says otherwise.

    Raises :class:`~advisor.errors.WorkloadError` for every fault that shows without a model.
    """

    def __init__(self, reference: WorkloadReference) -> None:
        seed_everything(_LOADING_SEED)  # So that a workload splits its data alike in every process.
        self.workload = load_workload(reference)
        self._code = code_of(self.workload)
        optimizer = defaults_of(self.workload.optimizer)
        space = {
            name: default_value(distribution)
            for name, distribution in self.workload.search_space.items()
            if name not in optimizer or distribution.default is not None
        }
        self.defaults: Values = {**optimizer, **space, **reference.fixed}
        self.fixed, self.options = reference.fixed, reference.options
        self.splits = load_splits(self.workload)
        check_splits(self.splits)
        self._losses_are_checked = False

    def values(self, hyperparameters: Mapping[str, HyperparameterValue]) -> Values:
        """Return a value for every hyperparameter: those given, and defaults for the rest."""
        unknown = sorted(hyperparameters.keys() - self.defaults.keys())
        if unknown:
            raise WorkloadError(
                f"Workload {self.workload.name!r} has no hyperparameter {', '.join(map(repr, unknown))}. It "
                f"has {', '.join(sorted(self.defaults))}; others must be named in its search_space."
            )
        values = {**self.defaults, **hyperparameters}
        check_values(values, defaults_of(self.workload.optimizer))
        return values

    def check_batch_size(self, batch_size: int) -> None:
        """Raise SessionError unless 1 ≤ ``batch_size`` ≤ training examples."""
        examples = self.splits["train"].examples
        if not 1 <= batch_size <= examples:
            raise SessionError(
                f"Batch size {batch_size:,} cannot be trained: the training split has {examples:,} examples. "
                f"Choose from 1 to {examples:,}."
            )

    def check_split(self, name: str) -> None:
        """Raise SessionError unless there is a split of that name."""
        if name not in self.splits:
            raise SessionError(
                f"Workload {self.workload.name!r} has no split {name!r}; it has {', '.join(self.splits)}."
            )

    def program(self, values: Values, seed: int) -> Program:
        """Build a program for ``values``; with the first one, check loss, labels and target."""
        program = Program(self.workload, self.splits, values, seed, self.options)
        if not self._losses_are_checked:
            check_losses(program.loss_parts, program.head, self.splits)
            check_target(self.workload.target, tuple(program.first_metrics))
            self._losses_are_checked = True
        return program

    def describe(self, program: Program, initial_metrics: Mapping[str, float]) -> WorkloadDescription:
        """Return the description; ``program`` was built for the defaults."""
        check_names_are_read(self.workload, self.fixed, program.names_read | program.optimizer_names_read)
        optimizer = self.workload.optimizer
        configuration = devices.configuration(program.model.dtype_policy.name, self.options)
        environment = devices.environment()
        return WorkloadDescription(
            name=self.workload.name,
            fingerprint=fingerprint(
                self.workload, self.splits, program.model, self._parts(program), configuration, environment
            ),
            target=self.workload.target,
            optimizer=CUSTOM if callable(optimizer) else optimizer,
            optimizer_hyperparameters={
                name: float(self.defaults[name])
                for name in sorted(program.held_hyperparameters - self.fixed.keys())
            },
            search_space={
                name: range_ for name, range_ in self.workload.search_space.items() if name not in self.fixed
            },
            examples={name: split.examples for name, split in self.splits.items()},
            metrics=tuple(initial_metrics),
            initial_metrics=initial_metrics,
            parameter_count=int(program.model.count_params()),
            configuration=configuration,
            environment=environment,
        )

    def _parts(self, program: Program) -> Parts:
        """Return what the fingerprint takes of model, optimizer and loss besides the built model.

        The learning rate is retuned by every study and so is no part of it, unless it is fixed.
        """
        of_optimizer = defaults_of(self.workload.optimizer).keys() | program.optimizer_names_read
        values = {name: self.defaults[name] for name in of_optimizer - {"learning_rate"}}
        configuration = program.optimizer_configuration
        return {
            "model": [self._code["model"], {name: self.defaults[name] for name in program.names_read}],
            "optimizer": [self._code["optimizer"], values, configuration, self.fixed],
            "loss": self._code["loss"],
            "pipeline": self._code["pipeline"],
            "target": self._code["target"],
        }
