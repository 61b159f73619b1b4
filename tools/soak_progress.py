"""What a soak has done so far: which units of which programme ran, at which commit, and what is next.

A programme does units that are numbered from 1; unit i is the seed i of its own. A chunk is a run of units that ended.
The record of a soak is a file of lines, one JSON object for each chunk, and only ever appended to. A chunk that ran
again, since it had found something and the sources were changed, takes the place of the one before: no unit counts
twice. The record stays on its machine; a checkout that has none goes on from what was published, which is committed.
"""

import itertools
import json
import os
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

PUBLISHED = Path("docs") / "results" / "reliability.json"


class UnfitError(Exception):
    """The list or the record can't be used as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Programme:
    """One programme of the list."""

    name: str
    measure: str  # as the page says it
    command: str  # with {seed} and {count}
    chunk: int  # units of one run
    target: int  # units in all; 0: as many as the list of faults has
    mark: str  # what the page holds it to
    proves: str  # what a violation would mean
    whole: bool = False  # a chunk is never made smaller to fit the time that is left
    names: bool = False  # its units have names instead of seeds: `{names}` in the command


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Units of one programme that ran to their end."""

    programme: str
    seed: int
    count: int
    violations: int
    seconds: float
    detail: dict[str, int]
    commit: str
    machine: str
    date: str
    names: list[str] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The first unit behind it."""
        return self.seed + self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Units to be run now."""

    programme: Programme
    seed: int
    count: int
    names: tuple[str, ...] = ()


