"""Law (I1, I5–I7, I11, I13–I16, C17, C22): what a real store recorded is what the model's rules allow, step by step.

A life with every verb that moves the memory conforms. A life that is told with one thing wrong does not; nor does one
of an engine in which a check is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import strandline
from strandline.engine import checkpoint as checkpoint_verb
from strandline.engine import choose_checkpoint
from strandline.engine import recover as recover_verb
from strandline.engine.compact import compact
from strandline.engine.flow import Done, Summarize, advance
from strandline.model.candidate import Draft
from strandline.testing import SeededEntropy, VirtualClock
from strandline.testing.protocol import Refusal, conform, conforms, steps_of
from strandline.testing.protocol.steps import Activate, Append, Claim, Keep, Recover, Revert, Step, Store
from strandline.testing.protocol.traces import Line, Trace
from tests.unit.test_engine_stage import WHOLE, quiet

BUDGET = 600
WHO = {"by": "ops", "why": "a test"}


def say(wf: strandline.Workflow, first: int, count: int) -> None:
    wf.append(
        [
            strandline.message(
                "assistant", f"Step {n} wrote {' and '.join(f'/srv/{n}/{p}/r-{n}-{p}.json' for p in range(8))}."
            )
            for n in range(first, first + count)
        ]
    )


def compacted(wf: strandline.Workflow) -> None:
    assert wf.compact(BUDGET).outcome == "activated"


def take_off(wf: strandline.Workflow) -> Callable[[], str]:
    """Begin a compaction, and return what lets it land."""
    verb = compact(wf._env, wf._order(BUDGET, quiet))
    state = advance(verb.send, None)
    assert isinstance(state, Summarize)

    def land() -> str:
        now = state
        while isinstance(now, Summarize):
            now = advance(verb.send, Draft(text=quiet(now.request)))
        assert isinstance(now, Done)
        return str(now.value.outcome)

    return land


def keep(wf: strandline.Workflow, turn: int) -> strandline.Checkpoint:
    return wf.checkpoint({"turn": turn}, turn, basis=wf.context(WHOLE))


@pytest.fixture(params=["memory", "sqlite"])
def db(request: pytest.FixtureRequest, tmp_path: Path):
    url = ":memory:" if request.param == "memory" else str(tmp_path / "store.db")
    with strandline.open(url, clock=VirtualClock(), entropy=SeededEntropy(1), durability="normal") as opened:
        yield opened


@pytest.fixture
def wf(db: strandline.Strandline) -> strandline.Workflow:
    return db.tenant("acme").workflow("run")


def live(db: strandline.Strandline, wf: strandline.Workflow) -> strandline.Workflow:
    """Do every verb that moves the memory, and some that are refused; return a fork."""
    say(wf, 0, 30)
    compacted(wf)
    keep(wf, 1)
    assert wf.recover(budget=WHOLE).kind == "restore"
    say(wf, 30, 20)
    land = take_off(wf)
    assert wf.recover(budget=WHOLE).kind == "restore"
    assert land() == "conflict"
    land = take_off(wf)
    compacted(wf)
    assert land() == "conflict"
    assert wf.recover(budget=WHOLE).kind == "replay"
    at = keep(wf, 2)
    wf.checkpoint({"flow": 3}, 3, context_free=True)
    say(wf, 50, 10)
    with pytest.raises(strandline.SummaryReconciliationError) as refused:
        wf.recover([wf.manifest()[0].ref], budget=WHOLE)
    with pytest.raises(strandline.UnreconciledSummaryError):
        wf.compact(BUDGET)
    wf.reconcile(refused.value.case_id, strandline.ReplayFromExact(), **WHO)
    wf.fork(None, "aside", **WHO)
    fork = db.tenant("acme").workflow("aside")
    wf.rewind(checkpoint_seq=at.lineage_seq, **WHO)
    wf.recover(budget=WHOLE)
    say(wf, 60, 20)
    compacted(wf)
    case = wf.report_regression(wf.basis().generation, **WHO)
    wf.reconcile(case.case_id, strandline.ReplayFromExact(), **WHO)
    wf.rewind(20, **WHO)
    say(wf, 80, 25)
    wf.define_view("narrow", audiences=["audit"])
    compacted(wf)
    wf.erase(events=[2], **WHO)
    wf.define_view("narrow", audiences=["audit", "ops"])
    wf.revert(0, **WHO)
    assert wf.recover(budget=WHOLE).kind == "replay"
    say(fork, 90, 20)
    compacted(fork)
    keep(fork, 4)
    fork.recover(budget=WHOLE)
    return fork


def test_a_life_with_every_verb_conforms(db: strandline.Strandline, wf: strandline.Workflow) -> None:
    assert conforms(wf) is None, "nothing was done yet"
    fork = live(db, wf)
    assert db.verify().ok
    assert conforms(wf) is None
    assert conforms(fork) is None
    kinds = {type(line.step).__name__ for line in steps_of(wf).lines}
    assert kinds >= {"Append", "Claim", "Store", "Activate", "Keep", "Recover", "Revert", "Rewind", "Report", "Answer"}
    assert kinds >= {"Fence", "Replace", "Define"}
    assert "TakeOver" in {type(line.step).__name__ for line in steps_of(fork).lines}


# ---------------------------------------------------------------------------------------------- told wrongly

Doctor = Callable[[list[Line]], list[Line]]


def at(lines: list[Line], kind: type[Step], nth: int = 0) -> int:
    return [number for number, line in enumerate(lines) if isinstance(line.step, kind)][nth]


def without(kind: type[Step], nth: int = 0) -> Doctor:
    """Leave a step out, as if its rows were gone."""
    return lambda lines: lines[: at(lines, kind, nth)] + lines[at(lines, kind, nth) + 1 :]


def without_all(*kinds: type[Step]) -> Doctor:
    return lambda lines: [line for line in lines if not isinstance(line.step, kinds)]


def with_step(kind: type[Step], nth: int, **changed: object) -> Doctor:
    def doctor(lines: list[Line]) -> list[Line]:
        place = at(lines, kind, nth)
        step = lines[place].step._replace(**changed)
        return [*lines[:place], lines[place]._replace(step=step), *lines[place + 1 :]]

    return doctor


def with_told(kind: type[Step], nth: int, **changed: object) -> Doctor:
    def doctor(lines: list[Line]) -> list[Line]:
        place = at(lines, kind, nth)
        told = lines[place].told
        assert told is not None
        return [*lines[:place], lines[place]._replace(told=told._replace(**changed)), *lines[place + 1 :]]

    return doctor


def generation_again(lines: list[Line]) -> list[Line]:
    """Tell of the second move that it took the first one's generation."""
    place = at(lines, Activate, 1)
    told = lines[place].told
    assert told is not None
    again = told._replace(pointers=(told.pointers[0]._replace(generation=1),))
    return [*lines[:place], lines[place]._replace(told=again), *lines[place + 1 :]]


