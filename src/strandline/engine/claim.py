"""The three transactions of a compaction: claim, store, activate (DESIGN §2, I5, I6, I19)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strandline.codec import draft_digest, storable
from strandline.engine.assemble import Assembled
from strandline.engine.cases import Question, ask, check_unblocked, find_case
from strandline.engine.cooling import Called, cooldowns_of, record_call
from strandline.engine.environment import Environment
from strandline.engine.fork import made_here
from strandline.engine.lineage import add_entry, next_seq
from strandline.engine.plan_job import Background, Job
from strandline.engine.reading import UNWRITTEN_MAIN, find_view
from strandline.limits import DRAFT_BYTES_MAX, FAILURE_CHARS_MAX, LEASE_TTL_S
from strandline.model.candidate import (
    Attempt,
    AttemptState,
    Candidate,
    CandidateState,
    Draft,
    FailureClass,
    Verdict,
)
from strandline.model.case import CaseKind
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.ports.occurrences import CaseTold
from strandline.rules.cooling import cools_until_us
from strandline.rules.secrets import Secrets

_FENCED = "fenced: another compaction or a recovery took the view over, or it was given other audiences"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An attempt that holds the view's lease. `resumed`: its draft is validated already, only activation is left."""

    attempt: Attempt
    resumed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The store did not let the attempt go on."""

    reason: str
    candidate_state: CandidateState | None = None  # the job ended before, in this state
    ended: tuple[Attempt, ...] = ()  # by these attempts
    fenced: bool = False  # somebody else took the view over
    moved: bool = False  # the base is no longer the newest: plan anew
    case_id: str | None = None  # the open case of how the job ended
    busy: bool = False  # somebody holds the view, and this compaction runs in the background; or as the next says
    again_after_s: float | None = None  # how long the summarizer is left alone


class LeaseLostError(Exception):
    """Somebody else took the view over while an attempt was at work."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.reason)
        self.refused = refused


def claim(env: Environment, job: Job, *, background: bool, first: bool = True) -> Claim | Refused:
    """tx1: store the job, or find it, and take the view's lease with a new fencing token.

    An explicit compaction takes the lease from whoever holds it: what died at once must not be waited for. One in the
    background respects it. A summarizer that cools down is called by nobody; who calls it anew after a failure (not
    `first`) has waited for as long as that asked for.

    Raises:
        UnreconciledSummaryError: the base stands under an open blocking case (I11).
    """
    with env.write() as tx:
        view = find_view(tx, job.view.name, str(env.scope))
        check_unblocked(env, tx, view)
        moved = _moved(tx, job, view)
        if moved is not None:
            return moved
        now = env.clock.now_us()
        until = cools_until_us(cooldowns_of(tx, job.summarizer), now) if first else None
        if until is not None:
            again_s = (until - now) / 1_000_000
            reason = f"the summarizer {job.summarizer!r} did not answer, and is left alone for {again_s:,.1f} s"
            return Refused(reason=reason, busy=True, again_after_s=again_s)
        if background and view.leased(now):
            return Refused(reason=f"another compaction holds view {view.name!r}", busy=True)
        candidate = tx.jobs.candidate(job.candidate_id)
        if candidate is None:
            tx.jobs.add_candidate(candidate_of(env, job))
        elif candidate.state not in (CandidateState.PENDING, CandidateState.VALIDATED):
            ended = find_case(env, tx, question_of(candidate, CaseKind.QUARANTINED))
            return Refused(
                reason=f"this job ended before: {candidate.state}",
                candidate_state=candidate.state,
                ended=tuple(tx.jobs.attempts(candidate.candidate_id)),
                case_id=ended.case_id if ended else None,
            )
        fence_holder(tx, view, now)
        record_fence(tx, view, now)
        fence = view.fence + 1
        attempt, resumed = _next_attempt(tx, job.candidate_id, fence, now)
        tx.views.put(
            replace(
                view,
                fence=fence,
                lease_attempt=attempt.attempt_id,
                lease_until_us=_until(now),
            )
        )
        return Claim(attempt=attempt, resumed=resumed)


def renew(env: Environment, job: Job, attempt: Attempt, background: Background | None) -> Refused | None:
    """Hold the lease for longer, in the background that of the due row too; or say that it is somebody else's."""
    with env.write() as tx:
        refused = _still_mine(tx, job, attempt)
        if refused is not None:
            return refused
        until = _until(env.clock.now_us())
        tx.views.put(replace(find_view(tx, job.view.name, str(env.scope)), lease_until_us=until))
        if background is not None:
            row = tx.due.get(job.view.name)
            held = row and replace(row, due_us=until, lease_until_us=until)
            if held is None or not tx.due.settle(held, fence=background.fence):
                return Refused(reason="fenced: another worker took the due compaction over", fenced=True)
        return None


