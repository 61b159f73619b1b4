"""The embedded store: SQLite, one file, no server (C25)."""

from strandline.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
