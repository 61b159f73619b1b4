"""What SQLite and PostgreSQL share: the statements, and the mapping between rows and model."""
