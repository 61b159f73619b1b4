"""What PostgreSQL's errors mean to us: one table, by SQLSTATE (www.postgresql.org/docs/current/errcodes-appendix.html).

The original is kept as the cause. Nothing of these is ever raised for a commit whose answer was not seen: that is an
OutcomeUnknownError (I19), which `transaction.py` raises.
"""

from __future__ import annotations

from typing import Final

import psycopg

from strandline.errors import CorruptRecordError, StoreUnavailableError, StrandlineError
from strandline.stores.postgres.place import Place

_NOTHING: Final = "nothing was written"
_DOCTOR: Final = "`strandline doctor --store URL` looks at the server."
_AGAIN: Final = "Do it again: it may go through now."

# The first entry that the SQLSTATE begins with says what to tell and what to do.
_TOLD: Final[tuple[tuple[str, str, str], ...]] = (
    ("25006", "the server, or the transaction, only reads",
     "After a failover this may be the old server: name the one that writes, or several hosts in the URL and "
     "target_session_attrs=read-write."),
    ("55P03", "somebody held the lock for longer than a write waits (lock_timeout_s)",
     "Another write of this workflow has not ended: see pg_stat_activity, end it or wait, then try again."),
    ("57014", "the statement took longer than it may (statement_timeout_s), or was cancelled",
     "Look at the server's load, or raise statement_timeout_s in the URL, then try again."),
    ("25P03", "the transaction was idle for longer than it may be (idle_timeout_s)", _AGAIN),
    ("25P04", "the transaction took longer than it may (transaction_timeout of the server)", _AGAIN),
    ("40P01", "two transactions waited for each other", _AGAIN),
    ("40", "the transaction could not be put in order with another", _AGAIN),
    ("53100", "the server's disk is full", "Free space on the server's disk, then try again."),
    ("53200", "the server is out of memory", "Look at the server's memory and work_mem, then try again."),
    ("53300", "the server takes no more connections",
     "Lower pool in the URL, use fewer processes or a pooler, or raise the server's max_connections."),
    ("53", "the server lacks something", _DOCTOR),
    ("54", "the server can't take so much at once", "Append fewer or smaller events at once."),
    ("57P01", "the server ended the connection", "It is restarted or stopped: try again."),
    ("57P02", "the server crashed", "It recovers by itself: try again."),
    ("57P03", "the server is starting or stopping", "Try again."),
    ("57P04", "the database was dropped", "Name another database."),
    ("57P05", "the server ended an idle connection", "Try again."),
    ("58", "the server's operating system failed it", "Look at the server's log and its disk."),
    ("28", "the server refused the user", "Check user, password and the server's pg_hba.conf."),
    ("3D000", "there is no such database", "Make it first: CREATE DATABASE …"),
    ("42501", "the user may not do that",
     "Roles and rights are told by `strandline doctor --store URL`; an administrator grants them."),
    ("42P01", "a table is missing", "The schema is not whole; restore the database from a backup."),
    ("22021", "a text holds a NUL, which PostgreSQL can't hold", "Take it out, and call again."),
    ("25P02", "the transaction failed before", _AGAIN),
    ("26000", "the server does not know a prepared statement",
     "A pooler stands between: add prepare=off to the URL."),
    ("42P05", "a prepared statement is there already",
     "A pooler stands between: add prepare=off to the URL."),
    ("08", "the connection broke", "Check the network and the server, then try again."),
)  # fmt: skip
# Who is refused at the door gets no SQLSTATE from libpq, only the server's words; in another language they tell less.
_AT_THE_DOOR: Final = (
    ("authentication failed", "28P01"),
    ("no pg_hba.conf entry", "28000"),
    ("FATAL:  role ", "28000"),
    ("FATAL:  database ", "3D000"),
    ("too many clients", "53300"),
    ("too many connections", "53300"),
    ("remaining connection slots", "53300"),
)
_CORRUPT: Final = ("XX001", "XX002")
_LOST: Final = ("08", "57P01", "57P02", "57P03", "57P05", "25P03")
_TWISTED: Final = ("40001", "40P01")
_BACKUP: Final = "Restore the database from a backup; nothing was repaired or skipped. See the server's log."


def map_error(error: psycopg.Error, place: Place) -> StrandlineError:
    """Return our error for one of PostgreSQL's; the original becomes its cause."""
    state = error.sqlstate
    if state is None and isinstance(error, psycopg.OperationalError):
        state = next((state for words, state in _AT_THE_DOOR if words in str(error)), None)
    said = place.hide(str(error).strip().partition("\n")[0])
    if state in _CORRUPT:
        corrupt = CorruptRecordError(f"PostgreSQL says: {said}", place=place.shown)
        corrupt.hint = _BACKUP
        return corrupt
    if state is not None and state.startswith("23"):
        return StoreUnavailableError(f"{place.shown}: the store refused a write that breaks one of its rules: {said}")
    for prefix, told, hint in _TOLD:
        if state is not None and state.startswith(prefix):
            return StoreUnavailableError(f"{place.shown}: {told}; {_NOTHING} ({said})", hint=hint)
    if state is None and isinstance(error, psycopg.OperationalError):
        hint = "Check that the server runs and can be reached, then try again."
        return StoreUnavailableError(f"{place.shown}: {said}; {_NOTHING}", hint=hint)
    return StoreUnavailableError(f"{place.shown}: {said}; {_NOTHING}", hint=_DOCTOR)


def is_key_taken(error: psycopg.Error) -> bool:
    """Tell whether an event was refused because of its key (I3)."""
    return isinstance(error, psycopg.errors.UniqueViolation) and error.diag.constraint_name == "event_key"


def is_lost(error: psycopg.Error) -> bool:
    """Tell whether the connection is gone, or there was none."""
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate.startswith(_LOST)


def may_begin_again(error: psycopg.Error) -> bool:
    """Tell whether a transaction that has done nothing yet is worth another try."""
    return is_lost(error) or error.sqlstate in _TWISTED
