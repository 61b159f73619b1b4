"""The lost handle: a compaction drops the handle that a tool returned; three turns later the process dies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import strandline as sl
from strandline.drill.material import ARCHIVE_AGAIN, ARCHIVE_WANTED
from strandline.drill.process import Child, DrillError
from strandline.drill.service import HALF_MARK, Remote
from strandline.drill.stage import Stage

NAME: Final = "lost-handle"
TITLE: Final = "The lost handle"
WHAT: Final = "A compaction drops a bucket's handle; three turns later the process is killed."
SO: Final = "a dropped handle stops the agent before its next turn; the log still has it, and no bucket is made twice."
COMPACTED_TURN: Final = 8
KILLED_TURN: Final = COMPACTED_TURN + 3
HORIZON_TURNS: Final = 40_000
BUDGET: Final = 700  # tokens: too few for every reference of eight turns
HANGING_S: Final = 60.0  # more than it takes to kill the compaction
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
    stage.step(f"turn {KILLED_TURN}", f"{agent.kill()}: process {agent.pid} is gone")
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
    begun = remote.calls()["POST /buckets"]
    agent = stage.start("agent", store, WORKFLOW, remote.port)
    handle = str(agent.ask("work", first=1, last=COMPACTED_TURN)["bucket"])
    stage.step("turn 1", f"the agent asks the service for a bucket and gets {handle}")
    _compact(stage, agent, store, handle)
    agent.ask("checkpoint", turn=COMPACTED_TURN, state={"next": COMPACTED_TURN + 1})
    archive = _crash(stage, agent, handle)
    agent, case_id = _refuse(stage, remote, store, handle)
    _answer(stage, store, case_id)
    _go_on(stage, agent, store, handle)
    _ask_again(stage, agent, remote, archive)
    created = remote.calls()["POST /buckets"] - begun
    stage.check("buckets created in all: one for the reports, one for the archive", created, 2)
    agent.close()
    _half_written(stage, remote, store, handle)


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
    stage.check("the handle is gone from the context", not stands, True)
    stage.check("the manifest says that it was last seen in event", dropped.get(handle), HANDLE_SEQ)


def _crash(stage: Stage, agent: Child, handle: str) -> str:
    """Work on for three turns, and die; return the handle that the service gave meanwhile."""
    made = agent.ask("create", key="archive-bucket", subject="archive", wanted=ARCHIVE_WANTED)
    agent.ask("work", first=COMPACTED_TURN + 1, last=KILLED_TURN, bucket=handle)
    stage.step(f"turn {COMPACTED_TURN + 1}", f"the agent asks for a second bucket, for an archive: {made['bucket']}")
    stage.step(f"turn {KILLED_TURN}", f"{agent.kill()}: process {agent.pid} is gone")
    return str(made["bucket"])


def _refuse(stage: Stage, remote: Remote, store: Path, handle: str) -> tuple[Child, str]:
    """Recover for a next turn that needs the handle; return the process, and the case that is open now."""
    before, revision = remote.calls(), _revision(store)
    agent = stage.start("agent", store, WORKFLOW, remote.port)
    refused = agent.ask("recover", needs=[handle])
    calls = sum(remote.calls().values()) - sum(before.values())
    stage.step("restart", f"a new process recovers; its next turn needs {handle}, and recovery stops before it begins")
    stage.check("recovery raises", refused.get("error"), "SummaryReconciliationError")
    stage.check("it names the missing reference", refused.get("missing_ref"), handle)
    known = {"seq": HANDLE_SEQ, "event_kind": "tool_result", "generation_dropped": 1}
    stage.check("it says where that was last seen", refused.get("last_known"), known)
    stage.check("and the generation of the summary", refused.get("summary_generation"), 1)
    stage.check("and the turn of the checkpoint", refused.get("checkpoint_turn"), COMPACTED_TURN)
    stage.check("calls to the service before it raised", calls, 0)
    stage.check("events appended before it raised", _revision(store) - revision, 0)
    case_id = str(refused.get("case_id"))
    with sl.open(store) as db:
        stage.check("the cases that are open", [case.case_id for case in _of(db).cases()], [case_id])
    code, said = stage.cli("compact", "--store", store, "--budget", BUDGET)
    error = said.get("error")
    named = error.get("case_id") if isinstance(error, dict) else None
    stage.step("meanwhile", "nobody compacts this summary any further: strandline compact ends with exit code 3")
    stage.check("a compaction meanwhile ends with exit code", code, 3)
    stage.check("it names the same case", named, case_id)
    return agent, case_id


def _answer(stage: Stage, store: Path, case_id: str) -> None:
    """Answer the case on the command line."""
    words = ("--by", "operator", "--why", "the bucket is still there")
    code, _ = stage.cli("reconcile", case_id, "replay-from-exact", *words, "--store", store)
    stage.step(
        "the answer", "strandline reconcile … replay-from-exact: the event of the log holds the handle, word for word"
    )
    stage.check("the answer ends with exit code", code, 0)


def _go_on(stage: Stage, agent: Child, store: Path, handle: str) -> None:
    found = agent.ask("recover", needs=[handle])
    with sl.open(store) as db:
        stands = handle in _of(db).context().text
    more = agent.ask("work", first=KILLED_TURN + 1, last=KILLED_TURN + 1, bucket=handle)
    stage.step(
        f"turn {KILLED_TURN + 1}", f"recovery answers {found.get('kind')}; the next report goes to {handle}, as before"
    )
    stage.check("recovery answers now", found.get("kind"), "restore")
    stage.check("with the state of turn", found.get("turn"), COMPACTED_TURN)
    stage.check("the handle stands in the context now", stands, True)
    stage.check("the service takes the next report with status", more.get("statuses"), [200])


def _ask_again(stage: Stage, agent: Child, remote: Remote, archive: str) -> None:
    """Ask for what was asked for before, in other words, as an agent does that lost three turns."""
    before = remote.calls()
    again = agent.ask("create", key="storage-for-old-reports", subject="archive", wanted=ARCHIVE_AGAIN)
    calls = sum(remote.calls().values()) - sum(before.values())
    stage.step(
        "again",
        "the agent does not know the last three turns and asks for the archive once more: other key, other order, new "
        "request id",
    )
    stage.check("it is answered as", again.get("kind"), "likely_repeat")
    stage.check("with the handle of before", again.get("bucket"), archive)
    stage.check("calls to the service for it", calls, 0)


def _half_written(stage: Stage, remote: Remote, store: Path, handle: str) -> None:
    """The second form: another tool writes its checkpoint while a summary is half-written, and copies what is there."""
    stage.scene("second form", "a checkpoint is written while a summary is half-written")
    agent, other = (stage.start("agent", store, WORKFLOW, remote.port) for _ in range(2))
    remote.let_next_summary_hang()
    agent.send("compact", budget=BUDGET, deadline_s=HANGING_S)
    if not remote.wait_until_it_hangs():
        raise DrillError(f"the summarizer was not asked: {agent.hear()}")
    own = other.ask("checkpoint", turn=KILLED_TURN + 1, state={"next": KILLED_TURN + 2})
    file = stage.folder / "planner.json"
    file.write_text(json.dumps({"summary": f"{HALF_MARK} …", "turn": KILLED_TURN + 1}), encoding="utf-8")
    torn = other.ask("register", turn=KILLED_TURN + 1, name="planner", file=str(file))
    stage.step(
        "meanwhile",
        "a compaction is on its way; a planner writes a checkpoint of its own into a file, with half the summary in it",
    )
    stage.check("it is known to be of a time when a compaction was in flight", torn.get("in_flight"), True)
    stage.step("then", f"{agent.kill()}: the compacting process is gone")
    agent = stage.start("agent", store, WORKFLOW, remote.port)
    refused, found = agent.ask("recover", name="planner"), agent.ask("recover")
    remote.release()
    stage.step("restart", "the planner's checkpoint may hold half a compaction: recovery refuses it, and opens a case")
    stage.check("recovery of the planner raises", refused.get("error"), "CompactionLineageError")
    stage.check("a case is open for it", isinstance(refused.get("case_id"), str), True)
    stage.check("the agent's own checkpoint of that time, which can't be torn, gives", found.get("kind"), "restore")
    stage.check("from its place in the lineage", found.get("checkpoint_seq"), own.get("lineage_seq"))
    done = agent.ask("compact", budget=BUDGET)
    with sl.open(store) as db:
        stands = handle in _of(db).context().text
    stage.step("last", f"the next compaction ends as {done.get('outcome')}; the handle was pinned by the answer")
    stage.check("the handle stands in the context after the next compaction", stands, True)


def _revision(store: Path) -> int:
    with sl.open(store) as db:
        return _of(db).basis().revision


def _of(db: sl.Strandline) -> sl.Workflow:
    return db.tenant("default").workflow(WORKFLOW)
