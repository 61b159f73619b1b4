"""Run the programmes that break the library for as long as there is time, and keep count (ADR 72).

    make soak ARGS="--minutes 30"       all programmes of soak.toml, two at once, the one furthest from its target first
    make soak ARGS="--only simulator"   one; may be given several times
    make soak ARGS="--report"           write docs/results/reliability.json and reliability.md from what was counted

A programme does `--count` units from the seed `--seed` on. The last line that it prints is one JSON object (count,
violations, seconds, detail), and before it stands the story of each violation, with the command that repeats it. It
exits with 0: no violation; 1: violations; 2: it could not run.

What ended is kept in .soak/progress.jsonl and never run again: a soak that was stopped (Ctrl-C, SIGTERM, its time) goes
on where it was, and one of a checkout without a record goes on from the report that is committed. What had not ended
then counts for nothing. Units that found something are run again when the sources are of another commit; until they
are clean they stand as violations.

Exit code 0: all that ran is clean; 1: violations stand; 2: something could not run, or nothing can.
"""

import argparse
import contextlib
import fcntl
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import IO, TypedDict

from strandline.bench.machine import this_machine
from tools import mutants, soak_page
from tools.soak_progress import (
    PUBLISHED,
    Chunk,
    Order,
    Programme,
    UnfitError,
    done,
    next_named,
    next_order,
    read_chunks,
    read_programmes,
    standing,
    taken_over,
    write_chunks,
)

ROOT = Path(__file__).resolve().parents[1]
LIST = Path("tools") / "soak.toml"
FOLDER = Path(".soak")
RECORD = FOLDER / "progress.jsonl"
MEASURED = ("src", "tests", "tools", "pyproject.toml")  # what makes a commit another one for the programmes
WORKERS = 2
MINUTES = 30.0
POLL_S = 0.2
GRACE_S = 10.0  # from SIGTERM to SIGKILL, for a programme that is to stop
RATE_CHUNKS = 5  # the newest of a programme, by which is judged how long one takes
MARGIN = 0.8  # of the time left that a chunk is planned for
_CHUNKS = "What has not ended then counts for nothing, and a chunk takes a minute or so: give several."
STORY_LINES_MAX = 40  # of violations that are shown; the rest is in the file that is named


@dataclass(kw_only=True)
class Running:
    """A chunk that runs now."""

    order: Order
    process: subprocess.Popen[bytes]
    said: IO[bytes]
    complained: IO[bytes]
    begun: float


class Result(TypedDict):
    """What a programme says of its units."""

    count: int
    violations: int
    seconds: float
    detail: dict[str, int]


