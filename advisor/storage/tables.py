"""The tables of the newest schema; a test holds them against what the migrations build.

Columns are what is filtered or ordered by; the rest of a record is JSON. Every name begins with
``advisor_``, since Optuna keeps its own tables in the same database.
"""

from sqlalchemy import (
    JSON,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

PREFIX = "advisor_"
VERSION_TABLE = "advisor_alembic_version"
NEWEST_REVISION = "0001"

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)


def is_ours(name: str | None, kind: str, parents: object) -> bool:
    """Say whether autogenerate may look at a thing of this name; only tables are told apart."""
    return kind != "table" or (name or "").startswith(PREFIX)


measurement_runs = Table(
    "advisor_measurement_run",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("workload", Text, nullable=False, index=True),
    Column("timing", Text, nullable=False),
    Column("measured_at", Text, nullable=False),
    Column("fingerprint", JSON, nullable=False),
    Column("configuration", JSON, nullable=False),
    Column("environment", JSON, nullable=False),
)

measurements = Table(
    "advisor_measurement",
    metadata,
    Column("run_id", ForeignKey("advisor_measurement_run.id"), primary_key=True),
    Column("batch_size", Integer, primary_key=True, autoincrement=False),
    Column("measurement", JSON, nullable=False),
)

studies = Table(
    "advisor_study",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("workload", Text, nullable=False, index=True),
    Column("note", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("study", JSON, nullable=False),
    UniqueConstraint("name"),
)

trials = Table(
    "advisor_trial",
    metadata,
    Column("study_id", ForeignKey("advisor_study.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("checkpoint", Text),
    Column("owner", Text, nullable=False),
    Column("plan", JSON, nullable=False),
    Column("started_at", Text, nullable=False),
    Column("finished_at", Text),
)

curve_points = Table(
    "advisor_curve_point",
    metadata,
    Column("study_id", Integer, primary_key=True, autoincrement=False),
    Column("trial", Integer, primary_key=True, autoincrement=False),
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("point", JSON, nullable=False),
    ForeignKeyConstraint(["study_id", "trial"], ["advisor_trial.study_id", "advisor_trial.number"]),
)

descriptions = Table(
    "advisor_description",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("workload", Text, nullable=False, index=True),
    Column("saved_at", Text, nullable=False),
    Column("document", JSON, nullable=False),
)

advices = Table(
    "advisor_advice",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("workload", Text, nullable=False, index=True),
    Column("saved_at", Text, nullable=False),
    Column("document", JSON, nullable=False),
)
