"""The choices of a run: who goes on at a crossing, and what goes wrong there.

They are drawn from the seed, or given: then a run is repeated with fewer of them. A choice is named by the process, the
number of its step and that of the crossing within the step, so that it means the same when other steps are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import NamedTuple

from strandline.testing.simulator.faults import FAULTS_AT, Fault, Point


class Place(NamedTuple):
    """A crossing: of which process, in which of its steps, the how many-th there."""

    actor: int
    step: int
    crossing: int


class Choice(NamedTuple):
    """What is done at a crossing. `turn` is the number of the process that goes on; None: the one that is there."""

    fault: Fault = Fault.NONE
    turn: int | None = None


GO_ON = Choice()
Choices = Mapping[Place, Choice]


class Drawn:
    """Choices that are drawn, and kept where something is done."""

    def __init__(self, seed: int, switch: float, fault: float) -> None:
        self._pick = Random(~seed).random
        self._switch = switch
        self._fault = fault
        self.made: dict[Place, Choice] = {}

    def choose(self, place: Place, point: Point, others: list[int]) -> Choice:
        """Choose at a crossing, where these other processes could go on."""
        pick = self._pick
        fault, turn = Fault.NONE, None
        if self._fault and pick() < self._fault:
            possible = FAULTS_AT[point]
            fault = possible[int(pick() * len(possible))]
        if others and pick() < self._switch:
            turn = others[int(pick() * len(others))]
        if fault is Fault.NONE and turn is None:
            return GO_ON
        made = self.made[place] = Choice(fault, turn)
        return made


class Given:
    """Choices that are given; elsewhere nothing goes wrong, and who is there goes on."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self.made: dict[Place, Choice] = {}

    def choose(self, place: Place, point: Point, others: list[int]) -> Choice:
        """Choose at a crossing, where these other processes could go on."""
        given = self._choices.get(place, GO_ON)
        fault = given.fault if given.fault in FAULTS_AT[point] else Fault.NONE
        turn = given.turn if given.turn in others else None
        if fault is Fault.NONE and turn is None:
            return GO_ON
        made = self.made[place] = Choice(fault, turn)
        return made
