"""What is killed: each verb as a careful client calls it, and the stores that it is called on.

A client that does not know whether a verb was done looks before it calls it again, as the guide says (I19): `run` of a
verb does that where the verb itself does not. So the same `run` is what is killed, and what is called after the death;
it is done exactly once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import strandline
from strandline import message
from tests.crash.visible import BACKUP, TENANT, WHOLE

ROOT: Final = Path(__file__).resolve().parents[2]
TRANSCRIPT: Final = ROOT / "demo/transcripts/stock-export.jsonl"
WORKFLOW: Final = "session"
FORK: Final = "aside"
BUDGET: Final = 600  # tokens
PERSON: Final = "Zebulon Quartermain"
DROPPED: Final = "src/part-70/main.c"  # what the summary of the prepared history does not hold


class World:
    """Where the verb runs, and what is outside the store: it outlives the process."""

    def __init__(self, db: strandline.Strandline, folder: Path, done: list[str], report: Callable[[str], None]) -> None:
        self.db = db
        self.wf = db.tenant(TENANT).workflow(WORKFLOW)
        self.folder = folder
        self.done = done
        self._report = report

    def act(self, what: str) -> str:
        """Do something outside."""
        self.done.append(what)
        self._report(f"did {what}")
        return f"{what} is done"

    def look(self, what: str) -> strandline.EffectDone | strandline.EffectNeverHappened:
        """Tell whether it was done."""
        return strandline.EffectDone(f"{what} is done") if what in self.done else strandline.EffectNeverHappened()

    def entries(self, kind: str) -> int:
        return sum(entry.kind == kind for entry in self.wf.lineage())


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb.

    Args:
        run: calls it, once: see above.
        prepare: what the store must hold beside the history.
        steps: how many of its transactions change what users see: one, or the law names the others.
        doubts: a call that finds its first ones done finds an effect in doubt, and tells of it in log and cases (I18).
        history: whether the store has one; else the workflow is not there.
        made: whether the store is there at all.
    """

    name: str
    run: Callable[[World], object]
    prepare: Callable[[World], object] = lambda world: None
    steps: int = 1
    doubts: bool = False
    history: bool = True
    made: bool = True


def text_of(*texts: str) -> strandline.StateValue:
    parts = tuple(strandline.Part(kind="text", data=text.encode()) for text in texts)
    return strandline.StateValue(parts, many=len(parts) > 1)


def talk(start: int, count: int) -> list[strandline.NewEvent]:
    return [
        message("assistant", f"Run {n} is done, see logs/run-{n}.txt.", actor="builder", key=f"run-{n}")
        for n in range(start, start + count)
    ]


def write_history(world: World) -> None:
    """Give the workflow some of everything."""
    wf = world.wf
    wf.append(message("user", "Never write to bucket-prod.", key="rule"))
    wf.append(
        [
            strandline.constraint("publish", "Publish only after the security review.", actor="lead"),
            strandline.issue("scope", "The token may write."),
            strandline.approval("publish", "Go.", granter="ann"),
            strandline.tool_call("c1", "create_bucket", {"region": "eu"}, actor="builder"),
            strandline.tool_result("c1", "created bucket-7f3a", refs=["bucket-7f3a"], actor="builder"),
            message("user", f"{PERSON} asked for vol-1234 at /srv/zebulon.", actor="zebulon"),
            message("assistant", "Seen: " + " ".join(f"src/part-{n}/main.c" for n in range(80)), actor="builder"),
            *talk(0, 16),
        ]
    )
    wf.define_view("narrow", audiences={"release"}, budget=BUDGET)
    compact(world, 1)
    wf.append(talk(16, 12))
    compact(world, 2)
    wf.append(strandline.resolve("scope", "It reads only."))
    wf.states.save("s1", {"plan": text_of("a", "b"), "n": text_of("1")})
    wf.states.save("s2", {"plan": text_of("a", "b", "c"), "n": text_of("2")}, parent="s1")
    wf.effect("look-1", "look", {"at": "bucket-7f3a"}, run=lambda: "empty")
    wf.search("token")
    wf.checkpoint({"step": "publish"}, turn=1, basis=wf.context(WHOLE))
    wf.append(talk(28, 6))