class Soak:
    """One call of the command: runs chunks until the time is over or nothing is left."""

    def __init__(self, root: Path, programmes: Sequence[Programme], workers: int, minutes: float) -> None:
        self._root, self._workers = root, workers
        self._programmes = programmes
        self._faults = [fault.name for fault in mutants.read_faults(root)] if any(p.names for p in programmes) else []
        self._record = root / RECORD
        self._chunks = counted(root)
        self._commit = commit_of(root)
        self._machine = machine()
        self._deadline = time.monotonic() + minutes * 60
        self._running: list[Running] = []
        self._aside: dict[str, str] = {}  # what could not run, and why: not tried again by this call
        self._stopped = ""

    def run(self) -> int:
        """Run, and return the exit code."""
        with self._signals():
            try:
                while not self._stopped:
                    self._reap()
                    if time.monotonic() >= self._deadline:
                        self._stopped = "the time is over"
                    elif not self._start() and not self._running:
                        break
                    else:
                        time.sleep(POLL_S)
            finally:
                self._kill()
        return self._tell()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        def stop(number: int, _: FrameType | None) -> None:
            self._stopped = signal.Signals(number).name

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # ------------------------------------------------------------------------------------------ what is next

    def _start(self) -> bool:
        """Start what is furthest from its target; tell whether anything was started."""
        started = False
        while len(self._running) < self._workers:
            order = self._next()
            if order is None:
                break
            self._launch(order)
            started = True
        return started

    def _next(self) -> Order | None:
        orders = [running.order for running in self._running]

        def reached(programme: Programme) -> float:
            under_way = sum(order.count for order in orders if order.programme.name == programme.name)
            return (done(programme, self._chunks) + under_way) / self._target(programme)

        for programme in sorted(self._programmes, key=reached):
            if programme.name in self._aside:
                continue
            if programme.names:
                order = next_named(programme, self._faults, self._chunks, orders, self._commit)
            else:
                order = next_order(programme, self._chunks, orders, self._commit, self._room(programme))
            if order is not None:
                return order
        return None

    def _room(self, programme: Programme) -> int | None:
        """Return how many units of a programme the time left has room for, as far as that is known."""
        own = [chunk for chunk in self._chunks if chunk.programme == programme.name][-RATE_CHUNKS:]
        seconds = sum(chunk.seconds for chunk in own)
        if seconds <= 0:
            return None
        left_s = max(self._deadline - time.monotonic(), 0.0)
        return int(MARGIN * left_s * sum(chunk.count for chunk in own) / seconds)

    def _target(self, programme: Programme) -> int:
        return programme.target or max(len(self._faults), 1)

    # ------------------------------------------------------------------------------------------ a chunk's life

    def _launch(self, order: Order) -> None:
        name, path = order.programme.name, self._root / FOLDER / f"{order.programme.name}-{order.seed}"
        words = command_of(order)
        environment = os.environ | {"PYTHONPATH": str(self._root / "src")}
        said, complained = (path.with_suffix(end).open("w+b") for end in (".out", ".err"))
        process = subprocess.Popen(
            words, cwd=self._root, env=environment, stdout=said, stderr=complained, start_new_session=True
        )
        self._running.append(
            Running(order=order, process=process, said=said, complained=complained, begun=time.monotonic())
        )
        say(f"{name}: {order.count:,} from {order.seed:,} on")

    def _reap(self) -> None:
        for running in [running for running in self._running if running.process.poll() is not None]:
            self._running.remove(running)
            name = running.order.programme.name
            try:
                chunk = self._judge(running)
            except UnfitError as error:
                self._aside[name] = str(error)
                say(f"{name}: could not run, and is left aside: {error}")
            else:
                write_chunks(self._record, [chunk])
                self._chunks.append(chunk)
                self._tell_chunk(running, chunk)
            finally:
                running.said.close()
                running.complained.close()

    def _judge(self, running: Running) -> Chunk:
        """Return the chunk that ended.

        Raises:
            UnfitError: it could not run, or said something else than a programme says.
        """
        order, code = running.order, running.process.returncode
        running.said.seek(0)
        lines = running.said.read().decode(errors="replace").splitlines()
        running.complained.seek(0)
        last = running.complained.read().decode(errors="replace").splitlines()[-3:]
        if code not in (0, 1):
            raise UnfitError(f"exit code {code}; {' / '.join(last or lines[-3:])}")
        seconds = time.monotonic() - running.begun
        found = mutants_found(lines, seconds) if order.programme.names else found_in(lines, last)
        if not 0 < found["count"] <= order.count:
            raise UnfitError(f"{order.count} units were asked for, {found['count']} were done")
        if (found["violations"] > 0) != (code == 1):
            raise UnfitError(f"exit code {code} with {found['violations']} violations")
        return Chunk(
            programme=order.programme.name,
            seed=order.seed,
            **found,
            commit=self._commit,
            machine=self._machine,
            date=datetime.now(UTC).strftime("%Y-%m-%d"),
            names=list(order.names),
        )

    def _tell_chunk(self, running: Running, chunk: Chunk) -> None:
        programme = running.order.programme
        target = self._target(programme)
        total = done(programme, self._chunks)
        rate = chunk.count / chunk.seconds if chunk.seconds else 0.0
        left = max(self._deadline - time.monotonic(), 0.0) / 60
        say(
            f"{programme.name}: {total:,} of {target:,} ({100 * total / target:.1f} %), {rate:,.1f}/s, "
            f"{chunk.violations} violations; {left:.0f} min left"
        )
        path = Path(running.said.name)
        if chunk.violations:
            story = path.read_text(encoding="utf-8", errors="replace").splitlines()[:-1]
            say("\n  ".join([f"VIOLATIONS, all of {path}:", *story[:STORY_LINES_MAX]]))
        else:
            path.unlink()
        Path(running.complained.name).unlink()

    def _kill(self) -> None:
        """End what still runs, with its children; nothing of it counts."""
        for running in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.process.pid, signal.SIGTERM)
        until = time.monotonic() + GRACE_S
        for running in self._running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.process.wait(max(until - time.monotonic(), 0.0))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.process.pid, signal.SIGKILL)
            running.process.wait()
            for file in (running.said, running.complained):
                file.close()
                Path(str(file.name)).unlink()
            say(f"{running.order.programme.name}: stopped ({self._stopped or 'an error'}); it counts for nothing")
        self._running.clear()

    def _tell(self) -> int:
        stand = 0
        for programme in self._programmes:
            own = [chunk for chunk in standing(self._chunks) if chunk.programme == programme.name]
            violations = sum(chunk.violations for chunk in own)
            stand += violations
            print(
                f"{programme.name}: {sum(chunk.count for chunk in own):,} of {self._target(programme):,} "
                f"{programme.measure}, {violations} violations"
            )
        for name, why in self._aside.items():
            print(f"{name}: could not run: {why}")
        return 1 if stand else 2 if self._aside else 0


