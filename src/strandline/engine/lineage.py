"""Writing the lineage: one counter for everything that happens to the memory (I13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from strandline.codec import EMPTY_CHAIN, chain_record
from strandline.engine.environment import Environment
from strandline.engine.reading import find_view
from strandline.engine.watching import watched
from strandline.errors import CorruptRecordError
from strandline.limits import LINEAGE_PAGE_ENTRIES
from strandline.model.ids import DEFAULT_VIEW
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.model.view import ViewHead
from strandline.ports import Transaction


def add_entry(tx: Transaction, entry: LineageEntry) -> LineageEntry:
    """Add an entry with the next lineage_seq, in the transaction that does what it records."""
    head = tx.log.head()
    placed = replace(entry, lineage_seq=head.lineage_seq + 1, chain=b"")
    placed = replace(placed, chain=chain_record(head.lineage_chain, placed))
    tx.lineage.add(placed)
    tx.log.set_head(replace(head, lineage_seq=placed.lineage_seq, lineage_chain=placed.chain))
    return placed


def own_key(env: Environment, what: str) -> str:
    """Return an op_key that no other transaction has: by its chain a lost commit is told from another's that says the
    same at the same time (I19). It is no salt of a state, since an erasure takes those away.
    """
    return f"{what}:{env.entropy.salt().hex()}"


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


# ---------------------------------------------------------------------------------------------- as a view sees it


def definition_key(view: str, audience_version: int) -> str:
    """Return the op_key of the entry that gave a view its audiences, in this version of them."""
    return f"define:{audience_version}:{view}"


def defined_by(tx: Transaction, view: ViewHead) -> LineageEntry | None:
    """Return the entry that gave a view the audiences that it has; None: it has had them from the beginning of the
    workflow, as `main`, and as a view that a fork took over. What is older was made for other eyes (I21).

    Raises:
        CorruptRecordError: it is missing or damaged.
    """
    entry = tx.lineage.by_op_key(definition_key(view.name, view.audience_version))
    if entry is not None:
        check_entry(tx, entry)
    elif view.audience_version > 1:
        place = f"lineage of view {view.name!r}"
        raise CorruptRecordError("the entry that gave it its audiences is missing", place=place)
    return entry


def first_generation(tx: Transaction, view: ViewHead) -> int:
    """Return the generation at which a view began with the audiences that it has."""
    entry = defined_by(tx, view) if view.audience_version > 1 else None
    return (entry.generation or 0) if entry is not None else 0


def made_for(tx: Transaction, reader: ViewHead) -> Callable[[LineageEntry], bool]:
    """Return what tells whether a view may go on from the state of a checkpoint: a narrow one from what was made for
    itself, with the audiences that it has; one that reads everything from each (I21).
    """
    if not reader.narrow:
        return lambda made: True
    defined = defined_by(tx, reader)
    first = defined.lineage_seq if defined is not None else 0
    return lambda made: maker(made) == reader.name and made.lineage_seq >= first


def maker(entry: LineageEntry) -> str:
    """Return the view that an entry is of; a checkpoint that is context-free names it in its detail."""
    return entry.view if entry.view is not None else str(entry.detail.get("view", DEFAULT_VIEW))


@watched("lineage")
def list_entries(env: Environment, view: str = DEFAULT_VIEW) -> list[LineageEntry]:
    """Return the lineage of the workflow, in order: the whole, or what is a narrow view's own."""
    with env.read() as tx:
        entries = read_entries(tx, env.scope.workflow)
        reader = find_view(tx, view, str(env.scope))
        if not reader.narrow:
            return list(entries)
        defined = defined_by(tx, reader)
        first = defined.lineage_seq if defined is not None else 0
        return [_told(entry) for entry in entries if maker(entry) == view and entry.lineage_seq >= first]


_OF_OTHERS: Final = frozenset({"events", "restated", "fenced", "refs"})  # what an entry says of all views
_OF_ALL: Final = frozenset({LineageKind.REWIND, LineageKind.FORK})  # decided on the whole workflow, not on a view


def _told(entry: LineageEntry) -> LineageEntry:
    """Return an entry of a narrow view without what it says of events and views that it may not know of."""
    detail = {name: said for name, said in entry.detail.items() if name not in _OF_OTHERS}
    if entry.kind in _OF_ALL:
        return replace(entry, detail=detail, by=None, why=None)
    return replace(entry, detail=detail)
