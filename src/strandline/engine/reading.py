"""Reading the log and the memory, verified: what is damaged or missing is an error with its place (I4, I7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from strandline.codec import (
    EMPTY_CHAIN,
    decode_found,
    decode_sightings,
    event_place,
    open_event,
    read_body,
    read_origin,
    text_digest,
)
from strandline.engine.environment import Environment, part_tokens
from strandline.engine.kept_tail import KeptTail, ReadSoFar
from strandline.errors import CorruptRecordError, InvalidInputError, TenantScopeError
from strandline.limits import SIGHTINGS_PAGE
from strandline.model.context import ContextView
from strandline.model.event import Basis, Event, EventKind, SourceEvent
from strandline.model.ids import DEFAULT_VIEW
from strandline.model.register import Fact, FactKind, OpenCall
from strandline.model.summary import Summary
from strandline.model.view import ViewHead
from strandline.ports import TokenCounter, Transaction
from strandline.rules.branches import NOTHING_ABANDONED, Abandoned
from strandline.rules.newest import NewestEvents
from strandline.rules.register import NAMES_REFERENCES, Register, RegisterEvent
from strandline.rules.rendering import shown_text

UNWRITTEN_MAIN = ViewHead(view_id=1, name=DEFAULT_VIEW)


def read_log(tx: Transaction, from_seq: int, through_seq: int, workflow: str) -> Iterator[Event]:
    """Yield the events from_seq..through_seq, each checked against its digest and the chain.

    Raises:
        CorruptRecordError: one is missing, damaged or out of place; what came before it was good.
    """
    if through_seq < from_seq:
        return
    chain = _chain_before(tx, from_seq, workflow)
    expected = from_seq
    for stored in tx.log.read(from_seq, through_seq):
        if stored.seq != expected:
            reason = f"the event is missing; the next one is {stored.seq}"
            raise CorruptRecordError(reason, place=event_place(expected, workflow))
        event = open_event(stored, chain, workflow)
        chain = event.chain
        expected += 1
        yield event
    if expected <= through_seq:
        raise CorruptRecordError("the event is missing, and so is all after it", place=event_place(expected, workflow))
    head = tx.log.head()
    if through_seq == head.revision and chain != head.chain:
        raise CorruptRecordError("the last event is not the one that the head names", place=f"workflow {workflow!r}")


def _chain_before(tx: Transaction, seq: int, workflow: str) -> bytes:
    if seq == 1:
        return EMPTY_CHAIN
    before = next(iter(tx.log.read(seq - 1, seq - 1)), None)
    if before is None:
        raise CorruptRecordError("the event is missing", place=event_place(seq - 1, workflow))
    return before.chain


def abandoned_of(tx: Transaction) -> Abandoned:
    """Return the events that rewinds left behind; where there was none, without a query.

    Raises:
        CorruptRecordError: the range of a rewind is missing, or damaged.
    """
    branch = tx.log.head().branch
    if branch == 0:
        return NOTHING_ABANDONED
    ranges = tx.log.abandoned()
    if [left.branch for left in ranges] != list(range(1, branch + 1)):
        raise CorruptRecordError(
            f"{branch} rewinds were made, and the ranges of {len(ranges)} are stored", place="abandoned_range"
        )
    return Abandoned(ranges)


def read_live(tx: Transaction, from_seq: int, through_seq: int, workflow: str) -> Iterator[Event]:
    """Yield the live events of from_seq..through_seq, each checked as by `read_log` (C22)."""
    for first, last in abandoned_of(tx).live_spans(from_seq, through_seq):
        yield from read_log(tx, first, last, workflow)


def newest_sighting(tx: Transaction, ref_id: int, through_seq: int, left: Abandoned) -> int:
    """Return the last live event at or before through_seq that holds a reference; 0: there is none."""
    while through_seq > 0:
        found = tx.refs.sightings(ref_id, through_seq, 1)
        if not found:
            return 0
        through_seq = left.last_live(found[0][0])
        if through_seq == found[0][0]:
            return through_seq
    return 0


def newest_seen(tx: Transaction, view: ViewHead, ref_id: int, through_seq: int, left: Abandoned, workflow: str) -> int:
    """Return the last live event at or before through_seq that holds a reference and that the view reads; 0: none."""
    if not view.narrow:
        return newest_sighting(tx, ref_id, through_seq, left)
    while through_seq > 0:
        page = tx.refs.sightings(ref_id, through_seq, SIGHTINGS_PAGE)
        for seq, _ in page:
            if seq not in left and view.reads(read_one(tx, seq, workflow).audience):
                return seq
        through_seq = page[-1][0] - 1 if len(page) == SIGHTINGS_PAGE else 0
    return 0


def read_one(tx: Transaction, seq: int, workflow: str) -> Event:
    """Return one event, checked."""
    return next(read_log(tx, seq, seq, workflow))


def check_sighted(event: Event, ref_id: int, ref: str) -> None:
    """Check a hit of the index of sightings against its event (DESIGN §5).

    Raises:
        CorruptRecordError: the event does not hold the reference.
    """
    if all(sighting.ref_id != ref_id for sighting in decode_sightings(event.sightings)):
        raise CorruptRecordError(f"it does not hold {ref!r}, as the index says", place=f"event {event.seq}")


def to_source(
    event: Event, counter: TokenCounter, declared: tuple[str, ...] = (), extracted: tuple[str, ...] = ()
) -> SourceEvent:
    """Return an event as a reader sees it, with the texts of its references where they are given."""
    text, payload = read_body(event)
    envelope = event.envelope
    return SourceEvent(
        seq=event.seq,
        kind=event.kind,
        role=envelope.role,
        actor=event.actor,
        text=text,
        tokens=part_tokens(counter, shown_text(event.kind, text, envelope, event.call_seq)),
        call_id=envelope.call_id,
        call_seq=event.call_seq,
        tool=envelope.tool,
        is_error=envelope.is_error,
        subject=envelope.subject,
        message_id=envelope.message_id,
        declared=declared,
        extracted=extracted,
        payload=payload,
        late=envelope.late,
        epoch=event.epoch,
        origin=read_origin(event),
        erased=event.body is None,
    )


def with_references(
    tx: Transaction, events: Sequence[Event], counter: TokenCounter, known: Mapping[int, SourceEvent] | None = None
) -> tuple[list[SourceEvent], dict[str, int]]:
    """Return events as a reader sees them, with the texts of their references, and the number of each text.

    `known` holds events, by seq, that were decoded already, without references.
    """
    seen = known or {}
    sighted = [decode_sightings(event.sightings) for event in events]
    texts = tx.refs.texts({ref_id for sightings in sighted for ref_id, _ in sightings})
    sources = []
    for event, sightings in zip(events, sighted, strict=True):
        named = [(texts[ref_id], is_declared) for ref_id, is_declared in sightings if ref_id in texts]  # not if erased
        declared = tuple([text for text, is_declared in named if is_declared])
        extracted = tuple([text for text, is_declared in named if not is_declared])
        source = seen.get(event.seq)
        if source is None:
            sources.append(to_source(event, counter, declared, extracted))
        else:
            sources.append(source._replace(declared=declared, extracted=extracted))
    return sources, {text: ref_id for ref_id, text in texts.items()}


def find_view(tx: Transaction, name: str, scope_text: str) -> ViewHead:
    """Return the view. `main` is there without being written.

    Raises:
        TenantScopeError: no such view.
        CorruptRecordError: it does not stand where the lineage says.
    """
    view = tx.views.get(name)
    if view is None and name != DEFAULT_VIEW:
        raise TenantScopeError(
            f"{scope_text} has no view {name!r}",
            hint="Define it first: `define_view`, on the command line `strandline view define`.",
        )
    moved, found = tx.lineage.moved_to(name), view or UNWRITTEN_MAIN
    if moved != found.generation:  # the row is gone, or an older one stands in its place
        reason = f"its pointer was moved to generation {moved}, and its row says {found.generation}"
        raise CorruptRecordError(reason, place=f"view {name!r} of {scope_text}")
    return found


def check_basis(tx: Transaction, basis: Basis, scope_text: str) -> None:
    """Check that a context such as a basis names has been: older than now it may be.

    Raises:
        InvalidInputError: it never was.
        TenantScopeError: no such view.
    """
    view, revision = find_view(tx, basis.view, scope_text), tx.log.head().revision
    if not (0 <= basis.generation <= view.generation and 0 <= basis.revision <= revision):
        raise InvalidInputError(
            f"basis {basis.generation}@{basis.revision} of view {basis.view!r} never was: it is at "
            f"{view.generation}@{revision}"
        )


def read_summary(tx: Transaction, view: ViewHead, *, texts_only: bool = False) -> Summary | None:
    """Return the view's active summary, checked; None at the empty one. `texts_only`: as of `SummaryFacet.get`.

    Raises:
        CorruptRecordError: it is missing, incomplete or damaged (I5, I7); the hint says the way out.
    """
    if view.summary_no == 0:
        return None
    try:
        summary = load_summary(tx, view.summary_no, view.name, texts_only=texts_only)
    except CorruptRecordError as error:
        if error.place.startswith(OF_A_SUMMARY):
            error.hint = _RECOVER
        raise
    if summary.watermark != view.watermark:
        place = f"summary {view.summary_no} of view {view.name!r}"
        raise CorruptRecordError("the summary is not the one that the view's pointer means", place=place)
    return summary


OF_A_SUMMARY: Final = ("summary ", "segment ")  # how the place of what a recovery can do without begins
_RECOVER: Final = (
    "It is the active summary; the log does not need it. Call `recover`, on the command line `strandline recover`: it "
    "opens a case, and the answer replay-from-exact goes back to the newest verified summary."
)


def load_summary(tx: Transaction, number: int, view: str, *, texts_only: bool = False) -> Summary:
    """Return a summary of a view by its number, checked.

    Raises:
        CorruptRecordError: it is missing, incomplete, damaged, erased, or of another view (I5, I7).
    """
    place = f"summary {number} of view {view!r}"
    summary = tx.summaries.get(number, texts_only=texts_only)
    if summary is None:
        raise CorruptRecordError("the summary is missing", place=place)
    if summary.erased:
        raise CorruptRecordError("an erasure took its text away", place=place)
    check_summary(summary, place)
    if summary.view != view:
        raise CorruptRecordError("the summary is not one of this view", place=place)
    return summary


def check_summary(summary: Summary, place: str) -> None:
    """Check the texts and the contiguity of a summary that was read; a text that was erased proves nothing any more.

    Raises:
        CorruptRecordError: it is not what was written.
    """
    own = (summary.anchors_text, summary.ledger_text)
    if any(own) if not summary.salt else text_digest(summary.salt, *own) != summary.text_digest:
        raise CorruptRecordError("anchors and ledger do not match their digest", place=place)
    covered = 0
    for segment in summary.segments:
        head = segment.head
        if head.from_seq != covered + 1:
            raise CorruptRecordError(f"its segments leave a gap or overlap at event {covered + 1}", place=place)
        if segment.text if segment.erased else text_digest(segment.salt, segment.text) != segment.text_digest:
            raise CorruptRecordError("the text does not match its digest", place=f"segment {head.segment_id!r}")
        covered = head.through_seq
    if covered != summary.watermark:
        raise CorruptRecordError(
            f"its segments end at event {covered}, its watermark is {summary.watermark}", place=place
        )


def check_reach(view: ViewHead, revision: int, workflow: str) -> None:
    """Check that the log holds what the view's summary covers (I7).

    Raises:
        CorruptRecordError: the log ends before it.
    """
    if view.watermark > revision:
        raise CorruptRecordError(
            f"its summary covers event {view.watermark}, but the log ends at {revision}",
            place=f"view {view.name!r} of {workflow!r}",
        )


def visible(view: ViewHead, events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events that the view may read (I21). To a narrow one no epoch is told: a divergence that it may not
    read would show in it; those that it may read are told by `divergences`.
    """
    if not view.narrow:
        return iter(events)
    return (event._replace(epoch=0) for event in events if view.reads(event.audience))


