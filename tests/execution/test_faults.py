"""The table of faults: what is a shortage of memory, and what is not."""

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor import errors
from advisor.errors import AdvisorError, OutOfMemoryError, SessionError, SuspectedMemoryError
from advisor.execution.faults import fault_of_death, fault_of_exception
from advisor.execution.messages import Failure
from advisor.records.memory_faults import MEMORY_TEXTS, speaks_of_memory

_CLASSES = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, AdvisorError)
]
_ORDINARY = [ValueError, TypeError, KeyError, IndexError, AttributeError, ZeroDivisionError, AssertionError]

# As the libraries print them.
_REPORTED = [
    "2017-01-23 tensorflow.python.framework.errors_impl.InternalError: Dst tensor is not initialized.",
    "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor",
    "Could not create cudnn handle: CUDNN_STATUS_ALLOC_FAILED",
    "NotFoundError: Graph execution error: No algorithm worked!  Error messages:",
    "failed to create cublas handle: CUBLAS_STATUS_NOT_INITIALIZED",
    "failed to allocate 2.2G (2362232064 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate",
    "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc",
    "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array",
    "OSError: [Errno 12] Cannot allocate memory",
]
_HARMLESS = [
    "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.25GiB with freed_by_count=0. The caller "
    "indicates that this is not a failure, but this may mean that there could be performance gains if more "
    "memory were available.",
    "ValueError: Expected input batch_size (1) to match target batch_size (2).",
    "ImportError: libgomp.so.1: cannot allocate memory in static TLS block",
    "RESOURCE_EXHAUSTED: Received message larger than max (5000000 vs. 4194304)",
    "OSError: [Errno 28] No space left on device: '/tmp/cache'",
    "ResourceExhaustedError: /tmp/cache/0.tmp; No space left on device [Op:CacheDatasetV2]",
    "RESOURCE_EXHAUSTED: /home/me/file; Disk quota exceeded",
    "",
]


@pytest.mark.parametrize("text", _REPORTED)
def test_reported_shortages_are_recognised(text: str) -> None:
    assert speaks_of_memory(f"before\n{text}\nafter")
    assert type(fault_of_exception(RuntimeError(text))) is OutOfMemoryError
    assert type(fault_of_death("train", 1, text, None)) is OutOfMemoryError


@pytest.mark.parametrize("text", _HARMLESS)
def test_warnings_and_other_faults_are_not_shortages(text: str) -> None:
    assert not speaks_of_memory(text)
    assert type(fault_of_exception(RuntimeError(text))) is SessionError
    assert type(fault_of_death("train", 1, text, None)) is SessionError


@given(st.sampled_from(_ORDINARY), st.sampled_from([*MEMORY_TEXTS, *_REPORTED]))
def test_a_mistake_in_a_program_is_never_a_shortage(kind: type[Exception], text: str) -> None:
    fault = fault_of_exception(kind(text))
    assert type(fault) is SessionError
    assert kind.__name__ in str(fault)


def test_a_memory_error_needs_no_text() -> None:
    assert type(fault_of_exception(MemoryError())) is OutOfMemoryError


class ResourceExhaustedError(Exception):
    """Stands for TensorFlow's, which this room does not import."""


def test_a_full_disk_is_no_shortage_even_where_it_is_named_lines_after_the_type() -> None:
    text = "Graph execution error:\n\nDetected at node Save\n/tmp/x; No space left on device"
    assert type(fault_of_exception(ResourceExhaustedError(text))) is SessionError
    assert type(fault_of_exception(ResourceExhaustedError("Graph execution error:"))) is OutOfMemoryError


def test_memory_that_ran_out_is_recognised_after_a_line_about_the_disk() -> None:
    output = "cache not written: No space left on device\nterminate called: std::bad_alloc"
    assert type(fault_of_death("train", 1, output, None)) is OutOfMemoryError


def test_a_long_message_is_cut_and_kept_whole_in_the_detail() -> None:
    text = "x" * 2000 + "\nsecond line"
    fault = fault_of_exception(RuntimeError(text))
    assert isinstance(fault, SessionError)
    assert len(fault.message) < 400
    assert "second line" not in fault.message
    assert text in fault.detail


@pytest.mark.parametrize(
    ("status", "limit", "kind"),
    [
        (-signal.SIGKILL, None, SuspectedMemoryError),
        (137, None, SuspectedMemoryError),
        (-signal.SIGSEGV, 2**30, SuspectedMemoryError),
        (-signal.SIGSEGV, None, SessionError),
        (139, 2**30, SuspectedMemoryError),
        (-signal.SIGBUS, 2**30, SuspectedMemoryError),
        (-signal.SIGABRT, 2**30, SessionError),
        (-signal.SIGTERM, 2**30, SessionError),
        (0, 2**30, SessionError),
        (1, 2**30, SessionError),
        (None, 2**30, SessionError),
    ],
)
def test_the_table_of_deaths(status: int | None, limit: int | None, kind: type[SessionError]) -> None:
    fault = fault_of_death("train", status, "the last line", limit)
    assert type(fault) is kind
    assert fault.detail.endswith("the last line")
    assert ("suspected" in fault.message) == (kind is SuspectedMemoryError)


@given(st.integers(-64, 255), st.none() | st.integers(0, 2**40), st.text())
def test_every_death_has_words(status: int, limit: int | None, output: str) -> None:
    fault = fault_of_death("evaluate", status, output, limit)
    assert "evaluate" in fault.message
    assert "\n" not in fault.message


@given(st.sampled_from(_CLASSES), st.text(), st.text())
def test_errors_arrive_as_themselves(kind: type[AdvisorError], message: str, detail: str) -> None:
    sent = kind(message, detail) if issubclass(kind, SessionError) else kind(message)
    arrived = Failure.of(sent).error()
    assert type(arrived) is kind
    assert str(arrived) == message
    assert not isinstance(arrived, SessionError) or arrived.detail == detail


def test_what_a_library_logs_are_no_last_words() -> None:
    logged = "the disk is full\nE0000 00:00:1796090108.090639 9081 cuda_platform.cc:52] failed call to cuInit"
    assert fault_of_death("train", 3, logged, None).message.endswith("Its last words: the disk is full")
