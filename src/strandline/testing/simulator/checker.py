"""The invariant checker: it looks at what each commit left behind, before anybody goes on (SPEC §3).

It reads the raw rows and folds log and lineage by itself. What needs all of the bytes, such as digests, is `verify`'s,
at the end of a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from strandline.engine.ancestry import compose
from strandline.engine.read_context import Context
from strandline.model.action import PermitState
from strandline.model.case import CaseState
from strandline.model.context import PartKind, Rung
from strandline.model.effect import Effect, EffectState
from strandline.model.event import Basis, EventKind, StoredEvent
from strandline.model.ids import DEFAULT_VIEW, Scope
from strandline.model.lineage import MOVES, LineageEntry, LineageKind
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.stores.memory import MemoryStore
from strandline.testing.simulator.activation import check_activation
from strandline.testing.simulator.history import BrokenInvariantError
from strandline.testing.simulator.known import Known, Moment, decoded, is_left, live_events, reads
from strandline.testing.simulator.tearing import TORN

_EFFECT_STEPS = {
    EffectState.INTENDED: {EffectState.DONE, EffectState.FAILED, EffectState.UNKNOWN},
    EffectState.UNKNOWN: {EffectState.DONE, EffectState.FAILED, EffectState.ABANDONED},
    EffectState.FAILED: {EffectState.INTENDED},
    EffectState.DONE: set(),
    EffectState.ABANDONED: set(),
}


@dataclass(frozen=True, slots=True)
class Change:
    """What a commit added to a workflow."""

    scope: Scope
    seqs: tuple[int, ...]
    lineage: tuple[int, ...]
    text: str


class Checker:
    """Knows every workflow as it was after the last commit, and compares."""

    def __init__(self, store: MemoryStore, known: dict[Scope, Known]) -> None:
        self._store = store
        self._known = {scope: one.copied() for scope, one in known.items()}
        self._begun = self._versions = store.versions()
        self.commits = 0

    @property
    def known(self) -> dict[Scope, Known]:
        """What is known of each workflow."""
        return self._known

    def committed(self, scope: Scope) -> list[Change]:
        """Check what a commit on a workflow left behind, there and in its family; return what it added.

        Raises:
            BrokenInvariantError: an invariant does not hold.
        """
        self.commits += 1
        before, after = self._versions, self._store.versions()
        changes = []
        for place, version in after.items():
            if before.get(place, 0) != version:
                if place.tenant != scope.tenant:
                    raise BrokenInvariantError("I21", f"a commit on {scope} changed {place}")
                changes.append(self._check(place))
        self._versions = after
        return changes

    # ------------------------------------------------------------------------------------------ one workflow

    def _check(self, scope: Scope) -> Change:
        old = self._known.get(scope)
        with self._store.read(scope) as raw:
            tx = compose(raw)
            known = Known() if old is None else old
            new = self._taken(tx, raw, known)
            fresh = self._log(tx, known, new)
            entries = self._lineage(known, new, born=old is None)
            if old is not None:
                self._views(known, new, entries)
                for entry in entries:
                    self._entry(tx, entry, known, new)
            _check_effects(known.effects, new.effects)
            self._permits(known, new)
        self._known[scope] = new
        added = ", ".join(f"{entry.kind.value} as lineage {entry.lineage_seq}" for entry in entries)
        seqs = tuple(event.seq for event in fresh)
        text = "; ".join(part for part in (f"events {list(seqs)}" if seqs else "", added) if part) or "rows"
        return Change(scope, seqs, tuple(entry.lineage_seq for entry in entries), f"{scope}: {text}")

    def _taken(self, tx: Transaction, raw: Transaction, known: Known) -> Known:
        """Return the workflow as it is now."""
        head = raw.log.head()
        views = {view.name: view for view in raw.views.all()}
        events = known.events
        if head.chain != known.head.chain or len(events) != head.revision:
            events = list(tx.log.read(1, head.revision))
        lineage = known.lineage
        if head.lineage_seq != known.head.lineage_seq:
            lineage = [*lineage, *raw.lineage.read(known.head.lineage_seq, head.lineage_seq + 1)]
            if any(entry.kind is LineageKind.ERASURE for entry in lineage[len(known.lineage) :]):
                events = list(tx.log.read(1, head.revision))
        left = known.left
        if head.branch != known.head.branch or (not known.lineage and head.parent is not None):
            left = tuple(tx.log.abandoned())
        blocked = known.blocked
        if head.cases:
            open_ones = (case for case in raw.cases.all() if case.state is CaseState.OPEN and case.blocking)
            blocked = frozenset((case.view, case.summary_no) for case in open_ones)
        moments = known.moments
        moments.append(Moment(self.commits, head.revision, views, left))
        return Known(
            head,
            events,
            lineage,
            views,
            left,
            blocked,
            {effect.key: effect for effect in raw.effects.all()} if head.effects else {},
            {permit.permit_id: permit for permit in raw.permits.all()} if head.permits else {},
            moments,
            known.commit_of,
        )

    def _log(self, tx: Transaction, known: Known, new: Known) -> list[StoredEvent]:
        """Seqs run without a gap, and what was there is there (I1, I2); a live key is one event's (I3)."""
        events = new.events
        if [event.seq for event in events] != list(range(1, new.head.revision + 1)):
            raise BrokenInvariantError("I1", f"revision {new.head.revision}, seqs {[event.seq for event in events]}")
        for before, now in zip(known.events, events, strict=False):
            if before is not now and before != now and (now.body is not None or before[:3] != now[:3]):
                raise BrokenInvariantError("I1", f"event {before.seq} changed")
        if len(events) < len(known.events):
            raise BrokenInvariantError("I2", f"{len(known.events) - len(events)} committed events are gone")
        fresh = events[len(known.events) :]
        for event in fresh:
            new.commit_of[event.seq] = self.commits
            if event.key is not None:
                holders = [one.seq for one in events if one.key == event.key and not is_left(new.left, one.seq)]
                if len(holders) > 1:
                    raise BrokenInvariantError("I3", f"the key {event.key!r} is held by events {holders}")
        return fresh

    def _lineage(self, known: Known, new: Known, *, born: bool) -> list[LineageEntry]:
        """The lineage grows without a gap, and each move of a pointer is the next generation (I5, I13)."""
        if [entry.lineage_seq for entry in new.lineage] != list(range(1, new.head.lineage_seq + 1)):
            raise BrokenInvariantError("I13", f"the lineage holds {[entry.lineage_seq for entry in new.lineage]}")
        entries = new.lineage[len(known.lineage) :]
        generations = {name: view.generation for name, view in known.views.items()}
        for entry in entries:
            if entry.kind not in MOVES or entry.view is None or entry.generation is None or born:
                continue
            begins = entry.kind is LineageKind.DEFINE and entry.view not in known.views
            if entry.generation != generations.get(entry.view, -1 if begins and not entry.generation else 0) + 1:
                raise BrokenInvariantError(
                    "I13", f"generation {entry.generation} of {entry.view!r} follows {generations.get(entry.view)}"
                )
            generations[entry.view] = entry.generation
        return entries

    def _views(self, known: Known, new: Known, entries: Iterable[LineageEntry]) -> None:
        """A pointer moves only with an entry of the lineage that says so; a fence never goes down (I5, I6)."""
        moved = {entry.view: entry for entry in entries if entry.kind in MOVES}
        for name, view in new.views.items():
            before = known.views.get(name)
            if before is None:
                continue
            if view.fence < before.fence:
                raise BrokenInvariantError("I6", f"the fence of {name!r} went from {before.fence} to {view.fence}")
            if _pointer(before) != _pointer(view):
                entry = moved.get(name)
                if entry is None or entry.generation != view.generation:
                    raise BrokenInvariantError(
                        "I5", f"the pointer of {name!r} moved to generation {view.generation} without its entry"
                    )
                if view.watermark > new.head.revision:
                    raise BrokenInvariantError("I8", f"watermark {view.watermark}, revision {new.head.revision}")
            elif name in moved:
                raise BrokenInvariantError("I5", f"the lineage tells of a move of {name!r} that was not made")

    def _entry(self, tx: Transaction, entry: LineageEntry, known: Known, new: Known) -> None:
        """What an entry records is so."""
        if entry.kind is LineageKind.COMPACTION:
            check_activation(tx, entry, known, new)
        elif entry.kind is LineageKind.CHECKPOINT:
            self._checkpoint(tx, entry, known, new)
        elif entry.kind in (LineageKind.RESTORE, LineageKind.REPLAY):
            self._recovery(tx, entry, known, new)

    def _checkpoint(self, tx: Transaction, entry: LineageEntry, known: Known, new: Known) -> None:
        """It is of one moment, and its basis is the view's generation (I14)."""
        made = tx.checkpoints.get(entry.lineage_seq)
        if made is None or made.digest != entry.digest:
            raise BrokenInvariantError("I14", f"the checkpoint of lineage {entry.lineage_seq} is not stored")
        if made.revision > new.head.revision:
            raise BrokenInvariantError("I14", f"a checkpoint of revision {made.revision} of {new.head.revision}")
        for one in made.views:
            view = new.views.get(one.view)
            if view is not None and one.generation != view.generation:
                raise BrokenInvariantError(
                    "I14", f"a checkpoint of generation {one.generation} of {one.view!r}, which has {view.generation}"
                )

    def _recovery(self, tx: Transaction, entry: LineageEntry, known: Known, new: Known) -> None:
        """It takes the newest checkpoint that passes the gate, and fences what is in flight (I15)."""
        if any(view.lease_attempt is not None for view in new.views.values()):
            raise BrokenInvariantError("I15", "a recovery left a compaction in flight")
        if entry.name is None or any(one.kind is LineageKind.ERASURE for one in new.lineage):
            return
        target = new.gate(entry.name, entry.lineage_seq)
        restored = entry.restored_seq
        if target is not None and new.lineage[target - 1].view is None:
            target = None  # its state is paired with a replay
        if restored != target:
            raise BrokenInvariantError("I15", f"recovery restored {restored}, and the gate lets {target} pass")

    def _permits(self, known: Known, new: Known) -> None:
        """A permit is used once, while what it rests on stands (I20)."""
        for permit_id, permit in new.permits.items():
            before = known.permits.get(permit_id)
            if before is permit or before == permit:
                continue
            if before is not None and before.state is not PermitState.GRANTED:
                raise BrokenInvariantError("I20", f"the permit {permit_id!r} was {before.state} and is {permit.state}")
            if permit.state is not PermitState.CONSUMED or permit.workflow not in ("run", "side"):
                continue
            for fact in permit.facts:
                scope_known = new if permit.workflow == fact.workflow else None
                if scope_known is not None and fact.seq and _ended(scope_known, fact.subject, fact.seq):
                    raise BrokenInvariantError(
                        "I20", f"the permit {permit_id!r} was used after approval {fact.seq} was revoked"
                    )

    # ------------------------------------------------------------------------------------------ what is read

    def check_context(self, scope: Scope, got: Context, since: int) -> None:
        """A context is one generation and its tail, of a moment while it was read, and of its audiences (I7, I13, I21).

        Raises:
            BrokenInvariantError: it never was, or it is not whole.
        """
        if TORN in got.text:
            raise BrokenInvariantError("I4", f"a context of {got.view!r} shows what was read torn")
        known = self._known.get(scope)
        if known is None:
            return
        moments = known.moments
        first = max((n for n, moment in enumerate(moments) if moment.commit <= since), default=0)
        for moment in moments[first:]:
            if got.view not in moment.views and got.view != DEFAULT_VIEW:
                continue  # it was not defined yet
            view = moment.views.get(got.view) or ViewHead(view_id=0, name=got.view)
            if (moment.revision, view.generation, view.watermark) != (got.revision, got.generation, got.watermark):
                continue
            tail = [
                event
                for event in live_events(known.events, moment.left, got.revision, view)
                if event.seq > view.watermark
            ]
            shown = [part.event.seq for part in got.parts if part.event is not None and part.kind is PartKind.EVENT]
            if got.rung is Rung.WHOLE and shown != [event.seq for event in tail]:
                raise BrokenInvariantError(
                    "I7", f"a context of {got.view!r} shows events {shown}; its tail is {[e.seq for e in tail]}"
                )
            if view.narrow:
                _check_audiences(got, view, known)
            return
        raise BrokenInvariantError(
            "I13", f"a context of generation {got.generation} and revision {got.revision}, which never was while it ran"
        )

    def check_intent(self, scope: Scope, key: str, permit: str | None) -> None:
        """Before an effect runs its intent is committed, and the use of its permit (I18, I20).

        Raises:
            BrokenInvariantError: it is not.
        """
        for place, known in self._known.items():
            effect = known.effects.get(key)
            if place.tenant == scope.tenant and effect is not None:
                self._intent(place, known, effect, permit)
                return
        raise BrokenInvariantError("I18", f"the effect {key!r} runs, and its intent was never committed")

    def _intent(self, place: Scope, known: Known, effect: Effect, permit: str | None) -> None:
        call = self._known[replace(place, workflow=effect.workflow)]
        if (
            effect.call_seq > len(call.events)
            or decoded(call.events[effect.call_seq - 1]).kind is not EventKind.TOOL_CALL
        ):
            raise BrokenInvariantError("I18", f"the effect {effect.key!r} runs, and the log does not hold its call")
        used = known.permits.get(permit) if permit is not None else None
        if permit is not None and (used is None or used.consumed_by != effect.key):
            raise BrokenInvariantError("I20", f"the effect {effect.key!r} runs, and its permit is not used up")

    # ------------------------------------------------------------------------------------------ for the history

    def commit_of(self, scope: Scope, seq: int) -> int:
        """Return the commit that made an event; 0: it was there at the beginning."""
        return self._known[scope].commit_of.get(seq, 0)

    def basis(self, scope: Scope) -> Basis:
        """Return the basis that a context of `main` would have now."""
        known = self._known.get(scope) or Known()
        view = known.views.get(DEFAULT_VIEW)
        return Basis(view=DEFAULT_VIEW, generation=view.generation if view else 0, revision=known.head.revision)

    def recorded(self, scope: Scope, lineage_seq: int) -> bool:
        """Tell whether the lineage holds an entry."""
        return lineage_seq <= len(self._known[scope].lineage)

    def touched(self) -> list[Scope]:
        """Return the workflows that were written to."""
        begun = self._begun
        return [scope for scope, version in self._store.versions().items() if begun.get(scope, 0) != version]

    def erased(self, scope: Scope) -> bool:
        """Tell whether an erasure took something away, here or in the family."""
        return any(
            entry.kind is LineageKind.ERASURE
            for place, known in self._known.items()
            if place.tenant == scope.tenant
            for entry in known.lineage
        )

    def key_of(self, scope: Scope, seq: int) -> str | None:
        """Return the key under which an event stands."""
        events = self._known[scope].events
        return events[seq - 1].key if seq <= len(events) else None


