"""The steps after the crash: recover, be refused, compact over the dead attempt, and prove that nothing was lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import strandline
from demo.choices import choose_lost, choose_need
from demo.evidence import bodies_found_in_file, log_digest, recall_dropped
from demo.facts import LineageRow, Refusal, Step
from demo.run import Run, say_outcome
from demo.visible import counted, one_line

DEFAULT_BUDGET: Final = 32_000
REF_CHARS: Final = 44  # of a reference in a line of the report


def recover(run: Run) -> None:
    """What an agent does when it comes up again; no compaction is between it and its checkpoint."""
    story = run.story
    need = choose_need(story.source, story.generations[0])
    with story.step("Recover with a fresh handle") as step, run.open() as db:
        log = run.log(db)
        moved = _last_move(log)
        recovery = log.recover([need] if need else [], budget=max(DEFAULT_BUDGET, run.whole_tokens))
        ours = f"the checkpoint (lineage {run.checkpoint_seq})"
        step.say(f"{recovery.kind}: {ours} {_order(run.checkpoint_seq, moved)} the summary (lineage {moved})")
        exact = recovery.kind.value == "restore" and recovery.state == run.state
        step.check("the agent's state is restored, exactly as it was checkpointed", exact)
        since = sum(part.since_checkpoint for part in recovery.context.parts)
        step.check(
            f"{counted(since, 'event')} after it are handed over verbatim, and marked",
            since == recovery.revision - story.generations[0].revision and not recovery.context.omitted,
        )
        if need:
            step.check(f"{one_line(need, REF_CHARS)} survived, verbatim", need in recovery.context.text)


def refuse(run: Run) -> None:
    """Recover with a need that no part of the context holds any more."""
    story = run.story
    with story.step("Recover with a need that the summary dropped") as step, run.open() as db:
        log = run.log(db)
        ref = choose_lost(story.source, log)
        if ref is None:
            step.say("every dropped reference still stands in the tail: there is nothing to refuse")
            return
        entries = len(log.lineage())
        try:
            log.recover([ref], budget=max(DEFAULT_BUDGET, run.whole_tokens))
        except strandline.SummaryReconciliationError as error:
            _look_up(run, step, log, ref, error)
            step.check("recovery failed closed: nothing was overwritten", len(log.lineage()) == entries)
            _answer(run, step, log, error)
        else:
            step.check(f"recovery refuses to go on without {one_line(ref, REF_CHARS)}", False)


def _look_up(
    run: Run, step: Step, log: strandline.Workflow, ref: str, error: strandline.SummaryReconciliationError
) -> None:
    known = error.last_known
    step.say(
        f"{type(error).__name__}: generation {error.summary_generation} (turn {error.checkpoint_turn}) does not hold "
        f"{one_line(ref, REF_CHARS)}"
        + (f"; last known at event {known.seq:,}, dropped by generation {known.generation_dropped}" if known else "")
    )
    hit = next(iter(log.recall(ref, 1)), None)
    held = hit is not None and known is not None and hit.seq == known.seq and hit.text == run.texts.get(hit.seq)
    step.check(f"recall finds it in the log, verbatim: event {f'{hit.seq:,}' if hit else 'none'}", held)
    if hit is not None:
        run.story.refusal = Refusal(
            ref=ref, error=error, seq=hit.seq, kind=hit.kind.value, actor=hit.actor, text=hit.text
        )


def _answer(run: Run, step: Step, log: strandline.Workflow, error: strandline.SummaryReconciliationError) -> None:
    """Show that the summary is not compacted while the case is open, then close the case."""
    try:
        log.compact(run.story.budget)
    except strandline.UnreconciledSummaryError as refused:
        step.check("while the case is open, this summary is not compacted", refused.case_id == error.case_id)
    else:
        step.check("while the case is open, this summary is not compacted", False)
    if error.case_id is not None:
        case = log.reconcile(error.case_id, strandline.Abandon(), by="demo", why="the demo goes on without it")
        step.say(f"the case is answered by {case.by!r} with {case.answer}, as lineage {case.answered_seq} says")


def compact_again(run: Run) -> None:
    """The same compaction once more, in this process."""
    story = run.story
    with story.step("Compact again, over the dead attempt") as step, run.open() as db:
        log = run.log(db)
        outcome = log.compact(story.budget)
        if outcome.outcome.value != "activated":
            step.check(f"the compaction is activated ({outcome.outcome}: {outcome.reason})", False)
            return
        story.generations.append(outcome)
        say_outcome(step, outcome, log.context(story.budget).tokens, story.budget)
        number = outcome.attempts[-1].number
        step.check(
            f"attempt {number} of the same job, {outcome.duration_ms:,.0f} ms: no wait for the dead one's lease",
            number == 2,
        )


def recover_again(run: Run) -> None:
    """Now the checkpoint {_order(run.checkpoint_seq, moved)} the summary, and must not be restored."""
    story = run.story
    need = choose_need(story.source, story.generations[-1])
    with story.step("Recover once more") as step, run.open() as db:
        log = run.log(db)
        moved = _last_move(log)
        recovery = log.recover([need] if need else [], budget=max(DEFAULT_BUDGET, story.budget))
        ours = f"the checkpoint (lineage {run.checkpoint_seq})"
        step.say(f"{recovery.kind}: {ours} {_order(run.checkpoint_seq, moved)} the summary (lineage {moved})")
        step.check(
            f"the old state is not restored; generation {recovery.generation} and its tail are handed over",
            recovery.kind.value == "replay"
            and recovery.state is None
            and recovery.generation == story.generations[-1].generation,
        )
        if need:
            step.check(f"{one_line(need, REF_CHARS)} stands in it, verbatim", need in recovery.context.text)


def prove(run: Run) -> None:
    """Compare the log with the control store and with the file, recall what was dropped, and verify all of it."""
    story = run.story
    with story.step("Prove that nothing committed was lost") as step, run.open() as db:
        log = run.log(db)
        if story.events:
            _prove_log(run, step, db)
        if story.generations and story.generations[-1].refs_dropped:
            _prove_dropped(run, step, log)
        again = log.import_transcript(story.source.path)
        step.check(
            f"importing the file once more adds {counted(again.events_imported, 'event')}", again.events_imported == 0
        )
        report = db.verify()
        step.check(f"verify: {counted(report.events, 'event')}, {counted(len(report.problems), 'problem')}", report.ok)
        story.lineage = [
            LineageRow(
                seq=entry.lineage_seq,
                kind=entry.kind.value,
                generation=entry.generation,
                revision=entry.revision,
                detail=_in_words(entry.detail, entry.restored_seq),
            )
            for entry in log.lineage()
        ]


def _prove_log(run: Run, step: Step, db: strandline.Strandline) -> None:
    story = run.story
    count, digest = log_digest(db, run.workflow)
    step.check(
        f"{count:,} of {story.events:,} events stand in the log, byte for byte (SHA-256 {digest[:8]}…)",
        (count, digest) == (story.events, story.log_digest),
    )
    found, of = bodies_found_in_file(db, run.workflow, story.source.path, story.format)
    step.check(f"{found:,} of {of:,} say what the file says, read without Strandline", found == of)


def _prove_dropped(run: Run, step: Step, log: strandline.Workflow) -> None:
    run.story.dropped = recall_dropped(log, run.texts)
    asked = [row.recalled for row in run.story.dropped if row.recalled is not None]
    of_all = "" if len(asked) == len(run.story.dropped) else f" (of {len(run.story.dropped):,})"
    step.check(
        f"{sum(asked):,} of {len(asked):,} dropped references{of_all} recalled where the manifest says", all(asked)
    )


def _last_move(log: strandline.Workflow) -> int:
    """Return the place in the lineage where the pointer to the active summary last moved."""
    return max(entry.lineage_seq for entry in log.lineage() if entry.kind.value == "compaction")


def _order(checkpoint_seq: int, moved: int) -> str:
    return "is newer than" if checkpoint_seq > moved else "is older than"


def _in_words(detail: Mapping[str, object], restored_seq: int | None) -> str:
    words = [f"{name} {detail[name]}" for name in ("turn", "watermark") if detail.get(name) is not None]
    if detail.get("fenced"):
        words.append("what was in flight was fenced first")
    return "; ".join(words if restored_seq is None else [f"of the checkpoint at {restored_seq}", *words])
