"""Compact a view, from end to end (DESIGN §2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace

from strandline.engine.assemble import assemble, standing_refs
from strandline.engine.claim import (
    Claim,
    Refused,
    activate,
    claim,
    discard_outgrown,
    landed,
    release,
    renew,
    store_failure,
    store_validated,
)
from strandline.engine.close_calls import close_overdue_calls
from strandline.engine.environment import Environment, check_whole
from strandline.engine.flow import Sleep, Summarize, Verb
from strandline.engine.material import Material, Shown, judge, read_material, read_part
from strandline.engine.plan_job import Job, NoJob, Order, plan_job
from strandline.engine.reading import read_view
from strandline.engine.search_index import extend_index, is_indexed
from strandline.engine.watching import watched_flow
from strandline.errors import (
    ContextOverflowError,
    InvalidInputError,
    MalformedDraftError,
    OutcomeUnknownError,
    StoreUnavailableError,
    StrandlineError,
    SummarizerError,
    UnreconciledSummaryError,
)
from strandline.limits import LEASE_RENEWED_S, LEASE_TTL_S, PART_TOKENS_MIN, REPLANS_MAX
from strandline.model.candidate import Attempt, CandidateState, Draft, FailureClass, Verdict, Violation
from strandline.model.event import SourceEvent
from strandline.model.lineage import LineageEntry
from strandline.model.outcome import CompactionOutcome, CompactionResult
from strandline.model.summary import Summary
from strandline.ports import SummaryRequest
from strandline.ports.occurrences import AttemptTold, CompactionTold
from strandline.rules.ledger import Tally
from strandline.rules.partition import Part, part_budget
from strandline.rules.retry import Again, GiveUp, Postpone, classify, decide
from strandline.rules.validation import malformed

_BLOCKED = "blocked"  # by a case, why an attempt was refused
JOINT = "\n"  # between the drafts of the parts of one segment
_ENDED = {
    CandidateState.REJECTED: CompactionResult.REJECTED,
    CandidateState.QUARANTINED: CompactionResult.QUARANTINED,
}


@dataclass(slots=True)
class _Run:
    """What one call has seen: for the outcome."""

    env: Environment
    order: Order
    started_s: float
    phases_ms: dict[str, float] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    tokens_before: int | None = None
    activated: tuple[Job, Attempt, LineageEntry] | None = None
    case_id: str | None = None
    again_after_s: float | None = None
    held: Attempt | None = None  # the attempt that holds the lease, and since when
    held_s: float = 0.0

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


class _LeaseLostError(Exception):
    """Another compaction took the view over while this one drafted."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.reason)
        self.refused = refused


@watched_flow("compact")
def compact(env: Environment, order: Order) -> Verb[CompactionOutcome]:
    """Compact once: plan, claim, draft, validate, store, activate.

    Returns an outcome for everything that can happen to a summary; raises for what is wrong with the call or the store.

    Raises:
        ContextOverflowError: mandatory facts and what must stay verbatim don't fit the budget (C11).
        InvalidInputError: a budget, or a watermark asked for, that can't be.
        CorruptRecordError: what was read is not what was written; nothing is compacted from there (I4).
        UnreconciledSummaryError: the summary stands under an open blocking case (I11).
        StoreUnavailableError: the store failed before anything was activated.
    """
    check_whole("through", order.through)
    check_whole("when_tokens", order.when_tokens)
    deadline_s = order.deadline_s
    if deadline_s is not None and not (isinstance(deadline_s, int | float) and 0 < deadline_s <= LEASE_TTL_S):
        raise InvalidInputError(f"deadline_s {deadline_s!r} lies outside 0..{LEASE_TTL_S:g}")
    run = _Run(env, order, env.clock.monotonic_s())
    close_overdue_calls(env, order.view)
    for _ in range(REPLANS_MAX):
        with run.phase("plan"):
            job = plan_job(env, order)
        if isinstance(job, NoJob):
            return _outcome(run, CompactionResult.NOTHING_TO_DO, job.reason)
        run.tokens_before = job.tokens_before
        result = yield from _attempts(run, job)
        if not isinstance(result, Refused):
            return _outcome(run, *result)
        if result.busy:
            return _outcome(run, CompactionResult.POSTPONED, result.reason)
        if result.candidate_state is not None:
            run.case_id = result.case_id
            ended = _ENDED.get(result.candidate_state, CompactionResult.CONFLICT)
            return _outcome(
                run, ended, f"{result.reason}; nothing is repeated until events, budget or summarizer change"
            )
        if not result.moved or (order.strict and order.through is not None):  # through that event, and nothing after it
            return _outcome(run, CompactionResult.CONFLICT, result.reason)
    return _outcome(run, CompactionResult.CONFLICT, f"the view moved {REPLANS_MAX} times while it was compacted")


