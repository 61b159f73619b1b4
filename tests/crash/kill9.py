"""Law (I1, I2, I5, I7, I13, I14): a process may die at any instruction: the store is what it was or what it becomes.

    python tests/crash/kill9.py --kills 200 --seed 1 [--file FILE] [--postgres client|server] [--json]

The store is a file; with --postgres it is a database of a durable server that is started for this, and killed is
the program, or the server under it, which is then started again.

Kills `program.py` by SIGKILL at random moments and looks at the store after each. A kill is timed in one of three ways,
drawn at random: uniformly over the whole run; uniformly within a step that is drawn uniformly, so that short steps get
their share; or within the commit of a writing transaction that is drawn uniformly, where the write system calls are.
Durations are those of an undisturbed run that is measured first. The wait before a kill is the only sleep.

After each kill:
- `verify` finds nothing;
- the memory (context, manifest, lineage, log, what `recover` would do) is exactly that before or that after the step in
  progress, as an undisturbed run had it; so what was acknowledged is there, and nothing half-written is visible.

The program runs on a copy of the package, so that an edit made meanwhile is no violation. After a kill it goes on, and
may be killed again. When it reaches its end, the memory and the log (seq, kind, key, body) are those of the undisturbed
run, without a duplicate, and `verify` finds nothing.

Prints its counts, with --json as a programme of `make soak` does; exits with 1 when a check failed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psycopg
from program import STEPS, WHOLE, WORKFLOW, Program

import strandline
from strandline.engine.reading import read_log
from strandline.model.ids import Scope
from strandline.testing.protocol import conforms

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))
from tools.servers import PostgresServer, start_postgres  # noqa: E402

REAL: Final = ROOT.parent / "shared/data/claude_code_entire/53ea1606.jsonl"
DEMO: Final = ROOT / "demo/transcripts/api-tests.jsonl"
HUNG_S: Final = 120.0  # a child that runs longer is stuck
GO_ON: Final = 0.25  # the share of kills after which the next run is not killed
LIVES_MAX: Final = 20  # stores per kill that was asked for; a run may end before its kill comes
ALONE_DEADLINE_S: Final = 60.0  # until PostgreSQL has noticed that a client is gone
POLL_S: Final = 0.01


# ---------------------------------------------------------------------------------------------- where a store is


@dataclass(frozen=True)
class Life:
    """What one life of the program writes to: from its first run until one reaches the end."""

    url: str
    tenant: str


class Files:
    """Each life has a file of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lives = 0

    def new_life(self) -> Life:
        self._lives += 1
        return Life(str(self._folder / f"{self._lives}.db"), "crash")

    def strike(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()

    def settle(self, life: Life) -> None:
        """Nothing of a killed program goes on."""

    def forget(self, life: Life) -> None:
        for path in self._folder.glob(f"{Path(life.url).name}*"):
            path.unlink()


class Database:
    """All lives share a database; each is a tenant of its own."""

    def __init__(self, server: PostgresServer, victim: str) -> None:
        self._server, self._victim = server, victim
        self._url = server.create_database("crash")
        self._lives = 0

    def new_life(self) -> Life:
        self._lives += 1
        return Life(self._url, f"crash-{self._lives}")

    def strike(self, process: subprocess.Popen[bytes]) -> None:
        if self._victim == "server":
            self._server.kill()
        else:
            process.kill()

    def settle(self, life: Life) -> None:
        """Wait until nobody else is connected: a killed client's transaction may go on for a moment."""
        if self._victim == "server":
            self._server.start()
        deadline = time.monotonic() + ALONE_DEADLINE_S
        with psycopg.connect(self._server.url(), autocommit=True) as connection:
            while connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = 'crash' AND backend_type = 'client backend'"
            ).fetchone() != (0,):
                if time.monotonic() > deadline:
                    raise SystemExit(f"a killed client is still connected after {ALONE_DEADLINE_S} s")
                time.sleep(POLL_S)

    def forget(self, life: Life) -> None:
        """Leave it: a tenant is not in another's way."""


# ---------------------------------------------------------------------------------------------- what a store holds


