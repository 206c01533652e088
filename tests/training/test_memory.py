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

    space = {"dropout": Float(0.0, 0.9, default=0.0)}
    loss = digits.workload.loss
    workload = Workload("grown", build_model, digits.load_data, loss, ["accuracy"], "nesterov", None, space)

    def resident_mib():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20

    session = open_session(WorkloadReference("grown", pickled=cloudpickle.dumps(workload)))
    session.describe()
    sizes, seconds = [], []
    for trial in range(REBUILDING + KNOWN):
        start = time.process_time()  # what other programs take does not count
        values = {"dropout": 0.01 * min(trial, REBUILDING), "learning_rate": 0.001 * (1 + trial)}
        session.reset(64, values, trial)
        seconds.append(time.process_time() - start)
        session.train(3)
        session.evaluate("validation")
        sizes.append(resident_mib())
    print(json.dumps({"sizes": sizes, "seconds": seconds}))
    """
)
REBUILDING, KNOWN = 20, 30


def test_fifty_trials_take_bounded_memory_and_start_at_once_where_nothing_is_rebuilt():
    program = f"REBUILDING, KNOWN = {REBUILDING}, {KNOWN}\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    print([round(size) for size in seen["sizes"]], [round(second, 3) for second in seen["seconds"]])
    settled = seen["sizes"][8]  # four models are kept, of 7 MiB each with its velocities and programs
    assert max(seen["sizes"]) < settled + 40
    starts = sorted(seen["seconds"][REBUILDING + 1 :])
    assert starts[len(starts) // 2] < 0.1
