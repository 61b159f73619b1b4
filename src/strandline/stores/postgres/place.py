"""Where a store on PostgreSQL is: its URL, what the URL may say of pool and timeouts, and what of it may be shown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote

from strandline.errors import InvalidInputError
from strandline.limits import (
    POSTGRES_ANSWER_TIMEOUT_S,
    POSTGRES_CONNECT_TIMEOUT_S,
    POSTGRES_CONNECTIONS_MAX,
    POSTGRES_IDLE_TIMEOUT_S,
    POSTGRES_STATEMENT_TIMEOUT_S,
    STORE_BUSY_TIMEOUT_S,
)

DEFAULT_SCHEMA: Final = "strandline"
_SCHEMES: Final = ("postgresql://", "postgres://")
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SECRET: Final = frozenset({"password", "sslpassword", "passfile", "sslkey", "oauth_client_secret"})
_HIDDEN: Final = "***"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A schema of a database, and how it is spoken to. `conninfo` holds the password: it is never shown."""

    conninfo: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    shown: str  # the URL without its secrets
    schema: str = DEFAULT_SCHEMA
    pool: int = POSTGRES_CONNECTIONS_MAX
    connect_timeout_s: float = POSTGRES_CONNECT_TIMEOUT_S
    statement_timeout_s: float = POSTGRES_STATEMENT_TIMEOUT_S
    lock_timeout_s: float = STORE_BUSY_TIMEOUT_S
    idle_timeout_s: float = POSTGRES_IDLE_TIMEOUT_S
    answer_timeout_s: float = POSTGRES_ANSWER_TIMEOUT_S
    prepare: bool = True

    def hide(self, text: str) -> str:
        """Return a text of the driver or the server without the secrets of the URL."""
        for secret in self.secrets:
            text = text.replace(secret, _HIDDEN)
        return text


def is_postgres_url(url: str) -> bool:
    """Tell whether a URL names a store on PostgreSQL."""
    return url.startswith(_SCHEMES)


def read_url(url: str) -> Place:
    """Read `postgresql://user:password@host:port/database?option=value`.

    Options of ours are schema, pool, connect_timeout_s, statement_timeout_s, lock_timeout_s, idle_timeout_s,
    answer_timeout_s and prepare (on, off); what else is asked goes to libpq: sslmode, target_session_attrs,
    application_name, …

    Raises:
        InvalidInputError: no such URL, or an option with a value that is none. It never shows the password.
    """
    scheme = next((scheme for scheme in _SCHEMES if url.startswith(scheme)), None)
    if scheme is None:
        raise InvalidInputError("a store on PostgreSQL is named postgresql://user@host:port/database")
    address, _, query = url.removeprefix(scheme).partition("?")
    authority, slash, database = address.partition("/")
    user_info, at, hosts = authority.rpartition("@")
    _refuse_cut(user_info, f"{address}?{query}", database)
    user, _, password = user_info.partition(":")
    pairs = [(unquote(name), "=", value) for name, _, value in (p.partition("=") for p in query.split("&") if p)]
    ours = {name: unquote(value) for name, _, value in pairs if name in _OURS}
    theirs = [(name, value) for name, _, value in pairs if name not in _OURS]
    hidden = [password, *(value for name, value in theirs if name in _SECRET)]
    shown_query = "&".join(
        [f"{name}={quote(value)}" for name, value in ours.items()]
        + [f"{name}={value}" for name, value in theirs if name not in _SECRET]
    )
    place = f"{scheme}{user}{at}{hosts}{slash}{database}"
    shown = place + (f"?{shown_query}" if shown_query else "")
    if not database and "dbname" not in dict(theirs):
        raise InvalidInputError(f"{shown}: no database", hint="Name one: postgresql://user@host:port/database")
    rest = "&".join(f"{name}={value}" for name, value in theirs)
    return Place(
        conninfo=f"{scheme}{user_info}{at}{hosts}{slash}{database}" + (f"?{rest}" if rest else ""),
        secrets=tuple({form for secret in hidden if secret for form in (secret, unquote(secret))}),
        shown=shown,
        schema=_schema(ours, shown),
        pool=_whole(ours, "pool", POSTGRES_CONNECTIONS_MAX, shown),
        connect_timeout_s=_seconds(ours, "connect_timeout_s", POSTGRES_CONNECT_TIMEOUT_S, shown),
        statement_timeout_s=_seconds(ours, "statement_timeout_s", POSTGRES_STATEMENT_TIMEOUT_S, shown),
        lock_timeout_s=_seconds(ours, "lock_timeout_s", STORE_BUSY_TIMEOUT_S, shown),
        idle_timeout_s=_seconds(ours, "idle_timeout_s", POSTGRES_IDLE_TIMEOUT_S, shown),
        answer_timeout_s=_seconds(ours, "answer_timeout_s", POSTGRES_ANSWER_TIMEOUT_S, shown),
        prepare=_switch(ours, "prepare", shown),
    )


def _refuse_cut(user_info: str, rest: str, database: str) -> None:
    """Refuse a URL that may have been cut in the middle of a password: what is behind the cut would be shown."""
    before_last, _, _ = rest.rpartition("@")
    besides = rest.count("@") > ("@" in rest.partition("?")[0].partition("/")[0])
    if "#" in rest or "@" in user_info or "@" in database or (besides and ":" in before_last):
        raise InvalidInputError(
            "a user or a password in the URL holds a character that ends it; the URL is not shown",
            hint="Write it by its code: @ as %40, / as %2F, ? as %3F, # as %23, % as %25; or leave the password out of "
            "the URL, and set PGPASSWORD or write it to ~/.pgpass.",
        )


_OURS: Final = frozenset(
    {
        "schema",
        "pool",
        "connect_timeout_s",
        "statement_timeout_s",
        "lock_timeout_s",
        "idle_timeout_s",
        "answer_timeout_s",
        "prepare",
    }
)


def _schema(options: dict[str, str], shown: str) -> str:
    schema = options.get("schema", DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise InvalidInputError(f"{shown}: {schema!r} is no schema of ours: letters a-z, digits and _, not pg_…")
    return schema


def _whole(options: dict[str, str], name: str, default: int, shown: str) -> int:
    text = options.get(name, str(default))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= POSTGRES_CONNECTIONS_MAX * 100:
        raise InvalidInputError(f"{shown}: {name}={text!r} is no number from 1 to {POSTGRES_CONNECTIONS_MAX * 100}")
    return int(text)


def _seconds(options: dict[str, str], name: str, default: float, shown: str) -> float:
    text = options.get(name, str(default))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.001 <= seconds <= 86_400:
        raise InvalidInputError(f"{shown}: {name}={text!r} is no number of seconds from 0.001 to 86400")
    return seconds


def _switch(options: dict[str, str], name: str, shown: str) -> bool:
    text = options.get(name, "on")
    if text not in ("on", "off"):
        raise InvalidInputError(f"{shown}: {name}={text!r} is neither on nor off")
    return text == "on"