def swapped(lines: list[Line]) -> list[Line]:
    """Tell the first checkpoint before the compaction that it was made from."""
    place = at(lines, Keep)
    return [lines[0], lines[place], *lines[1:place], *lines[place + 1 :]]


def planned(**changed: object) -> Doctor:
    def doctor(lines: list[Line]) -> list[Line]:
        place = at(lines, Claim, 1)
        step = lines[place].step
        assert isinstance(step, Claim)
        return [
            *lines[:place],
            lines[place]._replace(step=step._replace(plan=step.plan._replace(**changed))),
            *lines[place + 1 :],
        ]

    return doctor


DOCTORED: dict[str, tuple[Doctor, str]] = {
    "an entry of the lineage is missing": (
        without(Keep),
        "Recover(name=0, view=0, need=0): the store has it at lineage 3, and 2 is next (I13)",
    ),
    "a recovery is missing": (without(Recover), "the store has it at lineage 4, and 3 is next (I13)"),
    "events are missing": (without(Append, 1), "the store has revision 50, and the log ends at 30 (I1)"),
    "a generation is used twice": (generation_again, "the store says generation 1, and it is 2 (I13)"),
    "an activation without a claim": (
        without_all(Claim, Store),
        "fenced: its token is 1, and 0 was handed out since (I6)",
    ),
    "an activation of what was never validated": (without(Store), "the attempt is running, not validated (I5)"),
    "an activation under a token that a recovery took away": (
        with_step(Claim, 1, fence=3),
        "fencing token 3 was claimed, and 3 was handed out before (I6)",
    ),
    "a compaction of another generation": (planned(generation=0, base=0), "planned on generation 0"),
    "a watermark behind what was planned on": (planned(watermark=99), "a watermark of 99 was planned at revision 50"),
    "a checkpoint of a generation that was left": (with_step(Keep, 1, generation=1), "its state is of generation 1"),
    "a checkpoint told before its generation": (swapped, "its state is of generation 1, and the view is at 0 (I14)"),
    "a checkpoint restored that the gate refuses": (
        with_told(Recover, 2, restored=2),
        "the store took 2, and the gate says a replay (I15)",
    ),
    "a replay where a checkpoint passes": (
        with_told(Recover, 0, restored=0),
        "the store took a replay, and the gate says 2 (I15)",
    ),
    "a revert to what was left as bad": (with_step(Revert, 0, generation=99), "generation 99 is none"),
}


