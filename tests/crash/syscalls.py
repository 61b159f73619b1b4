"""Law (I1, I2, I5, I7, I13, I14, I18, I19): a process may die, and its disk may fail, at any write that it makes.

    python tests/crash/syscalls.py --seed 1 --count 1000 [--json] [--verb NAME]…

For each verb, on each of the stores that PREPARATIONS prepares, an undisturbed run is recorded: each system call by
which it changes a file. Then in each unit one of these calls is struck, in one of six ways:

- `before`, `after`, `torn`: SIGKILL instead of it, when it is done, or when a part of its bytes is written;
- `EIO`, `ENOSPC`: it is not made, and says that the disk failed, or is full; `full`: so do all after it that need
  space, until the verb has ended.

After a kill:
- every table, row by row, is as one of the undisturbed run's commits left it: the last one if it was acknowledged;
- SQLite finds its structures whole, and `verify` finds nothing;
- the verb, called again by another process a day later, leaves what users see as the undisturbed run left it; what it
  did outside was done once.

After an error the program goes on: the verb ended by an error of ours, and what users see was as a commit of the
undisturbed run left it; called again, on the same open store, it leaves all as the undisturbed run did. Or nobody
noticed, since SQLite can do without that call: then it is done.

The table of units is made anew by each start, and is always the same; seed S is one of its places, by a fixed shuffle.
So as many seeds as the table is long meet each unit once; seeds beyond tear writes at other bytes.
Rows that are byte for byte those of a state that was seen and verified are not seen and verified again.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

import strandline  # noqa: E402
from strandline.stores.sqlite.store import SqliteStore  # noqa: E402
from strandline.testing import SeededEntropy, VirtualClock  # noqa: E402
from tests.crash.sabotage import SABOTAGES, Sabotage, nothing_broken  # noqa: E402
from tests.crash.tracing import (  # noqa: E402
    Create,
    Deed,
    Mark,
    Operation,
    Report,
    Run,
    Strike,
    Tap,
    Write,
    why_not,
)
from tests.crash.verbs import VERBS, Verb, World, write_history  # noqa: E402
from tests.crash.visible import STORE, Tables, Visible, look, read_rows, read_tables  # noqa: E402

PREPARATIONS: Final = {
    "closed": "a store that was closed",
    "wal": "a store with a write-ahead log that a process left behind",
    "near": "a store whose write-ahead log is copied into it at the next commit",
}
NOT_MADE: Final = "no store"
LATER_S: Final = 86_400.0  # when somebody calls the verb again: no lease lasts as long
MEMORY: Final = Path("/dev/shm")  # a kill loses nothing of what was written, so no disk is needed
FRAME_BYTES, WAL_HEADER_BYTES = 4_120, 32  # of a page in the log, and before the first
TOLD_EVERY: Final = 100  # units
KILLS: Final = (Deed.BEFORE, Deed.AFTER, Deed.TORN)


# ------------------------------------------------------------------------------------------------ scenes


@dataclass(frozen=True, slots=True)
class State:
    """What a commit left."""

    rows: str
    tables: Tables
    visible: Visible


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the undisturbed run."""

    told: str
    bytes: int  # of a write
    may_be_full: bool  # whether it needs space


@dataclass(slots=True)
class Scene:
    """A verb on a store: what its undisturbed run does, and leaves."""

    verb: Verb
    preparation: str
    files: Path  # the prepared store
    checkpoint_pages: int | None = None  # of the log, after which it is copied into the store; None: SQLite's own
    calls: list[Call] = field(default_factory=list)
    states: list[State] = field(default_factory=list)  # before it, and after each commit that changed something
    acts: int = 0  # what it does outside

    @property
    def name(self) -> str:
        return f"{self.verb.name!r} on {PREPARATIONS.get(self.preparation, NOT_MADE)}"

    def broken(self) -> list[str]:
        """Return what is wrong with the undisturbed run itself."""
        steps = len({json.dumps(state.visible) for state in self.states}) - 1
        known = self.verb.steps
        return [f"{self.name}: users see {steps} commits; the law knows {known}"] if steps > known else []

    def deeds(self) -> Iterator[tuple[int, Deed]]:
        """Return what can be done to its calls."""
        for number, call in enumerate(self.calls):
            yield from ((number, deed) for deed in (Deed.BEFORE, Deed.AFTER, Deed.EIO, Deed.ENOSPC))
            if call.may_be_full:
                yield number, Deed.FULL
            if call.bytes > 1:
                yield number, Deed.TORN


