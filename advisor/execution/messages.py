"""What parent and child say to each other; plain records of standard types, pickled."""

from dataclasses import dataclass

from advisor import errors
from advisor.errors import AdvisorError, SessionError
from advisor.records.requests import WorkloadReference


@dataclass(frozen=True)
class Opening:
    """All that a child needs to open its session.

    ``entry`` is ``module:function``; the function takes ``reference`` and returns the session.
    ``import_path`` is the parent's, since a workload handed over as an object may need modules beside it.
    """

    entry: str
    reference: WorkloadReference
    memory_limit_bytes: int | None
    import_path: tuple[str, ...]


@dataclass(frozen=True)
class Request:
    """A call of one method of the session."""

    method: str
    arguments: tuple[object, ...] = ()


@dataclass(frozen=True)
class Reply:
    """What the method returned."""

    value: object


@dataclass(frozen=True)
class Failure:
    """What the method raised, by the name of its class in ``advisor.errors``.

    The exception itself does not travel: its class may live in a module that only the child can import.
    """

    kind: str
    message: str
    detail: str = ""

    @classmethod
    def of(cls, error: AdvisorError) -> "Failure":
        """Return what tells ``error`` to the other side, as the nearest class that both sides know."""
        kind = next(base.__name__ for base in type(error).__mro__ if base.__module__ == errors.__name__)
        if isinstance(error, SessionError):
            return cls(kind, error.message, error.detail)
        return cls(kind, str(error))

    def error(self) -> AdvisorError:
        """Return the exception that this failure tells of."""
        kind: type[AdvisorError] = getattr(errors, self.kind)
        return kind(self.message, self.detail) if issubclass(kind, SessionError) else kind(self.message)
