"""Law (I4, C5, ADR 0071): what damages a store beyond one byte is found, by a typed error or by `verify`, or changes
nothing that can be read; a store that is older as a whole is found by a witness.

    python tests/crash/damage.py --seed 1 --count 200 [--json] [--kind KIND]

Each unit damages a copy of a store that has rows in every table, in one of the ways of damages.py, opens it with the
library, reads all that can be read of it, verifies it, and compares it with a witness. Found is what is refused at
opening, by a read, by `verify`, or by the witness. A violation is

- content that differs from the undamaged store's while opening, `verify` and witness say that all is well;
- an error that is none of ours, or one that names no place;
- a read that is refused as corrupt while `verify` says that all is well.

Row kinds look at what lies in the tables, too: rows that differ and that nothing noticed are a violation, even where
no read shows them. The last line is JSON: count, violations, seconds, detail (by kind: how it was found).
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))
sys.path.append(str(Path(__file__).parent))

from damages import KINDS, Stage, tables_of  # noqa: E402

import strandline  # noqa: E402
from strandline import CorruptRecordError, StrandlineError  # noqa: E402
from strandline.model.ids import Scope  # noqa: E402
from strandline.testing import VirtualClock  # noqa: E402
from tests.unit.test_engine_stage import open_store, quiet, talk  # noqa: E402
from tests.unit.test_engine_verify import workflow_of  # noqa: E402
from tests.unit.test_every_byte import cool, make_whole  # noqa: E402

STORIES_MAX: Final = 20  # violations that are told; the rest is counted
PROGRESS_UNITS: Final = 200
LOGS: Final = 3  # moments at which the write-ahead log is kept
UNSPOKEN: Final = {"cooldown", "due_compaction", "reader_watermark"}
"""The tables whose rows change without the head: an older one with its own digest is a state that it had, and nothing
tells (docs/guarantees.md). They hold no memory: when to compact, whom to ask, how far others have read.
"""
UNSPOKEN_READS: Final = (" due", " readers")
REFS: Final = ("bucket-0001", "vol-77aa")
BY: Final = {"by": "ann", "why": "a test"}


# ---------------------------------------------------------------------------------------------- what is damaged


def make_stage(folder: Path) -> Stage:
    """Make the stores: one with what it was after each step, another one, and one with a log that is still open."""
    for name in ("whole", "other"):
        (folder / name).mkdir()
    path = folder / "whole" / "store.db"
    older: list[Path] = []

    def seen() -> None:
        older.append(folder / f"older-{len(older)}.db")
        _copy_rows(path, older[-1])

    make_whole(folder / "whole", seen)
    _go_on(folder / "whole", seen)
    _drop_triggers(path)
    live, logs = _keep_logs(path, folder)
    return Stage(whole=path, older=tuple(older), other=make_whole(folder / "other"), live=live, logs=logs)


def _copy_rows(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as here, closing(sqlite3.connect(target)) as there:
        here.backup(there)
        there.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    _drop_triggers(target)


def _drop_triggers(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _go_on(folder: Path, seen: Callable[[], None]) -> None:
    """Change rows that are changed in place, each after it was seen as it was."""
    with open_store("sqlite", folder) as db:
        wf = workflow_of(db)
        seen()
        wf.append([strandline.approval("scale", "Yes.", granter="ana", single_use=True), *talk(4, start=120)])
        permit = wf.guard("scale_up", [strandline.approved("scale")])
        seen()
        wf.effect("scale", "scale_up", {"to": 3}, lambda: "scaled", permit=permit)
        with suppress(TimeoutError):
            wf.effect("lost", "delete_bucket", {"name": "b"}, _lose)
        seen()
        (case,) = [case for case in wf.cases() if case.kind is strandline.CaseKind.EFFECT_UNKNOWN]
        wf.reconcile(case, strandline.EffectDone("deleted"), **BY)
        seen()
        wf.read_through("audit", 9)
        wf.compact_later(400, when_tokens=9_000, delay_s=90)
        wf.define_view("main", budget=9_000)
        cool(wf)
        seen()
        _save_more(wf)
        seen()
        wf.compact(350, quiet)
        wf.fork(wf.basis().revision, "branch", **BY)


def _lose() -> str:
    raise TimeoutError("no answer")


def _save_more(wf: strandline.Workflow) -> None:
    value = strandline.StateValue((strandline.Part(kind="json", data=b"later"),))
    wf.states.save("s2", {"x": value}, parent="s1")
    wf.states.write("s2", [strandline.StateWrite(task="t", index=0, channel="c", value=value)])


def _keep_logs(path: Path, folder: Path) -> tuple[Path, tuple[Path, ...]]:
    """Append to a store whose log nobody takes over; return the file as it stayed, and the log after each append."""
    live, logs = folder / "live.db", []
    with open_store("sqlite", path.parent) as db:
        with db.store._writes.write() as connection:  # type: ignore[attr-defined]
            connection.execute("PRAGMA wal_autocheckpoint=0")
        for number in range(LOGS):
            workflow_of(db).append(talk(3, start=200 + 10 * number))
            logs.append(folder / f"log-{number}")
            shutil.copy(f"{path}-wal", logs[-1])
        shutil.copy(path, live)
    return live, tuple(logs)


# ---------------------------------------------------------------------------------------------- what is seen


@dataclass
class Seen:
    """What the library makes of a file."""

    opened: StrandlineError | None = None
    read: dict[str, str] = field(default_factory=dict)
    refused: dict[str, StrandlineError] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    witnessed: StrandlineError | None = None
    foreign: list[str] = field(default_factory=list)  # errors that are none of ours, or name no place


def look(path: Path, witness: str) -> Seen:
    """Read all that can be read of a store, then verify it, and compare it with a witness."""
    seen = Seen()
    try:
        with strandline.open(path, create=False, durability="normal", clock=VirtualClock()) as db:
            for name, read in reads_of(db).items():
                answer = _try(seen, name, read)
                if isinstance(answer, StrandlineError) and says_damage(answer):
                    seen.refused[name] = answer
                else:
                    seen.read[name] = repr(answer)
            report = _try(seen, "verify", db.verify)
            if isinstance(report, strandline.VerifyReport):
                seen.problems = [f"{problem.place}: {problem.reason}" for problem in report.problems]
            elif isinstance(report, StrandlineError):
                seen.problems = [str(report)]
            answer = _try(seen, "witness", lambda: db.check_witness(witness))
            seen.witnessed = answer if isinstance(answer, StrandlineError) else None
    except StrandlineError as error:
        seen.opened = error
    except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
        seen.foreign.append(f"open: {type(error).__name__}: {error}")
    return seen


def says_damage(error: StrandlineError) -> bool:
    """Tell whether an error says that something is damaged; others answer as they do for any store."""
    damaged = (error, error.__cause__)
    return any(isinstance(one, CorruptRecordError | strandline.StoreUnavailableError) for one in damaged)


def _try(seen: Seen, name: str, call: Callable[[], object]) -> object:
    try:
        return call()
    except CorruptRecordError as error:
        if not error.place:
            seen.foreign.append(f"{name}: an error without a place: {error}")
        return error
    except StrandlineError as error:
        return error
    except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
        seen.foreign.append(f"{name}: {type(error).__name__}: {error}")
        return None


def reads_of(db: strandline.Strandline) -> dict[str, Callable[[], object]]:
    """Return every read, by name: of each workflow that the whole store has, whatever this one has."""
    reads: dict[str, Callable[[], object]] = {"scopes": lambda: sorted(map(str, db.store.scopes()))}
    for scope in (Scope(tenant="acme", workflow="verified"), Scope(tenant="acme", workflow="branch"), OTHER):
        wf = db.tenant(scope.tenant).workflow(scope.workflow)
        reads |= {f"{scope} {name}": read for name, read in _reads(wf).items()}
    return reads


OTHER: Final = Scope(tenant="other", workflow="release")


def _reads(wf: strandline.Workflow) -> dict[str, Callable[[], object]]:
    return {
        "export": lambda: b"".join(wf.export(abandoned=True)),
        "context": lambda: wf.context().messages("openai"),
        "basis": wf.basis,
        "views": wf.views,
        "manifest": wf.manifest,
        "lineage": wf.lineage,
        "cases": lambda: wf.cases(include_answered=True),
        "effects": wf.effects,
        "permits": wf.permits,
        "recover": lambda: _told(wf.recover(dry_run=True)),
        "due": wf.due,
        "readers": wf.readers,
        "holds": wf.holds,
        "constraints": wf.found_constraints,
        "foreign": lambda: wf.foreign_summaries() if hasattr(wf, "foreign_summaries") else None,
        "states": lambda: [(line, list(wf.states.list(line=line))) for line in wf.states.lines()],
        "state": lambda: [wf.states.load(line=line) for line in wf.states.lines()],
        **{f"recall {ref}": lambda ref=ref: wf.recall(ref) for ref in REFS},  # type: ignore[misc]
        "search": lambda: wf.search("bucket"),
    }


def _told(recovery: strandline.Recovery) -> object:
    return recovery.kind, recovery.state, recovery.context.messages("openai"), recovery.lineage_seq


# ---------------------------------------------------------------------------------------------- what is judged


@dataclass(frozen=True)
class Judged:
    """How a damage was found."""

    how: str  # open, read, verify, witness; unspoken (older rows of UNSPOKEN); unseen (nothing differs)
    violations: tuple[str, ...]
    until_verify: bool  # a read gave other content, which only `verify` or the witness finds


def judge(seen: Seen, whole: Seen, differing: set[str]) -> Judged:
    """Say how a damage was found, and what of it is a violation."""
    other = [name for name, answer in seen.read.items() if answer != whole.read.get(name)]
    how = (
        "open"
        if seen.opened is not None
        else "read"
        if seen.refused
        else "verify"
        if seen.problems
        else "witness"
        if seen.witnessed is not None
        else "unseen"
    )
    if how == "unseen" and differing and differing <= UNSPOKEN and all(name.endswith(UNSPOKEN_READS) for name in other):
        return Judged("unspoken", tuple(seen.foreign), until_verify=False)
    wrong = list(seen.foreign)
    if how == "unseen" and other:
        wrong.append(f"other content, and nothing said so: {', '.join(other)}")
    elif how == "unseen" and differing:
        wrong.append(f"rows of {sorted(differing)} differ, and neither a read nor `verify` noticed")
    damaged = [f"{name}: {error}" for name, error in seen.refused.items() if isinstance(error, CorruptRecordError)]
    if how == "read" and damaged and not seen.problems:
        wrong.append(f"`verify` says that all is well; but {damaged[0]}")
    return Judged(how, tuple(wrong), bool(other) and how in ("verify", "witness"))


def rows_in(path: Path) -> dict[str, list[str]] | None:
    """Return all rows of a file; None: SQLite can't read them."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            return {
                table: sorted(map(repr, connection.execute(f"SELECT * FROM {table}")))
                for table in tables_of(connection)
            }
    except (sqlite3.Error, UnicodeDecodeError):  # what SQLite complains of may quote what is damaged
        return None


