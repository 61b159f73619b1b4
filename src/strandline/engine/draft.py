"""Let the summarizer draft every segment of a job, and judge each draft; no transaction is open while it works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace

from strandline.engine.claim import LeaseLostError, check_held, renew
from strandline.engine.compaction_run import Run
from strandline.engine.consult import consult
from strandline.engine.flow import Summarize, Verb
from strandline.engine.material import Material, Shown, judge, read_material, read_part
from strandline.engine.plan_job import Job
from strandline.errors import TransientSummarizerError
from strandline.limits import LEASE_RENEWED_S, PART_TOKENS_MIN
from strandline.model.candidate import Draft, Violation
from strandline.model.event import SourceEvent
from strandline.model.judgement import JudgedClaim
from strandline.ports import SummaryRequest, Transaction
from strandline.rules.ledger import Tally
from strandline.rules.partition import Part, part_budget
from strandline.rules.validation import malformed

JOINT = "\n"  # between the drafts of the parts of one segment


@dataclass(slots=True)
class Drafting:
    """What one attempt has read and been told, without the events."""

    shown: Shown
    materials: list[Material] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    claims: list[JudgedClaim] = field(default_factory=list)


@contextmanager
def reading(run: Run, job: Job, phase: str) -> Iterator[Transaction]:
    """Take a snapshot for a phase of an attempt, or of a preview, which holds nothing.

    Raises:
        LeaseLostError: somebody else took the view over.
    """
    with run.phase(phase), run.env.read() as tx:
        check_held(tx, job, run.held)
        yield tx


def draft_segments(
    run: Run, job: Job, drafts: list[Draft], windows: Sequence[int | None] | None = None
) -> Verb[Drafting]:
    """Let the summarizer draft every segment, and judge each draft.

    Args:
        run: of the call.
        job: that is done.
        drafts: gets each draft.
        windows: how much of each segment's source is shown at once; None: as much as the summarizer takes.
    """
    windows = windows or [run.order.summarizer.window_tokens] * len(job.plan.jobs)
    drafting = Drafting(Shown(new=Tally(job.base.ledger if job.base else ()), again=Tally()))
    for part, window in zip(job.plan.jobs, windows, strict=True):
        with reading(run, job, "read") as tx:
            material = read_material(run.env, tx, job, part, window, drafting.shown)
        drafts.append((yield from _draft_segment(run, job, material, drafting)))
        if drafting.violations:
            break  # it is of no use any more, and the next draft would cost
        drafting.materials.append(replace(material, events=()))
    return drafting


def _draft_segment(run: Run, job: Job, material: Material, drafting: Drafting) -> Verb[Draft]:
    """Let one segment be drafted: at once, or in parts that fit the summarizer's window (C10), one held at a time."""
    env, parts = run.env, material.parts
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
            violations=run.violations,
            attempt=run.tries,
            counter=env.counter,
        )
        _hold(run, job)
        draft = yield from _ask(run, request)
        drafts.append(draft)
        spent += env.counter.count(draft.text)
        if draft.text or budget or len(parts) == 1:
            judged = _judge(run, job, material, events, draft, drafting)
            if not drafting.violations:
                drafting.violations += yield from consult(run, job.facts.anchors, material, events, draft, judged)
        if drafting.violations:
            return draft
    if len(drafts) == 1:
        return drafts[0]
    unfinished = next((draft.finish for draft in drafts if draft.finish != "stop"), "stop")
    text = JOINT.join(draft.text for draft in drafts if draft.text)
    claims = tuple(claim for draft in drafts for claim in draft.claims)
    whole = Draft(text=text, finish=unfinished, model=drafts[0].model, claims=claims)
    if not drafting.violations:  # of the parts; together they may still be too much, or nothing
        drafting.violations += malformed(whole, material.draft_tokens, env.counter.count(text))
    return whole


def _ask(run: Run, request: SummaryRequest) -> Verb[Draft]:
    """Let the summarizer draft. What says that nobody answered is worth another try, whoever raises it (C14).

    Raises:
        SummarizerError: it gave no draft.
    """
    summarizer = run.order.summarizer
    with run.phase("draft"):
        try:
            draft: Draft = yield Summarize(summarizer=summarizer, request=request, deadline_s=run.order.deadline_s)
        except (TimeoutError, ConnectionError) as error:
            raise TransientSummarizerError(f"{summarizer.name}: {type(error).__name__}: {error}") from error
    return draft


def _hold(run: Run, job: Job) -> None:
    """Renew the lease before the next draft, where it was taken a while ago: who is at work is not taken for dead."""
    now_s = run.env.clock.monotonic_s()
    if run.held is None or now_s - run.held_s < LEASE_RENEWED_S:
        return
    refused = renew(run.env, job, run.held, run.order.background)
    if refused is not None:
        raise LeaseLostError(refused)
    run.held_s = now_s


def _read_part(run: Run, job: Job, part: Part) -> tuple[SourceEvent, ...]:
    with reading(run, job, "read") as tx:
        return read_part(run.env, tx, job, part)


def _judge(
    run: Run, job: Job, material: Material, events: Sequence[SourceEvent], draft: Draft, drafting: Drafting
) -> tuple[JudgedClaim, ...]:
    """Judge by the rules: add what is wrong to `drafting`, and return what became of the claims."""
    with reading(run, job, "validate") as tx:
        verdict = judge(run.env, tx, job, material, drafting.shown, events, draft)
    drafting.violations += verdict.violations
    drafting.claims += verdict.claims
    return verdict.claims
