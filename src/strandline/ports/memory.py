"""The memory over the log: views, jobs, summaries, lineage, checkpoints."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from strandline.model.candidate import Attempt, AttemptState, Candidate, CandidateState
from strandline.model.checkpoint import Checkpoint
from strandline.model.cooldown import Cooldown
from strandline.model.due import DueCompaction
from strandline.model.erasure import Reader
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.model.outcome import ForeignSummary
from strandline.model.summary import DroppedRef, ManifestEntry, Summary
from strandline.model.view import ViewHead


class ViewFacet(Protocol):
    """Views and their pointers."""

    def get(self, name: str) -> ViewHead | None:
        """Return the view, or None."""
        ...

    def all(self) -> list[ViewHead]:
        """Return the views by id."""
        ...

    def put(self, head: ViewHead) -> None:
        """Insert or replace a view; one that is there with another pointer is refused: only move_pointer moves that."""
        ...

    def move_pointer(self, head: ViewHead, *, base_generation: int, fence: int, attempt_id: str) -> bool:
        """Replace the view's row by `head`; tell whether it was. The one compare-and-swap of an activation (I6).

        It is replaced if its generation is `base_generation`, its fence is `fence`, the attempt of that id is VALIDATED
        under that fence and of this view, the new generation is greater, and no open blocking case names the summary
        that it pointed to.
        """
        ...

    def shift_pointer(self, head: ViewHead, *, base_generation: int) -> bool:
        """Replace the view's row by `head`, whose pointer goes to a summary that was active before, or to none; tell
        whether it was: if its generation is `base_generation` and the new generation is greater. For revert, rewind and
        fork, which have raised the fence; a view that has no row is inserted.
        """
        ...


class JobFacet(Protocol):
    """Candidates and attempts."""

    def candidate(self, candidate_id: str) -> Candidate | None:
        """Return the candidate, or None."""
        ...

    def add_candidate(self, candidate: Candidate) -> None:
        """Add a candidate."""
        ...

    def set_candidate_state(self, candidate_id: str, state: CandidateState) -> None:
        """Set the state of a candidate."""
        ...

    def attempts(self, candidate_id: str) -> list[Attempt]:
        """Return the attempts by number."""
        ...

    def add_attempt(self, attempt: Attempt) -> None:
        """Add an attempt."""
        ...

    def settle_attempt(self, attempt: Attempt, *, fence: int, expected: AttemptState) -> bool:
        """Replace an attempt's row, if its state is `expected` and its fence is `fence`; tell whether it was.
        Write-once: a draft that is stored is never replaced (I6).
        """
        ...

    def all_candidates(self) -> Iterator[Candidate]:
        """Yield every candidate; for `verify`."""
        ...

    def erase(self, attempt: Attempt) -> None:
        """Replace an attempt that is there by one that says less: without drafts, say (C31)."""
        ...


class SummaryFacet(Protocol):
    """Summaries, their segments, and the manifest as changes along the chain of bases."""

    def add(self, summary: Summary, dropped: Sequence[DroppedRef]) -> None:
        """Add a summary with those of its segments that are new, and its changes of the manifest."""
        ...

    def get(self, summary_no: int, *, texts_only: bool = False) -> Summary | None:
        """Return the summary with its segments in order, or None. With `texts_only` it may lack anchors, ledger and the
        ids of references: who reads a context needs none of them, and they take the longest to decode.
        """
        ...

    def by_id(self, summary_id: str) -> Summary | None:
        """Return the summary that an attempt made, or None."""
        ...

    def changes(self, summary_no: int) -> list[DroppedRef]:
        """Return the summary's own changes of the manifest, by ref_id."""
        ...

    def manifest(self, summary_no: int) -> list[ManifestEntry]:
        """Return the fold of the changes along the chain of bases, the newest winning, by last_seq, newest first.
        `generation_dropped` is the generation that the summary of the change became.
        """
        ...

    def dropped_by(self, summary_no: int, ref_ids: Collection[int]) -> dict[int, int]:
        """Return the generation that dropped each reference, on the chain of the summary; one that is not dropped is
        left out.
        """
        ...

    def add_foreign(self, summaries: Sequence[ForeignSummary]) -> int:
        """Keep summaries that another tool wrote, and return how many are new; a known key is left as it is."""
        ...

    def foreign(self) -> list[ForeignSummary]:
        """Return the foreign summaries by through_seq."""
        ...

    def erase(self, summary_nos: Collection[int], segment_ids: Collection[str]) -> None:
        """Take away the anchors and ledgers of these summaries, and the texts of these segments, with their salts: the
        digests stay, and tell nothing (C31).
        """
        ...

    def erase_foreign(self, keys: Collection[str]) -> None:
        """Take away the texts of these foreign summaries (C31)."""
        ...