def _until(now: int) -> int:
    return now + int(LEASE_TTL_S * 1_000_000)


def _moved(tx: Transaction, job: Job, view: ViewHead) -> Refused | None:
    """Compare the base that was planned on with what stands now (I6)."""
    if (repointed := _repointed(job, view)) is not None:
        return repointed
    if job.recipe.strict and tx.log.head().revision != job.plan.revision:
        return Refused(
            reason=f"strict: revision {tx.log.head().revision} is newer than {job.plan.revision}", moved=True
        )
    return None


def _repointed(job: Job, view: ViewHead) -> Refused | None:
    if (view.generation, view.audience_version) != (job.plan.base_generation, job.view.audience_version):
        return Refused(reason=f"generation {view.generation} is newer than the base that was planned on", moved=True)
    return None


def outdated(tx: Transaction, job: Job) -> Refused | None:
    """Tell, without an attempt that holds the view, whether it was moved off the base that was planned on (I6)."""
    view = tx.views.get(job.view.name)
    return None if view is None else _repointed(job, view)


def candidate_of(env: Environment, job: Job) -> Candidate:
    """Return the candidate of a job as it begins."""
    return Candidate(
        candidate_id=job.candidate_id,
        view=job.view.name,
        audience_version=job.view.audience_version,
        plan=job.plan,
        recipe=job.recipe,
        state=CandidateState.PENDING,
        created_us=env.clock.now_us(),
    )


def fence_holder(tx: Transaction, view: ViewHead, now: int) -> str | None:
    """Mark the attempt that holds the lease as fenced, and return it: what it brings from now on is refused (I6)."""
    if view.lease_attempt is None:
        return None
    for attempt in tx.jobs.attempts(view.lease_attempt.rpartition(".")[0]):
        if attempt.attempt_id == view.lease_attempt and attempt.state is AttemptState.RUNNING:
            fenced = replace(attempt, state=AttemptState.FENCED, ended_us=now)
            tx.jobs.settle_attempt(fenced, fence=attempt.fence, expected=AttemptState.RUNNING)
    return view.lease_attempt


def fence_all(env: Environment, tx: Transaction) -> list[str]:
    """Raise the fence of every view, and return the attempts that held a lease."""
    fenced = []
    for view in tx.views.all() or [UNWRITTEN_MAIN]:
        holder = fence_holder(tx, view, env.clock.now_us())
        if holder is not None:
            fenced.append(holder)
        tx.views.put(replace(view, fence=view.fence + 1, lease_attempt=None, lease_until_us=0))
    return fenced


def record_fence(tx: Transaction, view: ViewHead, now: int) -> None:
    """Write down that a lease which still ran was taken away."""
    if not view.leased(now):
        return
    add_entry(
        tx,
        LineageEntry(
            lineage_seq=0,
            kind=LineageKind.FENCE,
            op_key=f"fence:{view.name}:{view.fence + 1}",
            revision=tx.log.head().revision,
            at_us=now,
            view=view.name,
            detail={"attempt": view.lease_attempt, "fence": view.fence + 1},
        ),
    )


def _next_attempt(tx: Transaction, candidate_id: str, fence: int, now: int) -> tuple[Attempt, bool]:
    """Go on from an attempt that is validated, or begin another."""
    attempts = tx.jobs.attempts(candidate_id)
    for attempt in attempts:
        if attempt.state is AttemptState.VALIDATED:
            taken = replace(attempt, fence=fence)
            tx.jobs.settle_attempt(taken, fence=attempt.fence, expected=AttemptState.VALIDATED)
            return taken, True
    number = len(attempts) + 1
    begun = Attempt(
        attempt_id=f"{candidate_id}.{number}",
        candidate_id=candidate_id,
        number=number,
        fence=fence,
        state=AttemptState.RUNNING,
        started_us=now,
    )
    tx.jobs.add_attempt(begun)
    head = tx.log.head()
    tx.log.set_head(replace(head, attempts=head.attempts + 1))
    return begun, False


def discard_outgrown(env: Environment, job: Job, attempt: Attempt) -> bool:
    """Discard a validated attempt whose summary, with the tail as it is now, exceeds the budget; tell if it did."""
    with env.write() as tx:
        summary = tx.summaries.get(attempt.summary_no or 0)
        if summary is None or summary.tokens + job.tail_tokens <= job.plan.budget:
            return False
        failed = replace(attempt, state=AttemptState.FAILED, failure=FailureClass.CONFLICT, failure_text="outgrown")
        tx.jobs.settle_attempt(failed, fence=attempt.fence, expected=AttemptState.VALIDATED)
        tx.jobs.set_candidate_state(job.candidate_id, CandidateState.PENDING)
        _release(tx, attempt)
        return True


