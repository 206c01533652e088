"""Descriptions and advice: every one stays, the newest of each workload is read."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, Table, func, insert, select

from advisor.records.description import WorkloadDescription
from advisor.records.recommendation import Advice
from advisor.storage.codec import from_plain, to_plain
from advisor.storage.database import Database, now
from advisor.storage.tables import advices, descriptions


class SqlDocuments:
    """The descriptions and the advice in one database."""

    _database: Database

    def save_description(self, description: WorkloadDescription) -> None:
        """Record the newest description of a workload."""
        self._save(descriptions, description.name, description)

    def descriptions(self) -> Sequence[WorkloadDescription]:
        """Return the newest description of every workload, the most recently used first."""
        with self._database.read() as connection:
            rows = connection.execute(_newest(descriptions))
            return [from_plain(WorkloadDescription, row.document) for row in rows]

    def save_advice(self, advice: Advice) -> None:
        """Record the newest advice for a workload."""
        self._save(advices, advice.description.name, advice)

    def latest_advice(self, workload: str) -> Advice | None:
        """Return the newest advice for a workload."""
        with self._database.read() as connection:
            row = connection.execute(_newest(advices).where(advices.c.workload == workload)).first()
            return from_plain(Advice, row.document) if row else None

    def _save(self, table: Table, workload: str, document: object) -> None:
        values = {"workload": workload, "saved_at": now(), "document": to_plain(document)}
        with self._database.write() as connection:
            connection.execute(insert(table).values(values))


def _newest(table: Table) -> Select[Any]:
    """Return the query for the newest row of each workload, the newest first."""
    ids = select(func.max(table.c.id)).group_by(table.c.workload)
    return select(table).where(table.c.id.in_(ids)).order_by(table.c.id.desc())