def _attempts(run: _Run, job: Job) -> Verb[tuple[CompactionResult, str] | Refused]:
    """Try a job until it is activated, refused, or its attempts are at their end."""
    env = run.env
    violations: tuple[str, ...] = ()
    tries = 0
    while True:
        tries += 1
        with run.phase("claim"):
            claimed = claim(env, job, background=run.order.background is not None)
        if isinstance(claimed, Refused):
            return claimed
        run.held, run.held_s = claimed.attempt, env.clock.monotonic_s()
        if claimed.resumed and discard_outgrown(env, job, claimed.attempt):
            continue  # the tail has grown since it was drafted: its summary would exceed the budget now
        if claimed.resumed:
            run.attempts.append(claimed.attempt)
            return _finish(run, job, claimed.attempt)
        failed: SummarizerError
        verdict: Verdict | None = None
        drafts: list[Draft] = []
        try:
            drafting = yield from _draft(run, job, drafts, violations)
        except SummarizerError as error:
            failed, failure = error, classify(error)
        except _LeaseLostError as lost:
            run.attempts.append(claimed.attempt)
            _tell_attempt(run, claimed.attempt, refused=lost.refused)
            return lost.refused
        except BaseException as error:
            store_failure(env, claimed.attempt, classify(error), f"{type(error).__name__}: {error}")
            _tell_attempt(run, claimed.attempt, failure=classify(error))
            raise
        else:
            if not drafting.violations:
                return _store_and_finish(run, job, claimed, drafting, drafts)
            verdict = Verdict(violations=tuple(drafting.violations))
            semantic = any(v.failure is FailureClass.SEMANTIC for v in verdict.violations)
            failure = FailureClass.SEMANTIC if semantic else FailureClass.MALFORMED
            violations = tuple(f"{v.rule}: {v.detail}" for v in verdict.violations)
            failed = MalformedDraftError("; ".join(violations))
        ended = _settle_failure(run, claimed.attempt, failed, failure, tries, drafts, verdict)
        if not isinstance(ended, Again):
            return ended
        if ended.delay_s > 0:
            yield Sleep(seconds=ended.delay_s)


def _settle_failure(
    run: _Run,
    attempt: Attempt,
    failed: SummarizerError,
    failure: FailureClass,
    tries: int,
    drafts: list[Draft],
    verdict: Verdict | None,
) -> tuple[CompactionResult, str] | Refused | Again:
    """Settle an attempt that gave no good draft, and say what follows: another one, or the end of this call."""
    env, background = run.env, run.order.background
    decision = decide(
        failure,
        attempt=tries,
        retry_after_s=_seconds(getattr(failed, "retry_after_s", None)),
        jitter=env.entropy.fraction(),
        run=background.run if background else None,
    )
    ends = decision.candidate_state if isinstance(decision, GiveUp) else None
    run.case_id = store_failure(env, attempt, failure, str(failed), drafts=drafts, verdict=verdict, ends=ends)
    run.attempts.append(replace(attempt, failure=failure, failure_text=str(failed), verdict=verdict))
    _tell_attempt(run, attempt, ends=ends, failure=failure)
    if isinstance(decision, Again):
        return decision
    if isinstance(decision, GiveUp):
        return decision.result, str(failed)
    if isinstance(decision, Postpone):
        run.again_after_s = decision.delay_s
        return CompactionResult.POSTPONED, str(failed)
    return Refused(reason=str(failed), moved=True)