@pytest.fixture(scope="module")
def told() -> Trace:
    """Return a life of two compactions and one that was fenced, three recoveries, two checkpoints, and a revert."""
    with strandline.open(":memory:", clock=VirtualClock(), entropy=SeededEntropy(1)) as opened:
        wf = opened.tenant("acme").workflow("run")
        say(wf, 0, 30)
        compacted(wf)
        keep(wf, 1)
        wf.recover(budget=WHOLE)
        say(wf, 30, 20)
        land = take_off(wf)
        wf.recover(budget=WHOLE)
        assert land() == "conflict"
        compacted(wf)
        wf.recover(budget=WHOLE)
        keep(wf, 2)
        wf.revert(1, **WHO)
        assert conforms(wf) is None
        return steps_of(wf)


@pytest.mark.parametrize("what", DOCTORED)
def test_a_trace_that_was_doctored_is_refused_at_the_place(told: Trace, what: str) -> None:
    doctor, reason = DOCTORED[what]
    refused = conform(told._replace(lines=tuple(doctor(list(told.lines)))))
    assert isinstance(refused, Refusal)
    assert reason in str(refused)


def test_heads_that_are_not_what_the_lineage_says_are_refused(told: Trace) -> None:
    pointer = told.last.pointers[0]
    for changed, reason in (
        (told.last._replace(lineage=told.last.lineage + 1), "lineage"),
        (told.last._replace(revision=told.last.revision + 1), "revision"),
        (told.last._replace(live=told.last.live ^ 2), "abandoned"),
        (told.last._replace(pointers=(pointer._replace(summary=7),)), "summary 7"),
        (told.last._replace(pointers=(pointer._replace(moved_at=1),)), "moved at lineage 1"),
        (told.last._replace(pointers=(pointer._replace(fence=1),)), "newest token is 1"),
    ):
        refused = conform(told._replace(last=changed))
        assert refused is not None
        assert (refused.step, refused.number) == ("the end", len(told.lines) + 1)
        assert reason in refused.reason


# ---------------------------------------------------------------------------------------------- engines that are broken


def test_an_engine_without_the_gate_is_found_out(wf: strandline.Workflow, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint from before a compaction is restored: it passes for the newest."""
    say(wf, 0, 30)
    keep(wf, 1)
    compacted(wf)
    monkeypatch.setattr(choose_checkpoint, "_passes", lambda *_: True)
    monkeypatch.setattr(recover_verb, "resume_from_checkpoint", lambda *_: None)
    wf.recover(budget=WHOLE)
    assert "the store took 1, and the gate says a replay (I15)" in str(conforms(wf))


def test_an_engine_whose_recovery_does_not_fence_is_found_out(
    wf: strandline.Workflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(wf, 0, 30)
    land = take_off(wf)
    monkeypatch.setattr(recover_verb, "fence_all", lambda *_: [])
    wf.recover(budget=WHOLE)
    assert land() == "activated"
    assert "fencing token 1 was claimed, and 1 was handed out before (I6)" in str(conforms(wf))


def test_an_engine_that_does_not_check_a_basis_is_found_out(
    wf: strandline.Workflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(wf, 0, 30)
    context = wf.context(WHOLE)
    compacted(wf)
    monkeypatch.setattr(checkpoint_verb, "_check_basis", lambda *_: None)
    wf.checkpoint({}, 1, basis=context)
    assert "its state is of generation 0, and the view is at 1 (I14)" in str(conforms(wf))
