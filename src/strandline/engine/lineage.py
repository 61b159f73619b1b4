"""Writing the lineage: one counter for everything that happens to the memory (I13)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from strandline.codec import EMPTY_CHAIN, chain_record
from strandline.engine.environment import Environment
from strandline.engine.watching import watched
from strandline.errors import CorruptRecordError
from strandline.limits import LINEAGE_PAGE_ENTRIES
from strandline.model.lineage import LineageEntry
from strandline.ports import Transaction


def add_entry(tx: Transaction, entry: LineageEntry) -> LineageEntry:
    """Add an entry with the next lineage_seq, in the transaction that does what it records."""
    head = tx.log.head()
    placed = replace(entry, lineage_seq=head.lineage_seq + 1, chain=b"")
    placed = replace(placed, chain=chain_record(head.lineage_chain, placed))
    tx.lineage.add(placed)
    tx.log.set_head(replace(head, lineage_seq=placed.lineage_seq, lineage_chain=placed.chain))
    return placed


def next_seq(tx: Transaction) -> int:
    """Return the lineage_seq that the next entry will have; the head is locked."""
    return tx.log.head().lineage_seq + 1


def read_entries(tx: Transaction, workflow: str, after: int = 0) -> Iterator[LineageEntry]:
    """Yield the lineage behind an entry in order, checked up to its end.

    Raises:
        CorruptRecordError: an entry is missing, damaged or out of place (I13).
    """
    head = tx.log.head()
    before = tx.lineage.read(after - 1, 1) if after else []
    chain, expected = before[0].chain if before else EMPTY_CHAIN, after + 1
    while page := tx.lineage.read(expected - 1, LINEAGE_PAGE_ENTRIES):
        for entry in page:
            place = f"lineage {expected} of {workflow!r}"
            if entry.lineage_seq != expected:
                raise CorruptRecordError("the entry is missing", place=place)
            if chain_record(chain, replace(entry, chain=b"")) != entry.chain:
                raise CorruptRecordError("the entry does not match the chain", place=place)
            chain, expected = entry.chain, expected + 1
            yield entry
    if (expected - 1, chain) != (head.lineage_seq, head.lineage_chain):
        raise CorruptRecordError(
            f"the lineage ends at {expected - 1}, its head says {head.lineage_seq}",
            place=f"lineage of {workflow!r}",
        )


def check_entry(tx: Transaction, entry: LineageEntry) -> None:
    """Check one entry against the chain value before it.

    Raises:
        CorruptRecordError: it is not what was written, or the entry before it is missing.
    """
    before = tx.lineage.read(entry.lineage_seq - 2, 1) if entry.lineage_seq > 1 else []
    chain = before[0].chain if before and before[0].lineage_seq == entry.lineage_seq - 1 else EMPTY_CHAIN
    if chain_record(chain, replace(entry, chain=b"")) != entry.chain:
        raise CorruptRecordError("the entry does not match the chain", place=f"lineage {entry.lineage_seq}")


def summary_of(tx: Transaction, view: str, generation: int) -> int:
    """Return the number of the summary that a generation of a view had, by the lineage; 0: the empty one.

    Raises:
        CorruptRecordError: the entry that moved the pointer there is missing or damaged.
    """
    if generation == 0:
        return 0
    entry = tx.lineage.move_to(view, generation)
    if entry is None:
        place = f"lineage of view {view!r}"
        raise CorruptRecordError(f"the entry that moved it to generation {generation} is missing", place=place)
    check_entry(tx, entry)
    number = entry.detail.get("summary_no")
    if not isinstance(number, int):
        raise CorruptRecordError("it does not say which summary it moved to", place=f"lineage {entry.lineage_seq}")
    return number


@watched("lineage")
def list_entries(env: Environment) -> list[LineageEntry]:
    """Return the whole lineage of the workflow, in order."""
    with env.read() as tx:
        return list(read_entries(tx, env.scope.workflow))