class LineageFacet(Protocol):
    """The lineage of one workflow."""

    def add(self, entry: LineageEntry) -> None:
        """Add an entry; its op_key is new."""
        ...

    def read(self, after: int, limit: int) -> list[LineageEntry]:
        """Return the entries with lineage_seq > after, in order."""
        ...

    def moved_to(self, view: str) -> int:
        """Return the highest generation that the view's pointer was moved to; 0: it was never moved."""
        ...

    def move_to(self, view: str, generation: int) -> LineageEntry | None:
        """Return the entry that moved the view's pointer to this generation, or None."""
        ...

    def newest_recovery(self) -> LineageEntry | None:
        """Return the newest RESTORE or REPLAY of a checkpoint name, or None."""
        ...

    def by_op_key(self, op_key: str) -> LineageEntry | None:
        """Return the entry of this operation, or None (I19)."""
        ...

    def newest_checkpoint(self, name: str, before: int, *, context_free: bool) -> LineageEntry | None:
        """Return the newest CHECKPOINT entry of this name with lineage_seq < before, or None. One that is context-free
        names no view.
        """
        ...

    def left_by_restore(self, name: str, lineage_seq: int) -> bool:
        """Tell whether a RESTORE of this checkpoint name, or a REWIND to one of that name, lies after lineage_seq and
        went back to one before it (I15).
        """
        ...

    def of_kinds(self, kinds: Collection[LineageKind]) -> list[LineageEntry]:
        """Return the entries of these kinds, in order; for kinds of which there are few."""
        ...

    def forks(self) -> list[str]:
        """Return the names of the workflows that were forked from this one itself, sorted (C22)."""
        ...


class CheckpointFacet(Protocol):
    """Checkpoints."""

    def add(self, checkpoint: Checkpoint) -> None:
        """Add a checkpoint; its lineage entry is there."""
        ...

    def get(self, lineage_seq: int) -> Checkpoint | None:
        """Return the checkpoint at this place of the lineage, or None."""
        ...

    def erase(self, lineage_seq: int, state_digest: bytes) -> None:
        """Take state and salt of a checkpoint away, and keep the digest of the state in their place (C31)."""
        ...

    def all(self) -> Iterator[Checkpoint]:
        """Yield every checkpoint by lineage_seq; for `verify`."""
        ...


class ReaderFacet(Protocol):
    """Readers of the log outside, and how far each has come: one row each, which is never deleted."""

    def get(self, name: str) -> Reader | None:
        """Return the reader, or None."""
        ...

    def put(self, reader: Reader) -> None:
        """Insert or replace a reader."""
        ...

    def all(self) -> list[Reader]:
        """Return the readers by name."""
        ...


class CooldownFacet(Protocol):
    """How a summarizer answered: a row for each that ever failed, which is never deleted."""

    def get(self, summarizer: str) -> Cooldown | None:
        """Return the workflow's row, or None."""
        ...

    def others(self, summarizer: str, limit: int) -> list[Cooldown]:
        """Return the committed rows of the tenant's other workflows, those that changed last first."""
        ...

    def put(self, cooldown: Cooldown) -> None:
        """Insert or replace the workflow's row."""
        ...

    def all(self) -> list[Cooldown]:
        """Return every row of the workflow by summarizer."""
        ...


class DueFacet(Protocol):
    """Due compactions: one row per view, which is never deleted."""

    def get(self, view: str) -> DueCompaction | None:
        """Return the row of a view, or None."""
        ...

    def add(self, due: DueCompaction) -> None:
        """Add the row of a view that has none."""
        ...

    def settle(self, due: DueCompaction, *, fence: int) -> bool:
        """Replace the row of a view, if its fence is `fence` and not above the new one; tell whether it was."""
        ...

    def all(self) -> list[DueCompaction]:
        """Return every row by view."""
        ...

    def open_in_tenant(self, limit: int) -> int:
        """Return how many rows of the whole tenant are due or run, counted up to `limit`."""
        ...
