"""What every Store promises; a test class of each implementation inherits these."""

import math
from dataclasses import replace

import pytest

from advisor.errors import StorageError
from advisor.records.description import Configuration
from advisor.records.measurement import BatchMeasurement, MeasurementOutcome
from advisor.records.search_space import HyperparameterValue
from advisor.records.session import BlockTiming
from advisor.records.trials import CurvePoint, TrialPlan, TrialPurpose, TrialState
from advisor.workflows.ports import Store
from tests.contracts import samples


class StoreContract:
    """Needs a fixture ``store`` that gives an empty one."""

    # Measurements

    def test_nothing_is_measured_at_first(self, store: Store) -> None:
        assert list(store.latest_measurements("digits")) == []

    def test_a_measurement_comes_back_as_it_went_in(self, store: Store) -> None:
        measured = samples.measurement(8)
        _add(store, measured)
        (run,) = store.latest_measurements("digits")
        assert run.measurements == (measured,)
        assert (run.workload, run.fingerprint) == ("digits", samples.FINGERPRINT)
        assert run.configuration == samples.CONFIGURATION
        assert run.environment == {"python": "3.11"}
        assert run.measured_at.startswith("20")

    def test_failed_measurements_and_diverged_losses_come_back(self, store: Store) -> None:
        diverged = BlockTiming(steps=5, seconds=0.25, training_loss=math.nan)
        infinite = BlockTiming(steps=5, seconds=0.25, training_loss=math.inf)
        row = BatchMeasurement(4, MeasurementOutcome.OK, "", (), (diverged, infinite))
        failed = BatchMeasurement(8, MeasurementOutcome.OUT_OF_MEMORY, "no room for 8")
        _add(store, row, failed)
        (run,) = store.latest_measurements("digits")
        assert run.measurements[1] == failed
        losses = [block.training_loss for block in run.measurements[0].blocks]
        assert math.isnan(losses[0])
        assert losses[1] == math.inf

    def test_batch_sizes_measured_one_by_one_make_up_one_run(self, store: Store) -> None:
        for batch_size in (16, 4, 8):
            _add(store, samples.measurement(batch_size))
        (run,) = store.latest_measurements("digits")
        assert [row.batch_size for row in run.measurements] == [4, 8, 16]

    def test_a_batch_size_measured_again_replaces_the_older(self, store: Store) -> None:
        _add(store, samples.measurement(8, seconds=1.0), samples.measurement(16, seconds=1.0))
        _add(store, samples.measurement(8, seconds=2.0))
        (run,) = store.latest_measurements("digits")
        assert [row.blocks[0].seconds for row in run.measurements] == [2.0, 1.0]

    def test_each_timing_fingerprint_has_its_run_the_newest_first(self, store: Store) -> None:
        other = replace(samples.FINGERPRINT, versions="newer")
        _add(store, samples.measurement(8))
        _add(store, samples.measurement(8), fingerprint=other)
        _add(store, samples.measurement(16))
        runs = store.latest_measurements("digits")
        assert [run.fingerprint for run in runs] == [samples.FINGERPRINT, other]
        assert [len(run.measurements) for run in runs] == [2, 1]

    def test_a_changed_target_leaves_a_measurement_valid(self, store: Store) -> None:
        other = replace(samples.FINGERPRINT, target="higher")
        _add(store, samples.measurement(8))
        _add(store, samples.measurement(16), fingerprint=other)
        (run,) = store.latest_measurements("digits")
        assert run.fingerprint == other
        assert [row.batch_size for row in run.measurements] == [8, 16]

    def test_workloads_are_kept_apart(self, store: Store) -> None:
        _add(store, samples.measurement(8))
        assert list(store.latest_measurements("another")) == []

    # Studies

    def test_a_study_comes_back_with_its_moment(self, store: Store) -> None:
        study = samples.study()
        opened = store.open_study(study)
        assert opened.created_at.startswith("20")
        assert opened == replace(study, created_at=opened.created_at)
        assert list(store.studies()) == [opened]

    def test_a_study_opened_again_is_the_recorded_one(self, store: Store) -> None:
        first = store.open_study(samples.study())
        again = store.open_study(replace(samples.study(), command="another command"))
        assert again == first
        assert len(store.studies()) == 1

    def test_studies_are_listed_by_age_and_workload(self, store: Store) -> None:
        for name, workload in (("b", "digits"), ("a", "digits"), ("c", "another")):
            store.open_study(replace(samples.study(), name=name, workload=workload))
        assert [study.name for study in store.studies()] == ["b", "a", "c"]
        assert [study.name for study in store.studies("digits")] == ["b", "a"]
        assert list(store.studies("unknown")) == []

    def test_a_note_replaces_the_older(self, store: Store) -> None:
        store.open_study(samples.study())
        for note in ("first", "found 0.97 at trial 3"):
            store.set_note(samples.study().name, note)
        assert store.studies()[0].note == "found 0.97 at trial 3"
        assert store.open_study(samples.study()).note == "found 0.97 at trial 3"

    # Trials

    def test_the_next_free_number_is_given_where_none_is_named(self, store: Store) -> None:
        name = store.open_study(samples.study()).name
        assert [store.start_trial(name, number, samples.plan()) for number in (None, 4, None)] == [0, 4, 5]

    def test_a_trial_runs_grows_and_ends(self, store: Store) -> None:
        name = store.open_study(samples.study()).name
        plan = samples.plan()
        assert store.start_trial(name, 0, plan) == 0
        (running,) = store.trials(name)
        assert (running.number, running.batch_size, running.plan) == (0, 64, plan)
        assert (running.state, running.curve) == (TrialState.RUNNING, ())
        assert running.owner
        points = tuple(samples.point(step) for step in (10, 20))
        for point in points:
            store.record_point(name, 0, point)
        store.finish_trial(name, 0, TrialState.COMPLETE, "ran all its steps", "digits/best.weights")
        (ended,) = store.trials(name)
        assert ended.curve == points
        assert (ended.state, ended.reason) == (TrialState.COMPLETE, "ran all its steps")
        assert ended.checkpoint == "digits/best.weights"

    def test_values_keep_their_types(self, store: Store) -> None:
        name = store.open_study(samples.study()).name
        values: dict[str, HyperparameterValue] = {
            "a": 1.0,
            "b": 1,
            "c": True,
            "d": "nan",
            "e": 1e300,
            "f": 5e-324,
            "g": 0.1 + 0.2,
        }
        store.start_trial(name, 0, TrialPlan(values, 2**63, TrialPurpose.MEASURE, 7))
        (trial,) = store.trials(name)
        assert trial.plan.hyperparameters == values
        kinds = [type(value) for value in trial.plan.hyperparameters.values()]
        assert kinds == [type(value) for value in values.values()]
        assert (trial.plan.seed, trial.plan.purpose) == (2**63, TrialPurpose.MEASURE)

    def test_words_of_a_crashed_program_are_kept(self, store: Store) -> None:
        name = store.open_study(samples.study()).name
        store.start_trial(name, 0, samples.plan())
        store.finish_trial(name, 0, TrialState.FAILED, "it said \0 and \udcff, and “stop” at 20 °C")
        assert "and “stop” at 20 °C" in store.trials(name)[0].reason

    def test_diverged_points_come_back(self, store: Store) -> None:
        name = store.open_study(samples.study()).name
        store.start_trial(name, 0, samples.plan())
        metrics = {"loss": math.nan, "accuracy": -math.inf}
        store.record_point(name, 0, CurvePoint(1, metrics, math.inf, 0.1, 0.2))
        store.record_point(name, 0, CurvePoint(2, {"loss": 0.5}, None, 0.1, 0.2))
        first, second = store.trials(name)[0].curve
        assert math.isnan(first.metrics["loss"])
        assert (first.metrics["accuracy"], first.training_loss) == (-math.inf, math.inf)
        assert second.training_loss is None

    def test_trials_come_by_number_and_points_by_step(self, store: Store) -> None:
        name = store.open_study(samples.study()).name
        for number in (2, 0, 1):
            store.start_trial(name, number, samples.plan())
        for step in (30, 10, 20):
            store.record_point(name, 1, samples.point(step))
        assert [trial.number for trial in store.trials(name)] == [0, 1, 2]
        assert [point.step for point in store.trials(name)[1].curve] == [10, 20, 30]

    @pytest.mark.parametrize("state", [state for state in TrialState if state is not TrialState.RUNNING])
    def test_a_trial_that_ended_in_any_state_does_not_go_on(self, store: Store, state: TrialState) -> None:
        name = store.open_study(samples.study()).name
        store.start_trial(name, 0, samples.plan())
        store.finish_trial(name, 0, state, "because")
        with pytest.raises(StorageError, match=state.value):
            store.record_point(name, 0, samples.point(1))
        (trial,) = store.trials(name)
        assert (trial.state, trial.reason, trial.curve) == (state, "because", ())

    def test_a_later_word_on_an_end_replaces_the_earlier(self, store: Store) -> None:
        name = store.open_study(samples.study()).name
        store.start_trial(name, 0, samples.plan())
        store.record_point(name, 0, samples.point(10))
        store.finish_trial(name, 0, TrialState.COMPLETE, "ran all its steps", "trial-0.npz")
        store.finish_trial(name, 0, TrialState.COMPLETE, "ran all its steps", None)
        (trial,) = store.trials(name)
        assert (trial.checkpoint, trial.state) == (None, TrialState.COMPLETE)
        assert trial.curve == (samples.point(10),)

    def test_nothing_is_recorded_twice(self, store: Store) -> None:
        name = store.open_study(samples.study()).name
        store.start_trial(name, 0, samples.plan())
        store.record_point(name, 0, samples.point(10))
        with pytest.raises(StorageError, match=r"Trial 0 .* already"):
            store.start_trial(name, 0, samples.plan())
        with pytest.raises(StorageError, match=r"Step 10 .* already"):
            store.record_point(name, 0, samples.point(10))
        assert len(store.trials(name)[0].curve) == 1

    def test_what_is_not_recorded_is_named(self, store: Store) -> None:
        for call in (
            lambda: store.trials("nowhere"),
            lambda: store.set_note("nowhere", "note"),
            lambda: store.start_trial("nowhere", 0, samples.plan()),
        ):
            with pytest.raises(StorageError, match="nowhere"):
                call()
        name = store.open_study(samples.study()).name
        with pytest.raises(StorageError, match=r"Trial 7 .* not recorded"):
            store.record_point(name, 7, samples.point(1))
        with pytest.raises(StorageError, match=r"Trial 7 .* not recorded"):
            store.finish_trial(name, 7, TrialState.FAILED, "why")

    # Descriptions and advice

    def test_descriptions_come_newest_first(self, store: Store) -> None:
        for workload in ("one", "two", "one"):
            store.save_description(samples.description(workload))
        assert [known.name for known in store.descriptions()] == ["one", "two"]
        assert store.descriptions()[0] == samples.description("one")

    def test_the_newest_description_replaces_the_older(self, store: Store) -> None:
        store.save_description(samples.description("one"))
        newer = replace(samples.description("one"), parameter_count=7, target=None)
        store.save_description(newer)
        assert list(store.descriptions()) == [newer]

    def test_the_newest_advice_is_read(self, store: Store) -> None:
        assert store.latest_advice("digits") is None
        store.save_advice(samples.advice(recommended=False))
        store.save_advice(samples.advice())
        assert store.latest_advice("digits") == samples.advice()
        assert store.latest_advice("another") is None


def _add(store: Store, *rows: BatchMeasurement, fingerprint: object = samples.FINGERPRINT) -> None:
    assert isinstance(fingerprint, type(samples.FINGERPRINT))
    environment = {"python": "3.11"}
    store.add_measurements("digits", fingerprint, Configuration(devices=2), environment, rows)
