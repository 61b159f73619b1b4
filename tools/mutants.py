"""Break the protocol one line at a time, and see whether the tests notice.

`mutants.toml` lists faults: each names an invariant, one line of the source, what stands there instead, and the test
that must fail then. The line is found by its text, so that a list which no longer fits the source fails loudly. Each
fault is put into a copy of the tree, its test is run there, and the line is put back. A fault that no test notices has
survived: either the test is too weak, or the line is not needed.

    python tools/mutants.py                 all of them, as a table
    python tools/mutants.py --only NAME     one; may be given several times
    python tools/mutants.py --json          the result as one JSON object

Exit code 0: every fault was killed; 1: one survived; 2: the list does not fit, or a test fails without any fault.
"""

import argparse
import compileall
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from importlib.util import cache_from_source
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src") / "strandline"
LIST = Path("tools") / "mutants.toml"
COPIED = ("src", "tests", "tools", "pyproject.toml")
WORKERS = 2
TEST_TIMEOUT_S = 180  # of one test with a fault; one that hangs has not told what is wrong
GREEN_TIMEOUT_S = 900  # of all tests together without one
SHOWN_LINES_MAX = 25  # of what a run printed

ALL_PASSED, SOME_FAILED = 0, 1  # what pytest returns; everything else means that it could not run them


