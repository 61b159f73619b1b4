"""The summary that takes the place of one that was made from erased events: the same range, from what remains (C31)."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Final

from strandline.codec import record_digest
from strandline.engine.assemble import assemble
from strandline.engine.environment import PART_JOINT, Environment
from strandline.engine.fork import made_by_erasure
from strandline.engine.material import Material, Shown, judge, read_material, read_part
from strandline.engine.plan_job import ALGORITHM, PROMPT, SCHEMA, Job, anchors_at
from strandline.engine.reading import abandoned_of, newest_seen
from strandline.limits import LEDGER_SHARE, SEGMENTS_SHARE
from strandline.model.candidate import CompactionPlan, CompactionRecipe, Draft, SegmentJob
from strandline.model.segment import Segment
from strandline.model.summary import DroppedRef, DropReason, Summary
from strandline.model.view import ViewHead
from strandline.ports import Summarizer, SummaryRequest, Transaction
from strandline.rules.erasure import Reach, Traces
from strandline.rules.ledger import Tally
from strandline.rules.partition import part_budget

_RAW_DEPTH: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A summary that is ready to be stored, without its number, and its changes of the manifest."""

    summary: Summary
    changes: tuple[DroppedRef, ...]
    kept: frozenset[str]  # segments of the one before that stay as they are


def replace_summary(
    env: Environment,
    tx: Transaction,
    view: ViewHead,
    base: Summary,
    reach: Reach,
    gone: Set[int],
    traces: Traces,
    summarizer: Summarizer,
) -> Replacement:
    """Re-derive what of the active summary of a view was made from erased events, within the tokens that it had.

    Args:
        env: ports and workflow.
        tx: the workflow as it will be: `ErasedTransaction`.
        view, base: the view, and its summary.
        reach: the erased events that the view reads.
        gone: references whose texts go.
        traces: by which a text that repeats what is erased is known.
        summarizer: drafts the segments; what validation refuses is left out, since this can't wait for another try.
    """
    doubted = bool(tx.log.head().cases) and tx.cases.blocking(view.name, base.summary_no) is not None
    kept = [segment for segment in base.segments if not doubted and not is_affected(segment, reach, gone, traces)]
    job = _job(env, tx, view, base, {segment.head.segment_id for segment in kept}, gone)
    shown = Shown(new=Tally(job.base.ledger if job.base else ()), again=Tally())
    materials, drafts = [], []
    for part in job.plan.jobs:
        material = read_material(env, tx, job, part, summarizer.window_tokens, shown)
        drafts.append(_draft(env, tx, job, material, shown, summarizer))
        materials.append(replace(material, events=()))
    name = made_by_erasure(env.scope, view.name, view.generation + 1)
    assembled = assemble(env, tx, job, name, materials, shown, drafts)
    changes = _accounted(env, tx, view, base, assembled.changes, gone)
    summary = replace(assembled.summary, manifest_digest=record_digest(changes))
    return Replacement(summary=summary, changes=changes, kept=frozenset(segment.head.segment_id for segment in kept))


def is_affected(segment: Segment, reach: Reach, gone: Set[int], traces: Traces) -> bool:
    """Tell whether a segment was made from an erased event, or repeats what it said."""
    if reach.touches(segment.head.from_seq, segment.head.through_seq):
        return True
    return not gone.isdisjoint(segment.ref_ids) or traces.stand_in(segment.text)


def _job(env: Environment, tx: Transaction, view: ViewHead, base: Summary, kept: Set[str], gone: Set[int]) -> Job:
    """Plan to make the other segments anew, each within its own bound, from raw events."""
    plan = CompactionPlan(
        base_generation=view.generation,
        base_summary_no=base.summary_no,
        revision=tx.log.head().revision,
        watermark=base.watermark,
        budget=int(base.tokens / (SEGMENTS_SHARE + LEDGER_SHARE)),  # so that the whole takes no more than it did
        compactions=base.compactions,
        kept=tuple(segment.head for segment in base.segments if segment.head.segment_id in kept),
        jobs=tuple(
            SegmentJob(
                from_seq=segment.head.from_seq,
                through_seq=segment.head.through_seq,
                level=segment.head.level,
                depth=_RAW_DEPTH,
                budget_tokens=segment.head.tokens,
            )
            for segment in base.segments
            if segment.head.segment_id not in kept
        ),
    )
    recipe = CompactionRecipe(
        algorithm=ALGORITHM,
        model="",
        prompt=PROMPT,
        schema=SCHEMA,
        token_counter=env.counter.name,
        strict=False,
        extractor=env.references.name,
    )
    return Job(
        candidate_id="",
        plan=plan,
        recipe=recipe,
        view=view,
        base=replace(base, ledger=tuple(entry for entry in base.ledger if entry.ref_id not in gone)),
        facts=anchors_at(env, tx, view, base.watermark, plan.budget),
        tail=(),
        sources=(),
        tail_tokens=0,
        tokens_before=base.tokens,
    )


def _draft(
    env: Environment, tx: Transaction, job: Job, material: Material, shown: Shown, summarizer: Summarizer
) -> Draft:
    """Draft a segment, in parts that fit the summarizer's window."""
    parts, spent, texts = material.parts, 0, []
    for number, part in enumerate(parts):
        events = material.events if len(parts) == 1 else read_part(env, tx, job, part)
        joint = env.counter.count(PART_JOINT)
        request = SummaryRequest(
            from_seq=part.from_seq if number else material.job.from_seq,
            through_seq=part.through_seq if number < len(parts) - 1 else material.job.through_seq,
            budget_tokens=part_budget(parts, number, material.draft_tokens, spent_tokens=spent, joint_tokens=joint),
            events=events,
            anchors=job.facts.anchors,
            counter=env.counter,
        )
        draft = summarizer.summarize(request)
        if judge(env, tx, job, material, shown, events, draft).ok:
            texts.append(draft.text)
            spent += env.counter.count(draft.text)
    return Draft(text="\n".join(filter(None, texts)), model=f"{summarizer.name}/{summarizer.version}")


def _accounted(
    env: Environment, tx: Transaction, view: ViewHead, base: Summary, changes: tuple[DroppedRef, ...], gone: Set[int]
) -> tuple[DroppedRef, ...]:
    """Account by its reason for each reference that is gone, and stood in the manifest before (I9)."""
    left = abandoned_of(tx)
    changed = {change.ref_id for change in changes}
    erased = [
        DroppedRef(
            ref_id=ref_id,
            dropped=True,
            last_seq=newest_seen(tx, view, ref_id, base.watermark, left, env.scope.workflow),
            reason=DropReason.ERASED,
        )
        for ref_id in tx.summaries.dropped_by(base.summary_no, gone)
        if ref_id not in changed
    ]
    return tuple(sorted((*changes, *erased), key=lambda change: change.ref_id))