@dataclass(frozen=True)
class Memory:
    """What can be read of a store, without ids, salts, times and fences, which differ from run to run."""

    revision: int
    generation: int
    watermark: int
    parts: tuple[tuple[str, int, int, str], ...]
    manifest: tuple[tuple[str | None, int, int, str], ...]
    lineage: tuple[tuple[str, int | None, object], ...]
    log: tuple[tuple[int, str, str | None, bytes | None], ...]
    recovery: tuple[str, int | None, int] | None

    def differs_from(self, other: Memory) -> str:
        names = [name for name in self.__dataclass_fields__ if getattr(self, name) != getattr(other, name)]
        return ", ".join(names) or "nothing"


def read_memory(db: strandline.Strandline, tenant: str) -> Memory:
    workflow = db.tenant(tenant).workflow(WORKFLOW)
    context = workflow.context(WHOLE)
    with db.store.read(Scope(tenant=tenant, workflow=WORKFLOW)) as tx:
        head = tx.log.head()
        log = tuple((e.seq, e.kind.value, e.key, e.body) for e in read_log(tx, 1, head.revision, WORKFLOW))
    recovery = workflow.recover(budget=WHOLE, dry_run=True) if head.revision else None
    return Memory(
        revision=head.revision,
        generation=context.generation,
        watermark=context.watermark,
        parts=tuple((part.kind.value, part.from_seq, part.through_seq, part.text) for part in context.parts),
        manifest=tuple(sorted((e.ref, e.last_seq, e.generation_dropped, e.reason.value) for e in workflow.manifest())),
        lineage=tuple(
            (entry.kind.value, entry.generation, entry.detail.get("turn"))
            for entry in workflow.lineage()
            if entry.kind != "fence"
        ),
        log=log,
        recovery=(recovery.kind.value, recovery.turn, recovery.generation) if recovery else None,
    )


def find_faults(life: Life, allowed: list[Memory], reached: str) -> tuple[list[str], int | None]:
    """Open a store as any program would; return what is wrong, and which of the allowed memories it holds."""
    try:
        with strandline.open(life.url) as db:
            report = db.tenant(life.tenant).workflow(WORKFLOW).verify()
            faults = [f"verify: {problem.place}: {problem.reason}" for problem in report.problems]
            refused = conforms(db.tenant(life.tenant).workflow(WORKFLOW))
            faults += [f"the protocol does not allow it: {refused}"] if refused is not None else []
            memory = read_memory(db, life.tenant)
    except strandline.StrandlineError as error:
        return [f"{reached}: {type(error).__name__}: {error}"], None
    keys = [key for _, _, key, _ in memory.log if key is not None]
    faults += [f"the key {key!r} stands {n} times" for key, n in Counter(keys).items() if n > 1]
    if memory not in allowed:
        return [*faults, f"{reached}: other than allowed in {memory.differs_from(allowed[-1])}"], None
    return faults, allowed.index(memory)


# ---------------------------------------------------------------------------------------------- runs of the program


@dataclass(frozen=True)
class Kill:
    """Wait for the `nth` occurrence of a line, then so many seconds."""

    line: str
    nth: int
    delay_s: float
    way: str


@dataclass
class Run:
    """What one run of the program announced, and how it ended."""

    lines: list[tuple[str, float]] = field(default_factory=list)
    returncode: int = 0
    complaint: str = ""
    hung: bool = False
    struck: bool = False  # what was to be killed was there to be killed

    @property
    def acknowledged(self) -> int:
        return sum(line.startswith("done ") for line, _ in self.lines)

    @property
    def finished(self) -> bool:
        return self.acknowledged == len(STEPS)

    @property
    def phase(self) -> str:
        """Where it was when it ended; the last line that it announced tells."""
        opened = [line.removeprefix("begin ") for line, _ in self.lines if line.startswith("begin ")]
        last = self.lines[-1][0] if self.lines else "ready"
        if last == "ready":
            return "open"
        if last.startswith("done "):
            return "between steps" if not self.finished else "close"
        return opened[-1] + (", in or after a commit" if last == "commit" else "")


@dataclass(frozen=True)
class Material:
    """The two states of the file, the budget, and the package that the program imports."""

    first: Path
    grown: Path
    budget: int
    package: Path

    @property
    def arguments(self) -> list[str]:
        return [str(self.first), str(self.grown), str(self.budget)]


