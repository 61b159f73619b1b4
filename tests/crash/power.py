"""Law (I1, I2, I4, C31): a power loss leaves what was acknowledged, or what the step in progress made of it.

    python tests/crash/power.py --seed 1 --count 1000 [--durability full|normal|off] [--json]

`every_verb.py` writes once, and what it writes and syncs is recorded (`tracing.py`). From the record come images of the
files as a power loss at some moment may leave them (`losses.py`, `images.py`); a seed names an image. Each is opened
with the library:

- the database is, byte for byte, as one of the program's transactions left it: at least the last one that was
  acknowledged before the loss, and no later one than the loss. A half-written one is none of them;
- SQLite finds no damage, nor does `verify`. `verify` reads what was just compared and nothing else, so it is asked once
  for each state of the database, and for every image that is in none;
- what was erased, and proved to be, is in none of the files; a backup is whole once it is there, and there once
  it was acknowledged;
- an append goes on behind what is there.

With "full" no image is bad. With "normal" acknowledged steps are lost, and with "off", which the library does not
offer, the store is damaged: a run that finds nothing there has proved nothing.

The last line is one JSON object. It exits with 1 when an image was bad, with 2 where nothing can be recorded.
"""

from __future__ import annotations

import argparse
import bisect
import hashlib
import json
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

import strandline  # noqa: E402
from tests.crash.every_verb import BACKUP, PERSON, STORE, TENANT, WORKFLOW, opened, run  # noqa: E402
from tests.crash.images import Files, moments  # noqa: E402
from tests.crash.losses import Loss, Losses  # noqa: E402
from tests.crash.tracing import Mark, Operation, Tap, Write, why_not  # noqa: E402

MEMORY: Final = Path("/dev/shm")
OPENING: Final = 1_000  # the seed of the entropy of who looks: no opening of the program had it
WAL: Final = f"{STORE}-wal"
FRAME_HEADER_BYTES: Final = 24  # of the write-ahead log; its second number is 0 but for the last frame of a commit
TOLD: Final = 20  # bad images of which the story is printed; pieces that a story names
TOLD_EVERY: Final = 100  # images, on stderr
DURABILITIES: Final = ("full", "normal", "off")

Record = Sequence[Operation | Mark]


