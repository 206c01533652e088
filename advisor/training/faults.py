"""What an exception of the user's code, Keras or TensorFlow means, in words that a user can act on."""

import re
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from advisor.errors import AdvisorError, OutOfMemoryError, SessionError, WorkloadError
from advisor.records.memory_faults import is_out_of_memory

_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
_PACKAGE = str(Path(__file__).parent.parent)
_CHARACTERS = 400
_COLOUR = re.compile(r"\x1b\[\d+m")
# Lines of a TensorFlow or Keras message that speak of the graph rather than of the fault.
_NOISE = re.compile(
    r"^(Graph execution error:|Detected at node .*|<stack traces unavailable>|File \".*|Stack trace for op.*|"
    r"Exception encountered when calling .*|\[\[\{\{node .*|\s.*|)$"
)
_ASIDES = re.compile(
    r"\s*\[(\[\{\{node [^\]]*\]\]|Op:[^\]]*\])|\{\{function_node [^}]*\}\}\s*|\s+name:\s*$|"
    r"Error in user-defined function passed to \S+ transformation with iterator: \S+ "
)


def brief(error: BaseException) -> str:
    """Return the type of ``error`` and its own message, without stack traces and node names."""
    if isinstance(error, KeyError | AttributeError) and error.args:
        message = str(error.args[0])
    else:
        message = str(getattr(error, "message", "") or error)
    message = message.partition("Traceback (most recent call last):")[0] or message
    lines = (_ASIDES.sub("", line) for line in _COLOUR.sub("", message).splitlines())
    telling = " ".join(line.strip() for line in lines if not _NOISE.match(line))
    message = telling or message.strip() or "no message"
    shortened = message if len(message) <= _CHARACTERS else message[: _CHARACTERS - 1] + "…"
    return f"{type(error).__name__}: {shortened}"


def place(error: BaseException) -> str:
    """Return `` (file:line)`` of the user's own code that raised ``error``, or nothing."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({Path(error.filename).name}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    absolute = (frame for frame in frames if Path(frame.filename).is_absolute())
    own = [frame for frame in absolute if not frame.filename.startswith((*_LIBRARIES, _PACKAGE))]
    return f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""


@contextmanager
def blaming_the_workload(doing: str) -> Iterator[None]:
    """Turn what is raised inside into a fault of the workload that names what was being done."""
    try:
        yield
    except (AdvisorError, GeneratorExit):
        raise
    except BaseException as error:  # The user's code may raise anything; Ctrl-C does not come here.
        if is_out_of_memory(error):
            raise OutOfMemoryError(f"Memory ran out while {doing}. {brief(error)}") from error
        raise WorkloadError(f"{doing[0].upper()}{doing[1:]} failed{place(error)}. {brief(error)}") from error


@contextmanager
def blaming_the_session(doing: str) -> Iterator[None]:
    """Turn what is raised inside into a failure of this batch size and these hyperparameters."""
    try:
        with blaming_the_workload(doing):
            yield
    except WorkloadError as error:
        if error.__cause__ is None:
            raise
        raise SessionError(str(error)) from error.__cause__