# ---------------------------------------------------------------------------------------------- what a programme says


def command_of(order: Order) -> list[str]:
    """Return the words of an order's command."""
    names = " ".join(f"--only {shlex.quote(name)}" for name in order.names)
    words = shlex.split(order.programme.command.format(seed=order.seed, count=order.count, names=names))
    return [sys.executable, *words[1:]] if words[0] == "python" else words


def found_in(lines: Sequence[str], complaint: Sequence[str]) -> Result:
    """Return what the last line of a programme says."""
    try:
        told = json.loads(lines[-1])
        detail = {str(key): int(value) for key, value in told["detail"].items()}
        return {
            "count": int(told["count"]),
            "violations": int(told["violations"]),
            "seconds": float(told["seconds"]),
            "detail": detail,
        }
    except (IndexError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnfitError(f"its last line is no result; {' / '.join(complaint)}") from error


def mutants_found(lines: Sequence[str], seconds: float) -> Result:
    """Return what the trial of faults says, as a programme would: a fault that survived is a violation."""
    try:
        told = json.loads("\n".join(lines))
    except ValueError as error:
        raise UnfitError("the trial of faults did not print its result") from error
    survived = int(told["survived"])
    return {
        "count": len(told["faults"]),
        "violations": survived,
        "seconds": round(seconds, 1),
        "detail": {"killed": len(told["faults"]) - survived},
    }


def counted(root: Path) -> list[Chunk]:
    """Return what has run: by this checkout's record or, where it has none yet, by what was published."""
    record = root / RECORD
    if not record.exists() and (published := taken_over(root / PUBLISHED)):
        write_chunks(record, published)
        say(f"goes on from {PUBLISHED}")
    return read_chunks(record)


def commit_of(root: Path) -> str:
    """Return the last commit that changed what is measured, with a mark where it was changed since."""

    def git(*words: str) -> str:
        try:
            return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError) as error:
            raise UnfitError(f"the commit can't be told: {error}") from error

    changed = git("status", "--porcelain", "--", *MEASURED)
    return git("log", "-1", "--format=%h", "--abbrev=10", "--", *MEASURED) + ("+changes" if changed else "")


def machine() -> str:
    """Describe this machine in one line."""
    here = this_machine()
    return f"{here.processor}, {here.cores} cores, {here.memory_gb:g} GB; {platform.system()}; {here.python}"


def say(text: str) -> None:
    """Tell the progress."""
    print(f"soak: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def only_one(root: Path) -> Iterator[None]:
    """Keep a second soak on this checkout away."""
    (root / FOLDER).mkdir(exist_ok=True)
    with (root / FOLDER / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UnfitError("another soak runs on this checkout") from error
        yield


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Run what is asked for, and return the exit code."""
    parser = argparse.ArgumentParser(description="Run the programmes of soak.toml until the time is over.")
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help=f"no longer than this (default: {MINUTES:g}). {_CHUNKS}"
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help=f"a programme of {LIST}; may be given several times"
    )
    parser.add_argument("--workers", type=int, default=WORKERS, help=f"programmes at once (default: {WORKERS})")
    parser.add_argument("--report", action="store_true", help="run nothing; write the page from what was counted")
    asked = parser.parse_args(arguments)
    try:
        if asked.minutes <= 0 or asked.workers < 1:
            raise UnfitError("--minutes is above 0, --workers at least 1")
        programmes = read_programmes(root / LIST)
        unknown = set(asked.only or ()) - {programme.name for programme in programmes}
        if unknown:
            known = ", ".join(programme.name for programme in programmes)
            raise UnfitError(f"there is no programme {min(unknown)!r}; there are {known}")
        with only_one(root):
            if asked.report:
                faults = len(mutants.read_faults(root)) if any(p.names for p in programmes) else 0
                path = soak_page.write(root, programmes, faults, counted(root))
                say(f"wrote {path.relative_to(root)}")
                return 0
            chosen = [programme for programme in programmes if not asked.only or programme.name in asked.only]
            return Soak(root, chosen, asked.workers, asked.minutes).run()
    except (UnfitError, mutants.UnfitError) as error:
        say(str(error))
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
