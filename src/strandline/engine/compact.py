"""Compact a view, from end to end (DESIGN §2)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from strandline.engine.assemble import assemble
from strandline.engine.claim import (
    Claim,
    Refused,
    activate,
    claim,
    discard_outgrown,
    landed,
    release,
    store_failure,
    store_validated,
)
from strandline.engine.close_calls import close_overdue_calls
from strandline.engine.compaction_run import BLOCKED, ENDED, Run, outcome_of, tell_attempt
from strandline.engine.draft import Drafting, LeaseLostError, draft_segments
from strandline.engine.environment import Environment, check_whole
from strandline.engine.flow import Sleep, Verb
from strandline.engine.plan_job import Job, NoJob, Order, plan_job
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
from strandline.limits import LEASE_TTL_S, REPLANS_MAX
from strandline.model.candidate import Attempt, Draft, FailureClass, Verdict
from strandline.model.lineage import LineageEntry
from strandline.model.outcome import CompactionOutcome, CompactionResult
from strandline.rules.retry import Again, GiveUp, Postpone, classify, decide


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
    run = Run(env, order, env.clock.monotonic_s())
    close_overdue_calls(env, order.view)
    for _ in range(REPLANS_MAX):
        with run.phase("plan"):
            job = plan_job(env, order)
        if isinstance(job, NoJob):
            return outcome_of(run, CompactionResult.NOTHING_TO_DO, job.reason)
        run.tokens_before = job.tokens_before
        result = yield from _attempts(run, job)
        if not isinstance(result, Refused):
            return outcome_of(run, *result)
        if result.busy:
            return outcome_of(run, CompactionResult.POSTPONED, result.reason)
        if result.candidate_state is not None:
            run.case_id = result.case_id
            ended = ENDED.get(result.candidate_state, CompactionResult.CONFLICT)
            return outcome_of(
                run, ended, f"{result.reason}; nothing is repeated until events, budget or summarizer change"
            )
        if not result.moved or (order.strict and order.through is not None):  # through that event, and nothing after it
            return outcome_of(run, CompactionResult.CONFLICT, result.reason)
    return outcome_of(run, CompactionResult.CONFLICT, f"the view moved {REPLANS_MAX} times while it was compacted")


def _attempts(run: Run, job: Job) -> Verb[tuple[CompactionResult, str] | Refused]:
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
            drafting = yield from draft_segments(run, job, drafts, violations)
        except SummarizerError as error:
            failed, failure = error, classify(error)
        except LeaseLostError as lost:
            run.attempts.append(claimed.attempt)
            tell_attempt(run, claimed.attempt, refused=lost.refused)
            return lost.refused
        except BaseException as error:
            store_failure(env, claimed.attempt, classify(error), f"{type(error).__name__}: {error}")
            tell_attempt(run, claimed.attempt, failure=classify(error))
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
    run: Run,
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
    text = env.references.secrets.redact(str(failed))  # a provider's error may quote the key it was given (C12)
    run.case_id = store_failure(env, attempt, failure, text, drafts=drafts, verdict=verdict, ends=ends)
    run.attempts.append(replace(attempt, failure=failure, failure_text=text, verdict=verdict))
    tell_attempt(run, attempt, ends=ends, failure=failure)
    if isinstance(decision, Again):
        return decision
    if isinstance(decision, GiveUp):
        return decision.result, text
    if isinstance(decision, Postpone):
        run.again_after_s = decision.delay_s
        return CompactionResult.POSTPONED, text
    return Refused(reason=text, moved=True)


def _seconds(value: object) -> float | None:
    """Return what a summarizer asked to wait, if it is a number."""
    return float(value) if isinstance(value, int | float) else None


def _store_and_finish(
    run: Run, job: Job, claimed: Claim, drafting: Drafting, drafts: list[Draft]
) -> tuple[CompactionResult, str] | Refused:
    env = run.env
    with run.phase("assemble"), env.read() as tx:
        assembled = assemble(env, tx, job, claimed.attempt.attempt_id, drafting.materials, drafting.shown, drafts)
    total = assembled.summary.tokens + job.tail_tokens
    if total > job.plan.budget:  # what was planned was kept, so this is a fault of ours: it activates nothing
        store_failure(env, claimed.attempt, FailureClass.STORAGE, f"{total} tokens, budget {job.plan.budget}")
        tell_attempt(run, claimed.attempt, failure=FailureClass.STORAGE)
        raise ContextOverflowError("the assembled context exceeds its budget", needed=total, budget=job.plan.budget)
    with run.phase("store"):
        stored = store_validated(env, job, claimed.attempt, drafts, assembled)
    if isinstance(stored, Refused):
        run.attempts.append(claimed.attempt)
        tell_attempt(run, claimed.attempt, refused=stored)
        return stored
    run.attempts.append(stored)
    tell_attempt(run, stored)
    return _finish(run, job, stored)


def _finish(run: Run, job: Job, attempt: Attempt) -> tuple[CompactionResult, str] | Refused:
    with run.phase("activate"):
        try:
            entry = _activate(run.env, job, attempt)
        except UnreconciledSummaryError as error:
            release(run.env, attempt)
            tell_attempt(run, attempt, refused=Refused(reason=BLOCKED, case_id=error.case_id))
            raise
    if isinstance(entry, Refused):
        tell_attempt(run, attempt, refused=entry)
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
