"""Law (C40): schedules of the simulator break no invariant, one seed is one run, and each real fault is found.

Each breakage takes one line of the protocol away; the simulator has to find it within a bounded number of seeds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, islice

import pytest

import strandline.engine.checkpoint as checkpoint_module
import strandline.engine.choose_checkpoint as choose_checkpoint_module
import strandline.engine.claim as claim_module
import strandline.engine.draft as draft_module
import strandline.engine.effect as effect_module
import strandline.engine.environment as environment_module
import strandline.engine.guard as guard_module
import strandline.engine.reading as reading_module
import strandline.engine.recover as recover_module
import strandline.testing.simulator.ending as ending_module
import strandline.testing.simulator.store as store_module
from strandline.codec.records import decode_event, stored_digest
from strandline.model.candidate import AttemptState
from strandline.model.event import Event, StoredEvent
from strandline.model.view import ViewHead
from strandline.stores.memory.decisions import MemoryCases
from strandline.stores.memory.log import MemoryLog
from strandline.stores.memory.memory import MemoryJobs, MemoryViews
from strandline.testing.simulator import run_schedules
from strandline.testing.simulator.__main__ import main
from strandline.testing.simulator.baton import Crew
from strandline.testing.simulator.choices import Drawn
from strandline.testing.simulator.faults import FAULTS_AT, Fault
from strandline.testing.simulator.schedule import ACTORS_MAX, VERBS, WORLDS, draw_schedule
from strandline.testing.simulator.simulation import Report, Simulation, Violation
from strandline.testing.simulator.worlds import world_of

SEEDS_MAX = 500  # of those with the verb that it is about; each breakage must be found in them
SLICE = 120
OFTEN = 0.2  # how often something goes wrong where a test is about one fault alone
Patch = Callable[[pytest.MonkeyPatch], None]


def test_a_slice_of_schedules_breaks_nothing() -> None:
    tally = run_schedules(1, SLICE)
    assert (tally.count, tally.violations, tally.stories) == (SLICE, 0, [])
    assert len(tally.traces) > SLICE * 0.9
    assert tally.met["effect happened"]
    assert tally.met["stale read"]
    assert tally.met["torn read"] >= tally.met["torn read found"] >= 1


@pytest.mark.long
def test_a_longer_slice_meets_every_verb_and_breaks_nothing() -> None:
    tally = run_schedules(10_000, 1_000)
    assert (tally.violations, tally.stories) == (0, [])
    assert not [verb for verb in VERBS if not tally.met[verb]]


def test_one_seed_is_one_run_in_any_process() -> None:
    script = (
        "from strandline.testing.simulator.running import run_schedules;"
        "t = run_schedules(7, 25); print(sorted(x.hex() for x in t.traces), sorted(t.met.items()))"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1]
    assert len(told[0]) > 500


def test_a_told_run_tells_who_did_what() -> None:
    crew = Crew(ACTORS_MAX)
    schedule = draw_schedule(3)
    report = Simulation(schedule, Drawn(3, schedule.switch, schedule.fault), crew, told=True).run()
    crew.dismiss()
    assert report.violation is None
    assert report.story[0].startswith("p1")
    assert "a process that knows nothing recovers acme/run" in report.story


def test_the_command_ends_with_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "5", "--count", "10"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["count"], told["violations"]) == (10, 0)
    assert told["detail"]["interleavings"] > 5
    assert main(["--count", "0"]) == 2


def test_what_broke_is_told_to_who_reads_json_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make soak` asks with --json, and shows the stories: without one nobody knew which schedule to repeat."""
    draft_not_judged(monkeypatch)
    seed = next(seed for seed in seeds_with("compact") if run_schedules(seed, 1).stories)
    assert main(["--seed", str(seed), "--count", "1", "--json"]) == 1
    assert f"repeat it: python -m strandline.testing.simulator --seed {seed} --count 1\n" in capsys.readouterr().out


# ---------------------------------------------------------------------------------------------- it can fail


def no_fence(patch: pytest.MonkeyPatch) -> None:
    """What another process took over goes on."""
    patch.setattr(claim_module, "_still_mine", lambda *_: None)

    def move(self: MemoryViews, head: ViewHead, *, base_generation: int, fence: int, attempt_id: str) -> bool:
        self._tables.views.put(self._moment, head.name, head)
        return True

    patch.setattr(MemoryViews, "move_pointer", move)


def no_generation(patch: pytest.MonkeyPatch) -> None:
    """What was built on an older generation becomes active."""
    no_fence(patch)
    patch.setattr(claim_module, "_moved", lambda *_: None)


def attempt_not_settled(patch: pytest.MonkeyPatch) -> None:
    settle = MemoryJobs.settle_attempt

    def forgets(self: MemoryJobs, attempt, **conditions) -> bool:
        return attempt.state is AttemptState.ACTIVATED or settle(self, attempt, **conditions)

    patch.setattr(MemoryJobs, "settle_attempt", forgets)


def key_not_unique(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryLog, "by_keys", lambda *_: {})


def lineage_entry_left_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(claim_module, "add_entry", lambda tx, entry: replace(entry, lineage_seq=1))


def intent_not_recorded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(effect_module, "put_intent", lambda *_: None)


def doubt_is_run_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(effect_module, "IN_DOUBT", ())


def lost_commit_is_taken_for_made(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(environment_module, "read_back", lambda *_: None)


def permit_not_consumed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        effect_module, "consume_permit", lambda env, tx, permit, **_: guard_module.ledger(tx).permits.get(permit)
    )


