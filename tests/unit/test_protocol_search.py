"""Law (I1, I5–I8, I11, I13–I17, I19, C17): in no state that the model can reach is one of them broken.

And the proof that the search could see it: each guard is switched off in turn, and the shortest way to the broken law
is compared, line by line. Two guards stand behind each other where one alone would do; that is said, and tried, too.
"""

from __future__ import annotations

import itertools
import json

import pytest

from strandline.testing.protocol.__main__ import main
from strandline.testing.protocol.configurations import CONFIGURATIONS
from strandline.testing.protocol.guards import ALL_ON, Guards
from strandline.testing.protocol.search import search
from strandline.testing.protocol.story import story_of
from strandline.testing.protocol.world import Bounds, World, first_world, successors

SMALL = Bounds(processes=2, events=1, fences=2, partial=True, lost=True, checkpoints=1, recoveries=1, needs=True)


def told(bounds: Bounds, *off: str) -> list[str]:
    """Return the story of the shortest counterexample, without the numbers of its lines; none: the laws hold."""
    found = search(bounds, ALL_ON._replace(**dict.fromkeys(off, False)))
    if found.broken is None:
        assert found.complete
        return []
    return [line.lstrip(" 0123456789.") for line in story_of(found.broken)]


COMPACTED = (
    "somebody appends event 1",
    "A reads a snapshot, and plans a compaction",
    "A claims a compaction of generation 0 through 1, token 1",
)
ACTIVE = (*COMPACTED, "A stores its draft under token 1", "A activates under token 1")
MOVED = "though the pointer moved after it was made"

BROKEN: dict[str, tuple[Bounds, tuple[str, ...]]] = {
    "fence": (
        Bounds(events=1, recoveries=1),
        (
            *COMPACTED,
            "somebody recovers: a replay",
            "A stores its draft under token 1",
            "A activates under token 1",
            "I15: what was in flight when a recovery ran (lineage 1) became active after it",
        ),
    ),
    "recovery_fences": (
        Bounds(events=1, recoveries=1),
        (
            *COMPACTED,
            "somebody recovers: a replay",
            "A stores its draft under token 1",
            "A activates under token 1",
            "I15: what was in flight when a recovery ran (lineage 1) became active after it",
        ),
    ),
    "validation": (
        Bounds(events=1, partial=True),
        (
            *COMPACTED,
            "A stores half a draft under token 1",
            "A activates under token 1",
            "I5: half a summary is active as generation 1",
        ),
    ),
    "calls": (
        Bounds(events=2, calls=True),
        (
            "somebody appends event 1, a call",
            *ACTIVE[1:],
            "I8: a watermark of 1 covers an open call, or parts one from its result",
        ),
    ),
    "cases": (
        Bounds(events=2, fences=3, reports=1),
        (
            "somebody appends event 1",
            "somebody appends event 2",
            *ACTIVE[1:],
            "somebody opens case 1 on summary 1",
            "A reads a snapshot, and plans a compaction",
            "A claims a compaction of generation 1 through 2, token 2",
            "A stores its draft under token 2",
            "A activates under token 2",
            "I11: summary 1 was compacted while case 1 on it was open",
        ),
    ),
    "basis": (
        Bounds(processes=2, events=1, fences=1, checkpoints=1),
        (
            *COMPACTED[:2],
            "B reads a context: generation 0, revision 1",
            COMPACTED[2],
            *ACTIVE[3:],
            "B keeps a checkpoint of generation 0 at lineage 2",
            "I14: a state of generation 0 wears a stamp of generation 1",
        ),
    ),
    "equal": (
        Bounds(processes=2, events=1, foreign=1, recoveries=1),
        (
            *COMPACTED[:2],
            "B reads a context: generation 0, revision 1",
            "B keeps a state of generation 0 in another saver, as lineage 1",
            COMPACTED[2],
            *ACTIVE[3:],
            "somebody recovers: the checkpoint of lineage 1 is restored",
            f"I15: the checkpoint of lineage 1 was gone on from, {MOVED} (compaction, lineage 1)",
        ),
    ),
    "all_moves": (
        Bounds(events=1, checkpoints=1, recoveries=1, reverts=1),
        (
            *ACTIVE,
            "A reads a context: generation 1, revision 1",
            "A keeps a checkpoint of generation 1 at lineage 2",
            "somebody reverts to generation 0",
            "somebody recovers: the checkpoint of lineage 2 is restored",
            f"I15: the checkpoint of lineage 2 was gone on from, {MOVED} (revert, lineage 3)",
        ),
    ),
    "left_past": (
        Bounds(events=1, fences=0, checkpoints=2, free=True, recoveries=1, rewinds=1),
        (
            "somebody appends event 1",
            "A reads a context: generation 0, revision 1",
            "A keeps a checkpoint of generation 0 at lineage 1",
            "A reads a context: generation 0, revision 1",
            "A keeps a context-free checkpoint of generation 0 at lineage 2",
            "somebody rewinds to the checkpoint of lineage 1",
            "somebody recovers: a replay, with the state of lineage 2",
            "I15: the checkpoint of lineage 2 was gone on from, though going back to 1 (lineage 3) left the past that "
            "it is of",
        ),
    ),
    "needs": (
        Bounds(events=1, recoveries=1, needs=True),
        (
            *ACTIVE,
            "somebody recovers, in need of event 1: a replay",
            "I16: it went on, and the reference of event 1 stands nowhere",
        ),
    ),
    "new_generation": (
        Bounds(events=1, reverts=1),
        (*ACTIVE, "somebody reverts to generation 0", "I13: generation 0 is used twice"),
    ),
    "rewind_moves": (
        Bounds(events=1, rewinds=1),
        (
            *ACTIVE,
            "somebody rewinds to event 0",
            "I7: the summary of generation 2 covers event 1, and the live events through its watermark are no event",
        ),
    ),
    "bad_stays_left": (
        Bounds(events=1, reverts=2),
        (
            *ACTIVE,
            "somebody reverts to generation 0",
            "somebody reverts to generation 1",
            "C17: summary 1, which a revert left as bad, is active again",
        ),
    ),
    "snapshot": (
        Bounds(events=1, fences=1, rewinds=1),
        (
            *ACTIVE,
            "A reads the pointer: generation 1, revision 1",
            "somebody rewinds to event 0",
            "A reads the tail through 1",
            "I7: a context of generation 1 holds what is not live, or twice",
        ),
    ),
    "pointer": (
        Bounds(events=1, lost=True),
        (
            *ACTIVE[:-1],
            "A activates under token 1, and the answer is lost",
            "A says that it failed",
            "I19: it was said that the activation failed, and it did the other",
        ),
    ),
}
"""By guard: within which bounds its absence shows, and the shortest way there."""