class UnfitError(Exception):
    """The list does not fit the source or the tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One line that is wrong."""

    name: str
    invariant: str
    why: str  # what goes wrong with it
    file: str  # under src/strandline
    old: str  # the whole line, without its indentation
    new: str
    test: str  # the node id of the test that must fail
    after: str = ""  # where the line stands more than once: the first one behind this line


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a fault."""

    fault: Fault
    line: int
    seconds: float
    killed: bool
    told: str = ""  # why it was not


def read_faults(root: Path = ROOT) -> list[Fault]:
    """Read the list of a tree, in its order."""
    faults = [Fault(**entry) for entry in tomllib.loads((root / LIST).read_text(encoding="utf-8"))["fault"]]
    names = [fault.name for fault in faults]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UnfitError(f"two faults are named {twice[0]!r}")
    return faults


def find_line(fault: Fault, root: Path = ROOT) -> int:
    """Return the number of the line that a fault changes, from 1."""
    lines = [line.strip() for line in (root / PACKAGE / fault.file).read_text(encoding="utf-8").splitlines()]
    start = 0
    if fault.after:
        start = _only(lines, fault.after, fault) + 1
        if fault.old not in lines[start:]:
            raise UnfitError(f"{fault.name}: {fault.file} has no line {fault.old!r} behind {fault.after!r}")
        return lines.index(fault.old, start) + 1
    return _only(lines, fault.old, fault) + 1


def _only(lines: Sequence[str], wanted: str, fault: Fault) -> int:
    if lines.count(wanted) != 1:
        raise UnfitError(f"{fault.name}: {fault.file} has {lines.count(wanted)} lines {wanted!r}, not one")
    return lines.index(wanted)


class Workbench:
    """A copy of the tree in which one fault at a time is tried."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._folder = folder
        for name in COPIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, folder / name)
        compileall.compile_dir(folder / "src", quiet=1)

    def run(self, tests: Sequence[str], timeout_s: float) -> tuple[int | None, str]:
        """Run tests and return pytest's exit code, None where time was up, and what it printed."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--hypothesis-seed=0", *tests]
        environment = os.environ | {"PYTHONPATH": str(self._folder / "src")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as printed:
            process = subprocess.Popen(
                command, cwd=self._folder, env=environment, stdout=printed, stderr=printed, start_new_session=True
            )
            try:
                code: int | None = process.wait(timeout_s)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)  # its children too
                process.wait()
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                code = None
            printed.seek(0)
            return code, "\n".join(printed.read().splitlines()[-SHOWN_LINES_MAX:])

    def attempt(self, fault: Fault) -> Outcome:
        """Put a fault in, run its test, and put the line back."""
        number = find_line(fault, self._folder)
        path = self._folder / PACKAGE / fault.file
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines(keepends=True)
        lines[number - 1] = lines[number - 1].replace(fault.old, fault.new)
        begun = time.monotonic()
        try:
            _write(path, "".join(lines))
            code, printed = self.run([fault.test], TEST_TIMEOUT_S)
        finally:
            _write(path, text)
        seconds = round(time.monotonic() - begun, 1)
        told = {ALL_PASSED: "the test passes", SOME_FAILED: "", None: f"not over after {TEST_TIMEOUT_S} s"}
        return Outcome(
            fault=fault,
            line=number,
            seconds=seconds,
            killed=code == SOME_FAILED,
            told=told.get(code, f"pytest could not run it ({code}):\n{printed}"),
        )


def _write(path: Path, text: str) -> None:
    """Write a source file; what was compiled of it may be of the same second and size, and look fresh."""
    path.write_text(text, encoding="utf-8")
    Path(cache_from_source(str(path))).unlink(missing_ok=True)


def check_green(benches: Sequence[Workbench], faults: Sequence[Fault]) -> None:
    """Run every test that is named, without any fault.

    Raises:
        UnfitError: one fails, or is not there.
    """
    tests = list(dict.fromkeys(fault.test for fault in faults))
    with ThreadPoolExecutor(len(benches)) as pool:
        shares = [tests[number :: len(benches)] for number in range(len(benches))]
        runs = [
            pool.submit(bench.run, share, GREEN_TIMEOUT_S)
            for bench, share in zip(benches, shares, strict=True)
            if share
        ]
        for run in runs:
            code, printed = run.result()
            if code != ALL_PASSED:
                raise UnfitError(f"without any fault the tests do not pass:\n{printed}")


def try_all(faults: Sequence[Fault], root: Path) -> list[Outcome]:
    """Try every fault, WORKERS at a time, and return what became of them, in the order of the list."""
    for fault in faults:
        find_line(fault, root)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        benches = [Workbench(root, Path(folder) / str(number)) for number in range(WORKERS)]
        _say(f"{len(faults)} faults; first their tests without any")
        check_green(benches, faults)
        free: queue.SimpleQueue[Workbench] = queue.SimpleQueue()
        for bench in benches:
            free.put(bench)

        def attempt(fault: Fault) -> Outcome:
            bench = free.get()
            try:
                return bench.attempt(fault)
            finally:
                free.put(bench)

        outcomes: dict[str, Outcome] = {}
        with ThreadPoolExecutor(WORKERS) as pool:
            for done in as_completed([pool.submit(attempt, fault) for fault in faults]):
                outcome = done.result()
                outcomes[outcome.fault.name] = outcome
                _say(f"{len(outcomes)}/{len(faults)} {outcome.fault.name}: {_verdict(outcome)} {outcome.seconds} s")
    return [outcomes[fault.name] for fault in faults]


def _say(text: str) -> None:
    print(f"mutants: {text}", file=sys.stderr, flush=True)


def _verdict(outcome: Outcome) -> str:
    return "killed" if outcome.killed else "SURVIVED"


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as a table."""
    head = ("fault", "inv.", "place", "killed by", "s", "")
    rows = [
        (
            outcome.fault.name,
            outcome.fault.invariant,
            f"{outcome.fault.file}:{outcome.line}",
            outcome.fault.test.removeprefix("tests/"),
            f"{outcome.seconds:.1f}",
            _verdict(outcome),
        )
        for outcome in outcomes
    ]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)
    )


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Try the faults that are asked for, print what became of them, and return the exit code."""
    parser = argparse.ArgumentParser(description="Put one-line faults into the protocol: each must fail a test.")
    parser.add_argument("--only", action="append", metavar="NAME", help="a fault; may be given several times")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args(arguments)
    begun = time.monotonic()
    try:
        faults = read_faults(root)
        unknown = set(asked.only or ()) - {fault.name for fault in faults}
        if unknown:
            raise UnfitError(f"the list has no fault {min(unknown)!r}")
        outcomes = try_all([f for f in faults if not asked.only or f.name in asked.only], root)
    except UnfitError as error:
        _say(str(error))
        return 2
    seconds = round(time.monotonic() - begun, 1)
    survived = [outcome for outcome in outcomes if not outcome.killed]
    if asked.json:
        rows = [asdict(o.fault) | {"line": o.line, "seconds": o.seconds, "killed": o.killed} for o in outcomes]
        print(json.dumps({"faults": rows, "survived": len(survived), "seconds": seconds}, indent=1))
    else:
        print(table(outcomes))
        print(f"\n{len(outcomes) - len(survived)} of {len(outcomes)} faults were killed, in {seconds} s")
    for outcome in survived:
        _say(f"{outcome.fault.name} SURVIVED {outcome.fault.test}: {outcome.told}\n  {outcome.fault.why}")
    return int(bool(survived))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
