"""Compact a view, from end to end (DESIGN §2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from strandline.codec import storable
from strandline.engine.assemble import assemble
from strandline.engine.claim import (
    Claim,
    LeaseLostError,
    Refused,
    activate,
    candidate_of,
    claim,
    discard_outgrown,
    outdated,
    question_of,
    release,
    store_failure,
    store_validated,
)
from strandline.engine.close_calls import close_overdue_calls
from strandline.engine.compaction_run import BLOCKED, Run, outcome_of, tell_attempt
from strandline.engine.cooling import Called
from strandline.engine.draft import Drafting, draft_segments, reading
from strandline.engine.environment import Environment, check_whole
from strandline.engine.flow import Sleep, Verb
from strandline.engine.material import smaller_windows
from strandline.engine.plan_job import Job, NoJob, Order, plan_job
from strandline.engine.search_index import extend_index, is_indexed
from strandline.engine.watching import watched_flow
from strandline.errors import (
    ContextOverflowError,
    InvalidInputError,
    MalformedDraftError,
    PromptTooLongError,
    StoreUnavailableError,
    StrandlineError,
    SummarizerError,
    UnreconciledSummaryError,
)
from strandline.limits import FAILURE_CHARS_MAX, LEASE_TTL_S, REPLANS_MAX
from strandline.model.candidate import Attempt, Draft, FailureClass, Verdict
from strandline.model.case import CaseKind
from strandline.model.lineage import LineageEntry
from strandline.model.outcome import CompactionOutcome, CompactionResult
from strandline.rules.ladder import Form, next_form, same_fact
from strandline.rules.retry import Again, GiveUp, Postpone, Reform, RetryDecision, classify, decide, failure_of


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
    run = Run(env, order, env.clock.monotonic_s(), form=order.as_asked())
    close_overdue_calls(env, order.view)
    replans = 0
    while replans < REPLANS_MAX:
        run.order = order.asked_for(run.form)
        with run.phase("plan"):
            job = plan_job(env, run.order)
        if isinstance(job, NoJob):
            return outcome_of(run, CompactionResult.NOTHING_TO_DO, job.reason)
        run.tokens_before = job.tokens_before
        result = yield from _attempts(run, job)
        if isinstance(result, Refused) and result.candidate_state is not None:
            result = _after_ended(run, job, result)
        if isinstance(result, Form):
            run.form = result
            continue
        if not isinstance(result, Refused):
            return outcome_of(run, *result)
        if result.busy:
            run.again_after_s = result.again_after_s
            return outcome_of(run, CompactionResult.POSTPONED, result.reason)
        if not result.moved or (order.strict and order.through is not None):  # through that event, and nothing after it
            return outcome_of(run, CompactionResult.CONFLICT, result.reason)
        replans += 1
    return outcome_of(run, CompactionResult.CONFLICT, f"the view moved {REPLANS_MAX} times while it was compacted")


def _after_ended(run: Run, job: Job, refused: Refused) -> tuple[CompactionResult, str] | Form:
    """Return the form that follows one whose candidate ended before, by a worker that died since or by an earlier call;
    or how this call ends, where none does.
    """
    state = refused.candidate_state
    failure = failure_of(state) if state is not None else None
    run.verdicts += [attempt.verdict for attempt in refused.ended if attempt.verdict is not None]
    if failure is not None:
        another = next_form(run.form, failure, can_fall_back=run.can_fall_back)
        while another is not None and not _can_ask(run, job, another):
            another = next_form(another, failure, can_fall_back=run.can_fall_back)
        if another is not None:
            return another
    run.case_id = refused.case_id
    ended = CompactionResult.CONFLICT if failure is None else CompactionResult(str(state))
    return ended, f"{refused.reason}; nothing is repeated until events, budget or summarizer change"


def _can_ask(run: Run, job: Job, form: Form) -> bool:
    """Tell whether a form would be another one: what can't be split can't be shown in smaller parts."""
    return form.last_resort or _smaller_windows(run, job, form) is not None


def _smaller_windows(run: Run, job: Job, form: Form) -> Sequence[int | None] | None:
    with run.phase("read"), run.env.read() as tx:
        if outdated(tx, job) is not None:
            return None  # whoever claims it next is told
        return smaller_windows(run.env, tx, job, run.order.summarizer.window_tokens, form.halvings)


def _attempts(run: Run, job: Job) -> Verb[tuple[CompactionResult, str] | Refused | Form]:
    """Try a job until it is activated, refused, or its attempts are at their end."""
    env = run.env
    windows = _smaller_windows(run, job, run.form) if run.form.halvings else None
    failures: Counter[FailureClass] = Counter()
    while True:
        with run.phase("claim"):
            claimed = claim(env, job, background=run.order.background is not None, first=not failures)
        if isinstance(claimed, Refused):
            return claimed
        run.held, run.held_s = claimed.attempt, env.clock.monotonic_s()
        if claimed.resumed and discard_outgrown(env, job, claimed.attempt):
            continue  # the tail has grown since it was drafted: its summary would exceed the budget now
        if claimed.resumed:
            run.attempts.append(claimed.attempt)
            return _finish(run, job, claimed.attempt)
        run.tries += 1
        drafts: list[Draft] = []
        try:
            drafting = yield from draft_segments(run, job, drafts, windows)
        except SummarizerError as error:
            failed = _raised(run, error, drafts)
        except LeaseLostError as lost:
            return _taken_over(run, claimed.attempt, lost.refused)
        except BaseException as error:
            store_failure(env, claimed.attempt, classify(error), f"{type(error).__name__}: {error}")
            tell_attempt(run, claimed.attempt, failure=classify(error))
            raise
        else:
            if not drafting.violations:
                return _store_and_finish(run, job, claimed, drafting, drafts)
            failed = _judged(run, drafting, drafts)
        failures[_counted_as(failed.failure)] += 1
        ended = _settle_failure(run, job, claimed.attempt, failed, failures[_counted_as(failed.failure)])
        if not isinstance(ended, Again):
            return ended
        if ended.delay_s > 0:
            yield Sleep(seconds=ended.delay_s)


def _taken_over(run: Run, attempt: Attempt, refused: Refused) -> Refused:
    """Settle an attempt of whose view somebody else took hold."""
    run.attempts.append(attempt)
    tell_attempt(run, attempt, refused=refused)
    return refused


def _counted_as(failure: FailureClass) -> FailureClass:
    """Return the class with which a failure is counted: bad drafts are one, whatever is wrong with them."""
    return FailureClass.MALFORMED if failure is FailureClass.SEMANTIC else failure


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failed:
    """How an attempt failed."""

    error: SummarizerError
    failure: FailureClass
    drafts: Sequence[Draft]
    verdict: Verdict | None = None


def _raised(run: Run, error: SummarizerError, drafts: Sequence[Draft]) -> _Failed:
    """Return how an attempt failed whose summarizer raised; the next one is told what was no draft, and why."""
    failure = classify(error)
    if failure is FailureClass.MALFORMED and not isinstance(error, PromptTooLongError):
        run.violations = (_said(run, error),)
    return _Failed(error=error, failure=failure, drafts=drafts)


def _said(run: Run, error: SummarizerError) -> str:
    """Return what an error says, as it can be kept and shown: a provider's may quote the key it was given (C12)."""
    return storable(run.env.references.secrets.redact(str(error)), FAILURE_CHARS_MAX)


