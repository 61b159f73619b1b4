"""The statements of queries.sql as PostgreSQL takes them: one text for both databases, told apart here only.

Tables are named with their schema, so that no search path has a say, whoever else uses the connection.
"""

from __future__ import annotations

import re
from typing import Final

from strandline.stores.sql.queries import load_queries

_PARAMETER: Final = re.compile(r"(?<!:):([a-z_][a-z0-9_]*)")
_TABLE: Final = re.compile(r"\b(FROM|JOIN|INTO|UPDATE) ([a-z_]+)\b(?!\()")
_INSERT: Final = re.compile(r"(INSERT INTO \S+ )\(([^)]*)\)\s*VALUES \(([^)]*)\)(.*)", re.DOTALL)
_BYTES: Final = frozenset(
    {
        "key",
        "record",
        "body",
        "salt",
        "body_digest",
        "chain",
        "seqs",
        "texts",
        "sightings",
        "row_digest",
        "word",
        "events",
    }
)
_TEXTS: Final = frozenset({"kind", "subject", "holder", "state", "lane", "audience"})

LOCKED: Final = " FOR NO KEY UPDATE"
OPENS: Final = "SELECT set_config('strandline.store', 'open', true)"  # lets store_meta be seen
_KEY_IS_FREE: Final = (
    " ON CONFLICT (tenant_id, workflow_id, key) WHERE key IS NOT NULL AND abandoned_by IS NULL DO NOTHING"
)


class Statements:
    """The statements of a store in one schema."""

    def __init__(self, schema: str) -> None:
        self._schema = schema
        self._texts = {name: _translate(query.text, schema) for name, query in load_queries().items()}
        self._for_many: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.insert_if_free = self._texts["insert_event"] + _KEY_IS_FREE
        self.meta = f'SELECT name, value FROM "{schema}".store_meta'  # noqa: S608  a checked name

    def __getitem__(self, name: str) -> str:
        return self._texts[name]

    def for_many(self, name: str) -> tuple[str, tuple[str, ...]]:
        """Return an INSERT that takes each column but tenant and workflow as an array, and their names in order: many
        rows in one statement (42 times as fast as one by one; a driver's `executemany` 29 times).
        """
        found = self._for_many.get(name)
        if found is None:
            found = self._for_many[name] = _with_arrays(load_queries()[name].text, self._schema)
        return found


def _translate(text: str, schema: str) -> str:
    text = _TABLE.sub(rf'\1 "{schema}".\2', text.replace("%", "%%"))
    return _PARAMETER.sub(r"%(\1)s", text)


def _with_arrays(text: str, schema: str) -> tuple[str, tuple[str, ...]]:
    match = _INSERT.fullmatch(text)
    if match is None:
        raise AssertionError(f"no INSERT of one row: {text}")
    into, names, values, rest = match.groups()
    columns = [name.strip() for name in names.split(",")]
    given = [value.strip() for value in values.split(",")]
    if columns[:2] != ["tenant_id", "workflow_id"] or given != [f":{column}" for column in columns]:
        raise AssertionError(f"each column by its own name, tenant and workflow first: {text}")
    arrays = ", ".join(f":{column}::{_type_of(column)}[]" for column in columns[2:])
    source = f"SELECT :tenant_id, :workflow_id, t.* FROM unnest({arrays}) AS t"  # noqa: S608  names of queries.sql
    return _translate(f"{into}({', '.join(columns)}) {source}{rest}", schema), tuple(columns[2:])


def _type_of(column: str) -> str:
    return "bytea" if column in _BYTES else "text" if column in _TEXTS else "bigint"