def read_programmes(path: Path) -> list[Programme]:
    """Read the list, in its order."""
    programmes = [Programme(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["programme"]]
    names = [programme.name for programme in programmes]
    if len(set(names)) != len(names):
        raise UnfitError(f"{path.name}: two programmes have one name")
    for programme in programmes:
        wanted = ("{names}",) if programme.names else ("{seed}", "{count}")
        if not all(place in programme.command for place in wanted) or programme.chunk < 1:
            raise UnfitError(f"{path.name}: {programme.name}: a command has {' and '.join(wanted)}, a chunk a unit")
    return programmes


def read_chunks(path: Path) -> list[Chunk]:
    """Read the record. A line that was being written when its writer died is none, and its units run again."""
    if not path.exists():
        return []
    chunks = []
    for number, line in enumerate(path.read_bytes().rpartition(b"\n")[0].splitlines(), start=1):
        try:
            chunks.append(Chunk(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise UnfitError(f"{path}, line {number}: no chunk: {error}") from error
    standing(chunks)
    return chunks


def taken_over(path: Path) -> list[Chunk]:
    """Return what was published, as the chunks of a new record; none where nothing was.

    Raises:
        UnfitError: the file is not one that a soak has written.
    """
    if not path.exists():
        return []
    try:
        measures = json.loads(path.read_text(encoding="utf-8"))["measures"]
        chunks = [chunk for one in measures for chunk in published_chunks(one["programme"], one["runs"])]
    except (ValueError, TypeError, KeyError) as error:
        raise UnfitError(f"{path} is no report of a soak: {error}") from error
    standing(chunks)
    return chunks


def published_chunks(programme: str, runs: Iterable[dict[str, Any]]) -> list[Chunk]:
    """Return the runs of a programme that `to_publish` gave, as chunks."""
    return [Chunk(programme=programme, **run) for run in runs]


def to_publish(chunks: Iterable[Chunk]) -> list[dict[str, Any]]:
    """Return what stands of one programme, the clean neighbours of one commit, machine and day as one run each."""
    joined: list[Chunk] = []
    for chunk in standing(chunks):
        follows = joined and _joins(joined[-1], chunk)
        joined.append(_joined(joined.pop(), chunk) if follows else chunk)
    ordered = [asdict(replace(chunk, detail=dict(sorted(chunk.detail.items())))) for chunk in joined]
    return [{name: value for name, value in one.items() if name != "programme"} for one in ordered]


def _joins(first: Chunk, second: Chunk) -> bool:
    """Tell whether a chunk is the other one's continuation: units that found something are run again as they were."""
    alike = (first.commit, first.machine, first.date) == (second.commit, second.machine, second.date)
    return alike and not first.violations and not second.violations and first.end == second.seed


def _joined(first: Chunk, second: Chunk) -> Chunk:
    return replace(
        first,
        count=first.count + second.count,
        seconds=round(first.seconds + second.seconds, 1),
        detail=dict(Counter(first.detail) + Counter(second.detail)),
        names=first.names + second.names,
    )


def write_chunks(path: Path, chunks: Iterable[Chunk]) -> None:
    """Append chunks behind the last whole line, so that they are there when this returns."""
    with path.open("ab") as file:
        file.truncate(path.read_bytes().rfind(b"\n") + 1)
        file.writelines(json.dumps(asdict(chunk), ensure_ascii=False).encode() + b"\n" for chunk in chunks)
        file.flush()
        os.fsync(file.fileno())


def standing(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Return the chunks that count: the newest of each run of units.

    Raises:
        UnfitError: two of them share a unit.
    """
    newest = {(chunk.programme, chunk.seed): chunk for chunk in chunks}
    result = sorted(newest.values(), key=lambda chunk: (chunk.programme, chunk.seed))
    for first, second in itertools.pairwise(result):
        if first.programme == second.programme and second.seed < first.end:
            raise UnfitError(f"{first.programme}: the unit {second.seed} stands in two chunks of the record")
    return result


def done(programme: Programme, chunks: Iterable[Chunk]) -> int:
    """Return how many units of a programme count."""
    return sum(chunk.count for chunk in standing(chunks) if chunk.programme == programme.name)


def next_order(
    programme: Programme, chunks: Sequence[Chunk], running: Sequence[Order], commit: str, room: int | None
) -> Order | None:
    """Return what the programme runs next; None: nothing is left to run, or not now.

    Args:
        chunks: the record.
        running: what runs now, of any programme.
        commit: of the sources as they are: what found something at another commit is run again, unit by unit the same.
        room: the most units that the time left has room for; None: not known.
    """
    own = [chunk for chunk in standing(chunks) if chunk.programme == programme.name]
    taken = [order for order in running if order.programme.name == programme.name]
    for chunk in own:
        if chunk.violations and chunk.commit != commit and all(order.seed != chunk.seed for order in taken):
            return Order(programme=programme, seed=chunk.seed, count=chunk.count, names=tuple(chunk.names))
    spans = sorted({(c.seed, c.end) for c in own} | {(o.seed, o.seed + o.count) for o in taken})
    left = programme.target - sum(end - seed for seed, end in spans)
    start, gap = 1, left
    for seed, end in spans:
        if seed > start:
            gap = seed - start
            break
        start = end
    count = min(programme.chunk, gap, left)
    if room is not None and not programme.whole:
        count = min(count, room)
    return Order(programme=programme, seed=start, count=count) if count > 0 else None


def next_named(
    programme: Programme, names: Sequence[str], chunks: Sequence[Chunk], running: Sequence[Order], commit: str
) -> Order | None:
    """As `next_order`, for units that have names: those of the list that did not run yet, whatever was added to it."""
    own = [chunk for chunk in standing(chunks) if chunk.programme == programme.name]
    taken = [order for order in running if order.programme.name == programme.name]
    again = [c for c in own if c.violations and c.commit != commit and all(o.seed != c.seed for o in taken)]
    if again:
        kept = tuple(name for name in again[0].names if name in names)
        return Order(programme=programme, seed=again[0].seed, count=len(kept), names=kept) if kept else None
    known = {name for chunk in own for name in chunk.names} | {name for order in taken for name in order.names}
    fresh = tuple(name for name in names if name not in known)[: programme.chunk]
    seed = max([1, *(chunk.end for chunk in own), *(order.seed + order.count for order in taken)])
    return Order(programme=programme, seed=seed, count=len(fresh), names=fresh) if fresh else None
