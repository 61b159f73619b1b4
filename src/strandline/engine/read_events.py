"""Read events of the log as they stand, in order, and find them by their keys (C1, I3)."""

from __future__ import annotations

from collections.abc import Collection

from strandline.engine.environment import Environment, check_whole
from strandline.engine.reading import abandoned_of, find_view, read_log, visible, with_references
from strandline.engine.watching import watched
from strandline.errors import InvalidInputError
from strandline.limits import EVENTS_PAGE_MAX
from strandline.model.event import SourceEvent


@watched("events")
def read_events(env: Environment, view: str, from_seq: int, through_seq: int | None) -> list[SourceEvent]:
    """Return the events from_seq..through_seq that the view may read, each checked; abandoned ones say so.

    Raises:
        InvalidInputError: from_seq below 1, or more than EVENTS_PAGE_MAX events at once.
        CorruptRecordError: one is not what was written (I4).
    """
    check_whole("from_seq", from_seq)
    check_whole("through_seq", through_seq)
    if from_seq < 1:
        raise InvalidInputError(f"events begin at 1, not {from_seq}")
    with env.read() as tx:
        reader = find_view(tx, view, str(env.scope))
        revision = tx.log.head().revision
        through = revision if through_seq is None else min(through_seq, revision)
        if through - from_seq >= EVENTS_PAGE_MAX:
            raise InvalidInputError(
                f"{through - from_seq + 1} events at once; read at most {EVENTS_PAGE_MAX}, by from_seq and through_seq"
            )
        events = list(visible(reader, read_log(tx, from_seq, through, env.scope.workflow)))
        sources, left = with_references(tx, events, env.counter)[0], abandoned_of(tx)
        return [source._replace(abandoned=True) if source.seq in left else source for source in sources]


@watched("seqs_of")
def seqs_of(env: Environment, view: str, keys: Collection[str]) -> dict[str, int]:
    """Return the seqs of the live events that bear these keys and that the view may read; a key of none is left out.

    Raises:
        InvalidInputError: one text instead of several, or more than EVENTS_PAGE_MAX keys at once.
        CorruptRecordError: one of the events is not what was written (I4).
    """
    if isinstance(keys, str):
        raise InvalidInputError(f"keys are several texts, not the one text {keys!r}")
    if len(keys) > EVENTS_PAGE_MAX:
        raise InvalidInputError(f"{len(keys)} keys at once; ask for at most {EVENTS_PAGE_MAX}")
    with env.read() as tx:
        reader = find_view(tx, view, str(env.scope))
        held = sorted(stored.seq for stored in tx.log.by_keys(list(keys)).values())
        events = (event for seq in held for event in read_log(tx, seq, seq, env.scope.workflow))
        return {event.key: event.seq for event in visible(reader, events) if event.key is not None}
