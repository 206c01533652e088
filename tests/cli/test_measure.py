"""``advisor measure`` as a person uses it: real workloads with a planted fault, in real processes."""

import gzip
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ADVISOR, Shell

HUNGRY = """
import time
import keras, numpy as np, tensorflow as tf
from advisor import Workload

def wait(value):
    time.sleep(0.001)
    return value

def look_up(features, label):
    waited = tf.ensure_shape(tf.py_function(wait, [features["sound"]], tf.float32), (16,))
    return {**features, "sound": waited}, label

def load_data():
    random = np.random.default_rng(0)
    sound, noise = (random.normal(size=(128, size)).astype("float32") for size in (16, 48))
    split = ({"sound": sound, "noise": noise}, sound[:, :1])
    train = tf.data.Dataset.from_tensor_slices(split).map(look_up)
    return {"train": train, "validation": split}

class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, features):
        return self.dense(features["sound"])

workload = Workload("hungry", lambda hp: Model(), load_data, "mse", optimizer="sgd")
"""

PICKY = """
import keras, numpy as np, tensorflow as tf
from advisor import Workload

class Pair(keras.layers.Layer):
    def call(self, x):
        with tf.control_dependencies([tf.debugging.assert_greater(tf.shape(x)[0], 1, "a pair is needed")]):
            return tf.identity(x)

def build_model(hp):
    return keras.Sequential([keras.Input((4,)), Pair(), keras.layers.Dense(1)])

def load_data():
    x = np.ones((100, 4), "float32")
    return {"train": (x, x[:, :1]), "validation": (x, x[:, :1])}

workload = Workload("picky", build_model, load_data, "mse", optimizer="sgd")
"""

# 2 MB of activations for each example, and little arithmetic.
WIDE = """
import keras, numpy as np
from advisor import Workload

def build_model(hp):
    layers = [keras.layers.Activation("tanh") for _ in range(8)]
    return keras.Sequential([keras.Input((8,)), keras.layers.Dense(65536), *layers, keras.layers.Dense(1)])

def load_data():
    x = np.ones((4096, 8), "float32")
    return {"train": (x, x[:, :1]), "validation": (x[:8], x[:8, :1])}

workload = Workload("wide", build_model, load_data, "mse", optimizer="sgd")
"""


def write(folder: Path, text: str) -> str:
    (folder / "work.py").write_text(text, encoding="utf-8")
    return "work.py"


@pytest.fixture(scope="module")
def hungry(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shell, Any, str]:
    """A workload whose map sleeps, measured with everything that can be asked for."""
    shell = Shell(tmp_path_factory.mktemp("hungry"))
    asked = ["--batch-sizes", "8,16,32", "--seconds", "0.2", "--input-workers", "2", "--profile", "prof"]
    compared = ["--compare", "steps_per_call=1,xla", "--memory-limit", "6GiB", "--probe", "longest"]
    done = shell("measure", write(shell.folder, HUNGRY), *asked, *compared, "--format", "json")
    return shell, json.loads(done.stdout), done.stderr


def test_a_sleep_in_a_map_is_found_with_its_stage_and_what_helps(hungry: tuple[Shell, Any, str]) -> None:
    _, found, _ = hungry
    assert found["bottleneck"]["kind"] == "input"
    assert found["bottleneck"]["share"]["estimate"] > 0.5
    stages = {stage["name"]: stage["time_per_example_s"] for stage in found["diagnosis"]["stages"]}
    slowest = max(stages, key=lambda name: stages[name])
    assert "look_up" in slowest and "work.py" in slowest
    assert stages[slowest] > 0.5 * sum(stages.values())
    helped = {remedy["name"]: remedy for remedy in found["diagnosis"]["remedies"]}
    assert {"parallel map", "cache", "2 producers"} <= set(helped)
    assert helped["cache"]["step_after_s"] < helped["cache"]["step_before_s"]
    assert "num_parallel_calls" in helped["parallel map"]["how"]
    assert any(".cache()" in sentence and "Measured:" in sentence for sentence in found["bottleneck"]["next"])


def test_a_feature_that_the_model_never_reads_is_named(hungry: tuple[Shell, Any, str]) -> None:
    _, found, _ = hungry
    assert found["diagnosis"]["unused_features"] == ["x['noise']"]
    assert found["diagnosis"]["unused_share"] == pytest.approx(48 / (48 + 16 + 1))
    assert any("never reads x['noise']" in note for note in found["notes"])