def store_validated(
    env: Environment, job: Job, attempt: Attempt, drafts: Sequence[Draft], verdict: Verdict, assembled: Assembled
) -> Attempt | Refused:
    """tx2: store this attempt's drafts, segments, manifest and verdict, once, under its own fence (I6)."""
    with env.write() as tx:
        refused = _still_mine(tx, job, attempt)
        if refused is not None:
            return refused
        head = tx.log.head()
        summary = replace(assembled.summary, summary_no=head.summary_no + 1)
        tx.log.set_head(replace(head, summary_no=summary.summary_no))
        settled = replace(
            attempt,
            state=AttemptState.VALIDATED,
            ended_us=env.clock.now_us(),
            drafts=tuple(drafts),
            draft_digest=draft_digest(env.store.digest_key, drafts),
            verdict=verdict,
            summary_no=summary.summary_no,
        )
        tx.summaries.add(summary, assembled.changes)
        record_call(env, tx, Called(summarizer=job.summarizer, answered=True))
        if not tx.jobs.settle_attempt(settled, fence=attempt.fence, expected=AttemptState.RUNNING):
            raise AssertionError("an attempt changed while the head was locked and its fence was the newest")
        tx.jobs.set_candidate_state(job.candidate_id, CandidateState.VALIDATED)
        return settled


def _still_mine(tx: Transaction, job: Job, attempt: Attempt) -> Refused | None:
    """Check, under the lock, that nobody took the view over since the claim."""
    view = tx.views.get(job.view.name)
    if view is None or view.fence != attempt.fence:
        return Refused(reason=_FENCED, fenced=True)
    return None


def check_held(tx: Transaction, job: Job, attempt: Attempt | None) -> None:
    """Check that a snapshot still shows what was planned on. Where a rewind took events off the log since, those that
    are left would not match the base's digests, and pass for damage (I4, I6).

    Args:
        attempt: that holds the view; None: nobody does, as in a preview.

    Raises:
        LeaseLostError: somebody else took the view over, or moved it.
    """
    refused = _still_mine(tx, job, attempt) if attempt is not None else outdated(tx, job)
    if refused is not None:
        raise LeaseLostError(refused)


def store_failure(
    env: Environment,
    attempt: Attempt,
    failure: FailureClass,
    text: str,
    *,
    drafts: Sequence[Draft] = (),
    verdict: Verdict | None = None,
    ends: CandidateState | None = None,
    ask_about: Question | None = None,
    called: Called | None = None,
) -> str | Refused | None:
    """Settle an attempt that gave no good draft; with `ends` the candidate's attempts are at their end. Return the id
    of the case that was opened: of `ask_about`; or that somebody else took the view over, and nothing is asked.
    """
    secrets = env.references.secrets
    kept = tuple(_kept(draft, secrets) for draft in drafts)
    states = {CandidateState.QUARANTINED: AttemptState.QUARANTINED, CandidateState.REJECTED: AttemptState.REJECTED}
    with env.write() as tx:
        settled = replace(
            attempt,
            state=states.get(ends, AttemptState.FAILED) if ends else AttemptState.FAILED,
            ended_us=env.clock.now_us(),
            failure=failure,
            failure_text=storable(secrets.redact(text), FAILURE_CHARS_MAX),
            drafts=kept,
            draft_digest=draft_digest(env.store.digest_key, kept) if kept else None,
            verdict=_kept_verdict(verdict, secrets),
        )
        mine = tx.jobs.settle_attempt(settled, fence=attempt.fence, expected=AttemptState.RUNNING)
        if mine and ends is not None:
            tx.jobs.set_candidate_state(attempt.candidate_id, ends)
        case_id = ask(env, tx, ask_about).case_id if mine and ask_about is not None else None
        if called is not None:
            record_call(env, tx, called)
        _release(tx, attempt)
    if case_id is not None:
        env.emit("case", CaseTold(case_id=case_id, error=failure.value))
    return case_id if mine else Refused(reason=_FENCED, fenced=True)


def question_of(candidate: Candidate, kind: CaseKind, fact: str | None = None) -> Question:
    """Return the question of a candidate that ended, on the summary that it was built on: a quarantined one, a dead
    letter, which leaves its candidate pending; or, of an unfit summarizer, whatever candidates it fails.

    Args:
        candidate: that ended.
        kind: what is asked.
        fact: that attempt after attempt got wrong.
    """
    plan = candidate.plan
    base = replace(
        UNWRITTEN_MAIN, name=candidate.view, generation=plan.base_generation, summary_no=plan.base_summary_no
    )
    said = _ENDED[kind]
    if kind is CaseKind.UNFIT_SUMMARIZER:
        base = replace(base, generation=0, summary_no=0)  # the same question on every summary
        return Question(kind=kind, view=base, reason=said.format(fact=fact), subject=candidate.recipe.model)
    detail: dict[str, object] = {"fact": fact} if fact else {}
    return Question(kind=kind, view=base, reason=said, subject=candidate.candidate_id, detail=detail)


