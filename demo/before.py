"""The steps up to the crash: import, compact, checkpoint, grow, and be killed while compacting again."""

from __future__ import annotations

import signal
from typing import Final

import strandline
from demo.choices import EVERYTHING, copy_first_lines, first_budget
from demo.crash import kill_while_drafting
from demo.evidence import log_digest
from demo.facts import Bar, LogEvent, Step
from demo.run import CONTROL, FIRST_PART, HALF_DRAFT, Run, say_outcome

PAGE_TEXT_CHARS_MAX: Final = 6_000


def read_control(run: Run) -> None:
    """The whole file into a second store: what the log must hold in the end, and a check that the file is sound."""
    story = run.story
    with story.step("Read the whole file into a control store") as step, strandline.open(run.out / CONTROL) as db:
        log = run.log(db)
        report = log.import_transcript(story.source.path)
        story.format, story.events = report.format, report.revision
        if report.revision:
            context = log.context(EVERYTHING)
            story.tokens, story.counter = context.tokens, context.token_counter
            for part in context.parts:
                if part.event is not None:
                    run.texts[part.event.seq] = part.event.text
                    story.log.append(_page_event(part.event))
            _, story.log_digest = log_digest(db, run.workflow)
        skipped = sum(report.lines_skipped.values())
        step.say(
            f"{report.events_imported:,} events, {story.tokens:,} tokens, from {report.lines:,} lines"
            + (f" ({skipped:,} records that are no events were counted and skipped)" if skipped else "")
            + "; never compacted, for comparison at the end"
        )


def _page_event(event: strandline.SourceEvent) -> LogEvent:
    text = event.text
    return LogEvent(
        seq=event.seq,
        kind=event.kind.value,
        actor=event.actor,
        tool=event.tool,
        text=text[:PAGE_TEXT_CHARS_MAX],
        chars=len(text),
    )


def import_first(run: Run) -> None:
    source, story = run.story.source, run.story
    first = run.out / FIRST_PART
    copy_first_lines(source, first)
    with story.step(f"Import the first {source.first_lines:,} of {source.lines:,} lines") as step, run.open() as db:
        try:
            report = run.log(db).import_transcript(first)
        except strandline.ImportFormatError:  # too short to tell its format, though the whole file is sound
            report = run.log(db).import_transcript(source.path)
            step.say("so few lines do not show their format: all of them were imported at once")
        step.say(f"{report.events_imported:,} events, one log in one embedded file")


def compact_first(run: Run) -> bool:
    """Compact to the budget and checkpoint; tell whether anything was compacted."""
    story = run.story
    budget = first_budget(story.source, story.tokens)
    with story.step("Compact, then checkpoint the agent's state") as step, run.open() as db:
        log = run.log(db)
        outcome = None
        while story.events and outcome is None and budget < story.tokens:
            try:
                outcome = log.compact(budget)
            except strandline.ContextOverflowError as error:
                step.say(f"{budget:,} tokens can't hold what must stay verbatim ({error.needed:,} or more): doubled")
                budget *= 2
        story.budget = budget
        if outcome is None or outcome.summary is None:
            step.say(
                f"nothing to compact: {outcome.reason if outcome else 'what there is fits any budget worth a summary'}"
            )
            return False
        story.generations.append(outcome)
        step.bars = [Bar("before", outcome.tokens_before), Bar("after", outcome.tokens_after)]
        say_outcome(step, outcome, budget)
        context = log.context(budget)
        step.check("the context as it is read has exactly that size", context.tokens == outcome.tokens_after)
        state = {"agent": story.log[context.revision - 1].actor, "turn": _turns(run, context.revision)}
        made = log.checkpoint(state, state["turn"], basis=context)
        run.checkpoint_seq = made.lineage_seq
        step.say(
            f"checkpoint of turn {made.turn} at lineage {made.lineage_seq}, made from generation "
            f"{outcome.generation} at event {made.revision}"
        )
        return True


def _turns(run: Run, revision: int) -> int:
    """Count the changes of actor: a stand-in for the agents' own count of turns."""
    actors = [event.actor for event in run.story.log[:revision]]
    return sum(1 for before, now in zip(["", *actors], actors, strict=False) if before != now)


def import_rest(run: Run) -> None:
    story = run.story
    with story.step("The agents go on: import the grown file") as step, run.open() as db:
        before = story.log[-1].seq if story.log else 0
        report = run.log(db).import_transcript(story.source.path)
        step.check(
            f"{report.events_imported:,} events are new, {report.events_known:,} were known and are not added twice",
            report.revision == before,
        )
        if report.revision:
            run.whole_tokens = run.log(db).context(EVERYTHING).tokens
            step.say(f"the context is {run.whole_tokens:,} tokens now")


def kill(run: Run) -> bool:
    """Kill a compaction in its middle; tell whether there was one to kill."""
    story = run.story
    first = story.generations[0].summary
    control = next((s.text[:60] for s in first.segments if s.text), "") if first else ""
    with run.open() as db:
        before = run.log(db).context(EVERYTHING)
    with story.step("Compact again, in a process that is killed in the middle") as step:
        killed = kill_while_drafting(run.store, run.workflow, story.budget, run.out / HALF_DRAFT, control)
        if killed is None:
            step.say("there was nothing more to compact, so nothing to kill")
            return False
        story.killed = killed
        step.say(
            f"process {killed.pid} had written {killed.written_bytes:,} bytes of a draft for events "
            f"{killed.from_seq}–{killed.through_seq} (of {killed.draft_bytes:,}) when signal {killed.signal} ended it"
        )
        step.check("it died by SIGKILL, with no chance to tidy up", killed.signal == signal.SIGKILL)
        step.check(
            f"the half draft is nowhere in the store: {killed.hits} hits in its files and values "
            f"(the active summary: {killed.control_hits})",
            killed.hits == 0 < killed.control_hits,
        )
        with run.open() as db:
            _check_context(run, step, before, run.log(db).context(EVERYTHING))
    return True


def _check_context(run: Run, step: Step, before: strandline.Context, after: strandline.Context) -> None:
    generation, watermark = run.story.generations[0].generation, run.story.generations[0].watermark
    step.check(
        f"generation {generation} is still the active summary, to the byte",
        after.generation == generation and after.parts == before.parts,
    )
    covered = [(p.from_seq, p.through_seq) for p in after.parts if p.kind.value == "segment"]
    covered += [(p.from_seq, p.through_seq) for p in after.parts if p.event is not None]
    ends = [0, *(through for _, through in covered)]
    seamless = all(start == end + 1 for (start, _), end in zip(covered, ends, strict=False))
    step.check(
        f"context = generation {generation} through {watermark} + events {watermark + 1}–{after.revision}: "
        "no gap, no overlap",
        seamless and ends[-1] == after.revision and after.watermark == watermark,
    )
