"""How libraries say that memory ran out; plain text, so that every room can recognise it."""

MEMORY_TEXTS: tuple[str, ...] = (
    # Python, numpy, the C and C++ libraries, the operating system
    "MemoryError",
    "Unable to allocate",
    "std::bad_alloc",
    "Cannot allocate memory",
    "Out of memory",
    "OpenBLAS error: Memory allocation still failed",
    "pthread_create() failed",
    "pthread_create failed",
    # TensorFlow, XLA and JAX
    "ResourceExhaustedError",
    "RESOURCE_EXHAUSTED",
    "OOM when allocating",
    "ran out of memory trying to allocate",
    "out of memory while trying to allocate",
    "Dst tensor is not initialized",
    # CUDA and its libraries
    "CUDA_ERROR_OUT_OF_MEMORY",
    "cudaErrorMemoryAllocation",
    "CUDNN_STATUS_ALLOC_FAILED",
    "No algorithm worked!",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED",
    "CUSOLVER_STATUS_ALLOC_FAILED",
    "NCCL WARN Cuda failure 'out of memory'",
)

_FULL_DISK_TEXTS = ("No space left on device", "Disk quota exceeded")

# A line that says this is a warning about speed, or speaks of another resource than memory.
_HARMLESS_TEXTS: tuple[str, ...] = (
    "this is not a failure",
    "message larger than max",
    *_FULL_DISK_TEXTS,
)

# Mistakes in a program. Whatever their message says, a smaller batch does not mend them.
_PROGRAM_FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    SyntaxError,
    TypeError,
    ValueError,
)


def speaks_of_memory(text: str) -> bool:
    """Return whether a line of ``text`` says that memory ran out."""
    lines = (line for line in text.splitlines() if not any(harmless in line for harmless in _HARMLESS_TEXTS))
    return any(memory in line for line in lines for memory in MEMORY_TEXTS)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether ``error`` says that memory ran out; a mistake in a program or a full disk never does.

    TensorFlow raises the same error for both, and may name the disk some lines after the type.
    """
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, _PROGRAM_FAULTS) or any(full_disk in text for full_disk in _FULL_DISK_TEXTS):
        return False
    return isinstance(error, MemoryError) or speaks_of_memory(text)