def _judged(run: Run, drafting: Drafting, drafts: Sequence[Draft]) -> _Failed:
    """Return how an attempt failed whose drafts broke a rule; the next one is told of it."""
    run.violations = tuple(f"{v.rule}: {v.detail}" for v in drafting.violations)
    semantic = any(v.failure is FailureClass.SEMANTIC for v in drafting.violations)
    return _Failed(
        error=MalformedDraftError("; ".join(run.violations)),
        failure=FailureClass.SEMANTIC if semantic else FailureClass.MALFORMED,
        drafts=drafts,
        verdict=Verdict(violations=tuple(drafting.violations), claims=tuple(drafting.claims)),
    )


def _settle_failure(
    run: Run, job: Job, attempt: Attempt, failed: _Failed, tries: int
) -> tuple[CompactionResult, str] | Refused | Again | Form:
    """Settle an attempt that gave no good draft, and say what follows: another one, another form, or the end of this
    call. In whatever form: who is asked again and again, and gets the same fact wrong, is told of to somebody.
    """
    if failed.verdict is not None:
        run.verdicts.append(failed.verdict)
    decision = _decision(run, job, failed, tries)
    passes = failed.failure is FailureClass.TRANSIENT
    ends = decision.candidate_state if isinstance(decision, GiveUp | Reform) else None
    fact, question = same_fact(run.verdicts), None
    if isinstance(decision, GiveUp) and decision.result in _ASKED:
        question = question_of(candidate_of(run.env, job), _ASKED[decision.result], fact)
    elif fact is not None:
        question = question_of(candidate_of(run.env, job), CaseKind.UNFIT_SUMMARIZER, fact)
    text = _said(run, failed.error)
    opened = store_failure(
        run.env,
        attempt,
        failed.failure,
        text,
        drafts=failed.drafts,
        verdict=failed.verdict,
        ends=ends,
        ask_about=question,
        called=Called(summarizer=job.summarizer, answered=not passes, retry_after_s=_retry_after_s(failed)),
    )
    if isinstance(opened, Refused):
        return _taken_over(run, attempt, opened)
    run.case_id = opened or run.case_id
    run.attempts.append(replace(attempt, failure=failed.failure, failure_text=text, verdict=failed.verdict))
    tell_attempt(run, attempt, ends=ends, failure=failed.failure)
    if isinstance(decision, Again):
        return decision
    if isinstance(decision, Reform):
        return decision.form
    if isinstance(decision, GiveUp):
        return decision.result, text
    if isinstance(decision, Postpone):
        run.again_after_s = decision.delay_s
        return CompactionResult.POSTPONED, text
    return Refused(reason=text, moved=True)


