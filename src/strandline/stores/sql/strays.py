"""Rows that belong to nothing that is there: no verb reads them, until something new gets their number (I4, I21)."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.stores.sql.transfer import TABLES

_BOUND = "o.tenant_id = r.tenant_id AND o.workflow_id = r.workflow_id"


def stray_queries() -> Iterator[tuple[str, str]]:
    """Yield what rows would be, each with the query that counts them."""
    for table in TABLES:
        yield f"table {table.name}: rows of no workflow", _count(table.name, "workflow", _BOUND)
    yield "table search_mark: rows of no workflow", _count("search_mark", "workflow", _BOUND)  # a copy builds it anew
    yield (
        "table dropped_ref: rows of no summary",
        _count("dropped_ref", "summary", f"{_BOUND} AND o.summary_no = r.summary_no"),
    )


def _count(table: str, owner: str, bound: str) -> str:
    return f"SELECT count(*) FROM {table} r WHERE NOT EXISTS (SELECT 1 FROM {owner} o WHERE {bound})"  # noqa: S608
