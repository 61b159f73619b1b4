"""Which losses of power are tried: every subset of what was pending where that is little, else some that are drawn.

A seed names a loss. An even one takes the next of an enumeration, in strides, so that few seeds already come from all
over the record; so many seeds as the enumeration is long, times two, take all of it. An odd one draws.
"""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tests.crash.images import PAGE_BYTES, SECTOR_BYTES, Moment, Piece
from tests.crash.tracing import Write

FEW_PIECES: Final = 10  # with more of them pending, the subsets of a moment are drawn and not enumerated
STRIDE: Final = 1_000_003  # a prime
SHARES: Final = (0.1, 0.5, 0.9)
ZEROS: Final = bytes(SECTOR_BYTES)


@dataclass(frozen=True, slots=True)
class Loss:
    """One loss of power: when, and what had arrived of what was pending."""

    moment: Moment
    way: str
    arrived: tuple[Piece, ...]


class Losses:
    """The losses of one record, by seed."""

    def __init__(self, moments: Sequence[Moment]) -> None:
        self._moments = moments
        self._busy = [moment for moment in moments if moment.pending]
        before = [None, *moments]
        self._ends = list(itertools.accumulate(map(_new_subsets, before, moments)))
        self.enumerated = self._ends[-1]

    def of_seed(self, seed: int) -> Loss:
        if seed % 2 == 0 and self.enumerated:
            return self._enumerate(seed // 2 * STRIDE % self.enumerated)
        chance = random.Random(seed)
        moment = chance.choice(self._busy or self._moments)
        way = chance.choice(list(WAYS))
        return Loss(moment, way, tuple(WAYS[way](moment.pending, chance)) if moment.pending else ())

    def _enumerate(self, number: int) -> Loss:
        at = bisect.bisect_right(self._ends, number)
        moment = self._moments[at]
        mask = self._ends[at] - 1 - number  # the subsets with the newest piece come first
        mask = (1 << len(moment.pending)) - 1 - mask
        arrived = (piece for bit, piece in enumerate(moment.pending) if mask >> bit & 1)
        return Loss(moment, "enumerated", tuple(arrived))


def _new_subsets(before: Moment | None, moment: Moment) -> int:
    """Return how many subsets of what is pending were not met a moment earlier.

    A new piece makes those with it. Where nothing changed on the disk the program may have acknowledged something: then
    all of them count anew. A sync leaves fewer.
    """
    count = len(moment.pending)
    if count > FEW_PIECES:
        return 0
    if before is None or before.pending == moment.pending:
        return 1 << count
    return 1 << count - 1 if count > len(before.pending) else 1


def _some(pieces: Iterable[Piece], chance: random.Random) -> list[Piece]:
    share = chance.choice(SHARES)
    return [piece for piece in pieces if chance.random() < share]


def _all_but_one(pieces: Sequence[Piece], chance: random.Random) -> list[Piece]:
    lost = chance.randrange(len(pieces))
    return [*pieces[:lost], *pieces[lost + 1 :]]


def _torn(pieces: Sequence[Piece], chance: random.Random) -> list[Piece]:
    """Some arrive, and of one the first bytes."""
    at = chance.randrange(len(pieces))
    torn = pieces[at]
    if isinstance(torn.change, Write):
        torn = torn.first(chance.randrange(1, max(len(torn.change.data), 2)))
    return [*_some(pieces[:at], chance), torn, *_some(pieces[at + 1 :], chance)]


def _filled(pieces: Sequence[Piece], chance: random.Random) -> list[Piece]:
    """Of some that did not arrive the file has the size, with zeros there or with what the disk held before."""
    share = chance.choice(SHARES)
    filled = chance.choice((ZEROS, chance.randbytes(SECTOR_BYTES)))
    sectors = (sector for piece in pieces for sector in piece.split(SECTOR_BYTES))
    return [sector if chance.random() < share else sector.fill(filled) for sector in sectors if chance.random() < 0.9]


def _one_file(pieces: Sequence[Piece], chance: random.Random) -> list[Piece]:
    """What is of one file arrives, and nothing of the others."""
    inode = chance.choice(pieces).inode
    return [piece for piece in pieces if piece.inode == inode]


WAYS: Final[dict[str, Callable[[Sequence[Piece], random.Random], Iterable[Piece]]]] = {
    "nothing": lambda _pieces, _chance: (),
    "everything": lambda pieces, _chance: pieces,
    "the first ones": lambda pieces, chance: pieces[: chance.randrange(len(pieces))],
    "all but one": _all_but_one,
    "only the last": lambda pieces, _chance: pieces[-1:],
    "one file": _one_file,
    "some writes": _some,
    "some pages": lambda pieces, chance: _some((page for piece in pieces for page in piece.split(PAGE_BYTES)), chance),
    "some sectors": lambda pieces, chance: _some(
        (sector for piece in pieces for sector in piece.split(SECTOR_BYTES)), chance
    ),
    "one torn": _torn,
    "filled": _filled,
}