_ASKED = {
    CompactionResult.QUARANTINED: CaseKind.QUARANTINED,
    CompactionResult.DEAD_LETTER: CaseKind.DEAD_LETTER,
}


def _decision(run: Run, job: Job, failed: _Failed, tries: int) -> RetryDecision:
    """Decide what follows a failure; a form that would be the one before it is passed over."""
    jitter, form, background = run.env.entropy.fraction(), run.form, run.order.background
    while True:
        decision = decide(
            failed.failure,
            attempt=tries,
            retry_after_s=_retry_after_s(failed),
            jitter=jitter,
            run=background.run if background else None,
            form=form,
            too_long=isinstance(failed.error, PromptTooLongError),
            can_fall_back=run.can_fall_back,
        )
        if not isinstance(decision, Reform) or _can_ask(run, job, decision.form):
            return decision
        form = decision.form


def _retry_after_s(failed: _Failed) -> float | None:
    """Return what a summarizer asked to wait, if it is a number."""
    value = getattr(failed.error, "retry_after_s", None)
    return float(value) if isinstance(value, int | float) else None


def _store_and_finish(
    run: Run, job: Job, claimed: Claim, drafting: Drafting, drafts: list[Draft]
) -> tuple[CompactionResult, str] | Refused:
    env = run.env
    try:
        with reading(run, job, "assemble") as tx:
            assembled = assemble(env, tx, job, claimed.attempt.attempt_id, drafting.materials, drafting.shown, drafts)
    except LeaseLostError as lost:
        return _taken_over(run, claimed.attempt, lost.refused)
    total = assembled.summary.tokens + job.tail_tokens
    if total > job.plan.budget:  # what was planned was kept, so this is a fault of ours: it activates nothing
        store_failure(env, claimed.attempt, FailureClass.STORAGE, f"{total} tokens, budget {job.plan.budget}")
        tell_attempt(run, claimed.attempt, failure=FailureClass.STORAGE)
        raise ContextOverflowError("the assembled context exceeds its budget", needed=total, budget=job.plan.budget)
    with run.phase("store"):
        stored = store_validated(env, job, claimed.attempt, drafts, Verdict(claims=tuple(drafting.claims)), assembled)
    if isinstance(stored, Refused):
        return _taken_over(run, claimed.attempt, stored)
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
    instead = f"drafted by {run.order.summarizer.name!r}: of the summarizer that was asked for, drafts broke a rule"
    return CompactionResult.ACTIVATED, instead if run.form.last_resort and run.verdicts else ""


def _extend_index(env: Environment) -> None:
    """Index for the next search what came since the last one, where there was one; what fails here fails there."""
    with suppress(StrandlineError):
        if is_indexed(env):
            extend_index(env)


def _activate(env: Environment, job: Job, attempt: Attempt) -> LineageEntry | Refused:
    """Activate. What was drafted is kept where it fails."""
    try:
        return activate(env, job, attempt)
    except StoreUnavailableError as error:
        raise StoreUnavailableError(
            f"the activation did not land ({error}); the draft is kept, and the next compaction goes on from it"
        ) from error
