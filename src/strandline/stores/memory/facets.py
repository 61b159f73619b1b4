"""The facets of `strandline.ports` over versioned tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Final, TypeVar

from strandline.codec import EMPTY_CHAIN
from strandline.errors import CorruptRecordError, InvalidInputError
from strandline.model.action import Permit, PermitState
from strandline.model.candidate import Attempt, AttemptState, Candidate, CandidateState
from strandline.model.case import Case, CaseKind, CaseState
from strandline.model.checkpoint import Checkpoint
from strandline.model.effect import Effect, EffectState
from strandline.model.event import StoredEvent
from strandline.model.lineage import AbandonedRange, LineageEntry, LineageKind, WorkflowHead
from strandline.model.outcome import ForeignSummary
from strandline.model.register import Fact, FactKind, FactState
from strandline.model.segment import Segment
from strandline.model.summary import DroppedRef, ManifestEntry, Summary
from strandline.model.view import ViewHead
from strandline.ports import KeyTakenError
from strandline.stores.memory.schema import Facet
from strandline.stores.memory.tables import ONLY

D = TypeVar("D", LineageEntry, ForeignSummary, Case)
_ADDED: Final = "it is there already; nothing was written"


class MemoryLog(Facet):
    """`ports.LogFacet` in memory."""

    def head(self) -> WorkflowHead:
        empty = WorkflowHead(chain=EMPTY_CHAIN, lineage_chain=EMPTY_CHAIN)
        return self._tables.head.get(self._moment, ONLY) or empty

    def set_head(self, head: WorkflowHead) -> None:
        self._tables.head.put(self._moment, ONLY, head)

    def insert(self, events: Sequence[StoredEvent]) -> None:
        keys = [event.key for event in events if event.key is not None]
        if len(set(keys)) < len(keys) or self.by_keys(keys):
            raise KeyTakenError
        for event in events:
            self._tables.events.add(self._moment, event.seq, event)
        self._tables.event_count.put(self._moment, ONLY, self.count() + len(events))

    def read(self, from_seq: int, through_seq: int) -> Iterator[StoredEvent]:
        return iter(self._tables.events.range(self._moment, "log", from_seq, through_seq))

    def by_keys(self, keys: Sequence[str]) -> dict[str, StoredEvent]:
        found = {key: event for key in keys for event in self._tables.events.newest(self._moment, "by_key", key)}
        ranges = self.abandoned()  # of a key's events the newest is the live one, if any is
        return {
            key: event
            for key, event in found.items()
            if not any(left.from_seq <= event.seq <= left.through_seq for left in ranges)
        }

    def key_holders(self, key: str) -> list[StoredEvent]:
        return self._tables.events.newest(self._moment, "by_key", key, limit=None)[::-1]

    def count(self) -> int:
        return self._tables.event_count.get(self._moment, ONLY) or 0

    def abandon(self, abandoned: AbandonedRange) -> None:
        self._tables.abandoned.add(self._moment, abandoned.branch, abandoned)

    def abandoned(self) -> list[AbandonedRange]:
        return self._tables.abandoned.all(self._moment)


class MemoryRefs(Facet):
    """`ports.RefFacet` in memory."""

    def add(self, texts: Sequence[str], first_id: int, sightings: Sequence[tuple[int, int, bool]]) -> None:
        for ref_id, text in enumerate(texts, start=first_id):
            self._tables.refs.add(self._moment, ref_id, (ref_id, text))
        for ref_id, seq, declared in sightings:
            self._tables.sightings.add(self._moment, (seq, ref_id), (seq, ref_id, declared))

    def texts(self, ref_ids: Iterable[int]) -> dict[int, str]:
        rows = (self._tables.refs.get(self._moment, ref_id) for ref_id in ref_ids)
        return dict(row for row in rows if row is not None)

    def find(self, texts: Sequence[str]) -> dict[str, int]:
        return {text: ref_id for text in texts for ref_id, _ in self._tables.refs.newest(self._moment, "text", text)}

    def sightings(self, ref_id: int, through_seq: int, limit: int) -> list[tuple[int, bool]]:
        rows = self._tables.sightings.newest(self._moment, "ref", ref_id, (through_seq, ref_id), limit)
        return [(seq, declared) for seq, _, declared in rows]

    def all_sightings(self) -> Iterator[tuple[int, int, bool]]:
        return iter(self._tables.sightings.all(self._moment))

    def all_texts(self) -> Iterator[tuple[int, str | None]]:
        return iter(self._tables.refs.all(self._moment))

    def check_keys(self) -> None:
        """Texts and numbers are one table here."""


class MemoryRegister(Facet):
    """`ports.RegisterFacet` in memory."""

    def standing(self, kind: FactKind, subject: str) -> list[Fact]:
        return [fact for fact in self._all_standing() if (fact.key.kind, fact.key.subject) == (kind, subject)]

    def open_calls(self) -> list[Fact]:
        calls = (fact for fact in self._all_standing() if fact.key.kind is FactKind.CALL)
        return [fact for fact in calls if fact.state is FactState.STANDING]

    def _all_standing(self) -> list[Fact]:
        return list((self._tables.standing.get(self._moment, ONLY) or {}).values())

    def as_of(self, seq: int) -> list[Fact]:
        return [
            fact
            for fact in self.all()
            if fact.from_seq <= seq and (fact.through_seq is None or seq <= fact.through_seq)
        ]

    def begin(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            self._tables.facts.add(self._moment, (fact.from_seq, fact.ordinal), fact)
        self._hold(facts)

    def end(self, facts: Sequence[Fact]) -> None:
        ended = []
        for fact in facts:
            place = (fact.from_seq, fact.ordinal)
            ended.append(replace(self._tables.facts.expect(self._moment, place), through_seq=fact.through_seq))
            self._tables.facts.put(self._moment, place, ended[-1])
        self._hold(ended)

    def _hold(self, facts: Sequence[Fact]) -> None:
        standing = {(fact.from_seq, fact.ordinal): fact for fact in (*self._all_standing(), *facts)}
        holding = {place: fact for place, fact in standing.items() if fact.through_seq is None}
        self._tables.standing.put(self._moment, ONLY, dict(sorted(holding.items())))

    def newest(self, kind: FactKind, subject: str, through_seq: int | None = None) -> Fact | None:
        high = None if through_seq is None else (through_seq + 1, -1)
        return next(iter(self._tables.facts.newest(self._moment, "about", (kind, subject), high)), None)

    def count_standing(self) -> int:
        return len(self._all_standing())

    def all(self) -> Iterator[Fact]:
        return iter(self._tables.facts.all(self._moment))


class MemoryViews(Facet):
    """`ports.ViewFacet` in memory."""

    def get(self, name: str) -> ViewHead | None:
        return self._tables.views.get(self._moment, name)

    def all(self) -> list[ViewHead]:
        return sorted(self._tables.views.all(self._moment), key=lambda view: view.view_id)

    def put(self, head: ViewHead) -> None:
        there = self.get(head.name)
        if there is not None and _pointer(there) != _pointer(head):
            raise InvalidInputError(f"only move_pointer moves the pointer of view {head.name!r}; nothing was written")
        self._tables.views.put(self._moment, head.name, head)

    def move_pointer(self, head: ViewHead, *, base_generation: int, fence: int, attempt_id: str) -> bool:
        there = self.get(head.name)
        attempt = self._tables.attempts.get(self._moment, attempt_id)
        if there is None or (there.generation, there.fence) != (base_generation, fence):
            return False
        if attempt is None or (attempt.state, attempt.fence) != (AttemptState.VALIDATED, fence):
            return False
        if head.generation <= base_generation:  # a number is never used twice
            return False
        if MemoryCases(self._tables, self._moment).blocking(there.name, there.summary_no) is not None:
            return False
        candidate = self._tables.candidates.get(self._moment, attempt.candidate_id)
        if candidate is None or candidate.view != head.name:
            return False
        self._tables.views.put(self._moment, head.name, head)
        return True

    def shift_pointer(self, head: ViewHead, *, base_generation: int) -> bool:
        there = self.get(head.name)
        if (there.generation if there else 0) != base_generation or head.generation < base_generation + (
            there is not None
        ):
            return False
        self._tables.views.put(self._moment, head.name, head)
        return True


def _pointer(head: ViewHead) -> tuple[int, ...]:
    return head.generation, head.summary_no, head.watermark, head.moved_lineage_seq


class MemoryJobs(Facet):
    """`ports.JobFacet` in memory."""

    def candidate(self, candidate_id: str) -> Candidate | None:
        return self._tables.candidates.get(self._moment, candidate_id)

    def add_candidate(self, candidate: Candidate) -> None:
        self._tables.candidates.add(self._moment, candidate.candidate_id, candidate)

    def set_candidate_state(self, candidate_id: str, state: CandidateState) -> None:
        candidate = self._tables.candidates.expect(self._moment, candidate_id)
        self._tables.candidates.put(self._moment, candidate_id, replace(candidate, state=state))

    def attempts(self, candidate_id: str) -> list[Attempt]:
        attempts = self._tables.attempts.newest(self._moment, "candidate", candidate_id, limit=None)
        return sorted(attempts, key=lambda attempt: attempt.number)

    def add_attempt(self, attempt: Attempt) -> None:
        self._tables.attempts.add(self._moment, attempt.attempt_id, attempt)

    def settle_attempt(self, attempt: Attempt, *, fence: int, expected: AttemptState) -> bool:
        there = self._tables.attempts.get(self._moment, attempt.attempt_id)
        if there is None or (there.state, there.fence) != (expected, fence):
            return False
        if there.drafts and (there.drafts, there.draft_digest) != (attempt.drafts, attempt.draft_digest):
            return False
        self._tables.attempts.put(self._moment, attempt.attempt_id, attempt)
        return True

    def all_candidates(self) -> Iterator[Candidate]:
        return iter(self._tables.candidates.all(self._moment))


class MemorySummaries(Facet):
    """`ports.SummaryFacet` in memory."""

    def add(self, summary: Summary, dropped: Sequence[DroppedRef]) -> None:
        if summary.base_no >= summary.summary_no:
            raise InvalidInputError(f"summary {summary.summary_no} can't be built on {summary.base_no}")
        if self.by_id(summary.summary_id):
            raise CorruptRecordError(_ADDED, place=f"summary {summary.summary_id!r}")
        segments = tuple(self._kept(segment) for segment in summary.segments)
        self._tables.summaries.add(self._moment, summary.summary_no, replace(summary, segments=segments))
        self._tables.changes.add(self._moment, summary.summary_no, {change.ref_id: change for change in dropped})

    def _kept(self, segment: Segment) -> Segment:
        known = self._tables.segments.get(self._moment, segment.head.segment_id)
        if known is None:
            self._tables.segments.put(self._moment, segment.head.segment_id, segment)
        return known or segment

    def get(self, summary_no: int, *, texts_only: bool = False) -> Summary | None:
        return self._tables.summaries.get(self._moment, summary_no)

    def by_id(self, summary_id: str) -> Summary | None:
        return next(iter(self._tables.summaries.newest(self._moment, "summary_id", summary_id)), None)

    def changes(self, summary_no: int) -> list[DroppedRef]:
        return [change for _, change in sorted(self._changes(summary_no).items())]

    def manifest(self, summary_no: int) -> list[ManifestEntry]:
        newest: dict[int, tuple[Summary, DroppedRef]] = {}
        for summary in self._chain(summary_no):
            for ref_id, change in self._changes(summary.summary_no).items():
                newest.setdefault(ref_id, (summary, change))
        texts = MemoryRefs(self._tables, self._moment).texts(newest)
        entries = [
            ManifestEntry(
                ref=texts.get(change.ref_id),
                ref_id=change.ref_id,
                last_seq=change.last_seq,
                generation_dropped=summary.generation,
                reason=change.reason,
            )
            for summary, change in newest.values()
            if change.dropped
        ]
        return sorted(entries, key=lambda entry: (-entry.last_seq, entry.ref_id))

    def dropped_by(self, summary_no: int, ref_ids: Collection[int]) -> dict[int, int]:
        found = {}
        for ref_id in ref_ids:
            changes = ((self._changes(link.summary_no).get(ref_id), link) for link in self._chain(summary_no))
            newest = next(((change, link) for change, link in changes if change), None)
            if newest and newest[0].dropped:
                found[ref_id] = newest[1].generation
        return found

    def _chain(self, summary_no: int) -> Iterator[Summary]:
        while summary := self.get(summary_no):
            yield summary
            summary_no = summary.base_no

    def _changes(self, summary_no: int) -> Mapping[int, DroppedRef]:
        return self._tables.changes.get(self._moment, summary_no) or {}

    def add_foreign(self, summaries: Sequence[ForeignSummary]) -> int:
        added = 0
        for summary in summaries:
            if self._tables.foreign.get(self._moment, summary.key) is None:
                self._tables.foreign.put(self._moment, summary.key, _detached(summary))
                added += 1
        return added

    def foreign(self) -> list[ForeignSummary]:
        return sorted(map(_detached, self._tables.foreign.all(self._moment)), key=lambda summary: summary.through_seq)


class MemoryLineage(Facet):
    """`ports.LineageFacet` in memory."""

    def add(self, entry: LineageEntry) -> None:
        if self.by_op_key(entry.op_key):
            raise CorruptRecordError(_ADDED, place=f"lineage {entry.op_key!r}")
        self._tables.lineage.add(self._moment, entry.lineage_seq, _detached(entry))

    def read(self, after: int, limit: int) -> list[LineageEntry]:
        last = max((entry.lineage_seq for entry in self._tables.lineage.newest(self._moment, "order", ONLY)), default=0)
        return [_detached(row) for row in self._tables.lineage.range(self._moment, "order", after + 1, last, limit)]

    def moved_to(self, view: str) -> int:
        moves = (entry for entry in self._tables.lineage.all(self._moment) if entry.kind is not LineageKind.CHECKPOINT)
        return max((entry.generation or 0 for entry in moves if entry.view == view), default=0)

    def move_to(self, view: str, generation: int) -> LineageEntry | None:
        return next(map(_detached, self._tables.lineage.newest(self._moment, "moved", (view, generation))), None)

    def newest_recovery(self) -> LineageEntry | None:
        return next(map(_detached, self._tables.lineage.newest(self._moment, "recovered", ONLY)), None)

    def by_op_key(self, op_key: str) -> LineageEntry | None:
        return next(map(_detached, self._tables.lineage.newest(self._moment, "op_key", op_key)), None)

    def newest_checkpoint(self, name: str, before: int, *, context_free: bool) -> LineageEntry | None:
        sort = (name, context_free)
        return next(map(_detached, self._tables.lineage.newest(self._moment, "checkpoint", sort, before - 1)), None)

    def left_by_restore(self, name: str, lineage_seq: int) -> bool:
        restores = self._tables.lineage.newest(self._moment, "restored", name, limit=None)
        later = (entry for entry in restores if entry.lineage_seq > lineage_seq)
        return any(entry.restored_seq is not None and entry.restored_seq < lineage_seq for entry in later)


class MemoryCheckpoints(Facet):
    """`ports.CheckpointFacet` in memory."""

    def add(self, checkpoint: Checkpoint) -> None:
        self._tables.checkpoints.add(self._moment, checkpoint.lineage_seq, checkpoint)

    def get(self, lineage_seq: int) -> Checkpoint | None:
        return self._tables.checkpoints.get(self._moment, lineage_seq)

    def all(self) -> Iterator[Checkpoint]:
        return iter(self._tables.checkpoints.all(self._moment))


class MemoryCases(Facet):
    """`ports.CaseFacet` in memory."""

    def add(self, case: Case) -> None:
        if case.state is CaseState.OPEN and self.open_one(case.identity) is not None:
            raise CorruptRecordError(_ADDED, place=f"case_file {case.identity!r}")
        self._tables.cases.add(self._moment, case.case_id, _detached(case))

    def settle(self, case: Case) -> bool:
        there = self._tables.cases.get(self._moment, case.case_id)
        if there is None or there.state is not CaseState.OPEN:
            return False
        self._tables.cases.put(self._moment, case.case_id, _detached(case))
        return True

    def get(self, case_id: str) -> Case | None:
        found = self._tables.cases.get(self._moment, case_id)
        return None if found is None else _detached(found)

    def open_one(self, identity: str) -> Case | None:
        same = self._tables.cases.newest(self._moment, "identity", identity, limit=None)
        return next((_detached(case) for case in same if case.state is CaseState.OPEN), None)

    def count_of(self, identity: str) -> int:
        return len(self._tables.cases.newest(self._moment, "identity", identity, limit=None))

    def blocking(self, view: str, summary_no: int) -> Case | None:
        cases = self._tables.cases.newest(self._moment, "names", (view, summary_no), limit=None)
        still = [case for case in cases if case.state is CaseState.OPEN]
        return min(map(_detached, still), key=lambda case: (case.opened_us, case.case_id), default=None)

    def of_kind(self, kind: CaseKind, state: CaseState) -> list[Case]:
        cases = self._tables.cases.newest(self._moment, "kind", kind, limit=None)
        found = [_detached(case) for case in cases if case.state is state]
        return sorted(found, key=lambda case: (case.opened_us, case.case_id))

    def count(self) -> int:
        return len(self._tables.cases.all(self._moment))

    def all(self) -> Iterator[Case]:
        cases = self._tables.cases.all(self._moment)
        return iter(sorted(map(_detached, cases), key=lambda case: (case.opened_us, case.case_id)))


class MemoryEffects(Facet):
    """`ports.EffectFacet` in memory."""

    def add(self, effect: Effect) -> None:
        self._tables.effects.add(self._moment, effect.key, effect)

    def settle(self, effect: Effect, *, expected: EffectState, attempt: int) -> bool:
        there = self.get(effect.key)
        if there is None or (there.state, there.attempt) != (expected, attempt):
            return False
        self._tables.effects.put(self._moment, effect.key, effect)
        return True

    def get(self, key: str) -> Effect | None:
        return self._tables.effects.get(self._moment, key)

    def alike(self, fingerprint: str, limit: int) -> list[Effect]:
        return self._alike(fingerprint)[:limit]

    def in_doubt(self, fingerprint: str, limit: int) -> list[Effect]:
        doubtful = (EffectState.INTENDED, EffectState.UNKNOWN)
        return [effect for effect in self._alike(fingerprint) if effect.state in doubtful][:limit]

    def _alike(self, fingerprint: str) -> list[Effect]:
        effects = self._tables.effects.newest(self._moment, "fingerprint", fingerprint, limit=None)
        return sorted(effects, key=lambda effect: (-effect.intended_us, effect.key))

    def all(self) -> Iterator[Effect]:
        effects = self._tables.effects.all(self._moment)
        return iter(sorted(effects, key=lambda effect: (effect.intended_us, effect.key)))

    def count(self) -> int:
        return len(self._tables.effects.all(self._moment))


class MemoryPermits(Facet):
    """`ports.PermitFacet` in memory."""

    def add(self, permit: Permit) -> None:
        self._tables.permits.add(self._moment, permit.permit_id, permit)

    def settle(self, permit: Permit, *, expected: PermitState) -> bool:
        there = self.get(permit.permit_id)
        if there is None or there.state is not expected:
            return False
        self._tables.permits.put(self._moment, permit.permit_id, permit)
        return True

    def get(self, permit_id: str) -> Permit | None:
        return self._tables.permits.get(self._moment, permit_id)

    def use(self, workflow: str, seq: int, permit_id: str) -> bool:
        if self.used(workflow, seq) is not None:
            return False
        self._tables.approval_uses.add(self._moment, (workflow, seq), (workflow, seq, permit_id))
        return True

    def used(self, workflow: str, seq: int) -> str | None:
        row = self._tables.approval_uses.get(self._moment, (workflow, seq))
        return None if row is None else row[2]

    def all(self) -> Iterator[Permit]:
        permits = self._tables.permits.all(self._moment)
        return iter(sorted(permits, key=lambda permit: (permit.decided_us, permit.permit_id)))

    def all_uses(self) -> Iterator[tuple[str, int, str]]:
        return iter(self._tables.approval_uses.all(self._moment))


def _detached(row: D) -> D:
    """Return the row with a detail that nobody else holds: it is the one value of the model that can change."""
    return replace(row, detail=deepcopy(dict(row.detail)))
