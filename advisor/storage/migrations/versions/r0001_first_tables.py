"""The first tables: measurements, studies, trials and their curves, descriptions, advice."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create every table."""
    _create_measurements()
    _create_studies()
    _create_documents("advisor_description")
    _create_documents("advisor_advice")


def _create_measurements() -> None:
    op.create_table(
        "advisor_measurement_run",
        sa.Column("id", sa.Integer),
        sa.Column("workload", sa.Text, nullable=False),
        sa.Column("timing", sa.Text, nullable=False),
        sa.Column("measured_at", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.JSON, nullable=False),
        sa.Column("configuration", sa.JSON, nullable=False),
        sa.Column("environment", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_advisor_measurement_run"),
    )
    op.create_index("ix_advisor_measurement_run_workload", "advisor_measurement_run", ["workload"])
    op.create_table(
        "advisor_measurement",
        sa.Column("run_id", sa.Integer),
        sa.Column("batch_size", sa.Integer, autoincrement=False),
        sa.Column("measurement", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "batch_size", name="pk_advisor_measurement"),
        sa.ForeignKeyConstraint(
            ["run_id"], ["advisor_measurement_run.id"], name="fk_advisor_measurement_run_id"
        ),
    )


def _create_studies() -> None:
    op.create_table(
        "advisor_study",
        sa.Column("id", sa.Integer),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("workload", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("study", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_advisor_study"),
        sa.UniqueConstraint("name", name="uq_advisor_study_name"),
    )
    op.create_index("ix_advisor_study_workload", "advisor_study", ["workload"])
    op.create_table(
        "advisor_trial",
        sa.Column("study_id", sa.Integer),
        sa.Column("number", sa.Integer, autoincrement=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("checkpoint", sa.Text),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("plan", sa.JSON, nullable=False),
        sa.Column("started_at", sa.Text, nullable=False),
        sa.Column("finished_at", sa.Text),
        sa.PrimaryKeyConstraint("study_id", "number", name="pk_advisor_trial"),
        sa.ForeignKeyConstraint(["study_id"], ["advisor_study.id"], name="fk_advisor_trial_study_id"),
    )
    op.create_table(
        "advisor_curve_point",
        sa.Column("study_id", sa.Integer, autoincrement=False),
        sa.Column("trial", sa.Integer, autoincrement=False),
        sa.Column("step", sa.Integer, autoincrement=False),
        sa.Column("point", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("study_id", "trial", "step", name="pk_advisor_curve_point"),
        sa.ForeignKeyConstraint(
            ["study_id", "trial"],
            ["advisor_trial.study_id", "advisor_trial.number"],
            name="fk_advisor_curve_point_study_id",
        ),
    )


def _create_documents(table: str) -> None:
    op.create_table(
        table,
        sa.Column("id", sa.Integer),
        sa.Column("workload", sa.Text, nullable=False),
        sa.Column("saved_at", sa.Text, nullable=False),
        sa.Column("document", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
    )
    op.create_index(f"ix_{table}_workload", table, ["workload"])