TWOFOLD: dict[tuple[str, str], tuple[Bounds, str]] = {
    ("base_at_claim", "base_at_activation"): (
        Bounds(processes=2, events=1),
        "I6: what was planned on generation 0 became active on generation 1",
    ),
    ("revert_fences", "base_at_activation"): (
        Bounds(events=2, fences=3, reverts=1),
        "I6: what was planned on generation 1 became active on generation 2",
    ),
}
"""Guards of which one is enough: the law breaks when both are off, and not before."""


@pytest.mark.parametrize("guard", BROKEN)
def test_without_a_guard_the_search_finds_the_shortest_way_to_break_a_law(guard: str) -> None:
    bounds, story = BROKEN[guard]
    assert told(bounds, guard) == list(story)
    assert told(bounds) == []


@pytest.mark.parametrize("pair", TWOFOLD)
def test_where_two_guards_stand_behind_each_other_one_is_enough(pair: tuple[str, str]) -> None:
    bounds, law = TWOFOLD[pair]
    assert [told(bounds, guard) for guard in pair] == [[], []]
    assert told(bounds, *pair)[-1] == law


def test_every_guard_was_switched_off() -> None:
    assert {*BROKEN, *(guard for pair in TWOFOLD for guard in pair)} == set(Guards._fields)


def test_a_small_world_is_searched_to_its_end_and_everything_happens_in_it() -> None:
    found = search(SMALL)
    assert found.complete
    assert found.broken is None
    assert found.states == 1_916
    assert {"Activate, answer lost", "Claim, refused", "Store, refused", "Keep", "Recover", "dies"} <= set(found.met)


def test_processes_in_another_order_are_the_same_world() -> None:
    """So that to keep them sorted loses no future: a world has the same ones in any order of its processes."""
    bounds = Bounds(processes=3, events=1, fences=2, lost=True, checkpoints=1, recoveries=1)
    reached, frontier = {first_world(bounds)}, [first_world(bounds)]
    while frontier and len(reached) < 600:
        world = frontier.pop(0)
        futures = {after for _, after in successors(world, bounds)}
        for order in itertools.permutations(world.processes):
            assert {after for _, after in successors(World(world.memory, order), bounds)} == futures
        frontier += futures - reached
        reached |= futures
    assert any(len(set(world.processes)) == 3 for world in reached), "three in different places are among them"


def test_the_command_tells_what_it_searched(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "500", "--configuration", "background"]) == 0
    said, summary = capsys.readouterr().out.splitlines()
    assert said.startswith("background: 500 states, ")
    assert said.endswith("cut off")
    told_last = json.loads(summary)
    assert (told_last["count"], told_last["violations"]) == (500, 0)
    assert told_last["detail"]["background states"] == 500


def test_the_command_prints_a_violation_and_how_to_see_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "5000", "--configuration", "branches", "--without", "rewind_moves", "--json"]) == 1
    *story, again, summary = capsys.readouterr().out.splitlines()
    assert story[-1].strip().startswith("I7: ")
    assert again.strip() == (
        "again: python -m strandline.testing.protocol --configuration branches --count 5000 --without rewind_moves"
    )
    assert json.loads(summary)["violations"] == 1


def test_the_seed_says_where_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    names = list(CONFIGURATIONS)
    assert main(["--count", "50", "--seed", "2", "--json"]) == 0
    detail = json.loads(capsys.readouterr().out)["detail"]
    assert [name.removesuffix(" states") for name in detail if name.endswith(" states")] == [*names[1:], names[0]]


def test_the_states_are_shared_so_that_each_configuration_is_looked_into(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "9000", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["count"] == 9_000
    assert {told["detail"][f"{name} states"] for name in CONFIGURATIONS} == {1_000}


@pytest.mark.long
def test_a_hundred_thousand_states_break_no_law() -> None:
    """Millions are the soak's: `python -m strandline.testing.protocol --count 3000000`."""
    for name in ("background", "calls"):
        assert search(CONFIGURATIONS[name], states_max=50_000).broken is None


def test_without_a_guard_the_command_looks_into_each_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    """The first one has no recovery, so without it no law of recovery breaks, however many states it has."""
    assert main(["--count", "500", "--without", "needs"]) == 1
    printed = capsys.readouterr().out
    assert "compaction: 500 states" in printed
    assert "I16: it went on, and the reference of event 1 stands nowhere" in printed
    assert "--configuration cases --count 500 --without needs" in printed


def test_the_command_says_when_no_law_breaks_without_a_guard(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "50", "--configuration", "compaction", "--without", "needs"]) == 0
    assert "no law broke without needs: other guards see to it, or --count is small" in capsys.readouterr().out
