"""What is remembered: tables, migrations, and the mapping between rows and records."""
