"""The store for many processes: PostgreSQL 15 or newer (C26). Its driver is the extra `postgres`, imported when it is
needed.
"""

from __future__ import annotations

from contextlib import closing

from strandline.errors import StoreUnavailableError, extra_hint
from strandline.model.diagnosis import Check
from strandline.ports import Clock, Entropy, Store
from strandline.stores.postgres.place import is_postgres_url

__all__ = ["diagnose_postgres", "is_postgres_url", "migrate_postgres", "open_postgres"]


def open_postgres(
    url: str, *, clock: Clock, entropy: Entropy, create: bool = True, post: bool = False, unfinished: bool = False
) -> Store:
    """Open a store on PostgreSQL, as `PostgresStore`.

    Raises:
        StoreUnavailableError: the extra is not installed, or as `PostgresStore`.
    """
    needs_driver()
    from strandline.stores.postgres.store import PostgresStore

    return PostgresStore(url, clock=clock, entropy=entropy, create=create, post=post, unfinished=unfinished)


def migrate_postgres(url: str, *, clock: Clock, entropy: Entropy, post: bool) -> list[str]:
    """Make a store, or bring it up to date; return the migrations that were applied.

    Raises:
        StoreUnavailableError: the extra is not installed, or as `PostgresStore`.
    """
    needs_driver()
    from strandline.stores.postgres.store import PostgresStore

    with closing(PostgresStore(url, clock=clock, entropy=entropy, post=post)) as store:
        return store.applied


def diagnose_postgres(url: str, clock: Clock) -> list[Check]:
    """Look at a store from outside, as `diagnosis.diagnose`.

    Raises:
        StoreUnavailableError: the extra is not installed.
    """
    try:
        from strandline.stores.postgres.diagnosis import diagnose
    except ImportError as error:
        raise missing_driver() from error
    return list(diagnose(url, clock))


def needs_driver() -> None:
    """Refuse what needs the driver, where it is not there."""
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise missing_driver() from error


def missing_driver() -> StoreUnavailableError:
    """Return the error that names the extra."""
    said = "a store on PostgreSQL needs the driver psycopg, which is not installed"
    return StoreUnavailableError(said, hint=extra_hint("postgres"))
