"""The program that kill9.py kills: import, compact, checkpoint, and the same again when the file has grown.

    python tests/crash/program.py STORE TENANT FIRST GROWN BUDGET

It uses the public API only. It may be killed at any instruction and started again on the same store: each step asks
the store what is there, so that what a run before made durable is not done again. It announces on stdout, one line
each, unbuffered: `ready`, `begin STEP`, `commit` (a writing transaction is about to commit), `done STEP`: what is
announced as done is acknowledged, and must be there whatever happens next.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import strandline

WORKFLOW: Final = "session"
WHOLE: Final = 100_000_000  # tokens: a budget in which every context fits
STEPS: Final = ("import-1", "compact-1", "checkpoint-1", "import-2", "compact-2", "checkpoint-2")


class AnnouncingStore:
    """A store that says when a writing transaction is about to commit; all else is the store's that it wraps."""

    def __init__(self, store: strandline.Store, announce: Callable[[str], None]) -> None:
        self._store = store
        self._announce = announce

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    @contextmanager
    def write(self, scope: object, *, joins: bool = True) -> Iterator[object]:
        with self._store.write(scope) as tx:
            yield tx
            self._announce("commit")


class Program:
    """The steps, each safe to run again."""

    def __init__(self, db: strandline.Strandline, tenant: str, first: str, grown: str, budget: int) -> None:
        self._workflow = db.tenant(tenant).workflow(WORKFLOW)
        self._files = {1: first, 2: grown}
        self._budget = budget

    def run_step(self, step: str) -> None:
        verb, _, number = step.partition("-")
        {"import": self._import, "compact": self._compact, "checkpoint": self._checkpoint}[verb](int(number))

    def _import(self, number: int) -> None:
        self._workflow.import_transcript(self._files[number])

    def _compact(self, number: int) -> None:
        if self._workflow.context(WHOLE).generation >= number:
            return
        outcome = self._workflow.compact(self._budget)
        if outcome.outcome != "activated":
            raise AssertionError(f"compaction {number}: {outcome.outcome}: {outcome.reason}")

    def _checkpoint(self, turn: int) -> None:
        taken = {entry.detail["turn"] for entry in self._workflow.lineage() if entry.kind == "checkpoint"}
        if turn not in taken:
            context = self._workflow.context(WHOLE)
            self._workflow.checkpoint({"turn": turn, "revision": context.revision}, turn, basis=context)


def announce(line: str) -> None:
    """Write one line to stdout, with nothing in between that a kill could lose."""
    os.write(1, line.encode() + b"\n")


def main(store: str, tenant: str, first: str, grown: str, budget: str) -> None:
    announce("ready")
    with strandline.open(store) as opened:
        db = strandline.Strandline(AnnouncingStore(opened.store, announce))
        program = Program(db, tenant, first, grown, int(budget))
        for step in STEPS:
            announce(f"begin {step}")
            program.run_step(step)
            announce(f"done {step}")


if __name__ == "__main__":
    main(*sys.argv[1:])
