"""What the server knows to be wrong with a store's schema; the rows themselves `verify` proves."""

from __future__ import annotations

from typing import Final

from strandline.stores.postgres.running import Running
from strandline.stores.postgres.wire import Statement

_PROBLEMS: Final = Statement(
    """
WITH own AS (
    SELECT c.oid, c.relname::text AS name, c.relkind, c.relrowsecurity AND c.relforcerowsecurity AS bound
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1
)
SELECT 'table ' || name || ': row security is not in force' FROM own WHERE relkind IN ('r', 'p') AND NOT bound
UNION ALL
SELECT 'table ' || o.name || ': policy ' || p.policyname || ' is missing or open'
FROM own o CROSS JOIN (VALUES ('bound')) AS p (policyname)
WHERE o.relkind IN ('r', 'p') AND NOT EXISTS (SELECT FROM pg_policy q
    WHERE q.polrelid = o.oid AND q.polname = p.policyname AND q.polqual IS NOT NULL AND q.polwithcheck IS NOT NULL)
UNION ALL
SELECT 'index ' || o.name || ': not valid' FROM own o JOIN pg_index i ON i.indexrelid = o.oid
WHERE NOT (i.indisvalid AND i.indisready)
UNION ALL
SELECT 'table ' || o.name || ': rule ' || c.conname || ' was never checked' FROM own o
JOIN pg_constraint c ON c.conrelid = o.oid WHERE NOT c.convalidated
UNION ALL
SELECT 'table ' || o.name || ': trigger ' || t.tgname || ' is switched off' FROM own o
JOIN pg_trigger t ON t.tgrelid = o.oid WHERE t.tgenabled NOT IN ('O', 'A')
UNION ALL
SELECT 'table ' || t.place || ': trigger ' || t.name || ' is missing'
FROM (VALUES ('event', 'event_is_never_deleted'), ('event', 'events_are_never_truncated'),
    ('event', 'event_is_never_changed'), ('lineage', 'entry_is_never_changed'), ('lineage', 'entry_is_never_deleted'),
    ('lineage', 'entries_are_never_truncated')) AS t (place, name)
WHERE NOT EXISTS (SELECT FROM own o JOIN pg_trigger g ON g.tgrelid = o.oid
    WHERE o.name = t.place AND g.tgname = t.name)
UNION ALL
SELECT 'database: ' || checksum_failures || ' pages failed their checksum' FROM pg_stat_database
WHERE datname = current_database() AND checksum_failures > 0
""",
    ("schema",),
)


def find_problems(running: Running, schema: str) -> list[str]:
    """Return the problems, in a transaction that has not begun yet."""
    running.begin()
    return [str(problem) for (problem,) in running.ask(_PROBLEMS, {"schema": schema}).rows]