_ENDED = {
    CaseKind.QUARANTINED: "the draft failed what it must not: see the attempt's verdict",
    CaseKind.DEAD_LETTER: "the summarizer did not answer, however often it was asked",
    CaseKind.UNFIT_SUMMARIZER: "attempt after attempt got the same mandatory fact wrong: {fact}",
}


def _kept(draft: Draft, secrets: Secrets) -> Draft:
    """Return what is kept of a draft that failed: it may hold what can't be stored, and what must not be (C12)."""
    return Draft(
        text=storable(secrets.redact(draft.text), DRAFT_BYTES_MAX),
        finish=storable(secrets.redact(draft.finish), FAILURE_CHARS_MAX),
        model=storable(secrets.redact(draft.model), FAILURE_CHARS_MAX),
    )


def _kept_verdict(verdict: Verdict | None, secrets: Secrets) -> Verdict | None:
    """Return what is kept of what was said of a draft that failed, and quotes it."""
    if verdict is None:
        return None
    return replace(
        verdict,
        violations=tuple(
            replace(
                v,
                detail=storable(secrets.redact(v.detail), FAILURE_CHARS_MAX),
                fact=storable(v.fact, FAILURE_CHARS_MAX),
            )
            for v in verdict.violations
        ),
    )


def release(env: Environment, attempt: Attempt) -> None:
    """Give the lease of an attempt back that was refused."""
    with env.write() as tx:
        _release(tx, attempt)


def _release(tx: Transaction, attempt: Attempt) -> None:
    """Give the lease back, if it is still this attempt's."""
    for view in tx.views.all():
        if view.lease_attempt == attempt.attempt_id and view.fence == attempt.fence:
            tx.views.put(replace(view, lease_attempt=None, lease_until_us=0))


def activate(env: Environment, job: Job, attempt: Attempt) -> LineageEntry | Refused:
    """tx3: move the pointer, if base, fence and validated draft are still what they were (I5, I6).

    Raises:
        UnreconciledSummaryError: a blocking case was opened on the base since the claim (I11).
        OutcomeUnknownError: nobody can tell whether it landed.
    """
    with env.write() as tx:
        refused = _still_mine(tx, job, attempt)
        if refused is not None:
            return refused
        view = find_view(tx, job.view.name, str(env.scope))
        check_unblocked(env, tx, view)
        moved = _moved(tx, job, view)
        if moved is not None:
            return moved
        summary = tx.summaries.get(attempt.summary_no or 0)
        if summary is None or summary.watermark > tx.log.head().revision:
            return Refused(reason="the attempt's summary is not there, or covers more than the log holds")
        moved_view = replace(
            view,
            generation=view.generation + 1,
            summary_no=summary.summary_no,
            watermark=summary.watermark,
            moved_lineage_seq=next_seq(tx),
            lease_attempt=None,
            lease_until_us=0,
        )
        if not tx.views.move_pointer(
            moved_view, base_generation=job.plan.base_generation, fence=attempt.fence, attempt_id=attempt.attempt_id
        ):
            return Refused(reason="the compare-and-swap refused: base, fence or verdict is another", moved=True)
        entry = add_entry(tx, _activation_entry(env, tx, moved_view, attempt))
        activated = replace(attempt, state=AttemptState.ACTIVATED)
        tx.jobs.settle_attempt(activated, fence=attempt.fence, expected=AttemptState.VALIDATED)
        tx.jobs.set_candidate_state(job.candidate_id, CandidateState.ACTIVE)
        if job.base is not None and made_here(job.base.summary_id):
            tx.jobs.set_candidate_state(job.base.summary_id.rpartition(".")[0], CandidateState.SUPERSEDED)
        return entry


def _activation_entry(env: Environment, tx: Transaction, view: ViewHead, attempt: Attempt) -> LineageEntry:
    return LineageEntry(
        lineage_seq=0,
        kind=LineageKind.COMPACTION,
        op_key=f"activate:{attempt.attempt_id}",
        revision=tx.log.head().revision,
        at_us=env.clock.now_us(),
        view=view.name,
        generation=view.generation,
        digest=attempt.draft_digest,
        detail={"summary_id": attempt.attempt_id, "summary_no": view.summary_no, "watermark": view.watermark},
    )
