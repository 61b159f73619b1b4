"""The store for many processes: PostgreSQL 15 or newer (C26). Its driver is the extra `postgres`, imported when it is
needed.
"""

from __future__ import annotations

from strandline.errors import StoreUnavailableError
from strandline.ports import Clock, Entropy, Store
from strandline.stores.postgres.place import is_postgres_url

__all__ = ["is_postgres_url", "open_postgres"]


def open_postgres(url: str, *, clock: Clock, entropy: Entropy, create: bool = True, unfinished: bool = False) -> Store:
    """Open a store on PostgreSQL, as `PostgresStore`.

    Raises:
        StoreUnavailableError: the extra is not installed, or as `PostgresStore`.
    """
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise missing_driver() from error
    from strandline.stores.postgres.store import PostgresStore

    return PostgresStore(url, clock=clock, entropy=entropy, create=create, unfinished=unfinished)


def missing_driver() -> StoreUnavailableError:
    """Return the error that names the extra."""
    hint = 'Install the extra: pip install "strandline[postgres]"'
    return StoreUnavailableError("a store on PostgreSQL needs the driver psycopg, which is not installed", hint=hint)
