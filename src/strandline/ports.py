"""What is needed from outside, as small Protocols. Stores, summarizers, counters and clocks supply it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from strandline.model.candidate import Attempt, AttemptState, Candidate, CandidateState, Draft
from strandline.model.checkpoint import Checkpoint
from strandline.model.event import SourceEvent, StoredEvent
from strandline.model.ids import Scope
from strandline.model.lineage import LineageEntry, WorkflowHead
from strandline.model.outcome import ForeignSummary
from strandline.model.register import Fact, FactKind
from strandline.model.summary import Anchor, DroppedRef, ManifestEntry, Summary
from strandline.model.view import ViewHead

# ---------------------------------------------------------------------------------------------- time and chance


class Clock(Protocol):
    """The only source of time. No wall clock decides an order (DESIGN §3)."""

    def now_us(self) -> int:
        """Return the wall-clock time in microseconds since 1970."""
        ...

    def monotonic_s(self) -> float:
        """Return a time in seconds that never goes back; for durations only."""
        ...

    def sleep_s(self, seconds: float) -> None:
        """Wait."""
        ...


class Entropy(Protocol):
    """The only source of randomness."""

    def salt(self) -> bytes:
        """Return 16 fresh random bytes."""
        ...

    def fraction(self) -> float:
        """Return a random number in [0, 1); for jitter only."""
        ...


# ---------------------------------------------------------------------------------------------- summarizing


class TokenCounter(Protocol):
    """Counts tokens, as an estimate with a name and a version that is stamped on every summary (DESIGN §3)."""

    @property
    def name(self) -> str:
        """The counter's name and version, such as `bytes/3`."""
        ...

    def count(self, text: str) -> int:
        """Return the tokens of `text`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """One segment to be drafted.

    `events` are the events that the draft speaks for, oldest first, in full; when they don't fit the summarizer's
    window, `prior` holds the texts of older segments that stand in for the first of them (I12).
    `anchors` are facts that Strandline adds itself: they need no place in the draft.
    """

    from_seq: int
    through_seq: int
    budget_tokens: int
    events: Sequence[SourceEvent]
    anchors: Sequence[Anchor] = ()
    prior: Sequence[str] = ()
    violations: Sequence[str] = ()  # what was wrong with the attempt before
    counter: TokenCounter


@runtime_checkable
class Summarizer(Protocol):
    """Drafts a summary. What it returns is untrusted; it may fail, stall or lie.

    `name` and `version` are part of the candidate's identity: change them when the output changes.
    `window_tokens` is the most that it can be shown; None: no bound.
    """

    name: str
    version: str
    window_tokens: int | None

    def summarize(self, request: SummaryRequest) -> Draft:
        """Return a draft of at most `request.budget_tokens` tokens.

        Raises:
            TransientSummarizerError: worth another try.
            MalformedDraftError: no finished summary came back.
        """
        ...


@runtime_checkable
class AsyncSummarizer(Protocol):
    """A summarizer that is awaited. Under the sync driver it runs in a loop of its own."""

    name: str
    version: str
    window_tokens: int | None

    async def summarize(self, request: SummaryRequest) -> Draft:
        """As `Summarizer.summarize`."""
        ...


# ---------------------------------------------------------------------------------------------- telemetry


class Hook(Protocol):
    """Told of what happened, after the commit. A hook that raises is ignored."""

    def emit(self, name: str, details: Mapping[str, object]) -> None:
        """Take note of one occurrence."""
        ...


# ---------------------------------------------------------------------------------------------- the store


class KeyTakenError(Exception):
    """An insert met an event key that the log holds. Engine-internal: the engine answers it (I3)."""


class LogFacet(Protocol):
    """The events of one workflow. Stores keep what they are given; the engine verifies what it reads (I4)."""

    def head(self) -> WorkflowHead:
        """Return the head row; in a write transaction it is locked. A workflow that is not there has revision 0."""
        ...

    def set_head(self, head: WorkflowHead) -> None:
        """Replace the head row."""
        ...

    def insert(self, events: Sequence[StoredEvent]) -> None:
        """Add events. Raises KeyTakenError, and adds none, when one of the keys is taken."""
        ...

    def read(self, from_seq: int, through_seq: int) -> Iterator[StoredEvent]:
        """Yield the events from_seq..through_seq by seq, as stored: a missing one is simply not there."""
        ...

    def by_keys(self, keys: Sequence[str]) -> dict[str, StoredEvent]:
        """Return the events of the current branch that hold these keys."""
        ...

    def count(self) -> int:
        """Return the number of stored events."""
        ...


class RefFacet(Protocol):
    """The one table of reference texts, and the index of their sightings."""

    def add(self, texts: Sequence[str], first_id: int, sightings: Sequence[tuple[int, int, bool]]) -> None:
        """Number new texts from `first_id` on, in the order given, and index what a batch of events saw.

        `sightings` are (ref_id, seq, declared) by seq; each lies behind all that were indexed before.
        """
        ...

    def texts(self, ref_ids: Iterable[int]) -> dict[int, str]:
        """Return the text of each number that is known and not erased."""
        ...

    def find(self, texts: Sequence[str]) -> dict[str, int]:
        """Return the numbers of the texts that are known."""
        ...

    def sightings(self, ref_id: int, through_seq: int, limit: int) -> list[tuple[int, bool]]:
        """Return the newest sightings (seq, declared) at or before through_seq, newest first."""
        ...

    def all_sightings(self) -> Iterator[tuple[int, int, bool]]:
        """Yield all (seq, ref_id, declared), in any order; for `verify`."""
        ...

    def all_texts(self) -> Iterator[tuple[int, str | None]]:
        """Yield every number with its text, by number; None: erased. For `verify`."""
        ...

    def check_keys(self) -> None:
        """Check that every text leads to its number, and nothing else does; for `verify`.

        Raises:
            CorruptRecordError: one does not.
        """
        ...


class RegisterFacet(Protocol):
    """The register as interval rows."""

    def standing(self, kind: FactKind, subject: str) -> list[Fact]:
        """Return the facts of this kind and subject that hold now (through_seq is None), oldest first."""
        ...

    def open_calls(self) -> list[Fact]:
        """Return the calls that are STANDING now, oldest first."""
        ...

    def as_of(self, seq: int) -> list[Fact]:
        """Return the facts that held just after event `seq`."""
        ...

    def begin(self, facts: Sequence[Fact]) -> None:
        """Add facts."""
        ...

    def end(self, facts: Sequence[Fact]) -> None:
        """Set through_seq of facts that are there."""
        ...

    def newest(self, kind: FactKind, subject: str) -> Fact | None:
        """Return the fact of this kind and subject that began last, whether it still holds or not."""
        ...

    def count_standing(self) -> int:
        """Return how many facts hold now."""
        ...

    def all(self) -> Iterator[Fact]:
        """Yield every fact by (from_seq, ordinal); for `verify`."""
        ...


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
        """Replace the view's row by `head`; tell whether it was. The one compare-and-swap (I6).

        It is replaced if its generation is `base_generation`, its fence is `fence`, the attempt of that id is VALIDATED
        under that fence and of this view, and the new generation is greater.
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

    def by_op_key(self, op_key: str) -> LineageEntry | None:
        """Return the entry of this operation, or None (I19)."""
        ...

    def newest_checkpoint(self, name: str, before: int, *, context_free: bool) -> LineageEntry | None:
        """Return the newest CHECKPOINT entry of this name with lineage_seq < before, or None. One that is context-free
        names no view.
        """
        ...

    def left_by_restore(self, name: str, lineage_seq: int) -> bool:
        """Tell whether a RESTORE of this checkpoint name lies after lineage_seq and restored one before it (I15)."""
        ...