def audience_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ViewHead, "reads", lambda *_: True)


def gate_left_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(choose_checkpoint_module, "_passes", lambda *_: True)


def recovery_without_fence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recover_module, "fence_all", lambda *_: [])


def blocking_case_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryCases, "blocking", lambda *_: None)


def draft_not_judged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(draft_module, "_judge", lambda *_: ())


BREAKAGES: dict[str, tuple[Patch, str, set[str]]] = {  # with the verb without which it can't show, and the laws
    "fence not checked": (no_fence, "compact", {"I6", "assertion"}),
    "generation not compared": (no_generation, "compact", {"I6", "I13", "assertion"}),
    "attempt not settled": (attempt_not_settled, "compact", {"I6"}),
    "key not unique": (key_not_unique, "append", {"I3"}),
    "lineage entry left out": (lineage_entry_left_out, "compact", {"I5"}),
    "intent not recorded": (intent_not_recorded, "effect", {"I18"}),
    "doubt is run again": (doubt_is_run_again, "effect", {"I18"}),
    "lost commit is taken for made": (lost_commit_is_taken_for_made, "append", {"I2", "I3", "I13", "I18", "I20"}),
    "permit not consumed": (permit_not_consumed, "effect_permitted", {"I20"}),
    "audience ignored": (audience_ignored, "define_view", {"I7", "I21"}),
    "gate left open": (gate_left_open, "recover", {"I15", "I16"}),
    "recovery without fence": (recovery_without_fence, "recover", {"I6", "I15"}),
    "blocking case ignored": (blocking_case_ignored, "recover_needs", {"I11"}),
    "draft not judged": (draft_not_judged, "compact", {"I5", "I10"}),
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_a_breakage_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, verb, laws = BREAKAGES[name]
    for world in WORLDS:
        world_of(world)  # made by the whole protocol
    patch(monkeypatch)
    for seed in islice(seeds_with(verb), SEEDS_MAX):
        for story in run_schedules(seed, 1).stories:
            assert "repeat it: python -m strandline.testing.simulator --seed" in story
            assert story.split(": ")[1].removesuffix(" is broken") in laws, story
            return
    pytest.fail(f"{name}: not found in {SEEDS_MAX} schedules")


def test_a_run_is_asked_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was recorded and the model does not allow is found at the end of a run, and here by nothing else (ADR 67).

    A state from before a compaction wears a stamp from after it: the stamp alone is what the checker sees.
    """
    monkeypatch.setattr(checkpoint_module, "_check_basis", lambda *_: None)
    seed, found = next((seed, found) for seed in seeds_with("checkpoint") if (found := violation_of(seed)))
    assert (found.law, found.what.split(": ")[0]) == ("I14", "the model does not allow acme/run")
    assert "its state is of generation 0, and the view is at 1" in found.what
    monkeypatch.setattr(ending_module, "conforms", lambda _: None)
    assert violation_of(seed) is None


@pytest.fixture
def only_torn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing goes wrong but that records are read torn."""
    for point, faults in FAULTS_AT.items():
        monkeypatch.setitem(FAULTS_AT, point, (Fault.TORN,) if Fault.TORN in faults else (Fault.NONE,))


@pytest.mark.usefixtures("only_torn")
def test_torn_reads_alone_break_nothing() -> None:
    """Each is refused, or changes no answer; nothing is built on it, and afterwards all is well (I4)."""
    met: Counter[str] = Counter()
    for seed in range(1, SLICE):
        report = run_of(seed, fault=OFTEN)
        assert report.violation is None
        met += report.met
    assert met["torn read"] > SLICE / 4
    assert met["torn read found"] > met["torn read"] / 2


@pytest.mark.usefixtures("only_torn")
def test_a_digest_that_is_not_compared_is_found_by_a_torn_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event is taken as it was read: no other fault of a run shows that (I4)."""

    def unchecked(stored: StoredEvent, _: bytes, workflow: str) -> Event:
        return decode_event(stored, stored_digest(stored, workflow), workflow)

    monkeypatch.setattr(reading_module, "open_event", unchecked)
    found = (seed for seed in islice(seeds_with("context"), SEEDS_MAX) if run_of(seed, fault=OFTEN).violation)
    seed = next(found)
    monkeypatch.setattr(store_module, "torn", lambda tx, _: tx)
    assert run_of(seed, fault=OFTEN).violation is None


def test_a_torn_read_is_told() -> None:
    seed = next(seed for seed in count(1) if run_of(seed).met["torn read found"])
    story = "\n".join(run_of(seed, told=True).story)
    assert "meets a torn page at" in story
    assert " reads a torn " in story
    assert "is refused: CorruptRecordError: " in story


def violation_of(seed: int) -> Violation | None:
    """Run the schedule of a seed, and don't make it smaller."""
    return run_of(seed).violation


def run_of(seed: int, *, fault: float | None = None, told: bool = False) -> Report:
    """Run the schedule of a seed; `fault`: how often something goes wrong, instead of what was drawn."""
    crew, schedule = Crew(ACTORS_MAX), draw_schedule(seed)
    chance = schedule.fault if fault is None else fault
    try:
        return Simulation(schedule, Drawn(seed, schedule.switch, chance), crew, told=told).run()
    finally:
        crew.dismiss()


def seeds_with(verb: str) -> Iterator[int]:
    """Yield the seeds whose schedules call a verb."""
    for seed in count(1):
        if any(step.verb == verb for steps in draw_schedule(seed).actors for step in steps):
            yield seed
