"""The faults that a person can mend, each told in one or two sentences."""


class AdvisorError(Exception):
    """A fault whose message names what was received, what is valid and what to do."""

    exit_status = 1


class WorkloadError(AdvisorError):
    """The user's workload cannot be loaded, built or trained."""


class SpecError(AdvisorError):
    """A study file is malformed; the message lists all of its faults."""


class StorageError(AdvisorError):
    """The database cannot be read, written or understood."""


class SessionError(AdvisorError):
    """A training session failed, died or went silent.

    ``detail`` holds what the session itself said: its exception, its exit status and the last lines
    of its output.
    """

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail

    def __reduce__(self) -> tuple[type["SessionError"], tuple[str, str]]:
        return type(self), (self.message, self.detail)


class OutOfMemoryError(SessionError):
    """A training session ran out of memory, or died as one that did."""


class SuspectedMemoryError(OutOfMemoryError):
    """A training session died in a way that is usual where memory runs out, without a word about it."""


class SessionTimeoutError(SessionError):
    """A training session did not answer within its deadline."""


class InconclusiveError(AdvisorError):
    """The evidence does not support an answer; the message says what was found."""

    exit_status = 3
