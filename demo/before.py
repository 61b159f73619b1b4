"""The steps up to the crash: import, compact, checkpoint, grow, and be killed while compacting again."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Final, TypeVar

import strandline
from demo.choices import EVERYTHING, copy_first_parts, first_budget
from demo.crash import kill_while_drafting
from demo.evidence import log_digest
from demo.facts import LogEvent, Step
from demo.run import CONTROL, FIRST_PART, HALF_DRAFT, Run, say_outcome
from demo.visible import counted, span

PAGE_TEXT_CHARS_MAX: Final = 6_000

T = TypeVar("T")


def read_control(run: Run) -> None:
    """The whole file into a second store: what the log must hold in the end, and a check that the file is sound."""
    story = run.story
    title = "Read the whole file into a control store, to compare with in the end"
    with story.step(title) as step, strandline.open(run.out / CONTROL) as db:
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
            f"{counted(report.revision, 'event')}, {story.tokens:,} tokens, from {counted(report.lines, 'line')}"
            + (f"; {skipped:,} records that are no events were counted and skipped" if skipped else "")
        )


def _page_event(event: strandline.SourceEvent) -> LogEvent:
    return LogEvent(
        seq=event.seq,
        kind=event.kind.value,
        actor=event.actor,
        tool=event.tool,
        text=event.text[:PAGE_TEXT_CHARS_MAX],
        chars=len(event.text),
    )


def import_first(run: Run) -> None:
    """The beginning of the file, as if the agents were still at work."""
    source, story = run.story.source, run.story
    first = run.out / FIRST_PART
    copy_first_parts(source, first)
    with (
        story.step(f"Import the first {source.first_parts:,} of {counted(source.parts, source.part)}") as step,
        run.open() as db,
    ):
        try:
            report = run.log(db).import_transcript(first)
        except strandline.ImportFormatError:  # too short to tell its format, though the whole file is sound
            report = run.log(db).import_transcript(source.path)
            step.say(f"so few {source.part}s do not show their format: all of them were imported at once")
        step.say(f"{counted(report.revision, 'event')}, in one log in one embedded file")
    first.unlink()


def compact_first(run: Run) -> bool:
    """Compact to the budget and checkpoint; tell whether anything was compacted."""
    story = run.story
    with story.step("Compact") as step, run.open() as db:
        log = run.log(db)
        story.budget = first_budget(story.source, story.tokens)
        outcome = _within_budget(run, step, log.compact)
        if outcome is None or outcome.summary is None:
            step.say("nothing to compact: " + (outcome.reason if outcome else "it is too small to be worth a summary"))
            return False
        step.title = f"Compact to {story.budget:,} tokens, and checkpoint the agent's state"
        story.generations.append(outcome)
        context = log.context(story.budget)
        say_outcome(step, outcome, context.tokens, story.budget)
        turn = _turns(run, context.revision)
        run.state = {"agent": story.log[context.revision - 1].actor, "turn": turn}
        made = log.checkpoint(run.state, turn, basis=context)
        run.checkpoint_seq = made.lineage_seq
        step.say(
            f"checkpoint of turn {made.turn} at lineage {made.lineage_seq}, made from generation "
            f"{outcome.generation} at event {made.revision:,}"
        )
        return True


def _within_budget(run: Run, step: Step, compact: Callable[[int], T]) -> T | None:
    """Compact to the first budget that holds what must stay verbatim; None: that is as good as everything."""
    story = run.story
    while story.budget < story.tokens:
        try:
            return compact(story.budget)
        except strandline.ContextOverflowError as error:
            step.say(f"{story.budget:,} tokens can't hold what must stay verbatim ({error.needed:,} at least): doubled")
            story.budget *= 2
    return None


def _turns(run: Run, revision: int) -> int:
    """Count the changes of actor: a stand-in for the agents' own count of turns."""
    actors = [event.actor for event in run.story.log[:revision]]
    return sum(1 for before, now in zip(["", *actors], actors, strict=False) if before != now)


def import_rest(run: Run) -> None:
    """The grown file: what is known is recognized by its keys, the rest is added."""
    story = run.story
    with story.step("The agents go on: import the grown file") as step, run.open() as db:
        log = run.log(db)
        report = log.import_transcript(story.source.path)
        if report.revision:
            run.whole_tokens = log.context(EVERYTHING).tokens
            step.say(f"the context is {run.whole_tokens:,} tokens now")
        step.check(
            f"new: {counted(report.events_imported, 'event')}; known, and not added twice: {report.events_known:,}",
            report.revision == story.events,
        )


def kill(run: Run) -> bool:
    """Kill a compaction in its middle; tell whether there was one to kill."""
    story = run.story
    first = story.generations[0].summary
    control = next((segment.text[:60] for segment in first.segments if segment.text), "") if first else ""
    with run.open() as db:
        before = run.log(db).context(EVERYTHING)
    with story.step("Compact again, in a process that is killed in the middle") as step:
        killed = _within_budget(
            run,
            step,
            lambda budget: kill_while_drafting(run.store, run.workflow, budget, run.out / HALF_DRAFT, control),
        )
        if killed is None:
            step.say("there was nothing more to compact, so nothing to kill")
            return False
        story.killed = killed
        step.say(
            f"process {killed.pid} is killed with half a draft for {span(killed.from_seq, killed.through_seq)} "
            f"({killed.written_bytes:,} bytes)"
        )
        step.check("it died by SIGKILL, with no chance to tidy up", killed.signal == signal.SIGKILL)
        step.check(
            f"its half draft is nowhere in the store: {killed.hits} hits (active summary: {killed.control_hits})",
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
    covered = [(part.from_seq, part.through_seq) for part in after.parts if part.kind.value in ("segment", "event")]
    ends = [0, *(through for _, through in covered)]
    seamless = all(start == end + 1 for (start, _), end in zip(covered, ends, strict=False))
    step.check(
        f"context = generation {generation} through {watermark:,} + {span(watermark + 1, after.revision)}: "
        "no gap, no overlap",
        seamless and ends[-1] == after.revision and after.watermark == watermark,
    )