def _seconds(value: object) -> float | None:
    """Return what a summarizer asked to wait, if it is a number."""
    return float(value) if isinstance(value, int | float) else None


@dataclass(slots=True)
class _Drafting:
    """What one attempt has read and been told, without the events."""

    shown: Shown
    materials: list[Material] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)


def _draft(run: _Run, job: Job, drafts: list[Draft], violations: tuple[str, ...]) -> Verb[_Drafting]:
    """Let the summarizer draft every segment, and judge each draft; no transaction is open while it works."""
    env, window = run.env, run.order.summarizer.window_tokens
    drafting = _Drafting(Shown(new=Tally(job.base.ledger if job.base else ()), again=Tally()))
    for part in job.plan.jobs:
        with run.phase("read"), env.read() as tx:
            material = read_material(env, tx, job, part, window, drafting.shown)
        drafts.append((yield from _draft_segment(run, job, material, drafting, violations)))
        drafting.materials.append(replace(material, events=()))
    return drafting


def _draft_segment(
    run: _Run, job: Job, material: Material, drafting: _Drafting, violations: tuple[str, ...]
) -> Verb[Draft]:
    """Let one segment be drafted: at once, or in parts that fit the summarizer's window (C10), one held at a time."""
    env, summarizer, parts = run.env, run.order.summarizer, material.parts
    drafts: list[Draft] = []
    joint_tokens = env.counter.count(JOINT) + 1
    spent = 0
    for number, part in enumerate(parts):
        events = material.events if len(parts) == 1 else _read_part(run, job, part)
        budget = part_budget(parts, number, material.draft_tokens, spent_tokens=spent, joint_tokens=joint_tokens)
        if len(parts) > 1 and budget < PART_TOKENS_MIN:
            budget = 0  # too little for a line: it is the next one's
        shown = [deepcopy(event) for event in events] if run.order.deadline_s is not None else events
        request = SummaryRequest(
            from_seq=part.from_seq if number else material.job.from_seq,
            through_seq=part.through_seq if number < len(parts) - 1 else material.job.through_seq,
            budget_tokens=budget,
            events=shown,  # a foreign summarizer gets copies: what it does to them changes nothing of ours
            anchors=job.facts.anchors,
            prior=() if number else material.prior,
            violations=violations,
            counter=env.counter,
        )
        _hold(run, job)
        with run.phase("draft"):
            draft = yield Summarize(summarizer=summarizer, request=request, deadline_s=run.order.deadline_s)
        drafts.append(draft)
        spent += env.counter.count(draft.text)
        if draft.text or budget or len(parts) == 1:
            _judge(run, job, material, events, draft, drafting)
    if len(drafts) == 1:
        return drafts[0]
    unfinished = next((draft.finish for draft in drafts if draft.finish != "stop"), "stop")
    text = JOINT.join(draft.text for draft in drafts if draft.text)
    whole = Draft(text=text, finish=unfinished, model=drafts[0].model)
    if not drafting.violations:  # of the parts; together they may still be too much, or nothing
        drafting.violations += malformed(whole, material.draft_tokens, env.counter.count(text))
    return whole


def _hold(run: _Run, job: Job) -> None:
    """Renew the lease before the next draft, where it was taken a while ago: who is at work is not taken for dead."""
    now_s = run.env.clock.monotonic_s()
    if run.held is None or now_s - run.held_s < LEASE_RENEWED_S:
        return
    refused = renew(run.env, job, run.held, run.order.background)
    if refused is not None:
        raise _LeaseLostError(refused)
    run.held_s = now_s


def _read_part(run: _Run, job: Job, part: Part) -> tuple[SourceEvent, ...]:
    with run.phase("read"), run.env.read() as tx:
        return read_part(run.env, tx, job, part)


