"""The resurrected checkpoint: damage is repaired by the newest checkpoint, which is of before the compaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import strandline as sl
from strandline.drill import material
from strandline.drill.files import TORN_BYTES, copy_store, damage_summary
from strandline.drill.material import APPROACH, COMMIT, LATER_LINES, RULE, WORKING_SET_LINES, WORKING_SET_TOKENS
from strandline.drill.process import Child
from strandline.drill.report import run_of
from strandline.drill.stage import Stage

NAME: Final = "resurrected-checkpoint"
TITLE: Final = "The resurrected checkpoint"
WHAT: Final = "A write damages the memory; by the clock, the newest checkpoint is an old one."
SO: Final = "what a compaction left behind stays behind, whatever a clock says; no fact changes sides."
WORKFLOW: Final = "refactoring"
BUDGET: Final = 12_000  # tokens
HOURS: Final = 5
BEGIN: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
HOUR: Final = timedelta(hours=1)
FACTS: Final = {COMMIT: "commit", RULE: "user's rule", APPROACH: "failed approach"}
_LINES_AN_HOUR: Final = WORKING_SET_LINES // HOURS
_KEPT_LINES: Final = BUDGET * WORKING_SET_LINES // WORKING_SET_TOKENS


def hours() -> list[tuple[datetime, int, int]]:
    """Return when each hourly checkpoint is written, and the lines of the hour before it."""
    return [
        (BEGIN + number * HOUR, (number - 1) * _LINES_AN_HOUR, number * _LINES_AN_HOUR - 1)
        for number in range(1, HOURS + 1)
    ]


COMPACTED_AT: Final = BEGIN + (HOURS - 1) * HOUR + timedelta(minutes=5)  # the clock was set back by an hour before


def naive(stage: Stage) -> None:
    """Run it without protection."""
    agent = stage.start("naive", stage.folder / "agent.json", 0)
    names = []
    for at, first, last in hours():
        agent.ask("remember", lines=[material.working_line(number) for number in range(first, last + 1)])
        names.append(f".{at:%H-%M}")
        agent.ask("save", name=names[-1])
    stage.step(f"{at:%H:%M}", f"the hourly checkpoint {names[-1]} holds the full set: {WORKING_SET_TOKENS:,} tokens")
    done = agent.ask("compact", keep=_KEPT_LINES)
    names.append(f".{COMPACTED_AT:%H-%M}")
    agent.ask("save", name=names[-1])
    agent.ask("save")
    first_kept = agent.ask("holds", texts=list(FACTS))
    stage.step(
        f"{COMPACTED_AT:%H:%M}",
        f"the clock is set back an hour; compaction: {done['before']:,} lines become {done['after']}, about "
        f"{BUDGET:,} tokens; kept: {_kept(first_kept)}; checkpoint {names[-1]}",
    )
    agent.send("save_half")
    agent.hear()
    stage.step("then", f"{agent.kill()} in the middle of a write: the file is cut in half")
    agent = stage.start("naive", stage.folder / "agent.json", 0)
    restored = agent.ask("restore", names=names)
    stage.step(
        "restart",
        f"the file is damaged; {max(names)} is the newest checkpoint: {restored['lines']:,} lines are back",
    )
    later = range(WORKING_SET_LINES, WORKING_SET_LINES + LATER_LINES)
    agent.ask("remember", lines=[material.working_line(number) for number in later])
    agent.ask("compact", keep=_KEPT_LINES)
    second_kept = agent.ask("holds", texts=list(FACTS))
    stage.step("next", f"compaction of another shape; kept: {_kept(second_kept)}")
    swapped = [FACTS[fact] for fact in FACTS if first_kept[fact] != second_kept[fact]]
    stage.corrupted(
        f"{len(swapped)} of {len(FACTS)} facts changed sides between two compactions. Nothing raised an error.",
        corrupted=restored["lines"] == WORKING_SET_LINES and len(swapped) == len(FACTS),
        lines_back=restored["lines"],
        kept_first=[FACTS[fact] for fact in FACTS if first_kept[fact]],
        kept_second=[FACTS[fact] for fact in FACTS if second_kept[fact]],
        errors=0,
    )


def _kept(holds: dict[str, object]) -> str:
    return ", ".join(FACTS[fact] for fact in FACTS if holds[fact]) or "none of the three facts"


def protected(stage: Stage) -> None:
    """Run it with Strandline."""
    store = stage.folder / "agent.db"
    agent = stage.start("agent", store, WORKFLOW, 0)
    with stage.teller.waiting(f"{WORKING_SET_LINES:,} events and their compaction"):
        for turn, (at, first, last) in enumerate(hours(), start=1):
            agent.ask("set_clock", at_us=_us(at))
            agent.ask("append", what="working", first=first, last=last)
            agent.ask("checkpoint", turn=turn, state={"step": last})
        agent.ask("set_clock", at_us=_us(COMPACTED_AT))
        done = agent.ask("compact", budget=BUDGET)
    stage.step(
        f"{at:%H:%M}",
        f"the hourly checkpoint of turn {HOURS} is made with the full set: {done['tokens_before']:,} tokens",
    )
    stage.step(
        f"{COMPACTED_AT:%H:%M}",
        f"the clock is set back an hour; compaction: {done['tokens_before']:,} tokens become {done['tokens_after']:,}",
    )
    stage.check("tokens of the working set", done["tokens_before"], WORKING_SET_TOKENS)
    stage.check(f"the compacted context fits {BUDGET:,} tokens", int(str(done["tokens_after"])) <= BUDGET, True)
    with sl.open(store) as db:
        compacted = _of(db).context(BUDGET)
        _check_clock(stage, _of(db).lineage())
    agent = _die_while_writing(stage, agent, store)
    _recover_by_replay(stage, agent, store, compacted)
    _compact_again(stage, agent, store, compacted)
    _restore_what_is_newer(stage, agent, store)
    _damage_a_copy(stage, store)


def _check_clock(stage: Stage, entries: Sequence[sl.LineageEntry]) -> None:
    by_clock = max(entries, key=lambda entry: entry.at_us).kind.value
    stage.check("the newest entry, by the wall clock, is a", by_clock, "checkpoint")
    stage.check("the newest entry, by the lineage, is a", entries[-1].kind.value, "compaction")


def _die_while_writing(stage: Stage, agent: Child, store: Path) -> Child:
    """Kill the process in the middle of a write of its own; return the next one."""
    agent.send("append_and_die", what="working", first=WORKING_SET_LINES, last=WORKING_SET_LINES + LATER_LINES - 1)
    agent.hear()
    stage.step("then", f"{agent.kill()} in the middle of a write of {LATER_LINES} events, before its commit")
    with sl.open(store) as db:
        stage.check("events of the half-made write in the log", _of(db).basis().revision - WORKING_SET_LINES, 0)
        stage.check("problems that verify finds", len(db.verify().problems), 0)
    return stage.start("agent", store, WORKFLOW, 0)


def _recover_by_replay(stage: Stage, agent: Child, store: Path, compacted: sl.Context) -> None:
    found = agent.ask("recover", budget=BUDGET)
    with sl.open(store) as db:
        context = _of(db).context(BUDGET)
    stage.step(
        "restart",
        f"recovery asks the lineage, not the clock: the checkpoint of turn {found.get('stale_turn')} is of before the "
        f"compaction, so the compaction's own output is replayed: {context.tokens:,} tokens",
    )
    stage.check("recovery answers", found.get("kind"), "replay")
    stage.check("the state that is restored", found.get("state"), None)
    stage.check("the newest old state, handed over as stale, is of turn", found.get("stale_turn"), HOURS)
    stage.check("tokens of the context that is recovered", found.get("tokens"), compacted.tokens)
    stage.check("it is the compaction's output, byte for byte", context.text == compacted.text, True)


def _compact_again(stage: Stage, agent: Child, store: Path, compacted: sl.Context) -> None:
    """Compact once more, and look whether a fact changed sides."""
    agent.ask("append", what="working", first=WORKING_SET_LINES, last=WORKING_SET_LINES + LATER_LINES - 1)
    with stage.teller.waiting("the next compaction"):
        done = agent.ask("compact", budget=BUDGET)
    with sl.open(store) as db:
        now = _of(db).context(BUDGET)
        seen = [hit.seq for hit in _of(db).recall(COMMIT)]
    kept = [FACTS[fact] for fact in FACTS if fact in now.text]
    stage.step(
        "next", f"{LATER_LINES} events later the next compaction ends as {done['outcome']}; kept: {', '.join(kept)}"
    )
    for fact, name in FACTS.items():
        stage.check(
            f"verbatim after both compactions: {name}", [fact in compacted.text, fact in now.text], [True, True]
        )
    stage.check("references that are neither kept nor in the manifest", done.get("unaccounted"), 0)
    stage.check("the commit is recalled from event", seen, [material.COMMIT_LINE + 1])


def _restore_what_is_newer(stage: Stage, agent: Child, store: Path) -> None:
    """The positive control: a checkpoint of after the compaction is restored, whatever its clock says."""
    stage.scene("control", "a checkpoint of after the compaction is restored")
    state = {"step": WORKING_SET_LINES + LATER_LINES - 1}
    agent.ask("checkpoint", turn=HOURS + 1, state=state)
    agent.kill()
    agent = stage.start("agent", store, WORKFLOW, 0)
    found = agent.ask("recover", budget=BUDGET)
    with sl.open(store) as db:
        entries = _of(db).lineage()
    stage.step(f"turn {HOURS + 1}", f"the agent writes a checkpoint; SIGKILL; recovery answers {found.get('kind')}")
    stage.check("recovery answers", found.get("kind"), "restore")
    stage.check("with the state", found.get("state"), state)
    stage.check("of turn", found.get("turn"), HOURS + 1)
    order = run_of([entry.lineage_seq for entry in entries])
    stage.check("the lineage is one order without a gap", order, f"1–{len(entries)}")


def _damage_a_copy(stage: Stage, store: Path) -> None:
    """Tear a hole into the active summary, as a foreign write would; nothing older takes its place in silence."""
    stage.scene("damage", "a foreign write tears a hole into a copy of the store")
    copy = stage.folder / "damaged.db"
    copy_store(store, copy)
    at = damage_summary(copy)
    agent = stage.start("agent", copy, WORKFLOW, 0)
    found = agent.ask("recover", budget=BUDGET)
    stage.step(
        f"byte {at:,}",
        f"{TORN_BYTES} bytes of the active summary are overwritten; recovery raises, and takes nothing older instead",
    )
    stage.check("recovery raises", found.get("error"), "SummaryReconciliationError")
    stage.check("for the reason", found.get("reason"), "corrupt_summary")


def _of(db: sl.Strandline) -> sl.Workflow:
    return db.tenant("default").workflow(WORKFLOW)


def _us(at: datetime) -> int:
    return int(at.timestamp()) * 1_000_000
