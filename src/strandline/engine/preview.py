"""Preview a compaction: everything but what is written (C16)."""

from __future__ import annotations

from strandline.engine.assemble import Assembled, assemble
from strandline.engine.claim import LeaseLostError
from strandline.engine.compaction_run import Run
from strandline.engine.draft import Drafting, draft_segments, reading
from strandline.engine.environment import Environment, check_whole
from strandline.engine.flow import Verb
from strandline.engine.plan_job import Job, NoJob, Order, plan_job
from strandline.engine.reading import abandoned_of, find_view, newest_seen
from strandline.engine.watching import watched_flow
from strandline.limits import REPLANS_MAX
from strandline.model.candidate import Draft
from strandline.model.preview import Preview, PreviewedDrop
from strandline.model.view import ViewHead
from strandline.ports import Transaction

_NO_ATTEMPT = "preview"  # stands where the attempt's id would


@watched_flow("preview")
def preview(env: Environment, order: Order) -> Verb[Preview]:
    """Plan, draft, judge and assemble as `compact` would now, and throw it away. The summarizer is really asked.

    A call that is open for too long is not closed, as a compaction would do first. Where the view was moved meanwhile,
    it begins anew, at most REPLANS_MAX times.

    Raises:
        SummarizerError: the summarizer gave no draft.
        ContextOverflowError, InvalidInputError, CorruptRecordError, StoreUnavailableError, UnreconciledSummaryError: as
            `compact`.
    """
    check_whole("through", order.through)
    check_whole("when_tokens", order.when_tokens)
    for _ in range(REPLANS_MAX):
        try:
            return (yield from _preview(env, order))
        except LeaseLostError:
            continue
    return _nothing(env, order, f"the view moved {REPLANS_MAX} times while it was previewed")


def _preview(env: Environment, order: Order) -> Verb[Preview]:
    run = Run(env, order, env.clock.monotonic_s(), tries=1)
    job = plan_job(env, order)
    if isinstance(job, NoJob):
        return _nothing(env, order, job.reason)
    drafts: list[Draft] = []
    drafting = yield from draft_segments(run, job, drafts)
    if drafting.violations:
        return _told(env, job, drafting, None, ())
    with reading(run, job, "assemble") as tx:
        assembled = assemble(env, tx, job, _NO_ATTEMPT, drafting.materials, drafting.shown, drafts)
        return _told(env, job, drafting, assembled, _drops(env, tx, job, assembled))


def _nothing(env: Environment, order: Order, reason: str) -> Preview:
    with env.read() as tx:
        view, revision = find_view(tx, order.view, str(env.scope)), tx.log.head().revision
    return Preview(
        view=view.name,
        revision=revision,
        reason=reason,
        from_watermark=view.watermark,
        watermark=view.watermark,
        events_covered=0,
        tokens_before=0,
        summary_tokens=0,
        tail_tokens=0,
        token_counter=env.counter.name,
        budget=order.budget or 0,
        summary=None,
        violations=(),
        dropped=(),
    )


def _told(
    env: Environment, job: Job, drafting: Drafting, assembled: Assembled | None, dropped: tuple[PreviewedDrop, ...]
) -> Preview:
    summary = assembled.summary if assembled else None
    covered_before = job.base.event_count if job.base else 0
    return Preview(
        view=job.view.name,
        revision=job.plan.revision,
        reason="",
        from_watermark=job.view.watermark,
        watermark=job.plan.watermark,
        events_covered=summary.event_count - covered_before if summary else 0,
        tokens_before=job.tokens_before,
        summary_tokens=summary.tokens if summary else 0,
        tail_tokens=job.tail_tokens,
        token_counter=env.counter.name,
        budget=job.plan.budget,
        summary=summary,
        violations=tuple(drafting.violations),
        dropped=dropped,
    )


def _drops(env: Environment, tx: Transaction, job: Job, assembled: Assembled) -> tuple[PreviewedDrop, ...]:
    """Return what the manifest would name anew, and whether the tail holds it."""
    changes = [change for change in assembled.changes if change.dropped]
    texts = tx.refs.texts([change.ref_id for change in changes])
    return tuple(
        PreviewedDrop(
            ref=texts.get(change.ref_id),
            ref_id=change.ref_id,
            last_seq=change.last_seq,
            in_tail=_newest(env, tx, job.view, change.ref_id, job.plan.revision) > job.plan.watermark,
        )
        for change in sorted(changes, key=lambda change: (-change.last_seq, change.ref_id))
    )


def _newest(env: Environment, tx: Transaction, view: ViewHead, ref_id: int, through: int) -> int:
    return newest_seen(tx, view, ref_id, through, abandoned_of(tx), env.scope.workflow)