def look_wrong(seen: Seen) -> bool:
    """Tell whether anything at all was refused or found."""
    return bool(seen.opened or seen.refused or seen.problems or seen.witnessed or seen.foreign)


class Run:
    """A run of units over one stage."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stage = make_stage(folder)
        self._witness = _witness_of(self._stage.whole, folder)
        self._whole = look(self._copy(self._stage.whole), self._witness)
        self._rows = rows_in(self._stage.whole) or {}
        self.detail: Counter[str] = Counter()
        if look_wrong(self._whole):
            raise SystemExit(f"the undamaged store is not whole: {self._whole}")

    def _copy(self, source: Path) -> Path:
        path = self._folder / "damaged.db"
        for old in self._folder.glob("damaged.db*"):
            old.unlink()
        shutil.copy(source, path)
        return path

    def _differing(self, path: Path) -> set[str]:
        """Return the tables whose rows are not those of the whole store; of files that SQLite can't read, none."""
        if Path(f"{path}-wal").exists():
            return set()  # to look would take the log over
        found = rows_in(path)
        return {name for name, rows in self._rows.items() if found.get(name) != rows} if found is not None else set()

    def unit(self, seed: int, kind: str | None = None) -> list[str]:
        """Damage one copy, and return the violations as a story."""
        draw = random.Random(seed)
        name = kind or list(KINDS)[seed % len(KINDS)]
        path, did = self._copy(self._stage.whole), None
        while did is None:  # a draw that had nothing to do
            path = self._copy(self._stage.whole)
            did = KINDS[name](path, self._stage, draw)
        differing = self._differing(path)  # before anything of the library has touched it
        judged = judge(look(path, self._witness), self._whole, differing)
        self.detail[f"{name}: {judged.how}"] += 1
        self.detail["other content until verify or witness"] += judged.until_verify
        return [f"seed {seed}, {name}: {did}. {violation}" for violation in judged.violations]


