"""The index of words, kept behind the log (C4, ADR 0041): an append writes none of it.

It grows by whole chunks. A chunk is read and taken apart outside of any lock, and written in a transaction of its own,
if nothing happened meanwhile that could make it wrong.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from strandline.codec import searched_text
from strandline.engine.environment import Environment
from strandline.engine.reading import read_log
from strandline.errors import CorruptRecordError
from strandline.limits import SEARCH_CHUNK_EVENTS, SEARCH_CHUNK_WORDS_MAX, SEARCH_CHUNKS_AT_ONCE, SEARCH_STALLS_MAX
from strandline.ports import Transaction
from strandline.rules.searching import words_of

OF_THE_INDEX: Final = ("search_mark", "search_posting")  # how the place of what is derived begins


@dataclass(slots=True)
class _Chunk:
    first_seq: int
    through_seq: int
    lineage_seq: int  # of the workflow, as the chunk was read: an erasure raises it
    events: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))


def extend_index(env: Environment, *, whole: bool = False) -> None:
    """Index what is not indexed yet, as far as it makes whole chunks: SEARCH_CHUNKS_AT_ONCE at most, or all (`whole`).

    Raises:
        CorruptRecordError: an event, or what the index says of itself, is not what was written.
        StoreUnavailableError, OutcomeUnknownError: it can't be written now; what was written before stays.
    """
    stalls = done = 0
    while stalls < SEARCH_STALLS_MAX and (whole or done < SEARCH_CHUNKS_AT_ONCE):
        with env.read() as tx:
            chunk = _next_chunk(tx, env.scope.workflow)
        if chunk is None:
            return
        with env.store.write(env.scope, joins=False) as tx:
            stands = _next_seq(tx) == chunk.first_seq and tx.log.head().lineage_seq == chunk.lineage_seq
            if stands:
                tx.search.add(chunk.first_seq, chunk.through_seq, chunk.events)
        stalls, done = (0, done + 1) if stands else (stalls + 1, done)


def is_indexed(env: Environment) -> bool:
    """Tell whether anything of the workflow itself is indexed: somebody searched it."""
    with env.store.read(env.scope) as tx:
        return _next_seq(tx) > tx.log.head().fork_seq + 1


def make_index_anew(env: Environment) -> None:
    """Forget the workflow's index; the next search makes it again from the log."""
    with env.store.read(env.scope) as tx:
        if tx.log.head().revision == 0:
            return  # a write would begin the workflow
    with env.store.write(env.scope, joins=False) as tx:
        tx.search.reset()


def indexed_ranges(tx: Transaction) -> list[tuple[int, int]]:
    """Return the ranges of events for which the index speaks.

    Raises:
        CorruptRecordError: it speaks for events that are not there.
    """
    ranges, revision = tx.search.ranges(), tx.log.head().revision
    if ranges and ranges[-1][1] > revision:
        raise CorruptRecordError(f"it ends at event {ranges[-1][1]}, the log at {revision}", place="search_mark")
    return ranges


def _next_seq(tx: Transaction) -> int:
    """Return the first event of the workflow itself that is not indexed."""
    own = [last for first, last in indexed_ranges(tx) if first > tx.log.head().fork_seq]
    return own[-1] + 1 if own else tx.log.head().fork_seq + 1


def _next_chunk(tx: Transaction, workflow: str) -> _Chunk | None:
    head, first = tx.log.head(), _next_seq(tx)
    through = first + SEARCH_CHUNK_EVENTS - 1
    if through > head.revision:
        return None
    chunk = _Chunk(first_seq=first, through_seq=first - 1, lineage_seq=head.lineage_seq)
    taken = 0
    for event in read_log(tx, first, through, workflow):
        words = words_of(searched_text(event))
        bit = 1 << event.seq - first
        for word in words:
            chunk.events[word] |= bit
        chunk.through_seq = event.seq
        taken += len(words)
        if taken >= SEARCH_CHUNK_WORDS_MAX:
            break
    return chunk
