"""What PostgreSQL's errors mean to us: one table, by SQLSTATE (www.postgresql.org/docs/current/errcodes-appendix.html).

The original is kept as the cause. Nothing of these is ever raised for a commit whose answer was not seen: that is an
OutcomeUnknownError (I19), which `transaction.py` raises.
"""

from __future__ import annotations

import re
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
    ("28P01", "the server refused the password",
     "Correct the password in the URL (@ is written %40, / as %2F, # as %23), in PGPASSWORD or in ~/.pgpass."),
    ("28000", "the server refused the user",
     "Correct the user in the URL, or make it: CREATE ROLE … LOGIN; or let pg_hba.conf of the server admit it."),
    ("28", "the server refused the user", "Check user, password and the server's pg_hba.conf."),
    ("3D000", "there is no such database",
     "Correct the database's name in the URL, or make it: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0."),
    ("42501", "the user may not do that",
     "Roles and rights are told by `strandline doctor --store URL`; an administrator grants them. What is asked of "
     "one tenant alone (--tenant) needs strandline_app only."),
    ("42P01", "a table is missing", "The schema is not whole; restore the database from a backup."),
    ("22021", "a text holds a NUL, which PostgreSQL can't hold", "Take it out, and call again."),
    ("25P02", "the transaction failed before", _AGAIN),
    ("26000", "the server does not know a prepared statement",
     "A pooler stands between: add prepare=off to the URL."),
    ("42P05", "a prepared statement is there already",
     "A pooler stands between: add prepare=off to the URL."),
    ("08", "the connection broke", "Check the network and the server, then try again."),
)  # fmt: skip
# What refuses a connection comes without its SQLSTATE: libpq gives the text only.
_REFUSED: Final[tuple[tuple[str, str], ...]] = (
    (r'FATAL: +database ".*" does not exist', "3D000"),
    (r'FATAL: +role ".*" does not exist', "28000"),
    (r'FATAL: +role ".*" is not permitted to log in', "28000"),
    (r"FATAL: +no pg_hba.conf entry", "28000"),
    (r"FATAL: +pg_hba.conf rejects", "28000"),
    (r"FATAL: +password authentication failed", "28P01"),
    (r"fe_sendauth: no password supplied", "28P01"),
    (r"FATAL: +\w+ authentication failed", "28000"),
    (r"FATAL: +permission denied for database", "42501"),
    (r"FATAL: +(sorry, too many clients|too many connections|remaining connection slots)", "53300"),
)
_CORRUPT: Final = ("XX001", "XX002")
_LOST: Final = ("08", "57P01", "57P02", "57P03", "57P05", "25P03")
_TWISTED: Final = ("40001", "40P01")
_BACKUP: Final = "Restore the database from a backup; nothing was repaired or skipped. See the server's log."


def map_error(error: psycopg.Error, place: Place) -> StrandlineError:
    """Return our error for one of PostgreSQL's; the original becomes its cause."""
    state = error.sqlstate or _state_of(str(error))
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


def _state_of(said: str) -> str | None:
    return next((state for pattern, state in _REFUSED if re.search(pattern, said)), None)


def is_key_taken(error: psycopg.Error) -> bool:
    """Tell whether an event was refused because of its key (I3)."""
    return isinstance(error, psycopg.errors.UniqueViolation) and error.diag.constraint_name == "event_key"


def is_lost(error: psycopg.Error) -> bool:
    """Tell whether the connection is gone, or there was none."""
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate.startswith(_LOST)


def only_reads(error: BaseException) -> bool:
    """Tell whether the connection leads to a server that only reads: after a failover another one writes."""
    return isinstance(error, psycopg.errors.ReadOnlySqlTransaction)


def may_begin_again(error: psycopg.Error) -> bool:
    """Tell whether a transaction that has done nothing yet is worth another try."""
    return is_lost(error) or only_reads(error) or error.sqlstate in _TWISTED