def test_a_profile_is_written_for_both_viewers(hungry: tuple[Shell, Any, str]) -> None:
    shell, found, _ = hungry
    (recorded,) = shell.folder.glob("prof/plugins/profile/*/*.xplane.pb")
    (trace,) = shell.folder.glob("prof/plugins/profile/*/*.trace.json.gz")
    assert recorded.stat().st_size > 0
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    assert any("MatMul" in event["name"] for event in events)
    assert any(str(trace) in note for note in found["notes"])


def test_variants_stand_side_by_side(hungry: tuple[Shell, Any, str]) -> None:
    shell, found, said = hungry
    assert [one["variant"] for one in found["comparisons"]] == ["steps_per_call=1", "xla"]
    for comparison in found["comparisons"]:
        assert comparison["speedups"].keys() == {"8", "16", "32"}, comparison
        assert all(one["low"] < one["estimate"] < one["high"] for one in comparison["speedups"].values())
    assert "Measuring batch size 8 (xla)." in said
    text = shell("measure", "work.py", "--batch-sizes", "8,16,32", "--seconds", "0.2").stdout
    assert "What limits it" in text and "map look_up" in text


def test_what_is_asked_for_later_is_added_to_what_is_known(hungry: tuple[Shell, Any, str]) -> None:
    shell, before, _ = hungry
    again = shell("measure", "work.py", "--batch-sizes", "8,16,32", "--seconds", "0.2", "--format", "json")
    assert "Measuring" not in again.stderr and "Looking" not in again.stderr
    assert json.loads(again.stdout)["measurements"] == before["measurements"]


def test_an_error_at_one_size_is_that_error_and_no_limit(shell: Shell) -> None:
    found = shell.json("measure", write(shell.folder, PICKY), "--seconds", "0.05")
    rows = {row["batch_size"]: row for row in found["measurements"]}
    assert rows[1]["outcome"] == "failed" and "a pair is needed" in rows[1]["detail"]
    assert {size: row["outcome"] for size, row in rows.items() if size > 1} == {
        **dict.fromkeys((2, 4, 8, 16, 32, 64), "ok"),
        128: "dataset_limited",
    }
    assert found["largest_feasible_batch_size"] == 64


def test_the_frontier_under_a_limit_is_found_and_refined(shell: Shell) -> None:
    limits = ["--batch-sizes", "128,256,512,4096", "--memory-limit", "1GiB", "--seconds", "0.1"]
    found = shell.json("measure", write(shell.folder, WIDE), *limits, "--refine")
    rows = {row["batch_size"]: row for row in found["measurements"]}
    ran = [size for size, row in rows.items() if row["outcome"] == "ok"]
    lost = [size for size, row in rows.items() if row["outcome"] == "out_of_memory"]
    assert found["largest_feasible_batch_size"] == max(ran) < min(lost)
    assert min(lost) <= max(ran) * 17 / 16
    assert rows[max(ran)]["near_memory_limit"]


def test_an_interrupted_sweep_is_completed_by_the_next(shell: Shell) -> None:
    command = ["measure", write(shell.folder, PICKY), "--batch-sizes", "2,4,8,16", "--seconds", "0.1"]
    process = subprocess.Popen(
        [ADVISOR, *command], cwd=shell.folder, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "Measuring batch size 8" in line:
            os.killpg(process.pid, signal.SIGINT)
            break
    rest = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 130, rest
    resumed = shell(*command, "--format", "json")
    assert "Measuring batch size 4." not in resumed.stderr
    assert "Measuring batch size 16." in resumed.stderr
    assert len(json.loads(resumed.stdout)["measurements"]) == 4


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--memory-limit", "much"], 1, "much"),
        (["--compare", "speed"], 1, "'speed' is nothing to compare with; valid are xla"),
        (["--precision", "0"], 2, "precision"),
        (["--probe", "shortest"], 2, "longest"),
        (["--profile", "work.py"], 2, "work.py"),
    ],
)
def test_what_cannot_be_asked_for_is_told(
    arguments: list[str], status: int, words: str, shell: Shell
) -> None:
    write(shell.folder, PICKY)
    assert words in shell("measure", "work.py", *arguments, status=status).stderr