def read_view(
    env: Environment,
    tx: Transaction,
    name: str,
    budget: int,
    leave: Callable[[SourceEvent], None] | None = None,
    kept: KeptTail | None = None,
) -> ContextView:
    """Return one snapshot of a view: its summary, and of the tail behind it what a context within the budget may hold
    (I7). `leave` is told of each other event.

    With `kept` what it holds is not read again where it stands; a reader who is told what is left has none.
    """
    head = tx.log.head()
    view = find_view(tx, name, str(env.scope))
    read = kept.take(tx, head, view) if kept is not None else None
    if read is None:
        summary = read_summary(tx, view, texts_only=True)
        check_reach(view, head.revision, env.scope.workflow)
        newest = NewestEvents(budget, leave)
        read = ReadSoFar(view=view, revision=view.watermark, summary=summary, newest=newest)
    check_register_whole(tx)
    for event in visible(view, read_live(tx, read.revision + 1, head.revision, env.scope.workflow)):
        read.newest.take(to_source(event, env.counter))
        read.size += len(event.body or b"")
    tail, gaps = read.newest.events(), read.newest.gaps()
    if kept is not None:
        kept.keep(read, head)
    return ContextView(
        view=view.name,
        generation=view.generation,
        revision=head.revision,
        watermark=view.watermark,
        summary=read.summary,
        tail=tuple(tail),
        gaps=tuple(gaps),
        open_calls=open_calls_of(tx.register.open_calls(), tail),
    )