# ------------------------------------------------------------------------------------------------ log and views


def append_long(world: World) -> None:
    world.wf.append(message("assistant", "".join(f"{n * 7919 % 10007:x} " for n in range(12_000)), key="long"))


def redefine_view(world: World) -> None:
    world.wf.define_view("narrow", audiences={"release", "review"}, budget=BUDGET)


# ------------------------------------------------------------------------------------------------ compaction


def compact(world: World, generation: int) -> None:
    """Compact until the view has this generation."""
    if world.wf.context(WHOLE).generation < generation:
        outcome = world.wf.compact(BUDGET)
        if outcome.outcome != "activated":
            raise AssertionError(f"{outcome.outcome}: {outcome.reason}")


def run_due(world: World) -> None:
    """Do what a worker does. What failed for a reason that may pass is due again, later."""
    for key in world.db.sweep():
        run = world.db.run_due(key, worker="worker-1")
        if run.result == "again":
            raise strandline.StoreUnavailableError(run.reason)


# ------------------------------------------------------------------------------------------------ recovery


def checkpoint(world: World) -> None:
    if world.entries("checkpoint") < 2:
        world.wf.checkpoint({"step": "release"}, turn=2, basis=world.wf.context(WHOLE))


def restore(world: World) -> None:
    if not world.entries("restore"):
        world.wf.recover(needs=["bucket-7f3a"], budget=WHOLE)


def replay(world: World) -> None:
    if not world.entries("replay"):
        world.wf.recover(needs=["bucket-7f3a"], budget=WHOLE)


def open_case(world: World) -> str:
    """Ask for what the summary dropped: it is refused, and a case is open then."""
    try:
        world.wf.recover(needs=[DROPPED], budget=WHOLE)
    except strandline.SummaryReconciliationError as error:
        return str(error.missing_ref)
    raise AssertionError(f"{DROPPED} stands verbatim in the context")


def answer_case(answer: strandline.CaseAnswer) -> Callable[[World], None]:
    def run(world: World) -> None:
        for case in world.wf.cases():
            world.wf.reconcile(case, answer, by="ann", why="I looked")

    return run


def report_regression(world: World) -> None:
    world.wf.report_regression(2, by="ann", why="it says less")


def revert(world: World) -> None:
    if not world.entries("revert"):
        world.wf.revert(1, by="ann", why="it says less")


def rewind(world: World) -> None:
    if not world.entries("rewind"):
        world.wf.rewind(30, by="ann", why="a wrong turn")


def fork(world: World) -> None:
    if FORK not in world.db.tenant(TENANT).workflows():
        world.wf.fork(None, FORK, by="ann", why="another way")


def append_in_fork(world: World) -> None:
    world.db.tenant(TENANT).workflow(FORK).append(talk(100, 6))


# ------------------------------------------------------------------------------------------------ actions


def effect(world: World) -> object:
    outcome = world.wf.effect(
        "create-2", "create", {"name": "logs"}, partial(world.act, "create"), partial(world.look, "create")
    )
    return outcome.result


def confirm_effect(world: World) -> object:
    return world.wf.effect(
        "create-2", "create", {"name": "logs"}, die, lambda: strandline.EffectDone("it is done")
    ).result


def die() -> None:
    raise ConnectionResetError


def leave_unknown(world: World) -> None:
    """Leave an effect of which nobody knows whether it happened."""

    try:
        world.wf.effect("create-2", "create", {"name": "logs"}, die)
    except (ConnectionResetError, strandline.EffectUnknownError):
        return


def permit(world: World) -> None:
    needs = [strandline.approved("publish"), strandline.resolved("scope")]
    world.wf.guard("publish", needs=needs, by="builder")


def guard(world: World) -> None:
    if not world.wf.permits():
        permit(world)


def publish(world: World) -> object:
    """A permit that was used up by an attempt that never ran is used up: another one is asked for."""

    def attempt() -> object:
        newest = world.wf.permits()[-1]
        run, probe = partial(world.act, "publish"), partial(world.look, "publish")
        return world.wf.effect("publish-42", "publish", {"version": "42"}, run, probe, permit=newest).result

    try:
        return attempt()
    except strandline.ActionDeniedError:
        permit(world)
        return attempt()


