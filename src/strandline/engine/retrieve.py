"""Look references up in the log: the newest event that a reader may see, checked against index and chain (C4, C19)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final

from strandline.codec import ERASED_TEXT, leaf_text
from strandline.engine.environment import PART_JOINT, Environment
from strandline.engine.reading import abandoned_of, check_sighted, find_view, read_one, to_source
from strandline.errors import ContextOverflowError, LastKnown, SummaryReconciliationError
from strandline.limits import RETRIEVAL_EVENTS_MAX, RETRIEVAL_LOOKUPS_MAX, RETRIEVAL_SHARE, SIGHTINGS_PAGE
from strandline.model.context import ContextPart, ContextView, PartKind
from strandline.model.event import Event, SourceEvent
from strandline.model.recovery import ReconciliationReason
from strandline.model.register import FactKind
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.rules.branches import NOTHING_ABANDONED, Abandoned
from strandline.rules.fallback import least_tokens, never_left_out
from strandline.rules.recovery import UNHELD, missing_dependencies
from strandline.rules.rendering import plain_text
from strandline.rules.retrieval import Source, narrowest
from strandline.rules.verbatim import stands_verbatim

_NEEDS_SHOWN_MAX: Final = 10
_LARGER: Final = "Raise the budget, ask for fewer needs at once, or read the events with `recall`."
_FEWER: Final = "Ask for fewer needs at once, or pin what every context needs."


def sighted_events(
    tx: Transaction,
    ref: str,
    reader: ViewHead,
    through_seq: int,
    workflow: str,
    left: Abandoned = NOTHING_ABANDONED,
) -> Iterator[tuple[Event, bool]]:
    """Yield the events that hold a reference and that the reader may see, newest first; and whether it is declared.

    Those that were `left` behind are passed over. A reference that stands only in events of other audiences is as
    unknown as one that no event holds (I21).

    Raises:
        CorruptRecordError: an event is not what was written, or the index names one that does not hold it (I4).
    """
    ref_id = tx.refs.find([ref]).get(ref)
    while ref_id is not None and through_seq > 0:
        page = tx.refs.sightings(ref_id, through_seq, SIGHTINGS_PAGE)
        for seq, declared in page:
            if seq in left:
                continue
            event = read_one(tx, seq, workflow)
            check_sighted(event, ref_id, ref)
            if reader.reads(event.audience):
                yield event, declared
        if len(page) < SIGHTINGS_PAGE:
            return
        through_seq = page[-1][0] - 1


def held_by(tx: Transaction, ref: str, reader: ViewHead, workflow: str) -> Event | None:
    """Return the newest live event that holds a reference, that the reader may see, and whose body is there."""
    found = sighted_events(tx, ref, reader, tx.log.head().revision, workflow, abandoned_of(tx))
    return next((event for event, _ in found if event.body is not None), None)


def divergences(tx: Transaction, refs: Sequence[str], reader: ViewHead) -> dict[str, str]:
    """Return the references in whose place another was accepted, each with the last of its chain (I17)."""
    if tx.log.head().epoch == 0:
        return {}
    found = {}
    for ref, ref_id in tx.refs.find(list(refs)).items():
        chain = [ref_id]
        while True:
            standing = tx.register.standing(FactKind.DIVERGENCE, str(chain[-1]))
            following = next((int(fact.key.holder) for fact in standing if reader.reads(fact.audience)), chain[-1])
            if following in chain:
                break
            chain.append(following)
        if len(chain) > 1:
            found[ref] = tx.refs.texts(chain[-1:]).get(chain[-1], ERASED_TEXT)
    return found


def last_known(tx: Transaction, ref: str, reader: ViewHead, workflow: str) -> LastKnown | None:
    """Return where a reader last saw a reference, or None when no live event that it may see holds it (I11, I21)."""
    revision = tx.log.head().revision
    event, _ = next(sighted_events(tx, ref, reader, revision, workflow, abandoned_of(tx)), (None, False))
    if event is None:
        return None
    ref_id = tx.refs.find([ref])[ref]
    dropped = tx.summaries.dropped_by(reader.summary_no, [ref_id]) if reader.summary_no else {}
    return LastKnown(seq=event.seq, generation_dropped=dropped.get(ref_id), event_kind=event.kind.value)


def dependency_text(parts: Sequence[ContextPart]) -> str:
    """Return what a needed reference may stand in: the texts of summary and tail, and the values of payloads without
    JSON's escapes. What was retrieved is no part of it: it meets a need of this context, and makes no recovery (I16).
    """
    texts = [part.text for part in parts if part.kind is not PartKind.RETRIEVED]
    return PART_JOINT.join((*texts, *(leaf_text(part.event.payload) for part in parts if part.event is not None)))


class Outgrown:
    """Of the events that no context within the budget can hold: the newest in which each need stands."""

    def __init__(self, needs: Sequence[str]) -> None:
        self.holding: dict[str, SourceEvent] = {}
        self._needs = tuple(dict.fromkeys(needs))

    def take(self, event: SourceEvent) -> None:
        """Look at an event that is let go."""
        for ref in self._needs:
            held = self.holding.get(ref)
            if (held is None or held.seq < event.seq) and _standing(event, ref):
                self.holding[ref] = event


class Retrieval:
    """What one context looks up: each reference once, each event once, within limits (C19, I22)."""

    def __init__(
        self,
        env: Environment,
        tx: Transaction,
        snapshot: ContextView,
        outgrown: Outgrown,
        parts: Sequence[ContextPart],
        budget: int,
    ) -> None:
        self.lookups = 0
        self._env = env
        self._tx = tx
        self._snapshot = snapshot
        self._outgrown = outgrown
        self._parts = parts
        self._budget = budget
        self._events: dict[int, SourceEvent] = {}
        self._refs: dict[int, list[str]] = {}  # of each event: the references for whose sake it is quoted

    @property
    def sources(self) -> list[Source]:
        """The events, in the order in which they were asked for."""
        return [_source(event, self._refs[seq]) for seq, event in self._events.items()]

    def look_up(self, refs: Sequence[str]) -> None:
        """Find the newest event that holds each reference.

        Raises:
            SummaryReconciliationError: no event that the view may read holds one of them (I11).
            ContextOverflowError: it would take more lookups, or more events, than one context may have.
        """
        unknown = []
        for ref in refs:
            event = self._in_tail(ref) or self._in_log(ref)
            if event is None:
                unknown.append(ref)
                continue
            if event.seq not in self._events and len(self._events) == RETRIEVAL_EVENTS_MAX:
                raise self._overflow(f"they stand in more than {RETRIEVAL_EVENTS_MAX} events", hint=_FEWER)
            self._events[event.seq] = event
            self._refs.setdefault(event.seq, []).append(ref)
        if unknown:
            raise self._unknown(tuple(unknown))

    def quotes(self, needs: Sequence[str]) -> list[ContextPart]:
        """Return the shortest quote of each event that was found so far.

        Raises:
            ContextOverflowError: they do not fit beside what is never left out, or exceed their share of the budget.
        """
        quotes = narrowest(self.sources, self._env.part_tokens)
        taken = sum(quoted.tokens for quoted in quotes)
        if taken > self.share_tokens or taken + least_tokens(self._parts) > self._budget:
            held = {ref for refs in self._refs.values() for ref in refs}
            stays = dependency_text(never_left_out(self._parts))  # a smaller window may be all that is left
            self.look_up([ref for ref in missing_dependencies(needs, stays) if ref not in held])
            if self._events:
                raise self._overflow("they do not fit beside segments, mandatory facts and the newest event")
        return quotes

    @property
    def share_tokens(self) -> int:
        """The most tokens that quotes may take."""
        return int(self._budget * RETRIEVAL_SHARE)

    def _in_tail(self, ref: str) -> SourceEvent | None:
        newest = next((event for event in reversed(self._snapshot.tail) if _standing(event, ref)), None)
        older = self._outgrown.holding.get(ref)
        return older if newest is None or (older is not None and older.seq > newest.seq) else newest

    def _in_log(self, ref: str) -> SourceEvent | None:
        if self.lookups == RETRIEVAL_LOOKUPS_MAX:
            raise self._overflow(f"more than {RETRIEVAL_LOOKUPS_MAX} would have to be looked up", hint=_FEWER)
        self.lookups += 1
        reader = find_view(self._tx, self._snapshot.view, str(self._env.scope))
        workflow, left = self._env.scope.workflow, abandoned_of(self._tx)
        found = sighted_events(self._tx, ref, reader, self._snapshot.revision, workflow, left)
        event, _ = next(found, (None, False))
        return None if event is None else to_source(event, self._env.counter)

    def _unknown(self, refs: tuple[str, ...]) -> SummaryReconciliationError:
        snapshot = self._snapshot
        return SummaryReconciliationError(
            f"generation {snapshot.generation} of view {snapshot.view!r} through event {snapshot.revision} does not "
            f"hold {', '.join(map(repr, refs))} verbatim, and no event of its log does",
            summary_generation=snapshot.generation,
            checkpoint_turn=None,
            reason=ReconciliationReason.DEPENDENCY_NOT_VERBATIM,
            missing_refs=refs,
            last_known=None,
            hint=UNHELD,
        )

    def _overflow(self, why: str, hint: str = _LARGER) -> ContextOverflowError:
        """Return the error that blocks the call: what was needed, in all and for each reference."""
        count = self._env.part_tokens
        quotes = narrowest(self.sources, count)
        taken = sum(quoted.tokens for quoted in quotes)
        needs = {
            ref: quoted.tokens
            for source in self.sources
            for ref in source.refs
            for quoted in narrowest([_source(source.event, [ref])], count)
        }
        shown = ", ".join(f"{ref!r} ({tokens})" for ref, tokens in list(needs.items())[:_NEEDS_SHOWN_MAX])
        more = f" and {len(needs) - _NEEDS_SHOWN_MAX} more" if len(needs) > _NEEDS_SHOWN_MAX else ""
        return ContextOverflowError(
            f"needs have to be quoted from the log, and {why}: {shown}{more}",
            needed=max(taken + least_tokens(self._parts), ceil(taken / RETRIEVAL_SHARE)),
            budget=self._budget,
            needs=needs,
            hint=hint,
        )


def _standing(event: SourceEvent, ref: str) -> bool:
    return stands_verbatim(ref, plain_text(event)) or stands_verbatim(ref, leaf_text(event.payload))


def _source(event: SourceEvent, refs: Sequence[str]) -> Source:
    """Return an event with a text in which the references stand: its own; with the values of its payload, where JSON's
    escapes hide one; with those that are only declared.
    """
    lines = [plain_text(event)]
    hidden = missing_dependencies(refs, lines[0])
    values = leaf_text(event.payload) if hidden else ""
    declared = missing_dependencies(hidden, values)
    if len(declared) < len(hidden):
        lines.append(f"[values] {values}")
    if declared:
        lines.append(f"[declared references] {', '.join(declared)}")
    return Source(event=event, text="\n".join(lines), refs=tuple(refs))
