"""Runs migrations on the connection, and in the transaction, that the caller holds."""

from alembic import context

from advisor.storage.tables import VERSION_TABLE, is_ours, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    include_name=is_ours,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
