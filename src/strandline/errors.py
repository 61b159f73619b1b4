"""The exception tree. The first line of a class's docstring is its default message; what happened is in the attributes.

StrandlineError
    InvalidInputError
        ImportFormatError
    TenantScopeError
    IdempotencyConflictError
    StaleRevisionError
    CorruptRecordError
    NotContinuedError
    ContextOverflowError
    CompactionLineageError
    UnreconciledSummaryError
    SummaryReconciliationError
    CaseAnsweredError
    ActionDeniedError
    EffectFailedError
    EffectUnknownError
    ErasureRefusedError
    StateConflictError
    StateErasedError
    SummarizerError
        TransientSummarizerError
        MalformedDraftError
            PromptTooLongError
    SummarizerSetupError
    QueueFullError
    OutcomeUnknownError
    StoreUnavailableError
        SchemaVersionError
        UnfinishedCopyError
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class LastKnown:
    """Where a reference was last seen in the log, and at which generation the summary dropped it."""

    seq: int
    generation_dropped: int | None
    event_kind: str


def extra_hint(extra: str) -> str:
    """Say how an extra is installed: from the checkout, since no index holds this project yet."""
    return f'Install the extra from the checkout of Strandline: python -m pip install "/path/to/the/checkout[{extra}]"'


class StrandlineError(Exception):
    """Strandline could not do what was asked."""

    hint: str = ""
    told: bool = False  # hooks were told of it, by the innermost verb that it left
    fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().splitlines()[0])
        if hint is not None:
            self.hint = hint

    @property
    def message(self) -> str:
        """The text of the error, without its attributes."""
        return str(self.args[0])


class InvalidInputError(StrandlineError, ValueError):
    """The input is not acceptable; nothing was written."""

    hint = "Correct the input and call again."
    position: int | None = None  # of the event in its batch, where one of them is the reason


class ImportFormatError(InvalidInputError):
    """The file is damaged or of no known format; nothing was imported.

    Attributes: line (1-based), byte (0-based offset of the fault in the file), reason.
    """

    hint = "Nothing was written. Repair or cut the file at the place named, then try again."
    fields = ("line", "byte", "reason")

    def __init__(self, reason: str, *, line: int, byte: int) -> None:
        super().__init__(f"line {line}, byte {byte}: {reason}")
        self.reason = reason
        self.line = line
        self.byte = byte


class TenantScopeError(StrandlineError):
    """A call needs a tenant and a workflow, each a valid name (I21)."""

    hint = "Names have 1 to 200 characters, no control characters and no outer spaces."


class IdempotencyConflictError(StrandlineError):
    """The event key is taken by an event with other content (I3).

    Attributes: key, seq (of the event that holds the key; None for a key twice in one batch), line, byte (of the
    record in an imported file; None for an append).
    """

    hint = "Use another key, or send the content that was sent first."
    fields = ("key", "seq", "line", "byte")

    def __init__(
        self,
        message: str,
        *,
        key: str,
        seq: int | None,
        line: int | None = None,
        byte: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.key = key
        self.seq = seq
        self.line = line
        self.byte = byte


class StaleRevisionError(StrandlineError):
    """The workflow moved on since the writer last read it (I3).

    Attributes: expected, actual (revisions).
    """

    hint = "Read the events after the expected revision, decide anew, and append with the new revision."
    fields = ("expected", "actual")

    def __init__(self, *, expected: int, actual: int) -> None:
        super().__init__(f"expected revision {expected}, but the workflow is at {actual}; nothing was appended")
        self.expected = expected
        self.actual = actual


class CorruptRecordError(StrandlineError):
    """A stored record is not what was written (I4).

    Attributes: place (table and key of the record), reason.
    """

    hint = "Run `strandline verify`, and restore the file from a backup; nothing was repaired or skipped."
    fields = ("place", "reason")

    def __init__(self, reason: str, *, place: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


class NotContinuedError(StrandlineError):
    """The store is neither what was witnessed nor a continuation of it (ADR 0071).

    Attributes: findings (a `strandline.NotContinued` for each workflow).
    """

    hint = (
        "Nothing was changed. Stop writers. If an older copy was put back on purpose, begin a new file of witnesses; "
        "else restore the newest backup that the witness accepts."
    )
    fields = ("findings",)

    def __init__(self, message: str, *, findings: tuple[object, ...]) -> None:
        super().__init__(message)
        self.findings = findings


class ContextOverflowError(StrandlineError):
    """What must stand in the context does not fit the budget (C11, C19).

    Attributes: needed (tokens at least), budget (tokens), needs (of references that had to be looked up in the log:
    the tokens of the shortest quote of each), case_id (of the case that a context opened for them).
    """

    hint = "Raise the budget, compact, or lift constraints and close issues that no longer hold."
    fields = ("needed", "budget", "needs", "case_id")
    case_id: str | None = None

    def __init__(
        self,
        message: str,
        *,
        needed: int,
        budget: int,
        needs: Mapping[str, int] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(f"{message} (needs at least {needed} tokens, budget {budget})", hint=hint)
        self.needed = needed
        self.budget = budget
        self.needs = dict(needs or {})


class CompactionLineageError(StrandlineError):
    """The checkpoint and the lineage of compactions do not fit together (I14, I15).

    Attributes: checkpoint_seq, last_pointer_move (lineage_seq), basis_generation, generation, case_id.
    """

    hint = "Read the context anew and checkpoint the state made from it, or recover by replay."
    fields = ("checkpoint_seq", "last_pointer_move", "basis_generation", "generation", "case_id")
    case_id: str | None = None  # of the case that recovery opened

    def __init__(
        self,
        message: str,
        *,
        checkpoint_seq: int | None = None,
        last_pointer_move: int | None = None,
        basis_generation: int | None = None,
        generation: int | None = None,
    ) -> None:
        super().__init__(message)
        self.checkpoint_seq = checkpoint_seq
        self.last_pointer_move = last_pointer_move
        self.basis_generation = basis_generation
        self.generation = generation


class UnreconciledSummaryError(StrandlineError):
    """The summary stands under an open blocking case and is not compacted again (I11).

    Attributes: case_id.
    """

    fields = ("case_id",)

    def __init__(self, message: str, *, case_id: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint or f"Answer the case: `wf.reconcile({case_id!r}, …, by=…, why=…)`.")
        self.case_id = case_id


class ErasureRefusedError(StrandlineError):
    """A legal hold, or a reader that has not finished, stands in the way of an erasure; nothing was erased (C31).

    Attributes: holds (their names), readers (their names).
    """

    fields = ("holds", "readers")

    def __init__(self, message: str, *, holds: tuple[str, ...] = (), readers: tuple[str, ...] = ()) -> None:
        way = (
            "Lift each hold first: nothing forces one." if holds else "Let them finish, or say force=True (`--force`)."
        )
        super().__init__(message, hint=way)
        self.holds = holds
        self.readers = readers


class StateConflictError(StrandlineError):
    """The state can't be saved, or written to, as the line stands now; nothing was written.

    Attributes: line, state_id, reason ("unknown parent", "deleted", "taken", "moved"), newest (the id of the newest
    state of the line; None where nobody else has saved in it).
    """

    fields = ("line", "state_id", "reason", "newest")

    def __init__(
        self, message: str, *, line: str, state_id: str, reason: str, newest: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(f"{message}; nothing was written", hint=hint)
        self.line = line
        self.state_id = state_id
        self.reason = reason
        self.newest = newest


class StateErasedError(StrandlineError):
    """Some of what the saved state held was erased (C31).

    Attributes: line, state_id.
    """

    hint = (
        "Go on from a state before it (`states.list()` tells which are whole), from the context of the log, or take "
        "what is left: `states.load(…, erased=True)`."
    )
    fields = ("line", "state_id")

    def __init__(self, message: str, *, line: str, state_id: str) -> None:
        super().__init__(message)
        self.line = line
        self.state_id = state_id


class SummaryReconciliationError(StrandlineError):
    """The agent cannot go on from this state without a decision (I16).

    Attributes: summary_generation, checkpoint_turn, missing_ref, missing_refs, last_known, reason (a
    `strandline.model.recovery.ReconciliationReason`), case_id.
    """

    hint = "Recall the reference, check that it still holds, and append pin(ref); then go on. Nothing was overwritten."
    fields = (
        "summary_generation",
        "checkpoint_turn",
        "missing_ref",
        "missing_refs",
        "last_known",
        "reason",
        "case_id",
    )

    def __init__(
        self,
        message: str,
        *,
        summary_generation: int | None,
        checkpoint_turn: int | None,
        reason: str,
        missing_refs: tuple[str, ...] = (),
        last_known: LastKnown | None = None,
        case_id: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.summary_generation = summary_generation
        self.checkpoint_turn = checkpoint_turn
        self.reason = reason
        self.missing_refs = missing_refs
        self.missing_ref = missing_refs[0] if missing_refs else None
        self.last_known = last_known
        self.case_id = case_id


class CaseAnsweredError(StrandlineError):
    """The case was answered already: the first answer wins (I11).

    Attributes: case_id, answer, by.
    """

    hint = "Read the case with `strandline cases --all`; what it asked may have come up again as another case."
    fields = ("case_id", "answer", "by")

    def __init__(self, message: str, *, case_id: str, answer: str | None, by: str | None) -> None:
        super().__init__(message)
        self.case_id = case_id
        self.answer = answer
        self.by = by


class ActionDeniedError(StrandlineError):
    """The durable facts do not permit the action (I20).

    Attributes: action, reasons (one for each need that is not met), permit_id (of the decision that was recorded; where
    an effect was to use a permit, of that permit).
    """

    hint = "Get what is missing as an event (an approval, a resolution), then ask again. A summary's words don't count."
    fields = ("action", "reasons", "permit_id")

    def __init__(
        self,
        message: str | None = None,
        *,
        action: str = "",
        reasons: tuple[str, ...] = (),
        permit_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.action = action
        self.reasons = reasons
        self.permit_id = permit_id


class EffectFailedError(StrandlineError):
    """Raised by what runs an effect: it did not happen and never will; the same key may be run again (I18).

    Attributes: key, of the effect that was settled by it; None before. An effect inside another one speaks for itself
    only: what else the outer one did did happen.
    """

    fields = ("key",)
    key: str | None = None


class EffectUnknownError(StrandlineError):
    """Whether the effect happened is not known; it is not run again before that is told (I18).

    Attributes: key, case_id.
    """

    hint = "Find out at the other side whether it happened."
    fields = ("key", "case_id")

    def __init__(self, message: str, *, key: str, case_id: str | None, hint: str | None = None) -> None:
        if hint is None and case_id is not None:
            hint = (
                f"{self.hint} Then answer the case: `wf.reconcile({case_id!r}, EffectDone(result), by=…, why=…)`, or "
                "with `EffectNeverHappened()`."
            )
        super().__init__(message, hint=hint)
        self.key = key
        self.case_id = case_id


class SummarizerError(StrandlineError):
    """A summarizer did not give a usable draft; the active summary is untouched."""


class TransientSummarizerError(SummarizerError):
    """The summarizer failed for a passing reason: timeout, stall, rate limit, connection.

    Attributes: retry_after_s.
    """

    fields = ("retry_after_s",)

    def __init__(self, message: str | None = None, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class MalformedDraftError(SummarizerError):
    """The summarizer's output is not a finished summary."""


