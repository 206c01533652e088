"""The whole memory, in one SQLite file or PostgreSQL database."""

from advisor.records.storage_url import parse_storage_url
from advisor.storage.database import Database
from advisor.storage.documents import SqlDocuments
from advisor.storage.measurements import SqlMeasurements
from advisor.storage.schema import prepare
from advisor.storage.studies import SqlStudies


class SqlStore(SqlMeasurements, SqlStudies, SqlDocuments):
    """Implements :class:`~advisor.workflows.ports.Store`; every call is one transaction that it commits."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def close(self) -> None:
        """Close the connections to the database."""
        self._database.close()


def open_store(url: str) -> SqlStore:
    """Return the store at ``url``, its tables created or upgraded where they need to be.

    ``url`` is ``sqlite:///FILE`` or ``postgresql://…``. Raises StorageError where the database cannot be
    reached, written or understood.
    """
    database = Database(parse_storage_url(url))
    try:
        prepare(database)
    except BaseException:
        database.close()
        raise
    return SqlStore(database)
