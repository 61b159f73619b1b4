"""What one call of `compact` has seen, and how it is told: to hooks, and as the outcome."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from strandline.engine.assemble import standing_refs
from strandline.engine.claim import Refused
from strandline.engine.environment import Environment
from strandline.engine.plan_job import Job, Order
from strandline.engine.reading import read_view
from strandline.model.candidate import Attempt, CandidateState, FailureClass, Verdict
from strandline.model.lineage import LineageEntry
from strandline.model.outcome import CompactionOutcome, CompactionResult
from strandline.model.summary import Summary
from strandline.ports.occurrences import AttemptTold, CompactionTold
from strandline.rules.ladder import AS_ASKED, Form

BLOCKED = "blocked"  # by a case, why an attempt was refused
ENDED = {
    CandidateState.REJECTED: CompactionResult.REJECTED,
    CandidateState.QUARANTINED: CompactionResult.QUARANTINED,
}


@dataclass(slots=True)
class Run:
    """What one call has seen: for the outcome."""

    env: Environment
    order: Order  # for a draft in the form that is asked for now
    started_s: float
    form: Form = AS_ASKED
    tries: int = 0  # attempts that this call has begun, in whatever form
    violations: tuple[str, ...] = ()  # what was wrong with the last draft
    verdicts: list[Verdict] = field(default_factory=list)  # on the drafts that broke a rule, in whatever form
    phases_ms: dict[str, float] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    tokens_before: int | None = None
    activated: tuple[Job, Attempt, LineageEntry] | None = None
    case_id: str | None = None
    again_after_s: float | None = None
    held: Attempt | None = None  # the attempt that holds the lease, and since when
    held_s: float = 0.0

    @property
    def can_fall_back(self) -> bool:
        """Whether there is a last resort."""
        return self.order.last_resort is not None

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure a phase; the same phase may come several times."""
        begun = self.env.clock.monotonic_s()
        try:
            with self.env.phase(f"compact.{name}"):
                yield
        finally:
            spent = (self.env.clock.monotonic_s() - begun) * 1_000
            self.phases_ms[name] = round(self.phases_ms.get(name, 0.0) + spent, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """The view as the outcome tells it: right after this call's own activation, or as it is read now."""

    generation: int
    watermark: int
    revision: int
    lineage_seq: int
    summary: Summary | None
    tail_tokens: int


def _standing(run: Run) -> _Standing:
    env = run.env
    with env.read() as tx:
        if run.activated is not None:
            job, attempt, entry = run.activated
            return _Standing(
                generation=job.plan.base_generation + 1,
                watermark=job.plan.watermark,
                revision=entry.revision,
                lineage_seq=entry.lineage_seq,
                summary=tx.summaries.get(attempt.summary_no or 0),
                tail_tokens=job.tail_tokens,
            )
        snapshot = read_view(env, tx, run.order.view, budget=0)
        return _Standing(
            generation=snapshot.generation,
            watermark=snapshot.watermark,
            revision=snapshot.revision,
            lineage_seq=tx.log.head().lineage_seq,
            summary=tx.summaries.get(snapshot.summary.summary_no) if snapshot.summary else None,
            tail_tokens=snapshot.tail_tokens,
        )


def tell_attempt(
    run: Run,
    attempt: Attempt,
    *,
    ends: CandidateState | None = None,
    failure: FailureClass | None = None,
    refused: Refused | None = None,
) -> None:
    """Tell the hooks how an attempt ended: validated, failed by a class of C14, or refused (I6)."""
    state, reason = "validated", None
    if failure is not None:
        state = ends.value if ends in ENDED else "failed"
    if refused is not None:
        state = "refused"
        reason = "fenced" if refused.fenced else "moved" if refused.moved else BLOCKED
    run.env.emit(
        "attempt",
        AttemptTold(
            view=run.order.view,
            candidate_id=attempt.candidate_id,
            attempt_id=attempt.attempt_id,
            number=attempt.number,
            state=state,
            failure=failure.value if failure is not None else None,
            reason=reason,
            case_id=refused.case_id if refused is not None else run.case_id,
        ),
    )


def outcome_of(run: Run, result: CompactionResult, reason: str) -> CompactionOutcome:
    """Return how the call ended, and tell the hooks."""
    outcome = _as_it_stands(run, result, reason)
    last = run.attempts[-1] if run.attempts else None
    run.env.emit(
        "compaction",
        CompactionTold(
            view=outcome.view,
            outcome=outcome.outcome.value,
            candidate_id=last.candidate_id if last else None,
            attempt_id=last.attempt_id if last else None,
            generation=outcome.generation,
            watermark=outcome.watermark,
            revision=outcome.revision,
            attempts=len(outcome.attempts),
            tokens_before=outcome.tokens_before,
            summary_tokens=outcome.summary_tokens,
            tail_tokens=outcome.tail_tokens,
            depth=outcome.depth,
            refs_seen=outcome.refs_seen,
            refs_dropped=outcome.refs_dropped,
            phases_ms=outcome.phases_ms,
            case_id=outcome.case_id,
        ),
    )
    return outcome


def _as_it_stands(run: Run, result: CompactionResult, reason: str) -> CompactionOutcome:
    env, now = run.env, _standing(run)
    summary = now.summary
    summary_tokens = summary.tokens if summary else 0
    seen, dropped = (summary.refs_seen, summary.dropped_count) if summary else (0, 0)
    verbatim = len(standing_refs(summary)) if summary else 0
    return CompactionOutcome(
        outcome=result,
        view=run.order.view,
        revision=now.revision,
        generation=now.generation,
        watermark=now.watermark,
        lineage_seq=now.lineage_seq,
        depth=summary.depth if summary else 0,
        tokens_before=run.tokens_before if run.tokens_before is not None else summary_tokens + now.tail_tokens,
        summary_tokens=summary_tokens,
        tail_tokens=now.tail_tokens,
        token_counter=env.counter.name,
        refs_seen=seen,
        refs_verbatim=verbatim,
        refs_dropped=dropped,
        refs_unaccounted=seen - verbatim - dropped,
        summary=summary,
        attempts=tuple(run.attempts),
        reason=reason,
        case_id=run.case_id,
        phases_ms=dict(run.phases_ms),
        duration_ms=round((env.clock.monotonic_s() - run.started_s) * 1_000, 3),
        again_after_s=run.again_after_s,
    )