def _pointer(view: ViewHead) -> tuple[int, int, int]:
    return view.generation, view.summary_no, view.watermark


def _ended(known: Known, subject: str, seq: int) -> bool:
    return is_left(known.left, seq) or any(
        event.kind is EventKind.REVOKE and event.envelope.subject == subject and event.seq > seq
        for event in known.live(known.head.revision)
    )


def _check_effects(before: dict[str, Effect], now: dict[str, Effect]) -> None:
    """An effect goes its way; what is done stays done (I18)."""
    for key, effect in now.items():
        old = before.get(key)
        if old is None or old is effect or old == effect:
            continue
        if old.state is not effect.state and effect.state not in _EFFECT_STEPS[old.state]:
            raise BrokenInvariantError("I18", f"the effect {key!r} was {old.state} and is {effect.state}")
        if effect.attempt not in (old.attempt, old.attempt + 1):
            raise BrokenInvariantError("I18", f"attempt {effect.attempt} of {key!r} follows {old.attempt}")
    if before.keys() - now.keys():
        raise BrokenInvariantError("I18", f"the effects {sorted(before.keys() - now.keys())} are gone")


def _check_audiences(got: Context, view: ViewHead, known: Known) -> None:
    for part in got.parts:
        if part.event is not None and not reads(view, decoded(known.events[part.event.seq - 1]).audience):
            raise BrokenInvariantError("I21", f"view {got.view!r} shows event {part.event.seq}, which it may not read")
    if " For hush only." in got.text:
        raise BrokenInvariantError("I21", f"view {got.view!r} shows a text of an audience that it may not read")