def open_calls_of(facts: Sequence[Fact], tail: Sequence[SourceEvent]) -> tuple[OpenCall, ...]:
    """Return the open calls that a reader of this tail may know of; no open call is ever covered (I8)."""
    calls = {event.seq: event for event in tail if event.kind is EventKind.TOOL_CALL}
    return tuple(
        OpenCall(call_id=fact.key.subject, seq=fact.source_seq, tool=calls[fact.source_seq].tool or "")
        for fact in facts
        if fact.source_seq in calls
    )


def register_event(event: Event) -> RegisterEvent:
    """Return what the register needs of an event."""
    return RegisterEvent(
        seq=event.seq,
        kind=event.kind,
        actor=event.actor,
        audience=event.audience,
        envelope=event.envelope,
        declared_ids=tuple(s.ref_id for s in decode_sightings(event.sightings) if s.declared)
        if event.kind in NAMES_REFERENCES
        else (),
        found=len(decode_found(event.found)) if event.found else 0,
    )


def check_register_whole(tx: Transaction) -> None:
    """Check that no fact that holds is missing, before a summary or a context speaks of them (I8, I10).

    Raises:
        CorruptRecordError: one is.
    """
    counted, facts = tx.register.count_standing(), tx.log.head().facts
    if counted != facts:
        reason = f"{counted} facts hold, and {facts} were written"
        raise CorruptRecordError(reason, place="register_fact")


def standing_register(tx: Transaction) -> Register:
    """Return the register as of the last event; it fetches the facts that it is asked about."""
    return Register(
        tx.register.open_calls() if tx.log.head().facts else (),  # an open call is a fact that holds
        lambda call_id: tx.register.newest(FactKind.CALL, call_id),
        tx.register.standing,
    )