@contextmanager
def opened(folder: Path, seed: int, clock: VirtualClock) -> Iterator[strandline.Strandline]:
    """Open the store; each opening has an entropy of its own, as two processes have."""
    with strandline.open(folder / STORE, clock=clock, entropy=SeededEntropy(seed)) as db:
        yield db


def nothing(text: str) -> None:
    """Hear a report, and forget it."""


class Client:
    """The process that is struck: calls a verb, and once more where that was refused.

    It reports `did …` for what it did outside, `refused …` for an error of ours, with `saw` and the sections of what
    users see then that no commit of an undisturbed run left, and `done` with the answer: so it is acknowledged.
    """

    def __init__(self, scene: Scene, folder: Path, broken: Sabotage) -> None:
        self._scene, self._folder, self._broken = scene, folder, broken

    def __call__(self, report: Report) -> None:
        self._broken()
        self._checkpoint_after()
        clock, outside, db = VirtualClock(), list[str](), None
        try:
            for _ in range(2):
                try:
                    db = db or strandline.open(self._folder / STORE, clock=clock, entropy=SeededEntropy(3))
                    answer = self._scene.verb.run(World(db, self._folder, outside, report))
                except strandline.StrandlineError as error:
                    report(f"refused {type(error).__name__}: {error}")
                    self._look(report)
                    clock.advance(LATER_S)
                else:
                    report(f"done {answer}")
                    return
        finally:
            if db is not None:
                db.close()

    def _look(self, report: Report) -> None:
        if read_rows(self._folder)[0] in [state.rows for state in self._scene.states]:
            return
        seen, problems = look(self._folder)
        states = [state.visible for state in self._scene.states]
        if seen not in states:
            problems.append(f"other than before and after in {differences(seen, states)}")
        for problem in problems:
            report(f"saw {problem}")

    def _checkpoint_after(self) -> None:
        pages, connect = self._scene.checkpoint_pages, SqliteStore.connect

        def connect_near(store: SqliteStore, *, read_only: bool) -> sqlite3.Connection:
            connection = connect(store, read_only=read_only)
            connection.execute(f"PRAGMA wal_autocheckpoint={pages}")
            return connection

        if pages is not None:
            SqliteStore.connect = connect_near  # type: ignore[method-assign]


def differences(found: dict[str, str], allowed: list[dict[str, str]]) -> str:
    """Return where something differs from what it is nearest to."""
    different = [[key for key in found | other if found.get(key) != other.get(key)] for other in allowed]
    return ", ".join(sorted(min(different, key=len)))


def without_doubts(visible: Visible) -> Visible:
    """Return what is seen without what tells of an effect that was in doubt."""
    telling = ("log", "context", "lineage", "cases", "permits")
    return {section: seen for section, seen in visible.items() if not section.rpartition(": ")[2].startswith(telling)}


# ------------------------------------------------------------------------------------------------ the stage


