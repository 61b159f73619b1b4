"""What an erasure takes from each workflow of a family, prepared from one snapshot: nothing is written (C31)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Final

from strandline.codec import decode_sightings, event_place, origin_text, read_body, read_origin, spoken_text
from strandline.engine.ancestry import compose
from strandline.engine.assemble import standing_refs
from strandline.engine.environment import Environment
from strandline.engine.erase_replace import Replacement, replace_summary
from strandline.engine.erased import ErasedTransaction
from strandline.engine.family import members
from strandline.engine.reading import read_log, read_summary
from strandline.errors import InvalidInputError
from strandline.limits import SIGHTINGS_PAGE
from strandline.model.candidate import Attempt
from strandline.model.erasure import ErasureOrder
from strandline.model.event import Event
from strandline.model.lineage import WorkflowHead
from strandline.model.summary import Summary
from strandline.model.view import ViewHead
from strandline.ports import Summarizer, Transaction
from strandline.rules.erasure import STATES_A_FACT, Reach, Traces, spans_of
from strandline.rules.verbatim import stands_verbatim

_END: Final = 2**62  # behind every event


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """An event that is to be erased: what is kept of it, and what proves in the files that it is gone."""

    digest: bytes
    salt: bytes
    audience: str
    states: bool  # what stands as an anchor: a summarizer of any later segment was shown it


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What one workflow loses."""

    env: Environment  # of that workflow
    seen: Mapping[int, Lost]  # erased events of its log, those of its past too
    own: frozenset[int]  # those of them whose rows are its own
    gone: frozenset[int]  # numbers of references, its past's too
    own_gone: frozenset[int]
    replacements: Mapping[str, Replacement]  # of the views whose summary was made from one of the events

    def reach(self, view: ViewHead | None) -> Reach:
        """Return what of it the view could read: one that had other audiences once, or is not there, all of it."""
        lost = {s: e for s, e in self.seen.items() if view is None or view.reads(e.audience)}
        if view is not None and view.audience_version > 1:
            lost = dict(self.seen)
        return reach_of(lost)


def holds(summary: Summary, reach: Reach, gone: Set[int]) -> bool:
    """Tell whether a summary speaks for one of the events, or holds one of the references."""
    return reach.covered(1, summary.watermark) or not gone.isdisjoint(standing_refs(summary))


def reach_of(lost: Mapping[int, Lost]) -> Reach:
    """Return the reach of some of the events."""
    return Reach(sorted(lost), min((s for s, event in lost.items() if event.states), default=None))


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePlan:
    """What an erasure will do, and to which state of which workflows it was fitted."""

    states: Mapping[str, WorkflowHead]  # of the whole family, the deepest first
    losses: Mapping[str, Loss]
    traces: Traces
    repeated: tuple[str, ...]  # events that stay, and repeat some of it
    needles: tuple[bytes, ...]  # that no file may hold afterwards


def prepare(env: Environment, tx: Transaction, order: ErasureOrder, summarizer: Summarizer) -> ErasurePlan:
    """Find what is to be erased in the family of a workflow, and re-derive the summaries that were made from it.

    Args:
        env: ports, and the workflow that was named.
        tx: its rows alone, as `Store.read` or `Store.write` gives them.
        order: what is to be erased.
        summarizer: deterministic: it drafts the new segments.

    Raises:
        InvalidInputError: an event that is not there.
        CorruptRecordError: what would have to be read is not what was written.
    """
    return _Planning(env, tx, order).plan(summarizer)


class _Member:
    """A workflow of the family: its own rows, and with its past."""

    def __init__(self, env: Environment, tx: Transaction, name: str) -> None:
        self.name = name
        self.env = replace(env, scope=replace(env.scope, workflow=name))
        self.raw = tx.relative(name)
        self.tx = compose(self.raw)
        self.head = self.raw.log.head()
        self.own: dict[int, Lost] = {}
        self.seen: dict[int, Lost] = {}
        self.gone: set[int] = set()

    def own_events(self) -> Iterator[Event]:
        return read_log(self.tx, self.head.fork_seq + 1, self.head.revision, self.name)