# ------------------------------------------------------------------------------------------------ erasure, backup


def erase(world: World) -> None:
    world.wf.erase(person=PERSON, by="dpo", why="request 12")


def erase_unscanned(world: World) -> None:
    if not world.entries("erasure"):
        world.wf.erase(refs=["logs/run-30.txt"], by="dpo", why="request 13", scan=False)


def hold(world: World) -> None:
    if not world.wf.holds():
        world.wf.hold("case-7", by="dpo", why="a case at law")


def lift_hold(world: World) -> None:
    if world.wf.holds():
        world.wf.lift_hold("case-7", by="dpo", why="it is over")


def set_retention(world: World) -> None:
    world.db.tenant(TENANT).set_retention("short", older_than_s=86_400, by="dpo", why="policy")


def back_up(world: World) -> None:
    if not (world.folder / BACKUP).exists():
        world.db.backup(world.folder / BACKUP)


# ------------------------------------------------------------------------------------------------ saved states


def save_state(world: World) -> None:
    world.wf.states.save("s3", {"plan": text_of("a", "b", "c", "d"), "n": text_of("3")}, parent="s2")


def write_state(world: World) -> None:
    world.wf.states.write("s2", [strandline.StateWrite(task="t", index=0, channel="out", value=text_of("x"))])


VERBS: Final = (
    Verb("open", lambda world: None, history=False, made=False),
    Verb("append first", lambda world: world.wf.append(talk(0, 1)), history=False),
    Verb("append", lambda world: world.wf.append(talk(50, 1))),
    Verb("append batch", lambda world: world.wf.append(talk(50, 40))),
    Verb("append long", append_long),
    Verb("append again", lambda world: world.wf.append(talk(20, 30))),
    Verb("import", lambda world: world.wf.import_transcript(TRANSCRIPT), history=False),
    Verb("search", lambda world: len(world.wf.search("done")), lambda world: world.wf.append(talk(50, 40)), steps=0),
    Verb("define view", lambda world: world.wf.define_view("wide", audiences={"all"}, budget=BUDGET)),
    Verb("redefine view", redefine_view),
    Verb("compact", lambda world: compact(world, 3), lambda world: world.wf.append(talk(50, 12))),
    Verb("compact first", lambda world: compact(world, 1), lambda world: world.wf.append(talk(0, 20)), history=False),
    Verb("compact later", lambda world: world.wf.compact_later(BUDGET)),
    Verb("run due", run_due, lambda world: (world.wf.append(talk(50, 12)), world.wf.compact_later(BUDGET)), steps=3),
    Verb("compact when", lambda world: world.wf.compact_when(tokens=1_000, budget=BUDGET)),
    Verb("checkpoint", checkpoint),
    Verb("restore", restore),
    Verb("replay", replay, lambda world: compact(world, 3)),
    Verb("refuse to recover", open_case),
    Verb("replay from exact", answer_case(strandline.ReplayFromExact()), open_case),
    Verb("accept divergence", answer_case(strandline.AcceptDivergence(DROPPED, "logs/run-33.txt")), open_case),
    Verb("abandon a case", answer_case(strandline.Abandon()), open_case),
    Verb("report regression", report_regression),
    Verb("revert", revert),
    Verb("rewind", rewind),
    Verb("fork", fork),
    Verb("append in fork", append_in_fork, fork),
    Verb("effect", effect, steps=2, doubts=True),
    Verb("effect that never happened", effect, leave_unknown, steps=3, doubts=True),
    Verb("effect that happened", confirm_effect, leave_unknown),
    Verb("guard", guard),
    Verb("guarded effect", publish, guard, steps=2, doubts=True),
    Verb("erase", erase),
    Verb("erase without a scan", erase_unscanned),
    Verb("hold", hold),
    Verb("lift hold", lift_hold, hold),
    Verb("set retention", set_retention),
    Verb("save state", save_state),
    Verb("write state", write_state),
    Verb("prune states", lambda world: world.wf.states.prune()),
    Verb("delete states", lambda world: world.wf.states.delete()),
    Verb("backup", back_up),
)