def _judge(
    run: _Run, job: Job, material: Material, events: Sequence[SourceEvent], draft: Draft, drafting: _Drafting
) -> None:
    env = run.env
    with run.phase("validate"), env.read() as tx:
        drafting.violations += judge(env, tx, job, material, drafting.shown, events, draft).violations


def _store_and_finish(
    run: _Run, job: Job, claimed: Claim, drafting: _Drafting, drafts: list[Draft]
) -> tuple[CompactionResult, str] | Refused:
    env = run.env
    with run.phase("assemble"), env.read() as tx:
        assembled = assemble(env, tx, job, claimed.attempt.attempt_id, drafting.materials, drafting.shown, drafts)
    total = assembled.summary.tokens + job.tail_tokens
    if total > job.plan.budget:  # what was planned was kept, so this is a fault of ours: it activates nothing
        store_failure(env, claimed.attempt, FailureClass.STORAGE, f"{total} tokens, budget {job.plan.budget}")
        _tell_attempt(run, claimed.attempt, failure=FailureClass.STORAGE)
        raise ContextOverflowError("the assembled context exceeds its budget", needed=total, budget=job.plan.budget)
    with run.phase("store"):
        stored = store_validated(env, job, claimed.attempt, drafts, assembled)
    if isinstance(stored, Refused):
        run.attempts.append(claimed.attempt)
        _tell_attempt(run, claimed.attempt, refused=stored)
        return stored
    run.attempts.append(stored)
    _tell_attempt(run, stored)
    return _finish(run, job, stored)


def _finish(run: _Run, job: Job, attempt: Attempt) -> tuple[CompactionResult, str] | Refused:
    with run.phase("activate"):
        try:
            entry = _activate(run.env, job, attempt)
        except UnreconciledSummaryError as error:
            release(run.env, attempt)
            _tell_attempt(run, attempt, refused=Refused(reason=_BLOCKED, case_id=error.case_id))
            raise
    if isinstance(entry, Refused):
        _tell_attempt(run, attempt, refused=entry)
        if not entry.fenced:
            release(run.env, attempt)
        return entry
    run.activated = (job, attempt, entry)
    with run.phase("index"):
        _extend_index(run.env)
    return CompactionResult.ACTIVATED, ""


def _extend_index(env: Environment) -> None:
    """Index for the next search what came since the last one, where there was one; what fails here fails there."""
    with suppress(StrandlineError):
        if is_indexed(env):
            extend_index(env)


def _activate(env: Environment, job: Job, attempt: Attempt) -> LineageEntry | Refused:
    """Activate; when the answer was lost, read the pointer's lineage before anything is said (I19)."""
    try:
        return activate(env, job, attempt)
    except (OutcomeUnknownError, StoreUnavailableError) as error:
        entry = landed(env, attempt)
        if entry is None:
            raise StoreUnavailableError(
                f"the activation did not land ({error}); the draft is kept, and the next compaction goes on from it"
            ) from error
        return entry


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """The view as the outcome tells it: right after this call's own activation, or as it is read now."""

    generation: int
    watermark: int
    revision: int
    lineage_seq: int
    summary: Summary | None
    tail_tokens: int


def _standing(run: _Run) -> _Standing:
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


def _tell_attempt(
    run: _Run,
    attempt: Attempt,
    *,
    ends: CandidateState | None = None,
    failure: FailureClass | None = None,
    refused: Refused | None = None,
) -> None:
    """Tell the hooks how an attempt ended: validated, failed by a class of C14, or refused (I6)."""
    state, reason = "validated", None
    if failure is not None:
        state = ends.value if ends in _ENDED else "failed"
    if refused is not None:
        state = "refused"
        reason = "fenced" if refused.fenced else "moved" if refused.moved else _BLOCKED
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


def _outcome(run: _Run, result: CompactionResult, reason: str) -> CompactionOutcome:
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


def _as_it_stands(run: _Run, result: CompactionResult, reason: str) -> CompactionOutcome:
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