class _Planning:
    def __init__(self, env: Environment, tx: Transaction, order: ErasureOrder) -> None:
        self._order = order
        self._named = env.scope.workflow
        self._family = {name: _Member(env, tx, name) for name in members(tx, env.scope.workflow)}
        self._downward = list(reversed(self._family.values()))  # each behind its parent
        self._traces = Traces(everywhere=order.everything)

    def plan(self, summarizer: Summarizer) -> ErasurePlan:
        self._select()
        for member in self._downward:
            parent = self._family.get(member.head.parent or "")
            shared = {s: lost for s, lost in parent.seen.items() if s <= member.head.fork_seq} if parent else {}
            member.seen = shared | member.own
        self._traces.take_refs(named_in(self._order))
        self._find_gone()
        repeated = tuple(self._spare())
        losses = {m.name: self._loss(m, summarizer) for m in self._family.values() if m.seen or m.gone}
        return ErasurePlan(
            states={member.name: member.head for member in self._family.values()},
            losses=losses,
            traces=self._traces,
            repeated=repeated,
            needles=tuple(dict.fromkeys(self._needles())),
        )

    # ------------------------------------------------------------------------------------------ what is erased

    def _select(self) -> None:
        order, named = self._order, self._family[self._named]
        for seq in order.events:
            if not 1 <= seq <= named.head.revision:
                raise InvalidInputError(
                    f"event {seq} of {self._named!r} lies outside 1..{named.head.revision}; nothing was erased"
                )
            self._choose(named, next(read_log(named.tx, seq, seq, self._named)))
        if order.everything:
            for event in named.own_events():
                self._choose(named, event)
        if not (order.refs or order.person or order.actor):
            return
        for event in read_log(named.tx, 1, named.head.revision, self._named):
            if meets(order, event):
                self._choose(named, event)
        for member in self._downward:
            if self._named in self._above(member):
                for event in member.own_events():
                    if meets(order, event):
                        self._choose(member, event)

    def _above(self, member: _Member) -> list[str]:
        """Return the ancestors of a workflow."""
        above, parent = [], member.head.parent
        while parent is not None:
            above.append(parent)
            parent = self._family[parent].head.parent
        return above

    def _choose(self, member: _Member, event: Event) -> None:
        """Take an event of a workflow's log down, where its row is; what is erased already stays as it is."""
        if event.body is None or event.salt is None:
            return
        while event.seq <= member.head.fork_seq:
            member = self._family[member.head.parent or ""]
        if event.seq not in member.own:
            states = event.kind in STATES_A_FACT or bool(event.found)
            member.own[event.seq] = Lost(
                digest=event.body_digest, salt=event.salt, audience=event.audience, states=states
            )
            self._traces.take(*said_in(event))

    # ------------------------------------------------------------------------------------------ references

    def _find_gone(self) -> None:
        """Find the references that only erased events hold, in the whole family."""
        for member in self._downward:
            for event in _lost_events(member):
                for ref_id, _ in decode_sightings(event.sightings):
                    owner = self._owner(member, ref_id)
                    if ref_id not in owner.gone and self._is_gone(owner, ref_id):
                        owner.gone.add(ref_id)
        for member in self._downward:
            parent = self._family.get(member.head.parent or "")
            self._traces.take_refs(member.raw.refs.texts(member.gone).values())
            if parent is not None:
                member.gone |= {ref_id for ref_id in parent.gone if ref_id <= member.head.fork_ref_id}

    def _owner(self, member: _Member, ref_id: int) -> _Member:
        while ref_id <= member.head.fork_ref_id:
            member = self._family[member.head.parent or ""]
        return member

    def _is_gone(self, owner: _Member, ref_id: int) -> bool:
        """Tell whether every event that holds a reference is erased, in the workflow that numbered it and its forks."""
        sharing = (member for member in self._downward if self._owner_name(member, ref_id) == owner.name)
        return all(self._is_lost(member, seq) for member in sharing for seq in _own_sightings(member, ref_id))

    def _owner_name(self, member: _Member, ref_id: int) -> str | None:
        """Return who numbered a reference, as a workflow reads it; None: the number is none of a common past."""
        return self._owner(member, ref_id).name if ref_id <= member.head.ref_id else None

    def _is_lost(self, member: _Member, seq: int) -> bool:
        if seq in member.own:
            return True
        stored = next(iter(member.raw.log.read(seq, seq)), None)
        return stored is not None and stored.body is None

    # ------------------------------------------------------------------------------------------ what stays

    def _spare(self) -> Iterator[str]:
        """Let what stays be no trace of what is erased, and name the events that repeat it."""
        for member in self._downward:
            for event in member.own_events() if member.seen or member.gone else ():
                if event.seq not in member.own and event.body is not None and self._traces.spare(*held_in(event)):
                    yield event_place(event.seq, member.name)

    def _needles(self) -> Iterator[bytes]:
        """Yield what no file may hold: salts, which stand nowhere else; references; a phrase of each event."""
        for member in self._downward:
            for text in member.raw.refs.texts(member.gone).values():
                yield text.encode()
            for event in _lost_events(member):
                yield member.own[event.seq].salt
                yield from (self._traces.fragment(said).encode() for said in said_in(event))

    # ------------------------------------------------------------------------------------------ what is re-derived

    def _loss(self, member: _Member, summarizer: Summarizer) -> Loss:
        head = member.head
        replacements = {}
        after = ErasedTransaction(member.tx, member.name, member.seen, member.gone)
        for view in member.raw.views.all():
            lost = {s: event for s, event in member.seen.items() if view.reads(event.audience)}
            base = read_summary(member.tx, view) if lost or member.gone else None
            if base is not None and holds(base, reach_of(lost), member.gone):
                replacements[view.name] = replace_summary(
                    member.env, after, view, base, reach_of(lost), member.gone, self._traces, summarizer
                )
        own_gone = frozenset(ref_id for ref_id in member.gone if ref_id > head.fork_ref_id)
        return Loss(
            env=member.env,
            seen=member.seen,
            own=frozenset(member.own),
            gone=frozenset(member.gone),
            own_gone=own_gone,
            replacements=replacements,
        )


