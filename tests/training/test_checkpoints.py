"""A checkpoint is one file, whole or absent, and a restored training goes on bit by bit as it would have."""

import keras
import numpy as np
import pytest

from advisor.errors import SessionError
from advisor.training import checkpoints, data
from tests.training.zoo import BY_NAME

KEPT = ("normalized", "own-steps", "self-made", "branched")
BATCH_SIZE = 8


@pytest.fixture
def started(open_workload):
    session = open_workload(BY_NAME["normalized"])
    session.reset(BATCH_SIZE, {}, 3)
    return session


@pytest.mark.parametrize("name", KEPT)
def test_a_restored_training_goes_on_bit_by_bit(name, open_workload, tmp_path):
    session = open_workload(BY_NAME[name])
    session.reset(BATCH_SIZE, {}, 3)
    session.train(5)
    session.save(tmp_path / "kept")
    losses = [session.train(3).training_loss, session.train(6).training_loss]
    session.save(tmp_path / "after")
    session.reset(BATCH_SIZE, {}, 4)
    session.train(2)
    session.restore(tmp_path / "kept")
    assert [session.train(3).training_loss, session.train(6).training_loss] == losses
    session.save(tmp_path / "again")
    after, again = (np.load(tmp_path / name) for name in ("after", "again"))
    assert after.files == again.files
    for variable in after.files:
        np.testing.assert_array_equal(after[variable], again[variable])


def test_a_training_of_large_arrays_is_restored_in_another_session(open_workload, tmp_path, monkeypatch):
    monkeypatch.setattr(data, "RESIDENT_BYTES", 0)
    first, second = (open_workload(BY_NAME["normalized"]) for _ in range(2))
    for session, seed in ((first, 3), (second, 4)):
        session.reset(BATCH_SIZE, {}, seed)
    first.train(10)
    first.save(tmp_path / "kept")
    second.restore(tmp_path / "kept")
    assert second.train(4).training_loss == first.train(4).training_loss


def test_half_precision_is_kept(open_workload, tmp_path):
    def build(hp):
        return keras.Sequential([keras.Input((5,)), keras.layers.Dense(1, dtype="bfloat16")])

    from dataclasses import replace

    session = open_workload(replace(BY_NAME["normalized"], build_model=build))
    session.reset(BATCH_SIZE, {}, 3)
    session.train(2)
    session.save(tmp_path / "kept")
    expected = session.train(2).training_loss
    session.restore(tmp_path / "kept")
    assert session.train(2).training_loss == expected


def test_a_write_that_fails_leaves_the_older_checkpoint(started, tmp_path, monkeypatch):
    checkpoint = tmp_path / "kept"
    started.save(checkpoint)
    before = checkpoint.read_bytes()

    def full(file, **contents):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints.np, "savez", full)
    with pytest.raises(SessionError, match="kept cannot be written: No space left on device"):
        started.save(checkpoint)
    assert checkpoint.read_bytes() == before
    assert list(tmp_path.iterdir()) == [checkpoint]


def test_a_place_that_cannot_be_written_is_told(started, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SessionError, match="cannot be written"):
        started.save(tmp_path / "file" / "kept")


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 cut off"])
def test_a_file_that_is_no_checkpoint_is_told(content, started, tmp_path):
    (tmp_path / "kept").write_bytes(content)
    with pytest.raises(SessionError, match="no checkpoint, or a damaged one"):
        started.restore(tmp_path / "kept")


def test_arrays_of_another_program_are_told(started, tmp_path):
    with (tmp_path / "kept").open("wb") as file:
        np.savez(file, weights=np.ones(3))
    with pytest.raises(SessionError, match="no checkpoint of a training session"):
        started.restore(tmp_path / "kept")


def test_a_checkpoint_of_another_batch_size_is_refused(started, tmp_path):
    started.save(tmp_path / "kept")
    started.reset(2 * BATCH_SIZE, {}, 3)
    with pytest.raises(SessionError, match="written at batch size 8, and this training has batch size 16"):
        started.restore(tmp_path / "kept")


def test_a_checkpoint_of_another_model_is_refused(started, open_workload, tmp_path):
    started.save(tmp_path / "kept")
    other = open_workload(BY_NAME["lazy"])
    other.reset(BATCH_SIZE, {}, 3)
    with pytest.raises(SessionError, match="another model or optimizer"):
        other.restore(tmp_path / "kept")
