"""A schedule: which processes run which verbs, from which world on. All of it is drawn from one integer."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

ACTORS_MAX: Final = 3
STEPS_MAX: Final = 3  # of one process
_SWITCHES: Final = (0.08, 0.25, 0.6)  # chance that another process goes on at a crossing
_FAULTS: Final = (0.0, 0.01, 0.03, 0.1)  # chance of a fault at a crossing
_ARGUMENTS: Final = 1 << 16

# What meets in one schedule: verbs that work on the same rows, so that a short schedule is seldom one of strangers.
_THEMES: Final = (
    (3, ("append", "append", "append", "context")),
    (3, ("compact", "append", "context", "checkpoint")),
    (2, ("compact", "compact", "recover")),
    (2, ("compact", "rewind", "append")),
    (1, ("compact", "revert", "context")),
    (2, ("compact_later", "run_due", "run_due", "append")),
    (3, ("checkpoint", "recover", "append", "context")),
    (2, ("recover_needs", "reconcile", "compact", "checkpoint")),
    (4, ("effect", "effect", "effect_twin", "reconcile", "recover")),
    (3, ("guard", "effect_permitted", "revoke", "append")),
    (2, ("fork", "append", "effect", "rewind")),
    (1, ("erase", "compact", "context", "append")),
    (1, ("erase", "recover", "checkpoint", "fork")),
    (2, ("define_view", "context", "append", "compact_narrow")),
    (1, ("define_view", "erase", "context")),
)
_DRAWN: Final = tuple(verbs for weight, verbs in _THEMES for _ in range(weight))
VERBS: Final = tuple(sorted({verb for _, verbs in _THEMES for verb in verbs}))
WORLDS: Final = ("fresh", "talk", "compacted", "checkpointed", "forked", "viewed", "asked", "doubtful", "granted")
_WORLDS_OF: Final = {  # by the first verb of a theme: elsewhere it would meet little
    "define_view": ("viewed", "viewed", "talk"),
    "effect": ("doubtful", "talk", "forked"),
    "guard": ("granted",),
    "recover_needs": ("asked", "asked", "compacted"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One verb of one process. Its arguments are made from `argument`, so that they stay when others are left out."""

    verb: str
    tenant: str
    workflow: str
    argument: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """What is to be run. Who goes on at which crossing, and what goes wrong there, is drawn while it runs."""

    seed: int
    world: str
    actors: tuple[tuple[Step, ...], ...]
    switch: float
    fault: float


def draw_schedule(seed: int) -> Schedule:
    """Return the schedule of a seed."""
    chance = Random(seed)
    pick = chance.random
    theme = _DRAWN[int(pick() * len(_DRAWN))]
    worlds = _WORLDS_OF.get(theme[0], WORLDS)
    world = worlds[int(pick() * len(worlds))]
    actors = tuple(
        tuple(_step(pick, theme, world) for _ in range(1 + int(pick() * STEPS_MAX)))
        for _ in range(2 if pick() < 0.75 else ACTORS_MAX)
    )
    return Schedule(
        seed=seed,
        world=world,
        actors=actors,
        switch=_SWITCHES[int(pick() * len(_SWITCHES))],
        fault=_FAULTS[int(pick() * len(_FAULTS))],
    )


def _step(pick: object, theme: tuple[str, ...], world: str) -> Step:
    assert callable(pick)
    verb = theme[int(pick() * len(theme))] if pick() < 0.9 else VERBS[int(pick() * len(VERBS))]
    drawn = pick()
    if drawn < 0.08:
        tenant, workflow = "zeta", "run"
    else:
        tenant, workflow = "acme", "side" if world == "forked" and drawn < 0.45 else "run"
    return Step(verb=verb, tenant=tenant, workflow=workflow, argument=int(pick() * _ARGUMENTS))
