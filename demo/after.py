"""The steps after the crash: recover, be refused, compact over the dead attempt, and prove that nothing was lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import strandline
from demo.choices import choose_lost, choose_need
from demo.evidence import bodies_found_in_file, log_digest, recall_dropped
from demo.facts import Bar, LineageRow, Refusal, Step
from demo.run import Run, say_outcome
from demo.visible import one_line

DEFAULT_BUDGET: Final = 32_000


def recover(run: Run) -> None:
    story = run.story
    story.need = choose_need(story.source, story.generations[0])
    needs = [story.need] if story.need else []
    with story.step("Recover with a fresh handle") as step, run.open() as db:
        log = run.log(db)
        moved = max(e.lineage_seq for e in log.lineage() if e.kind.value == "compaction")
        recovery = log.recover(needs, budget=max(DEFAULT_BUDGET, run.whole_tokens))
        step.say(
            f"{recovery.kind}: the checkpoint's place in the lineage is {recovery.checkpoint_seq}, the summary last "
            f"moved at {moved}; {run.checkpoint_seq} > {moved}, so its state belongs to what is active now"
        )
        step.check(
            "it restores the exact state of the checkpoint", recovery.kind.value == "restore" and bool(recovery.state)
        )
        since = sum(part.since_checkpoint for part in recovery.context.parts)
        expected = recovery.revision - story.generations[0].revision
        step.check(
            f"the {since:,} events that came after it are handed over verbatim, and marked",
            since == expected and not recovery.context.omitted,
        )
        if story.need:
            step.check(f"{one_line(story.need, 44)} survived, verbatim", True)


def refuse(run: Run) -> None:
    story = run.story
    with story.step("Ask for something that the summary dropped") as step, run.open() as db:
        log = run.log(db)
        ref = choose_lost(story.source, log)
        if ref is None:
            step.say("every dropped reference still stands in the tail: there is nothing to refuse")
            return
        entries = len(log.lineage())
        try:
            log.recover([ref], budget=max(DEFAULT_BUDGET, run.whole_tokens))
        except strandline.SummaryReconciliationError as error:
            step.check("recovery fails closed, and writes nothing", len(log.lineage()) == entries)
            _look_up(run, step, log, ref, error)
        else:
            step.check(f"recovery refuses to go on without {one_line(ref, 40)}", False)


def _look_up(
    run: Run, step: Step, log: strandline.Workflow, ref: str, error: strandline.SummaryReconciliationError
) -> None:
    known = error.last_known
    step.say(
        f"SummaryReconciliationError: {one_line(ref, 50)} is not in generation {error.summary_generation} (turn "
        f"{error.checkpoint_turn}); last known at event {known.seq if known else '?'}"
        + (f" ({known.event_kind}), dropped by generation {known.generation_dropped}" if known else "")
    )
    hits = log.recall(ref)
    hit = hits[0] if hits else None
    held = hit is not None and known is not None and hit.seq == known.seq and hit.text == run.texts.get(hit.seq)
    step.check(f"recall finds it in the log: event {hit.seq if hit else '?'}, verbatim", held)
    if hit is not None:
        run.story.refusal = Refusal(
            ref=ref, error=error, seq=hit.seq, kind=hit.kind.value, actor=hit.actor, text=hit.text
        )


def compact_again(run: Run) -> None:
    """The same compaction once more, in this process."""
    story = run.story
    with story.step("Compact again, over the dead attempt") as step, run.open() as db:
        outcome = run.log(db).compact(story.budget)
        if outcome.outcome.value != "activated":
            step.check(f"the compaction is activated ({outcome.outcome}: {outcome.reason})", False)
            return
        story.generations.append(outcome)
        step.bars = [Bar("before", outcome.tokens_before), Bar("after", outcome.tokens_after)]
        say_outcome(step, outcome, story.budget)
        number = outcome.attempts[-1].number
        step.check(
            f"attempt {number} of the same job took over after {outcome.duration_ms:,.0f} ms; "
            "nobody waited for the dead one's lease",
            number == 2,
        )


def recover_again(run: Run) -> None:
    """Now the checkpoint is older than the summary, and must not be restored."""
    story = run.story
    need = choose_need(story.source, story.generations[-1])
    with story.step("Recover once more") as step, run.open() as db:
        log = run.log(db)
        moved = max(e.lineage_seq for e in log.lineage() if e.kind.value == "compaction")
        recovery = log.recover([need] if need else [], budget=max(DEFAULT_BUDGET, story.budget))
        step.say(
            f"{recovery.kind}: the checkpoint stands at lineage {run.checkpoint_seq}, and the summary moved at {moved} since; "
            "to restore it would bring back a past that the summary has left"
        )
        step.check(
            f"the old state is not restored; generation {recovery.generation} and its tail are handed over",
            recovery.kind.value == "replay"
            and recovery.state is None
            and recovery.generation == story.generations[-1].generation,
        )
        if need:
            step.check(f"{one_line(need, 44)} stands in it, verbatim", True)


def prove(run: Run) -> None:
    """Compare the log with the control store and with the file, recall what was dropped, and verify all of it."""
    story = run.story
    with story.step("Prove that nothing committed was lost") as step, run.open() as db:
        log = run.log(db)
        if story.events:
            _prove_log(run, step, db)
            story.dropped = recall_dropped(log, run.texts)
            asked = [row for row in story.dropped if row.recalled is not None]
            if asked:
                found = sum(1 for row in asked if row.recalled)
                of_all = "" if len(asked) == len(story.dropped) else f" (the newest of {len(story.dropped):,})"
                step.check(
                    f"{found:,} of {len(asked):,} dropped references{of_all} recalled from the event that the manifest names",
                    found == len(asked),
                )
        again = log.import_transcript(story.source.path)
        step.check(f"importing the file once more adds {again.events_imported:,} events", again.events_imported == 0)
        report = db.verify()
        step.check(f"verify: {report.events:,} events, {len(report.problems):,} problems", report.ok)
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
        f"{count:,} of {story.events:,} events are in the log, byte for byte as in the control store "
        f"(SHA-256 {digest[:12]}…)",
        (count, digest) == (story.events, story.log_digest),
    )
    found, of = bodies_found_in_file(db, run.workflow, story.source.path, story.format)
    step.check(f"{found:,} of {of:,} say what the file says, read without Strandline", found == of)


def _in_words(detail: Mapping[str, object], restored_seq: int | None) -> str:
    words = [
        f"{name.replace('_', ' ')} {detail[name]}" for name in ("turn", "watermark") if detail.get(name) is not None
    ]
    if detail.get("fenced"):
        words.append("attempts in flight were fenced first")
    return "; ".join(words if restored_seq is None else [f"of the checkpoint at {restored_seq}", *words])