class Stage:
    """A folder in which scenes are prepared, recorded, struck and looked at."""

    def __init__(self, folder: Path, broken: Sabotage) -> None:
        self._folder = folder / "stage"
        self._prepared = folder / "prepared"
        self._empty = folder / "empty"
        for made in (self._folder, self._prepared, self._empty):
            made.mkdir()
        self._tap = Tap(self._folder)
        self._broken = broken
        self._looked: dict[str, tuple[Visible, list[str]]] = {}  # by rows

    # -------------------------------------------------------------------------------------------- before

    def scenes(self, verbs: list[Verb]) -> Iterator[Scene]:
        """Prepare and record each verb on each store. The rows are the same on all of them."""
        for verb in verbs:
            states: list[State] = []
            for preparation in PREPARATIONS if verb.made else [NOT_MADE]:
                scene = self._prepare(verb, preparation)
                scene.states = states = states or self._commits(scene)
                self._record(scene)
                yield scene

    def _prepare(self, verb: Verb, preparation: str) -> Scene:
        if not verb.made:
            return Scene(verb, preparation, self._empty)
        base = self._prepared / ("history" if verb.history else "no history")
        if not base.exists():
            self._lay(self._empty)
            with opened(self._folder, 1, VirtualClock()) as db:
                if verb.history:
                    write_history(World(db, self._folder, [], nothing))
            self._lift(base)
        files = self._prepared / f"{verb.name} {preparation}"
        self._lay(base)
        with opened(self._folder, 2, VirtualClock()) as db:
            world = World(db, self._folder, [], nothing)
            verb.prepare(world)
            world.db.tenant("other").workflow("left").append(strandline.note("left behind", key="left"))
            if preparation != "closed":
                self._lift(files)
        if preparation == "closed":
            self._lift(files)
        if preparation != "near":
            return Scene(verb, preparation, files)
        frames = ((files / f"{STORE}-wal").stat().st_size - WAL_HEADER_BYTES) // FRAME_BYTES
        return Scene(verb, preparation, files, frames + 1)

    def _commits(self, scene: Scene) -> list[State]:
        """Run it undisturbed, and return the state before it, and after each commit."""
        self._lay(scene.files)
        run = self._tap.record(lambda report: self._tell_commits(scene, report))
        if run.exit:
            raise SystemExit(f"{scene.name}: the undisturbed run failed: {run.reports[-1]}")
        return [State(*json.loads(text)) for text in run.reports]

    def _record(self, scene: Scene) -> None:
        """Run it undisturbed, and keep its calls."""
        self._lay(scene.files)
        run = self._tap.record(Client(scene, self._folder, nothing_broken))
        if run.exit or not run.reports[-1].startswith("done"):
            raise SystemExit(f"{scene.name}: the undisturbed run failed: {run.reports[-1]}")
        if read_rows(self._folder)[0] != scene.states[-1].rows:
            raise SystemExit(f"{scene.name}: two undisturbed runs leave different rows: the stage is no good")
        scene.calls = [
            Call(told(call), len(call.data) if isinstance(call, Write) else 0, isinstance(call, Write | Create))
            for call in run.operations
            if not isinstance(call, Mark)
        ]
        scene.acts = acts(run)

    def _tell_commits(self, scene: Scene, report: Report) -> None:
        """Run the verb in this process, and report the state before it, and after each commit that changed it."""
        rows: list[str] = []

        def tell() -> None:
            now, problems = read_rows(self._folder)
            if now not in rows[-1:]:
                rows.append(now)
                tables = read_tables(self._folder)
                visible, more = look(self._folder) if tables else ({}, [])
                if problems or more:
                    raise AssertionError(problems + more)
                report(json.dumps([now, tables, visible]))

        write = SqliteStore.write

        @contextmanager
        def write_and_tell(store: SqliteStore, *arguments: object, **options: object) -> Iterator[object]:
            with write(store, *arguments, **options) as tx:
                yield tx
            tell()

        tell()
        with opened(self._folder, 3, VirtualClock()) as db:
            SqliteStore.write = write_and_tell
            tell()
            scene.verb.run(World(db, self._folder, [], nothing))
            tell()

    # -------------------------------------------------------------------------------------------- a unit

    def strike(self, scene: Scene, strike: Strike) -> tuple[Run, list[str]]:
        """Strike a call; return the run, and what was wrong after it."""
        self._lay(scene.files)
        run = self._tap.strike(Client(scene, self._folder, self._broken), strike)
        try:
            if strike.deed in KILLS and run.struck is not None:
                return run, self._after_kill(scene, run)
            return run, self._after_error(scene, run)
        except (strandline.StrandlineError, sqlite3.Error) as error:
            return run, [f"{type(error).__name__}: {error}"]

    def _after_kill(self, scene: Scene, run: Run) -> list[str]:
        rows, damage = read_rows(self._folder)
        wrong = list(damage)
        states = [state.rows for state in scene.states]
        if rows not in states:
            wrong.append(f"the tables are as no commit left them: {self._nearest(scene.states)}")
        elif acknowledged(run) and rows != states[-1]:
            wrong.append(f"it was acknowledged, and is not there: {self._nearest(scene.states[-1:])}")
        outside = [text.removeprefix("did ") for text in run.reports if text.startswith("did ")]
        clock = VirtualClock()
        clock.advance(LATER_S)
        with opened(self._folder, 5, clock) as db:
            scene.verb.run(World(db, self._folder, outside, nothing))
        if len(outside) != scene.acts:
            wrong.append(f"outside, it was done {len(outside)} times: {outside}")
        doubts = scene.verb.doubts and rows not in (states[0], states[-1])
        return wrong + self._at_the_end(scene, "called again", doubts=doubts)

    def _nearest(self, states: list[State]) -> str:
        return differences(read_tables(self._folder), [state.tables for state in states])

    def _after_error(self, scene: Scene, run: Run) -> list[str]:
        wrong = [text for text in run.reports if text.startswith("saw ")]
        if run.exit or not acknowledged(run):
            wrong.append(f"it was not done when it was called again, and ended with {run.exit}: {run.reports[-1:]}")
        if acts(run) != scene.acts:
            wrong.append(f"outside, it was done {acts(run)} times")
        return wrong + self._at_the_end(scene, "after the error", doubts=scene.verb.doubts)

    def _at_the_end(self, scene: Scene, when: str, *, doubts: bool) -> list[str]:
        rows, damage = read_rows(self._folder)
        if rows not in self._looked:
            self._looked[rows] = look(self._folder)
        visible, problems = self._looked[rows]
        wrong = [f"{when}, {problem}" for problem in damage + problems]
        wanted = scene.states[-1].visible
        if doubts:
            visible, wanted = without_doubts(visible), without_doubts(wanted)
        if visible != wanted:
            wrong.append(f"{when}, it is other than undisturbed in {differences(visible, [wanted])}")
        return wrong

    # -------------------------------------------------------------------------------------------- files

    def _lay(self, files: Path) -> None:
        for path in self._folder.iterdir():
            path.unlink()
        for path in files.iterdir():
            shutil.copyfile(path, self._folder / path.name)

    def _lift(self, files: Path) -> None:
        shutil.copytree(self._folder, files)