def _lost_events(member: _Member) -> Iterator[Event]:
    """Yield the events of a workflow's own that are to be erased."""
    for first, last in spans_of(sorted(member.own)):
        yield from read_log(member.tx, first, last, member.name)


def _own_sightings(member: _Member, ref_id: int) -> Iterator[int]:
    """Yield the events of a workflow's own that hold a reference."""
    through = _END
    while page := member.raw.refs.sightings(ref_id, through, SIGHTINGS_PAGE):
        yield from (seq for seq, _ in page)
        through = page[-1][0] - 1


def said_in(event: Event) -> tuple[str, ...]:
    """Return what the body of an event says: as a reader sees it, and as its values without JSON's escapes."""
    return () if event.body is None else tuple(dict.fromkeys((read_body(event)[0], spoken_text(event))))


def held_in(event: Event) -> tuple[str, ...]:
    """Return what the body of an event holds: what it says, and what the record of a guest beside it says."""
    origin = read_origin(event)
    return said_in(event) if origin is None else (*said_in(event), origin_text(origin))


def said_by(attempt: Attempt) -> list[str]:
    """Return all texts of an attempt: what it failed with, what it drafted, what was said of that."""
    said = [attempt.failure_text or ""]
    if attempt.verdict is not None:
        said += [violation.detail for violation in attempt.verdict.violations]
        said += [text for one in attempt.verdict.claims for text in (one.claim, one.reason, one.sentence, one.fact)]
    for draft in attempt.drafts:
        said += [draft.text, *(claim.text for claim in draft.claims)]
    return said


def meets(order: ErasureOrder, event: Event) -> bool:
    """Tell whether an event is one of those that an order names by what they hold or whose they are."""
    if event.body is None:
        return False
    if order.actor is not None and event.actor == order.actor:
        return True
    if order.person is not None and order.person in (event.actor, event.envelope.granter):
        return True
    wanted = named_in(order)
    return bool(wanted) and any(stands_verbatim(text, held) for held in held_in(event) for text in wanted)


def named_in(order: ErasureOrder) -> tuple[str, ...]:
    """Return the texts that an order names: what holds one of them verbatim has to go, an event or not."""
    return order.refs if order.person is None else (*order.refs, order.person)
