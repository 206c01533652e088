"""Memory stays bounded over many trials, rebuilding or not; opening costs little beyond TensorFlow."""

import json
import subprocess
import sys
import textwrap

PROGRAM = textwrap.dedent(
    """
    import json, os, time
    import keras
    from advisor import Float, Workload
    from advisor.training import digits
    from advisor.training.keras_session import open_session
    from advisor.records.requests import WorkloadReference
    import cloudpickle

    def build_model(hp):
        hidden = keras.layers.Dense(512, activation="relu")  # a megabyte with its momentum
        last = keras.layers.Dense(1024, activation="relu")
        return keras.Sequential([keras.Input((64,)), hidden, keras.layers.Dropout(hp.dropout), last,
                                 keras.layers.Dense(10)])

    workload = Workload("grown", build_model, digits.load_data, digits.workload.loss, ["accuracy"], "nesterov",
                        search_space={"dropout": Float(0.0, 0.9, default=0.0)})

    def resident_mib():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20

    session = open_session(WorkloadReference("grown", pickled=cloudpickle.dumps(workload)))
    session.describe()
    sizes, seconds = [], []
    for trial in range(TRIALS):
        start = time.perf_counter()
        values = {"dropout": 0.01 * trial} if REBUILDS else {"learning_rate": 0.001 * (1 + trial)}
        session.reset(64, values, trial)
        seconds.append(time.perf_counter() - start)
        session.train(3)
        session.evaluate("validation")
        sizes.append(resident_mib())
    print(json.dumps({"sizes": sizes, "seconds": seconds}))
    """
)


def run(trials, rebuilds):
    program = f"TRIALS, REBUILDS = {trials}, {rebuilds}\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_fifty_trials_that_rebuild_take_no_more_memory_than_ten():
    sizes = run(50, rebuilds=True)["sizes"]
    print([round(size) for size in sizes])
    assert max(sizes[40:]) < max(sizes[5:15]) + 40


def test_fifty_trials_that_do_not_rebuild_take_no_more_memory_and_start_at_once():
    seen = run(50, rebuilds=False)
    print([round(size) for size in seen["sizes"]], [round(second, 3) for second in seen["seconds"]])
    assert max(seen["sizes"][40:]) < max(seen["sizes"][5:15]) + 10
    assert sorted(seen["seconds"][1:])[25] < 0.1