def run_program(life: Life, material: Material, kill: Kill | None, place: Files | Database) -> Run:
    """Run it to its end, or to its death, or to that of its server."""
    run = Run()
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("program.py")), life.url, life.tenant, *material.arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env=os.environ | {"PYTHONPATH": str(material.package.parent)},
    )

    def end_hung() -> None:
        run.hung = True
        process.kill()

    watchdog = threading.Timer(HUNG_S, end_hung)
    watchdog.start()
    try:
        waiting = kill.nth if kill else 0
        for line in iter(process.stdout.readline, b""):
            text = line.decode().strip()
            run.lines.append((text, time.perf_counter()))
            if kill is not None and text == kill.line and (waiting := waiting - 1) == 0:
                time.sleep(kill.delay_s)  # the randomly timed kill itself
                place.strike(process)
                run.struck = True
        run.complaint = process.stderr.read().decode()
        run.returncode = process.wait()
    finally:
        watchdog.cancel()
        process.stdout.close()
        process.stderr.close()
    return run


class Marksman:
    """Draws kills from the times of an undisturbed run."""

    def __init__(self, undisturbed: Run, chance: random.Random) -> None:
        self._chance = chance
        self._lines = undisturbed.lines
        self.run_s = self._lines[-1][1] - self._lines[0][1]
        times = dict(reversed(self._lines))
        self._steps = {step: times[f"done {step}"] - times[f"begin {step}"] for step in STEPS}
        ends = [later for _, later in self._lines[1:]]
        self._commits = [end - at for (line, at), end in zip(self._lines, ends, strict=False) if line == "commit"]

    def draw(self) -> Kill:
        way = self._chance.choice(("moment", "step", "commit"))
        if way == "moment":
            return Kill(line="ready", nth=1, delay_s=self._chance.uniform(0, self.run_s), way=way)
        if way == "step":
            step = self._chance.choice(STEPS)
            return Kill(line=f"begin {step}", nth=1, delay_s=self._chance.uniform(0, self._steps[step]), way=way)
        nth = self._chance.randrange(len(self._commits))
        return Kill(line="commit", nth=nth + 1, delay_s=self._chance.uniform(0, self._commits[nth]), way=way)


# ---------------------------------------------------------------------------------------------- the trial


@dataclass
class Counts:
    """What the trial prints."""

    kills: int = 0
    ways: Counter[str] = field(default_factory=Counter)
    phases: Counter[str] = field(default_factory=Counter)
    unacknowledged: int = 0
    completed: int = 0
    violations: list[str] = field(default_factory=list)


class Trial:
    """Lives of stores: each ends when the program has reached its end."""

    def __init__(self, place: Files | Database, material: Material, chance: random.Random) -> None:
        self._place = place
        self._material = material
        self._chance = chance
        self.counts = Counts()
        self.references = self._record()
        self.marksman = Marksman(self._undisturbed(), chance)

    def _record(self) -> list[Memory]:
        """Run the steps in this process; return the memory before the first step and after each."""
        life = self._place.new_life()
        with strandline.open(life.url) as db:
            material = self._material
            program = Program(db, life.tenant, str(material.first), str(material.grown), material.budget)
            references = [read_memory(db, life.tenant)]
            for step in STEPS:
                program.run_step(step)
                references.append(read_memory(db, life.tenant))
        if len(set(references)) != len(references):
            raise SystemExit("two steps leave the same memory: a larger file or a smaller budget is needed")
        return references

    def _undisturbed(self) -> Run:
        """Run the program once to warm the caches and once to measure; both end as the steps in this process did."""
        for _ in range(2):
            life = self._place.new_life()
            run = run_program(life, self._material, None, self._place)
            if not run.finished:
                raise SystemExit(f"the undisturbed run failed: {run.complaint}")
            faults, _ = find_faults(life, [self.references[-1]], "undisturbed")
            self.counts.violations += faults
        return run

    def kill(self, kills: int) -> Iterator[Counts]:
        """Live and kill until so many kills have hit."""
        for _ in range(LIVES_MAX * kills):
            if self.counts.kills >= kills:
                return
            self._live(kills)
            yield self.counts
        self.counts.violations.append(f"only {self.counts.kills} of {kills} kills hit a running program")

    def _live(self, kills: int) -> None:
        life = self._place.new_life()
        acknowledged = 0
        go_on = False
        while True:
            shot = None if go_on or self.counts.kills >= kills else self.marksman.draw()
            run = run_program(life, self._material, shot, self._place)
            acknowledged = max(acknowledged, run.acknowledged)
            if run.struck:
                self._place.settle(life)
            if run.hung or (run.returncode != 0 and not run.struck):
                self._violated(shot, [f"the program {'hung' if run.hung else 'failed'}: {run.complaint[-2000:]}"])
                break
            if run.returncode == 0:
                faults, _ = find_faults(life, [self.references[-1]], "at the end")
                self._violated(shot, faults)
                self.counts.completed += 1
                break
            self._look(life, shot, run, acknowledged)
            go_on = self._chance.random() < GO_ON
        self._place.forget(life)

    def _look(self, life: Life, shot: Kill, run: Run, acknowledged: int) -> None:
        """Look at a store whose program was killed: it is what it was, or what the step in progress makes of it."""
        counts = self.counts
        counts.kills += 1
        counts.ways[shot.way] += 1
        counts.phases[run.phase] += 1
        allowed = self.references[acknowledged : acknowledged + 2]
        faults, which = find_faults(life, allowed, f"killed in {run.phase}, {acknowledged} steps acknowledged")
        counts.unacknowledged += which == 1
        self._violated(shot, faults)

    def _violated(self, shot: Kill | None, faults: list[str]) -> None:
        self.counts.violations += [f"{fault} ({shot})" for fault in faults]


