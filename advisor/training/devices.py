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


@cache
def prepare_devices() -> None:
    """Set up, once per process: GPU memory grows with need, messages of Keras stay short."""
    with suppress(RuntimeError):  # The process has used its GPUs already; they stay as they are.
        for gpu in tf.config.list_physical_devices("GPU"):
            tf.config.experimental.set_memory_growth(gpu, True)
    keras.config.disable_traceback_filtering()
    gc.freeze()  # What the libraries made lives as long as the process; collections need not look at it.


def forget_unused() -> None:
    """Free models and programs that are no longer used: they hold one another in cycles."""
    gc.collect()


def configuration(precision: str) -> Configuration:
    """Return what results of this process are obtained on; ``precision`` is the model's dtype policy."""
    kind = _gpu_name().lower() if _gpus() else "cpu"
    return Configuration(workers=1, devices=1, device_kind=kind, precision=precision, xla=False)


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


def peak_memory_bytes() -> int:
    """Return the peak of the GPU's allocator, or of the process's resident memory on a CPU."""
    if _gpus():
        return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


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