def acknowledged(run: Run) -> bool:
    return any(text.startswith("done") for text in run.reports)


def acts(run: Run) -> int:
    return sum(text.startswith("did ") for text in run.reports)


# ------------------------------------------------------------------------------------------------ the programme


@dataclass(slots=True)
class Tally:
    """What was met."""

    count: int = 0
    violations: list[str] = field(default_factory=list)
    detail: Counter[str] = field(default_factory=Counter)


class Programme:
    """The table of units, and how they are done."""

    def __init__(self, stage: Stage, verbs: list[Verb], sabotage: str | None) -> None:
        self._stage = stage
        self._words = "".join(f" --verb {verb.name!r}" for verb in verbs) if len(verbs) < len(VERBS) else ""
        self._words += f" --sabotage {sabotage}" if sabotage else ""
        scenes = list(stage.scenes(verbs))
        self.broken = [fault for scene in scenes for fault in scene.broken()]
        self.scenes = len(scenes)
        self.table = [(scene, call, deed) for scene in scenes for call, deed in scene.deeds()]
        random.Random(0).shuffle(self.table)
        gc.collect()
        gc.freeze()  # what a fork would copy when it collects

    def run(self, seed: int, count: int) -> Iterator[Tally]:
        """Do units, and tell after each what was met so far."""
        tally = Tally(violations=list(self.broken))
        tally.detail |= {"table": len(self.table), "scenes": self.scenes, "covered": min(count, len(self.table))}
        for number in range(seed, seed + count):
            self._unit(number, tally)
            yield tally

    def _unit(self, seed: int, tally: Tally) -> None:
        scene, number, deed = self.table[seed % len(self.table)]
        call = scene.calls[number]
        keep = random.Random(seed).randrange(1, call.bytes) if deed is Deed.TORN else 0
        run, wrong = self._stage.strike(scene, Strike(number, deed, keep))
        tally.count += 1
        tally.detail[deed.value] += 1
        tally.detail[_ending(run)] += 1
        if wrong:
            met = f"call {number} of {len(scene.calls)}, {call.told}, {deed.value}" + (f" {keep} bytes" * bool(keep))
            repeat = f"again: python tests/crash/syscalls.py --seed {seed} --count 1{self._words}"
            story = "\n".join([f"seed {seed}: {scene.name}: {met}", *(f"  {fault}" for fault in wrong), f"  {repeat}"])
            tally.violations.append(story)