def split(source: Path, folder: Path) -> Path:
    """Write the first half of the lines as the file before it grew."""
    lines = source.read_bytes().splitlines(keepends=True)
    first = folder / source.name
    first.write_bytes(b"".join(lines[: len(lines) // 2]))
    return first


def copy_package(folder: Path) -> Path:
    return Path(shutil.copytree(Path(strandline.__file__).parent, folder / "package" / "strandline"))


def choose(asked: Path | None) -> Path:
    """Return the file that was asked for; else a real one; where the data is absent, the demo's."""
    if asked is not None:
        return asked
    return REAL if REAL.exists() else DEMO


def report(source: Path, trial: Trial, took_s: float) -> str:
    counts = trial.counts
    ways = ", ".join(f"{n} by {way}" for way, n in counts.ways.most_common())
    lines = [
        f"file: {source} ({len(trial.references[-1].log)} events), undisturbed run {trial.marksman.run_s:.2f} s",
        f"kills: {counts.kills} in {took_s:.0f} s ({ways})",
        *(f"  {n:4d} in {phase}" for phase, n in sorted(counts.phases.items())),
        f"durable but unacknowledged: {counts.unacknowledged}",
        f"runs continued to the end: {counts.completed}",
        f"violations: {len(counts.violations)}",
        *(f"  {violation}" for violation in counts.violations[:20]),
    ]
    return "\n".join(lines) + "\n"


def result(counts: Counts, took_s: float) -> dict[str, object]:
    detail = {
        **{f"killed in {phase}": count for phase, count in sorted(counts.phases.items())},
        "durable but unacknowledged": counts.unacknowledged,
        "runs continued to the end": counts.completed,
    }
    return {
        "count": counts.kills,
        "violations": len(counts.violations),
        "seconds": round(took_s, 1),
        "detail": detail,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill a program at random moments, and look at its store.")
    parser.add_argument("--kills", "--count", type=int, default=200, help="how many (200)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--file", type=Path, help="a transcript; by default a real one, else the demo's")
    parser.add_argument("--budget", type=int, default=12_000)
    parser.add_argument("--postgres", choices=("client", "server"), help="on PostgreSQL 18, and who is killed there")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    options = parser.parse_args()
    source = choose(options.file)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="strandline-kill9-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        material = Material(
            first=split(source, folder), grown=source.resolve(), budget=options.budget, package=copy_package(folder)
        )
        place: Files | Database = Files(folder)
        if options.postgres:
            place = Database(stack.enter_context(start_postgres(durable=True)), options.postgres)
        trial = Trial(place, material, random.Random(options.seed))
        for counts in trial.kill(options.kills):
            sys.stderr.write(f"\r{counts.kills} kills, {len(counts.violations)} violations")
        sys.stderr.write("\n")
        took_s = time.perf_counter() - began
        sys.stdout.write(report(source, trial, took_s))
        if options.json:
            sys.stdout.write(json.dumps(result(trial.counts, took_s)) + "\n")
    return 1 if trial.counts.violations else 0


if __name__ == "__main__":
    sys.exit(main())
