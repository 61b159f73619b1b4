"""The part of `verify` that looks at due compactions, and at summarizers that are left alone (C5)."""

from __future__ import annotations

from strandline.engine.compact_later import read_due
from strandline.engine.cooling import read_cooldowns
from strandline.engine.verify_log import Notes
from strandline.ports import Transaction


def check_due(tx: Transaction, notes: Notes) -> None:
    """Check that every row is there, is what was written, and can be: who runs one holds its lease."""
    read_cooldowns(tx)
    revision = tx.log.head().revision
    for row in read_due(tx):
        place = f"due_compaction {row.view!r}"
        if row.revision > revision:
            notes.say(place, f"it was asked for at revision {row.revision}, and the log ends at {revision}")
        if (row.worker is None) != (row.lease_until_us == 0) or (row.worker and row.due_us != row.lease_until_us):
            notes.say(place, "worker, lease and the time at which it is due again do not fit each other")
        if row.runs > row.fence:
            notes.say(place, f"{row.runs} runs were begun under {row.fence} fences")