class CheckpointFacet(Protocol):
    """Checkpoints."""

    def add(self, checkpoint: Checkpoint) -> None:
        """Add a checkpoint; its lineage entry is there."""
        ...

    def get(self, lineage_seq: int) -> Checkpoint | None:
        """Return the checkpoint at this place of the lineage, or None."""
        ...

    def all(self) -> Iterator[Checkpoint]:
        """Yield every checkpoint by lineage_seq; for `verify`."""
        ...


class Transaction(Protocol):
    """One transaction on one workflow: a snapshot when reading, the head's lock when writing. When it is over its
    facets refuse everything.
    """

    @property
    def log(self) -> LogFacet:
        """The events."""
        ...

    @property
    def refs(self) -> RefFacet:
        """The references."""
        ...

    @property
    def register(self) -> RegisterFacet:
        """The register."""
        ...

    @property
    def views(self) -> ViewFacet:
        """Views and their pointers."""
        ...

    @property
    def jobs(self) -> JobFacet:
        """Candidates and attempts."""
        ...

    @property
    def summaries(self) -> SummaryFacet:
        """Summaries and manifests."""
        ...

    @property
    def lineage(self) -> LineageFacet:
        """The lineage."""
        ...

    @property
    def checkpoints(self) -> CheckpointFacet:
        """Checkpoints."""
        ...


class Store(Protocol):
    """Where everything is kept. All methods may be called from any thread."""

    @property
    def digest_key(self) -> bytes:
        """The store's secret key of 32 bytes for digests of short content, made once."""
        ...

    def read(self, scope: Scope) -> AbstractContextManager[Transaction]:
        """Open one snapshot. Nothing is written; a workflow that is not there is empty."""
        ...

    def write(self, scope: Scope, *, joins: bool = True) -> AbstractContextManager[Transaction]:
        """Open a writing transaction that holds the workflow's lock from its first statement. Leaving it normally
        commits, leaving it by an exception rolls back. `joins`: it is short, and may share a commit with others.

        Raises:
            StoreUnavailableError: not open, locked for too long, full, read-only.
            OutcomeUnknownError: the commit was sent and not acknowledged (I19).
        """
        ...

    def scopes(self, tenant: str | None = None) -> list[Scope]:
        """Return the workflows, of one tenant or of all."""
        ...

    def problems(self) -> list[str]:
        """Return what the storage engine itself finds wrong; for `verify`."""
        ...

    def close(self) -> None:
        """Release everything; calling it again does nothing."""
        ...
