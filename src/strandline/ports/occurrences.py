"""What hooks are told: the details of each occurrence, by its name (C27, C28).

Every hook gets, with the details below, those of `Occurrence`. Details are identifiers, numbers and words of fixed
lists, never payloads, drafts or texts of references, and never what another view's reader could not see. They can't be
changed. More keys may be added; those that stand here stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypedDict


class Occurrence(TypedDict):
    """With each occurrence: where it happened, and how long after its verb began (None outside of a verb)."""

    tenant: str
    workflow: str
    elapsed_s: float | None


class OperationTold(TypedDict):
    """`operation`: a verb has ended. `error` is the name of what it raised."""

    operation: str
    error: str | None
    case_id: str | None  # that the error names


class IncidentTold(TypedDict):
    """`incident`: a read, or a verification, found what is not what was written (I4, I7). Nothing was repaired."""

    operation: str
    place: str  # what is damaged or missing: event, summary, segment, lineage, …; no number, no name
    problems: int


class OverflowTold(TypedDict):
    """`overflow`: what can't be left out exceeds a budget, or the limits of retrieval (C11, C19)."""

    operation: str
    needed: int
    budget: int


class AppendTold(TypedDict):
    """`append`: events are committed; 0 were added where all were there already."""

    revision: int
    added: int


class ImportTold(TypedDict):
    """`import`: a transcript, or a conversation of it, is committed."""

    revision: int
    added: int


class ContextTold(TypedDict, total=False):
    """`context`: a context was read; where it was refused, `rung` is "blocked", and the numbers are missing (C19)."""

    view: str
    rung: str
    generation: int
    revision: int
    budget: int
    tokens: int
    tokens_by_kind: Mapping[str, int]
    tokens_omitted: int
    needs: Mapping[str, int]
    error: str
    case_id: str | None


class AttemptTold(TypedDict):
    """`attempt`: an attempt at a compaction has ended, or was refused. `failure` is a class of C14."""

    view: str
    candidate_id: str
    attempt_id: str
    number: int
    state: str  # validated, failed, rejected, quarantined; refused: late, superseded or fenced (I6)
    failure: str | None
    reason: str | None  # of a refusal: fenced, moved, blocked
    case_id: str | None


class CompactionTold(TypedDict):
    """`compaction`: a call to compact has ended. Tokens, depth and references are those of the view after it."""

    view: str
    outcome: str
    candidate_id: str | None
    attempt_id: str | None
    generation: int
    watermark: int
    revision: int
    attempts: int
    tokens_before: int
    summary_tokens: int
    tail_tokens: int
    depth: int
    refs_seen: int
    refs_dropped: int
    phases_ms: Mapping[str, float]
    case_id: str | None


class DueTold(TypedDict):
    """`due`: a compaction was asked for in the background."""

    view: str
    priority: int
    due_us: int | None


class DueRunTold(TypedDict):
    """`due_run`: a worker's run of a due compaction has ended."""

    view: str
    result: str
    runs: int
    case_id: str | None


class ViewTold(TypedDict):
    """`view`: a view was defined, or its audiences or budget changed."""

    view: str
    generation: int


class CheckpointTold(TypedDict):
    """`checkpoint`: a checkpoint is committed."""

    lineage_seq: int
    turn: int


class RecoveryTold(TypedDict):
    """`recovery`: a recovery is committed: restore or replay. One that failed closed is an `operation` with an error,
    and a `case`.
    """

    view: str
    outcome: str
    lineage_seq: int | None
    generation: int


class CaseTold(TypedDict):
    """`case`: a case was opened, or asked for again while it is open. `error` says why: an error, or a class of C14."""

    case_id: str | None
    error: str


class AnswerTold(TypedDict):
    """`answer`: a case is answered."""

    case_id: str
    answer: str
    by: str


class RevertTold(TypedDict):
    """`revert`: a view went back to the content of an earlier generation."""

    view: str
    generation: int
    to_generation: int
    acted_on: int
    case_id: str | None


class RegressionTold(TypedDict):
    """`regression`: a bad summary was reported; its case is open. A revert opens one, too: see `revert`."""

    view: str
    generation: int
    case_id: str


class RewindTold(TypedDict):
    """`rewind`: events were abandoned."""

    to_revision: int
    events: int
    branch: int


class ErasureTold(TypedDict):
    """`erasure`: events were erased, by a call on this workflow or on one of its family (C31)."""

    events: int
    refs: int
    views: int


class ForkTold(TypedDict):
    """`fork`: a workflow was begun from this one."""

    revision: int
    fork: str


class EffectTold(TypedDict):
    """`effect`: an effect ran, or its recorded result was given."""

    key: str
    tool: str
    kind: str


class GuardTold(TypedDict):
    """`guard`: an action was decided on."""

    action: str
    state: str
    permit_id: str


OCCURRENCES: Final[Mapping[str, type]] = {
    "operation": OperationTold,
    "incident": IncidentTold,
    "overflow": OverflowTold,
    "append": AppendTold,
    "import": ImportTold,
    "context": ContextTold,
    "attempt": AttemptTold,
    "compaction": CompactionTold,
    "due": DueTold,
    "due_run": DueRunTold,
    "view": ViewTold,
    "checkpoint": CheckpointTold,
    "recovery": RecoveryTold,
    "case": CaseTold,
    "answer": AnswerTold,
    "revert": RevertTold,
    "regression": RegressionTold,
    "rewind": RewindTold,
    "fork": ForkTold,
    "erasure": ErasureTold,
    "effect": EffectTold,
    "guard": GuardTold,
}
"""The details of each occurrence, by its name."""
