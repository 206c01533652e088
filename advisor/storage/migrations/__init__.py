"""Alembic's scripts, run when a database is opened. A new revision is a new file in ``versions``."""
