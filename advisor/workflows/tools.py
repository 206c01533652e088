"""What every use case is given, and the one session that it keeps open."""

from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from advisor.errors import SessionError
from advisor.records.description import WorkloadDescription
from advisor.workflows.ports import LoadWatch, Progress, SessionFactory, Store, StudyBoard, TrainingSession


@dataclass(frozen=True)
class Tools:
    """The outside, as a use case sees it."""

    sessions: SessionFactory
    store: Store
    board: StudyBoard
    progress: Progress
    load: LoadWatch


class SessionKeeper:
    """Keeps one session open, and opens another in the place of one that was dropped."""

    def __init__(self, sessions: SessionFactory) -> None:
        self._sessions = sessions
        self._session: TrainingSession | None = None

    def session(self) -> TrainingSession:
        """Return the open session, opening one where there is none."""
        if self._session is None:
            self._session = self._sessions.open()
        return self._session

    def drop(self) -> None:
        """Close the session, whatever state it is in."""
        session, self._session = self._session, None
        if session is not None:
            with suppress(SessionError):
                session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop()


def describe(tools: Tools, keeper: SessionKeeper) -> WorkloadDescription:
    """Load the workload, which may take a while, and record what it is."""
    tools.progress.say("Loading the workload.")
    description = keeper.session().describe()
    tools.store.save_description(description)
    return description
