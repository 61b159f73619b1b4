"""What the figures on PostgreSQL are measured against: the same bodies through psycopg, nothing around it.

Plain: one INSERT of the body into a table with the key (workflow, seq), a transaction by itself. Same table: the event
table of a store with its columns and indexes, under row-level security, and the head row beside it, as one transaction.
Statements are prepared, values travel in binary; a transaction of several statements is sent as one pipeline, many rows
as one INSERT out of arrays. Rows are made before: nothing is parsed, hashed, compressed or checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

PLAIN: Final = "raw psycopg: INSERT"
SAME: Final = "raw psycopg: same table and head row, RLS"
_SALT, _CHAIN = bytes(16), bytes(32)
_RECORD: Final = bytes(96)  # about what a record with two references takes
_SET: Final = (
    "SELECT set_config('role', 'strandline_app', true), set_config('strandline.tenant', %s, true),"
    " set_config('strandline.tenant_id', %s, true)"
)


class RawPostgres:
    """One connection that fills a table of its own, `raw_event` of a schema."""

    def __init__(self, url: str, schema: str) -> None:
        import psycopg

        self._connection: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True)
        self._connection.prepare_threshold = 0
        self._table = f'"{schema}".raw_event'
        self._connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        self._connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self._table} (workflow BIGINT NOT NULL, seq BIGINT NOT NULL,"
            " body BYTEA NOT NULL, key TEXT, PRIMARY KEY (workflow, seq))"
        )
        self._connection.execute(f"ALTER TABLE {self._table} ALTER body SET STORAGE EXTERNAL")
        self._newest = 0

    def append(self, body: bytes, _key: bytes) -> None:
        """Store one body durably."""
        self._newest += 1
        text = f"INSERT INTO {self._table} VALUES (1, %b, %b, NULL)"  # noqa: S608  names of ours
        self._connection.execute(text, (self._newest, body))

    def append_many(self, bodies: Sequence[bytes], _keys: Sequence[bytes]) -> None:
        """Store several bodies durably, as one statement."""
        seqs = list(range(self._newest + 1, self._newest + 1 + len(bodies)))
        self._newest += len(bodies)
        text = f"INSERT INTO {self._table} SELECT 1, t.*, NULL FROM unnest(%b::bigint[], %b::bytea[]) AS t"  # noqa: S608
        self._connection.execute(text, (seqs, list(bodies)))

    def last(self, count: int) -> list[bytes]:
        """Read the newest bodies."""
        text = f"SELECT body FROM {self._table} WHERE workflow = 1 AND seq > %b ORDER BY seq"  # noqa: S608
        cursor = self._connection.cursor(binary=True).execute(text, (self._newest - count,))
        return [row[0] for row in cursor.fetchall()]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class SameTable:
    """One connection that fills the event table of a store as its application does."""

    def __init__(self, url: str, schema: str, tenant: str) -> None:
        import psycopg

        self._connection: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True)
        self._connection.prepare_threshold = 0
        self._schema = f'"{schema}"'
        rows = self._connection.execute(
            f"SELECT tenant_id, workflow_id, revision FROM {self._schema}.workflow ORDER BY workflow_id LIMIT 1"  # noqa: S608
        ).fetchall()
        ((self._tenant_id, self._workflow_id, self._newest),) = rows
        self._tenant = tenant
        self._ids = (self._tenant_id, self._workflow_id)

    def append(self, body: bytes, key: bytes) -> None:
        """Store one event durably: head row locked and set, row inserted."""
        text = (
            f"INSERT INTO {self._schema}.event (tenant_id, workflow_id, seq, key, record, codec, body, salt, chain)"  # noqa: S608
            " VALUES (%b, %b, %b, %b, %b, 0, %b, %b, %b)"
        )
        self._newest += 1
        self._write(text, (*self._ids, self._newest, key, _RECORD, body, _SALT, _CHAIN))

    def append_many(self, bodies: Sequence[bytes], keys: Sequence[bytes]) -> None:
        """Store several events durably, as one statement."""
        count = len(bodies)
        text = (
            f"INSERT INTO {self._schema}.event (tenant_id, workflow_id, seq, key, record, codec, body, salt, chain)"  # noqa: S608
            " SELECT %b, %b, t.s, t.k, %b, 0, t.b, %b, %b"
            " FROM unnest(%b::bigint[], %b::bytea[], %b::bytea[]) AS t (s, k, b)"
        )
        seqs = list(range(self._newest + 1, self._newest + 1 + count))
        self._newest += count
        self._write(text, (*self._ids, _RECORD, _SALT, _CHAIN, seqs, list(keys), list(bodies)))

    def _write(self, insert: str, row: tuple[object, ...]) -> None:
        connection = self._connection
        where = "WHERE tenant_id = %b AND workflow_id = %b"
        with connection.pipeline():
            connection.execute("BEGIN")
            connection.execute(_SET, (self._tenant, str(self._tenant_id)))
            locked = f"SELECT revision FROM {self._schema}.workflow {where} FOR NO KEY UPDATE"  # noqa: S608
            connection.execute(locked, self._ids)
            connection.execute(insert, row)
            head = f"UPDATE {self._schema}.workflow SET revision = %b, chain = %b {where}"  # noqa: S608
            connection.execute(head, (self._newest, _CHAIN, *self._ids))
            connection.execute("COMMIT")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
