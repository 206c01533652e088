"""A model and all that is compiled for it: step loops by batch size, and evaluation."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from advisor.errors import SessionError, WorkloadError
from advisor.records.bottleneck import InputDiagnosis
from advisor.records.requests import SessionOptions
from advisor.records.session import BlockTiming, GradientNorms, StepPart
from advisor.records.workload import Workload
from advisor.training.checkpoints import read_checkpoint, write_checkpoint
from advisor.training.checks import check_inputs
from advisor.training.data import Split
from advisor.training.evaluation import Evaluator, evaluation_batch_size
from advisor.training.faults import blaming_the_workload
from advisor.training.feeds import Feed, training_feed
from advisor.training.gradient_noise import GradientProbe
from advisor.training.graphs import draws_statefully, forget_gradients
from advisor.training.loop import StepFunction, StepLoop, step_function
from advisor.training.losses import LossRecorder
from advisor.training.model import ReadHyperparameters, compile_model, construct, initial_values
from advisor.training.optimizers import Values, defaults_of, make_optimizer
from advisor.training.parts import StepParts, seconds_per_step
from advisor.training.pipeline import diagnose
from advisor.training.randomness import seed_everything, seed_without_tensorflow
from advisor.training.state import TrainingState
from advisor.training.unused import unused_features

_KEPT_LOOPS = 6
_HEAD_EXAMPLES = 2


class Program:
    """The model of a workload at the hyperparameter values that it read.

    Building it evaluates two examples, so that all of its state exists: ``first_metrics`` and
    ``loss_parts`` are what that gave, ``head`` are the examples.
    """

    def __init__(
        self,
        workload: Workload,
        splits: Mapping[str, Split],
        values: Values,
        seed: int,
        options: SessionOptions,
    ) -> None:
        self._workload, self._splits, self._options = workload, splits, options
        self._strategy = tf.distribute.get_strategy()
        self._hp = ReadHyperparameters(values)
        self._loops: OrderedDict[int, StepLoop] = OrderedDict()
        self.batch_size, self._seed = 1, seed
        self.head = keras.tree.map_structure(tf.constant, splits["train"].head(_HEAD_EXAMPLES))
        recorder = LossRecorder()
        with self._strategy.scope():
            seed_everything(seed)
            self.model = construct(workload, self._hp)
            check_inputs(self.model, splits)
            self._held = make_optimizer(workload.optimizer, self._optimizer_values(values))
            compile_model(self.model, workload, self._held.optimizer, recorder)
            self._evaluator = Evaluator(self.model, recorder, self._note_evaluation)
            with blaming_the_workload(
                f"evaluating the model of {workload.name} on {_HEAD_EXAMPLES} examples"
            ):
                self.first_metrics, self.loss_parts = self._evaluator.probe(self.head)
            if not self.model.trainable_variables:
                raise WorkloadError(f"The model of {workload.name} has no trainable weights.")
            self.model.optimizer.build(self.model.trainable_variables)
        outputs = keras.tree.flatten([part.predictions for part in self.loss_parts])
        self._output_bytes = sum(leaf.dtype.size * leaf.shape[1:].num_elements() for leaf in outputs)
        self._state = TrainingState(self.model)
        self._step_function = step_function(self.model, options.xla)
        self._parts: StepParts | None = None
        self._gradients: GradientProbe | None = None
        self._needs_tensorflow_seed: bool | None = None  # known once fresh weights were made
        self._draws_statefully = False

    @property
    def held_hyperparameters(self) -> frozenset[str]:
        """Names of the optimizer's hyperparameters that need no rebuilding."""
        own = self._hp.names_read - {"learning_rate"}
        return self._held.held() if callable(self._workload.optimizer) else self._held.held() - own

    @property
    def names_read(self) -> frozenset[str]:
        """Names of the hyperparameters that the model has read so far."""
        return frozenset(self._hp.names_read)

    @property
    def optimizer_names_read(self) -> frozenset[str]:
        """Names of the hyperparameters that the optimizer has, or its function has read."""
        return frozenset(self._held.names_read)

    @property
    def optimizer_configuration(self) -> Mapping[str, Any]:
        """What the user's optimizer was built with, without a constant learning rate."""
        return self._held.configuration

    @property
    def size_bytes(self) -> int:
        """Memory of all variables."""
        return self._state.size_bytes

    def fits(self, values: Values, seed: int) -> bool:
        """Return whether nothing has to be built anew for ``values`` and ``seed``."""
        if self._draws_statefully and seed != self._seed:
            return False
        return self._hp.fits(values) and self._held.fits(self._optimizer_values(values))

    def prepare(self, batch_size: int, values: Values) -> bool:
        """Make sure that the step loop of ``batch_size`` is compiled; return whether that was needed."""
        self._hp.renew(values)
        self.drop_parts()
        if batch_size != self.batch_size and self.batch_size in self._loops:
            self._loop.feed.start(0, 0)  # It lets go of its iterator, and of a shuffle buffer.
        self.batch_size = batch_size
        if batch_size in self._loops:
            self._loops.move_to_end(batch_size)
            return False
        feed = training_feed(self._splits["train"], batch_size)
        self._loops[batch_size] = self._traced_loop(self._step_function, feed)
        if len(self._loops) > _KEPT_LOOPS:
            self._loops.popitem(last=False)
        return True

    def start(self, values: Values, seed: int) -> None:
        """Begin anew with ``values``: fresh weights, a fresh optimizer, step 0 of the order of ``seed``."""
        self._hp.renew(values)
        self._state.start(self._initial_weights(values, seed), seed)
        self._held.assign(self._optimizer_values(values))
        self._seed = seed
        if self._loops:
            self._loop.start(seed, 0)
            self._loop.warm_up()

    def drop_parts(self) -> bool:
        """Forget the parts of a step, and their batches; return whether there were any."""
        had, self._parts = self._parts is not None, None
        return had

    def train(self, steps: int) -> BlockTiming:
        """Take ``steps`` optimizer steps."""
        return self._loop.run(steps)

    def train_part(self, part: StepPart, steps: int) -> BlockTiming:
        """Take ``steps`` steps of one part alone."""
        if self._parts is None:
            train = self._splits["train"]
            size, make = self._workload.example_size, self._traced_loop
            self._parts = StepParts(train, self.batch_size, size, self._step_function, make)
        return self._parts.run(part, steps)

    def diagnose(self, seconds: float, input_workers: int) -> InputDiagnosis:
        """Look into the input pipeline, trying each change of it for about ``seconds``."""
        train = self._splits["train"]
        unused = unused_features(self._step_function, self.head, train.paths)

        def time_steps(split: Split) -> Callable[[float], float]:
            loop = self._traced_loop(self._step_function, training_feed(split, self.batch_size))
            return partial(seconds_per_step, loop)

        found = diagnose(train, self.batch_size, seconds, input_workers, unused, time_steps)
        return replace(found, input_workers=input_workers)

    def evaluate(self, split: str) -> Mapping[str, float]:
        """Return the metrics of ``split``; training goes on afterwards as if it had not happened."""
        example_bytes = self._splits[split].example_bytes + self._output_bytes
        batch_size = evaluation_batch_size(example_bytes, self.batch_size)
        self._evaluator.prepare(self._splits[split], batch_size)
        kept = self._state.untrained()
        metrics = self._evaluator.run(self._splits[split], batch_size)
        for variable, value in kept:
            variable.assign(value)
        return metrics

    def gradient_norms(self, batches: int) -> Sequence[GradientNorms]:
        """Return squared norms of gradients; training goes on afterwards as if it had not happened."""
        if self._gradients is None or self._gradients.batch_size != self.batch_size:
            self._gradients = GradientProbe(self.model, self._splits["train"], self.batch_size)
        return self._gradients.norms(batches, self._seed)

    @property
    def step(self) -> int:
        """Optimizer steps taken since the start."""
        return self._loop.step

    def save(self, path: Path) -> None:
        """Write the whole training to ``path``."""
        numbers = {"batch_size": self.batch_size, "seed": self._seed, "step": self.step}
        write_checkpoint(path, self._state.arrays(), **numbers)

    def restore(self, path: Path) -> None:
        """Go on from what :meth:`save` wrote."""
        stored = read_checkpoint(path)
        if not {"batch_size", "seed", "step"} <= stored.keys():
            raise SessionError(f"{path} is no checkpoint of a training session.")
        if int(stored["batch_size"]) != self.batch_size:
            raise SessionError(
                f"The checkpoint {path} was written at batch size {int(stored['batch_size'])}, and this "
                f"training has batch size {self.batch_size}. Reset with the batch size of the checkpoint."
            )
        self._state.load(stored)
        self._seed = int(stored["seed"])
        self._loop.start(self._seed, int(stored["step"]))

    def _initial_weights(self, values: Values, seed: int) -> list[tf.Tensor]:
        """Return fresh weights, for which TensorFlow is seeded only where that matters.

        The first start has the seed that the model was built with, so its weights tell whether it does.
        """
        arguments = (self._workload, ReadHyperparameters(values), self.model, self.head)
        if not (self._needs_tensorflow_seed or self._draws_statefully):
            seed_without_tensorflow(seed)
            weights = initial_values(*arguments)
            if self._needs_tensorflow_seed is None:
                self._needs_tensorflow_seed = not self._state.has_weights(weights)
            if not self._needs_tensorflow_seed:
                return weights
        seed_everything(seed)
        return initial_values(*arguments)

    def _traced_loop(self, step: StepFunction, feed: Feed) -> StepLoop:
        with self._strategy.scope():
            loop = StepLoop(step, feed, self._strategy, self._options.steps_per_call)
            graph = loop.trace()
            self._state.note_training(graph, loop.own_variables)
            self._finish(graph)
        return loop

    def _note_evaluation(self, graph: tf.Graph) -> None:
        self._state.note(graph)
        self._finish(graph)

    def _finish(self, graph: tf.Graph) -> None:
        forget_gradients(graph)
        self._draws_statefully = self._draws_statefully or draws_statefully(graph)

    @property
    def _loop(self) -> StepLoop:
        return self._loops[self.batch_size]

    def _optimizer_values(self, values: Values) -> Values:
        """Return ``values`` without the part of those that the model itself applies, such as weight decay."""
        optimizer = self._workload.optimizer
        if callable(optimizer):
            return values
        defaults = defaults_of(optimizer)
        applied = self._hp.names_read - {"learning_rate"}
        neutral = {**defaults, "weight_decay": 0.0}
        return {name: neutral[name] if name in applied else values[name] for name in defaults}