def _witness_of(path: Path, folder: Path) -> str:
    copied = folder / "witnessed.db"
    shutil.copy(path, copied)
    with strandline.open(copied, durability="normal", clock=VirtualClock()) as db:
        return db.witness().document


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="of the first unit; the next has the next (1)")
    parser.add_argument("--count", type=int, default=200, help="how many units (200)")
    parser.add_argument("--json", action="store_true", help="Nothing but violations, and the last line.")
    parser.add_argument("--kind", choices=sorted(KINDS), help="One kind of damage only.")
    wanted = parser.parse_args()
    began, stories = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="strandline-damage-") as folder:
        run = Run(Path(folder))
        for done, seed in enumerate(range(wanted.seed, wanted.seed + wanted.count), start=1):
            for story in run.unit(seed, wanted.kind):
                stories += 1
                if stories <= STORIES_MAX:
                    again = f"python tests/crash/damage.py --seed {seed} --count 1"
                    again += f" --kind {wanted.kind}" if wanted.kind else ""
                    sys.stdout.write(f"violation: {story}\n  again: {again}\n")
            if done % PROGRESS_UNITS == 0:
                sys.stderr.write(f"{done} of {wanted.count}, {stories} violations\n")
    seconds = round(time.monotonic() - began, 1)
    detail = dict(sorted(run.detail.items()))
    told = {"count": wanted.count, "violations": stories, "seconds": seconds, "detail": detail}
    sys.stdout.write(json.dumps(told) + "\n")
    return 1 if stories else 0


if __name__ == "__main__":
    sys.exit(main())
