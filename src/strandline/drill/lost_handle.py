"""The lost handle: a compaction drops the handle that a tool returned; three turns later the process dies."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import strandline as sl
from strandline.drill.process import Child
from strandline.drill.service import Remote
from strandline.drill.stage import Stage

NAME: Final = "lost-handle"
TITLE: Final = "The lost handle"
WHAT: Final = "A compaction drops the handle of a bucket; three turns later the process is killed."
COMPACTED_TURN: Final = 8
KILLED_TURN: Final = COMPACTED_TURN + 3
HORIZON_TURNS: Final = 40_000
BUDGET: Final = 700  # tokens: too few for every reference of eight turns
NAIVE_LINES: Final = 4
HANDLE_SEQ: Final = 3  # the event in which the service's answer stands
WORKFLOW: Final = "reports"


def naive(stage: Stage) -> None:
    """Run it without protection."""
    remote, file = stage.service(), stage.folder / "agent.json"
    agent = stage.start("naive", file, remote.port)
    agent.ask("remember", lines=["The user says: write a report a turn into one bucket."])
    first = agent.ask("work", until=COMPACTED_TURN)["bucket"]
    stage.step("turn 1", f"the agent asks the service for a bucket and gets {first}")
    done = agent.ask("compact", keep=NAIVE_LINES)
    agent.ask("save")
    kept = agent.ask("holds", texts=[str(first)])[str(first)]
    gone = "the handle is still there" if kept else "the handle is not among them"
    stage.step(
        f"turn {COMPACTED_TURN}",
        f"compaction: {done['before']} lines become {done['after']}, {gone}; a checkpoint is written",
    )
    agent.ask("work", until=KILLED_TURN)
    stage.step(f"turn {KILLED_TURN}", f"{agent.kill()} hits process {agent.pid}")
    agent = stage.start("naive", file, remote.port)
    agent.ask("restore")
    with stage.teller.waiting(f"{HORIZON_TURNS:,} turns"):
        last = agent.ask("work", until=HORIZON_TURNS)
    second = str(last["bucket"])
    stage.step(
        f"turn {COMPACTED_TURN + 1}",
        f"a new process loads the checkpoint, misses the handle, asks again, and gets {second}: another bucket",
    )
    stage.step(f"turn {last['turn']:,}", "no error so far")
    lost = [turn for turn in range(1, COMPACTED_TURN + 1) if not remote.holds(second, f"report-{turn}.json")]
    created = remote.calls()["POST /buckets"]
    corrupted = second != first and len(lost) == COMPACTED_TURN
    stage.corrupted(
        f"{created} buckets instead of 1. The agent says that all its reports lie in {second}; "
        f"{len(lost)} of them do not. Nothing raised an error.",
        corrupted=corrupted,
        handles=[first, second],
        create_calls=created,
        turns=last["turn"],
        reports_not_where_the_agent_says=len(lost),
        errors=0,
    )


def protected(stage: Stage) -> None:
    """Run it with Strandline."""
    remote, store = stage.service(), stage.folder / "agent.db"
    agent = stage.start("agent", store, WORKFLOW, remote.port)
    handle = str(agent.ask("work", first=1, last=COMPACTED_TURN)["bucket"])
    stage.step("turn 1", f"the agent asks the service for a bucket and gets {handle}")
    _compact(stage, agent, store, handle)
    agent.ask("checkpoint", turn=COMPACTED_TURN, state={"next": COMPACTED_TURN + 1})
    agent.ask("work", first=COMPACTED_TURN + 1, last=KILLED_TURN, bucket=handle)
    stage.step(f"turn {KILLED_TURN}", f"{agent.kill()} hits process {agent.pid}")
    _refuse(stage, remote, store, handle)


def _compact(stage: Stage, agent: Child, store: Path, handle: str) -> None:
    done = agent.ask("compact", budget=BUDGET)
    with sl.open(store) as db:
        dropped = {entry.ref: entry.last_seq for entry in _of(db).manifest()}
        stands = handle in _of(db).context().text
    stage.step(
        f"turn {COMPACTED_TURN}",
        f"compaction: {done['tokens_before']:,} tokens become {done['tokens_after']:,}; the manifest names each of the "
        f"{done['dropped']} references that were dropped, the handle among them; a checkpoint is written",
    )
    stage.check("the handle stands in the context", stands, False)
    stage.check("the manifest says that it was last seen in event", dropped.get(handle), HANDLE_SEQ)


def _refuse(stage: Stage, remote: Remote, store: Path, handle: str) -> None:
    """Recover for the next turn, which needs the handle."""
    before = remote.calls()
    agent = stage.start("agent", store, WORKFLOW, remote.port)
    refused = agent.ask("recover", needs=[handle])
    stage.step(
        f"turn {COMPACTED_TURN + 1}", f"a new process recovers; its next turn needs {handle}: {refused.get('message')}"
    )
    stage.check("recovery raises", refused.get("error"), "SummaryReconciliationError")
    stage.check("it names the missing reference", refused.get("missing_ref"), handle)
    known = {"seq": HANDLE_SEQ, "event_kind": "tool_result", "generation_dropped": 1}
    stage.check("it says where that was last seen", refused.get("last_known"), known)
    stage.check("and the generation of the summary", refused.get("summary_generation"), 1)
    stage.check("and the turn of the checkpoint", refused.get("checkpoint_turn"), COMPACTED_TURN)
    calls = sum(remote.calls().values()) - sum(before.values())
    stage.check("calls to the service before it raised", calls, 0)


def _of(db: sl.Strandline) -> sl.Workflow:
    return db.tenant("default").workflow(WORKFLOW)