@contextmanager
def a_folder() -> Iterator[Path]:
    """Yield a folder in memory where there is one: what is tried is what arrived, and not this machine's disk."""
    with tempfile.TemporaryDirectory(prefix="strandline-power-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        yield Path(name)


def record(durability: str) -> Record:
    """Run the program and return what it wrote, synced and acknowledged, in order."""
    with a_folder() as folder:
        done = Tap(folder).record(lambda report: run(folder, durability, report))
        if done.exit != 0:
            raise RuntimeError(f"the program failed: {done.reports[-1]}")
        last = moments(done.operations, without="-shm")[-1]
        if last.image(last.pending) != {path.name: path.read_bytes() for path in folder.iterdir()}:
            raise RuntimeError("the program changed a file in a way that is not in the record")
    return done.operations


def lay_out(folder: Path, files: Files) -> None:
    """Make these the files of the folder."""
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def digest_of(store: Path) -> bytes:
    """Return a digest over every page of a database as a reader sees them."""
    with closing(sqlite3.connect(store)) as connection:
        return hashlib.blake2b(connection.serialize()).digest()


# ------------------------------------------------------------------------------------------------ what is allowed


@dataclass(frozen=True, slots=True)
class Allowed:
    """What an image of a moment may hold."""

    least: int  # the number of the state that was acknowledged last
    most: int  # of the newest one that the loss may have left
    step: str  # what the program was doing
    acknowledged: frozenset[str]  # the steps that are done


class History:
    """The states of the database in the order of the program's commits; 0 is no database at all."""

    def __init__(self, record: Record, folder: Path) -> None:
        self.moments = moments(record, without="-shm")
        self.record = record
        self._marks = [(at, mark.text) for at, mark in enumerate(record) if isinstance(mark, Mark)]
        self._numbers: dict[bytes, list[int]] = {}
        self._commits = [0]  # by number: the position in the record behind which the state is there
        for position in _commits(record):
            lay_out(folder, self._whole(position))
            self._numbers.setdefault(digest_of(folder / STORE), []).append(len(self._commits))
            self._commits.append(position)
        self.backup = self._whole(len(record)).get(BACKUP)

    def __len__(self) -> int:
        return len(self._commits)

    def allowed(self, position: int) -> Allowed:
        """Return what an image of the moment behind so many operations may hold."""
        marks = [(at, text) for at, text in self._marks if at < position]
        done = [at for at, text in marks if text.startswith("done ")]
        return Allowed(
            least=self._newest(done[-1]) if done else 0,
            most=self._newest(position),
            step=marks[-1][1] if marks else "begin",
            acknowledged=frozenset(text.removeprefix("done ") for _, text in marks if text.startswith("done ")),
        )

    def number(self, digest: bytes, most: int) -> int | None:
        """Return the number of a state, the newest up to `most` that is like it; None: it is none."""
        numbers = self._numbers.get(digest)
        return max((number for number in numbers if number <= most), default=numbers[0]) if numbers else None

    def _newest(self, position: int) -> int:
        return bisect.bisect_right(self._commits, position) - 1

    def _whole(self, position: int) -> Files:
        moment = self.moments[position]
        return moment.image(moment.pending)


def _commits(record: Record) -> Iterator[int]:
    """Yield the positions behind the last write of each commit: a frame that ends one, and the page that follows."""
    for position, operation in enumerate(record):
        if (
            isinstance(operation, Write)
            and operation.file == WAL
            and len(operation.data) == FRAME_HEADER_BYTES
            and any(operation.data[4:8])
        ):
            yield position + 2


# ------------------------------------------------------------------------------------------------ the trial


@dataclass
class Counts:
    """What the trial has met."""

    detail: Counter[str] = field(default_factory=Counter)
    images: set[bytes] = field(default_factory=set)
    stories: list[str] = field(default_factory=list)


class Trial:
    """Makes images of one record and looks at them.

    Args:
        history: of the record.
        folder: an empty one.
        again: the command that shows a bad image again, but for its seed.
    """

    def __init__(self, history: History, folder: Path, again: str = "") -> None:
        self.history = history
        self._folder = folder
        self._again = again
        self._proved: set[bytes] = set()  # digests of states that `verify` found well
        self.counts = Counts()

    def look(self, seed: int, losses: Losses) -> None:
        """Make the image of a seed and look at it."""
        loss = losses.of_seed(seed)
        files = loss.moment.image(loss.arrived)
        allowed = self.history.allowed(loss.moment.position)
        lay_out(self._folder, files)
        faults = [*self._of_files(files, allowed), *self._of_store(allowed)]
        detail = self.counts.detail
        self.counts.images.add(_digest_of_files(files))
        detail[loss.way] += 1
        detail[f"in {allowed.step.partition(' ')[2]}"] += 1
        for kind in {kind for kind, _ in faults}:
            detail[kind] += 1
        if faults:
            detail["bad"] += 1
            self.counts.stories.append(self._story(seed, loss, allowed, faults))

    def _of_files(self, files: Files, allowed: Allowed) -> Iterator[tuple[str, str]]:
        if "erase" in allowed.acknowledged:
            for name, content in files.items():
                if name != BACKUP and PERSON.encode() in content:
                    yield "erased came back", f"what was erased stands in {name}"
        backup = files.get(BACKUP)
        if backup is not None and backup != self.history.backup:
            yield "damaged", "the backup has its name, and is not whole"
        if backup is None and "backup" in allowed.acknowledged:
            yield "lost", "the backup that was acknowledged is not there"

    def _of_store(self, allowed: Allowed) -> Iterator[tuple[str, str]]:
        store = self._folder / STORE
        try:
            with opened(store, seed=OPENING) as db:
                yield from self._of_state(db, digest_of(store), allowed)
                workflow = db.tenant(TENANT).workflow(WORKFLOW)
                before = workflow.basis().revision
                added = workflow.append(strandline.message("user", "The power is back.", key="power"))
                if added.seqs != (before + 1,):
                    yield "damaged", f"an append behind event {before} became {added.seqs}"
        except (strandline.StrandlineError, sqlite3.Error) as error:
            yield "damaged", f"{type(error).__name__}: {error}"

    def _of_state(self, db: strandline.Strandline, digest: bytes, allowed: Allowed) -> Iterator[tuple[str, str]]:
        number = self.history.number(digest, allowed.most)
        if number is None and not db.store.scopes():
            number = 0
        if number is None:
            yield "damaged", f"the database is as none of {len(self.history)} transactions left it"
        elif number < allowed.least:
            yield "lost", f"state {number} is there, and state {allowed.least} was acknowledged"
        elif number > allowed.most:
            yield "damaged", f"state {number} is there, and only {allowed.most} can be"
        elif number > allowed.least:
            self.counts.detail["newer than acknowledged"] += 1
        yield from (("damaged", problem) for problem in db.store.problems())
        if number is None or digest not in self._proved:
            report = db.verify()
            yield from (("damaged", f"verify: {problem.place}: {problem.reason}") for problem in report.problems)
            self.counts.detail["verified"] += 1
            if report.ok:
                self._proved.add(digest)

    def _story(self, seed: int, loss: Loss, allowed: Allowed, faults: Sequence[tuple[str, str]]) -> str:
        arrived = [f"    {piece}" for piece in loss.arrived]
        return "\n".join(
            [
                f"seed {seed}: the power went at operation {loss.moment.position}, after {allowed.step!r}.",
                f"  Of {len(loss.moment.pending)} pending pieces arrived ({loss.way}):",
                *(arrived[:TOLD] or ["    nothing"]),
                *([f"    and {len(arrived) - TOLD} more"] if len(arrived) > TOLD else []),
                *(f"  {kind}: {what}" for kind, what in faults),
                f"  Again: {self._again} --seed {seed} --count 1",
            ]
        )


def _digest_of_files(files: Files) -> bytes:
    digest = hashlib.blake2b()
    for name in sorted(files):
        digest.update(f"{name}/{len(files[name])}/".encode())
        digest.update(files[name])
    return digest.digest()


def main() -> int:
    parser = argparse.ArgumentParser(description="Look at what a power loss may leave of a store's files.")
    parser.add_argument("--seed", type=int, default=1, help="of the first image; the next has the next")
    parser.add_argument("--count", type=int, default=1_000, help="how many images")
    parser.add_argument("--durability", choices=DURABILITIES, default="full", help="of the store that is written")
    parser.add_argument("--json", action="store_true", help="nothing but bad images, and the last line")
    options = parser.parse_args()
    if reason := why_not():
        sys.stderr.write(f"power.py can't run: {reason}\n")
        return 2
    began = time.perf_counter()
    seeds = range(options.seed, options.seed + options.count)
    again = f"python tests/crash/power.py --durability {options.durability}"
    with a_folder() as folder:
        history = History(record(options.durability), folder)
        losses = Losses(history.moments)
        trial = Trial(history, folder, again)
        for done, seed in enumerate(seeds, 1):
            trial.look(seed, losses)
            if done % TOLD_EVERY == 0 or done == len(seeds):
                sys.stderr.write(f"\r{done} images, {trial.counts.detail['bad']} bad")
    sys.stderr.write("\n")
    counts = trial.counts
    counts.detail["distinct images"] = len(counts.images)
    counts.detail["states"] = len(history)
    counts.detail["subsets to enumerate"] = losses.enumerated
    seconds = round(time.perf_counter() - began, 3)
    bad = counts.detail["bad"]
    for story in counts.stories[:TOLD]:
        sys.stdout.write(f"{story}\n")
    if not options.json:
        sys.stdout.write("".join(f"{number:8d}  {name}\n" for name, number in sorted(counts.detail.items())))
    told = {"count": options.count, "violations": bad, "seconds": seconds, "detail": dict(counts.detail)}
    sys.stdout.write(f"{json.dumps(told)}\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
