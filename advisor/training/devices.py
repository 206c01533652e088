"""The machine that a session runs on: set-up, names, versions, memory."""

import gc
import os
import platform
import resource
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

import keras
import tensorflow as tf

from advisor.records.description import Configuration
from advisor.records.requests import SessionOptions
from advisor.records.session import MemoryUse

_FIRST_GPU = "GPU:0"
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_KIB = 1024


def prepare_devices(mixed_precision: bool) -> None:
    """Set up this process: GPU memory grows with need, models compute in bfloat16 where that is asked for.

    bfloat16 has the range of float32, so that no loss has to be scaled. Without it, models compute in the
    precision that Keras is configured for, whatever an earlier session of this process has asked for.
    """
    _prepare_once()
    keras.config.set_dtype_policy("mixed_bfloat16" if mixed_precision else keras.config.floatx())


@cache
def _prepare_once() -> None:
    with suppress(RuntimeError):  # The process has used its GPUs already; they stay as they are.
        for gpu in tf.config.list_physical_devices("GPU"):
            tf.config.experimental.set_memory_growth(gpu, True)
    keras.config.disable_traceback_filtering()
    gc.freeze()  # What the libraries made lives as long as the process; collections need not look at it.


def forget_unused() -> None:
    """Free models and programs that are no longer used: they hold one another in cycles."""
    gc.collect()


def configuration(precision: str, options: SessionOptions) -> Configuration:
    """Return what results of this process are obtained on; ``precision`` is the model's dtype policy."""
    kind = _gpu_name().lower() if _gpus() else "cpu"
    return Configuration(
        device_kind=kind,
        precision=precision,
        xla=options.xla,
        steps_per_call=options.steps_per_call,
    )


def environment() -> Mapping[str, str]:
    """Return versions and the names of the machine and its device."""
    return {
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "advisor": version("batch-advisor"),
        "cpu_count": str(
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        ),
        "machine": platform.machine(),
        "device": _gpu_name() if _gpus() else _cpu_name(),
        "hostname": platform.node(),
    }


def reset_peak_memory() -> None:
    """Let the peak of :func:`memory` begin anew, where the system can do that."""
    if _gpus():
        tf.config.experimental.reset_memory_stats(_FIRST_GPU)
    with suppress(OSError):  # Linux alone has it.
        _CLEAR.write_text("5")


def memory() -> MemoryUse:
    """Return the peak of the GPU's allocator, or that of the process's memory on a CPU."""
    if _gpus():
        return MemoryUse(int(tf.config.experimental.get_memory_info(_FIRST_GPU)["peak"]))
    sizes = _process_sizes()
    if not sizes:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return MemoryUse(peak if sys.platform == "darwin" else peak * _KIB)
    # What was freed since the peak is no longer in the data segment.
    charged = sizes["VmData"] + sizes["VmHWM"] - sizes["VmRSS"]
    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    if limit == resource.RLIM_INFINITY:
        return MemoryUse(sizes["VmHWM"], None, charged)
    # Pages that were given back while their addresses stay reserved have been counted twice.
    return MemoryUse(sizes["VmHWM"], limit, min(charged, limit))


def _process_sizes() -> Mapping[str, int]:
    """Return the sizes (bytes) that Linux keeps of this process."""
    with suppress(OSError):
        lines = (line.split() for line in _STATUS.read_text().splitlines())
        return {words[0].rstrip(":"): int(words[1]) * _KIB for words in lines if words[-1:] == ["kB"]}
    return {}


def _gpus() -> list[str]:
    return [device.name for device in tf.config.list_logical_devices("GPU")]


def _gpu_name() -> str:
    gpu = tf.config.list_physical_devices("GPU")[0]
    return str(tf.config.experimental.get_device_details(gpu).get("device_name", "GPU"))


def _cpu_name() -> str:
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