def _ending(run: Run) -> str:
    if run.struck is None:
        return "missed"  # it ended before that call
    if run.exit < 0:
        return "killed, acknowledged" if acknowledged(run) else "killed, not acknowledged"
    return "refused" if any(text.startswith("refused") for text in run.reports) else "not noticed"


def told(call: Operation) -> str:
    """Return a call in a few words."""
    if isinstance(call, Write):
        return f"write of {len(call.data)} bytes to {call.file} at {call.offset}"
    return f"{type(call).__name__.lower()} of {call.file}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill, or fail, a process at each system call by which it writes.")
    parser.add_argument("--seed", type=int, default=1, help="of the first unit; the next has the next (1)")
    parser.add_argument("--count", type=int, default=1_000, help="how many units (1000)")
    parser.add_argument("--json", action="store_true", help="nothing on stdout but violations and the last line")
    parser.add_argument("--verb", action="append", choices=[verb.name for verb in VERBS], help="these only")
    parser.add_argument("--sabotage", choices=SABOTAGES, help="break the library in this way: it must be found")
    options = parser.parse_args()
    if (reason := why_not()) is not None:
        sys.stderr.write(f"{reason}\n")
        return 2
    verbs = [verb for verb in VERBS if options.verb is None or verb.name in options.verb]
    broken = SABOTAGES[options.sabotage] if options.sabotage else nothing_broken
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="strandline-calls-", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        sys.stderr.write("recording the undisturbed runs\n")
        programme = Programme(Stage(Path(folder), broken), verbs, options.sabotage)
        tally, printed, struck = Tally(), 0, time.perf_counter()
        for tally in programme.run(options.seed, options.count):
            for story in tally.violations[printed:]:
                sys.stdout.write(f"{story}\n")
            printed = len(tally.violations)
            if tally.count % TOLD_EVERY == 0:
                sys.stderr.write(f"{tally.count} of {options.count}, {printed} violations\n")
    seconds = time.perf_counter() - began
    if not options.json:
        rate = tally.count / (time.perf_counter() - struck)
        sys.stdout.write(f"{tally.count} units of a table of {len(programme.table)}, {rate:.1f} a second\n")
    result = {
        "count": tally.count,
        "violations": len(tally.violations),
        "seconds": round(seconds, 1),
        "detail": dict(sorted(tally.detail.items())),
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 1 if tally.violations else 0


if __name__ == "__main__":
    sys.exit(main())
