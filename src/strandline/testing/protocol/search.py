"""Breadth-first search of a bounded world: every state once, the shortest way to a broken law."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from strandline.testing.protocol.guards import ALL_ON, Guards
from strandline.testing.protocol.laws import broken_law
from strandline.testing.protocol.world import Bounds, Happening, Next, World, first_world, successors


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """The shortest way to a state in which a law is broken."""

    law: str
    first: World
    steps: tuple[Next, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How a search ended."""

    states: int  # distinct ones that were reached
    steps: int  # ways between them that were tried
    depth: int  # steps to the farthest of them
    complete: bool  # there is no other state within these bounds
    met: Counter[str]  # what happened, and how often: a search in which something never happens proves little of it
    broken: Counterexample | None = None


def search(
    bounds: Bounds,
    guards: Guards = ALL_ON,
    *,
    states_max: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Found:
    """Walk every state that can be reached within bounds, nearest first, until a law is broken or none is left.

    Args:
        bounds: how much may happen.
        guards: which checks of the protocol are on.
        states_max: stop when so many distinct states were reached; None: only at the end.
        progress: told how many states were reached, now and then.
    """
    first = first_world(bounds)
    came_from: dict[World, World | None] = {first: None}
    frontier = deque([first])
    met: Counter[str] = Counter()
    steps = depth = 0
    last_of_depth = first
    while frontier:
        world = frontier.popleft()
        for happening, after in successors(world, bounds, guards):
            steps += 1
            met[name_of(happening)] += 1
            law = broken_law(world, happening, after)
            if law:
                way = (*_way_to(world, came_from, bounds, guards), (happening, after))
                broken = Counterexample(law=law, first=first, steps=way)
                return Found(states=len(came_from), steps=steps, depth=len(way), complete=False, met=met, broken=broken)
            if after not in came_from:
                came_from[after] = world
                frontier.append(after)
                if progress is not None and not len(came_from) % _TOLD_EVERY_STATES:
                    progress(len(came_from))
                if len(came_from) == states_max:
                    return Found(states=states_max, steps=steps, depth=depth, complete=False, met=met)
        if world is last_of_depth and frontier:
            depth, last_of_depth = depth + 1, frontier[-1]
    return Found(states=len(came_from), steps=steps, depth=depth, complete=True, met=met)


_TOLD_EVERY_STATES = 50_000


def name_of(happening: Happening) -> str:
    """Return what happened, in the words that a search is counted by."""
    what = happening.what
    name = what if isinstance(what, str) else type(what).__name__
    if happening.lost:
        return f"{name}, answer lost"
    return f"{name}, refused" if happening.refused else name


def _way_to(world: World, came_from: dict[World, World | None], bounds: Bounds, guards: Guards) -> tuple[Next, ...]:
    """Return the steps to a world. What led from one to the next was not kept, and is found again."""
    way: list[Next] = []
    before = came_from[world]
    while before is not None:
        way.append(next(one for one in successors(before, bounds, guards) if one[1] == world))
        world, before = before, came_from[before]
    return tuple(reversed(way))
