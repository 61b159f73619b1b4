"""The facets of `strandline.ports.memory` over versioned tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from strandline.errors import CorruptRecordError, InvalidInputError
from strandline.model.candidate import Attempt, AttemptState, Candidate, CandidateState
from strandline.model.checkpoint import Checkpoint
from strandline.model.erasure import Reader
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.model.outcome import ForeignSummary
from strandline.model.segment import Segment
from strandline.model.summary import DroppedRef, ManifestEntry, Summary
from strandline.model.view import ViewHead
from strandline.stores.memory.decisions import MemoryCases
from strandline.stores.memory.detached import ADDED, detached
from strandline.stores.memory.log import MemoryRefs
from strandline.stores.memory.schema import Facet, Tables
from strandline.stores.memory.tables import ONLY, Moment


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

    def erase(self, attempt: Attempt) -> None:
        self._tables.attempts.expect(self._moment, attempt.attempt_id)
        self._tables.attempts.put(self._moment, attempt.attempt_id, attempt)


class MemorySummaries(Facet):
    """`ports.SummaryFacet` in memory."""

    def add(self, summary: Summary, dropped: Sequence[DroppedRef]) -> None:
        if summary.base_no >= summary.summary_no:
            raise InvalidInputError(f"summary {summary.summary_no} can't be built on {summary.base_no}")
        if self.by_id(summary.summary_id):
            raise CorruptRecordError(ADDED, place=f"summary {summary.summary_id!r}")
        segments = tuple(self._added(segment) for segment in summary.segments)
        self._tables.summaries.add(self._moment, summary.summary_no, replace(summary, segments=segments))
        self._tables.changes.add(self._moment, summary.summary_no, {change.ref_id: change for change in dropped})

    def _added(self, segment: Segment) -> Segment:
        if self._tables.segments.get(self._moment, segment.head.segment_id) is None:
            self._tables.segments.put(self._moment, segment.head.segment_id, segment)
        return self._kept(segment)

    def _kept(self, segment: Segment) -> Segment:
        """Return the segment as it is stored: several summaries share one, and an erasure changes it for all."""
        return self._tables.segments.get(self._moment, segment.head.segment_id) or segment

    def get(self, summary_no: int, *, texts_only: bool = False) -> Summary | None:
        summary = self._tables.summaries.get(self._moment, summary_no)
        return summary and replace(summary, segments=tuple(map(self._kept, summary.segments)))

    def by_id(self, summary_id: str) -> Summary | None:
        found = self._tables.summaries.newest(self._moment, "summary_id", summary_id)
        return self.get(found[0].summary_no) if found else None

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
                self._tables.foreign.put(self._moment, summary.key, detached(summary))
                added += 1
        return added

    def foreign(self) -> list[ForeignSummary]:
        return sorted(map(detached, self._tables.foreign.all(self._moment)), key=lambda summary: summary.through_seq)

    def erase(self, summary_nos: Collection[int], segment_ids: Collection[str]) -> None:
        for number in summary_nos:
            summary = self._tables.summaries.expect(self._moment, number)
            nothing = replace(summary, anchors=(), ledger=(), anchors_text="", ledger_text="", salt=b"")
            self._tables.summaries.put(self._moment, number, nothing)
        for segment_id in segment_ids:
            segment = self._tables.segments.expect(self._moment, segment_id)
            self._tables.segments.put(self._moment, segment_id, replace(segment, text="", salt=b""))

    def erase_foreign(self, keys: Collection[str]) -> None:
        for key in keys:
            summary = self._tables.foreign.expect(self._moment, key)
            self._tables.foreign.put(self._moment, key, replace(summary, text="", erased=True))


class MemoryLineage(Facet):
    """`ports.LineageFacet` in memory. `forks` gives the workflows that were forked from this one."""

    def __init__(self, tables: Tables, moment: Moment, forks: Callable[[], list[str]]) -> None:
        super().__init__(tables, moment)
        self._forks = forks

    def add(self, entry: LineageEntry) -> None:
        if self.by_op_key(entry.op_key):
            raise CorruptRecordError(ADDED, place=f"lineage {entry.op_key!r}")
        self._tables.lineage.add(self._moment, entry.lineage_seq, detached(entry))

    def read(self, after: int, limit: int) -> list[LineageEntry]:
        last = max((entry.lineage_seq for entry in self._tables.lineage.newest(self._moment, "order", ONLY)), default=0)
        return [detached(row) for row in self._tables.lineage.range(self._moment, "order", after + 1, last, limit)]

    def moved_to(self, view: str) -> int:
        moves = (entry for entry in self._tables.lineage.all(self._moment) if entry.kind is not LineageKind.CHECKPOINT)
        return max((entry.generation or 0 for entry in moves if entry.view == view), default=0)

    def move_to(self, view: str, generation: int) -> LineageEntry | None:
        return next(map(detached, self._tables.lineage.newest(self._moment, "moved", (view, generation))), None)

    def newest_recovery(self) -> LineageEntry | None:
        return next(map(detached, self._tables.lineage.newest(self._moment, "recovered", ONLY)), None)

    def by_op_key(self, op_key: str) -> LineageEntry | None:
        return next(map(detached, self._tables.lineage.newest(self._moment, "op_key", op_key)), None)

    def newest_checkpoint(self, name: str, before: int, *, context_free: bool) -> LineageEntry | None:
        sort = (name, context_free)
        return next(map(detached, self._tables.lineage.newest(self._moment, "checkpoint", sort, before - 1)), None)

    def left_by_restore(self, name: str, lineage_seq: int) -> bool:
        restores = self._tables.lineage.newest(self._moment, "restored", name, limit=None)
        later = (entry for entry in restores if entry.lineage_seq > lineage_seq)
        return any(entry.restored_seq is not None and entry.restored_seq < lineage_seq for entry in later)

    def of_kinds(self, kinds: Collection[LineageKind]) -> list[LineageEntry]:
        found = (self._tables.lineage.newest(self._moment, "kind", kind, limit=None) for kind in kinds)
        return sorted((detached(entry) for some in found for entry in some), key=lambda entry: entry.lineage_seq)

    def forks(self) -> list[str]:
        return self._forks()


class MemoryCheckpoints(Facet):
    """`ports.CheckpointFacet` in memory."""

    def add(self, checkpoint: Checkpoint) -> None:
        self._tables.checkpoints.add(self._moment, checkpoint.lineage_seq, checkpoint)

    def get(self, lineage_seq: int) -> Checkpoint | None:
        return self._tables.checkpoints.get(self._moment, lineage_seq)

    def all(self) -> Iterator[Checkpoint]:
        return iter(self._tables.checkpoints.all(self._moment))

    def erase(self, lineage_seq: int, state_digest: bytes) -> None:
        made = self._tables.checkpoints.expect(self._moment, lineage_seq)
        nothing = replace(made, state=b"", salt=b"", state_digest=state_digest)
        self._tables.checkpoints.put(self._moment, lineage_seq, nothing)


class MemoryReaders(Facet):
    """`ports.ReaderFacet` in memory."""

    def get(self, name: str) -> Reader | None:
        return self._tables.readers.get(self._moment, name)

    def put(self, reader: Reader) -> None:
        self._tables.readers.put(self._moment, reader.name, reader)

    def all(self) -> list[Reader]:
        return self._tables.readers.all(self._moment)