class PromptTooLongError(MalformedDraftError):
    """The model can't be shown so much at once: the same events in smaller parts may do (C10)."""


class SummarizerSetupError(StrandlineError):
    """The summarizer can't work as it is set up: a repeat would fail alike, so none is made.

    It passes through `compact` to who can change it: a key, a model's name, a base URL, an option, a paid account.
    """

    hint = "Correct the summarizer's model, key, base URL or options; the active summary is untouched."


class QueueFullError(StrandlineError):
    """The tenant has as many due compactions as it may have; nothing was written.

    Attributes: tenant, due (how many there are), limit (DUE_PER_TENANT_MAX).
    """

    hint = "Let more workers run what is due, or compact at once with `compact`; then ask again."
    fields = ("tenant", "due", "limit")

    def __init__(self, *, tenant: str, due: int, limit: int) -> None:
        super().__init__(
            f"tenant {tenant!r} has {due:,} due compactions, and DUE_PER_TENANT_MAX is {limit:,}; nothing was written"
        )
        self.tenant = tenant
        self.due = due
        self.limit = limit


class OutcomeUnknownError(StrandlineError):
    """It is not known whether the last write was committed (I19)."""

    hint = "Read the state again before anything is repeated; repeating with the same key is safe."


class StoreUnavailableError(StrandlineError):
    """The store can't be opened, read or written now; nothing was written."""

    hint = "Check the path, its permissions and the disk space (`df`), then try again."


class SchemaVersionError(StoreUnavailableError):
    """The store was written by a newer Strandline.

    Attributes: found, known (schema versions).
    """

    hint = "Upgrade Strandline, or open another store."
    fields = ("found", "known")

    def __init__(self, *, found: int, known: int) -> None:
        super().__init__(f"the store has schema {found}, this Strandline knows {known}; nothing was written")
        self.found = found
        self.known = known


class UnfinishedCopyError(StoreUnavailableError):
    """The store is a copy that has not finished: it holds a part of the rows.

    Attributes: place, source (of the copy, as it was named).
    """

    fields = ("place", "source")

    def __init__(self, *, place: str, source: str) -> None:
        super().__init__(
            f"{place}: a copy of {source} that has not finished: a part of it is missing",
            hint=f"Go on with it: `strandline copy {quote(source)} {quote(place)}`; or delete it.",
        )
        self.place = place
        self.source = source
