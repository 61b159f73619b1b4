"""A program that writes with every verb: what the power-loss images of power.py are made from.

It does the same each time: its clock stands still and its entropy is seeded, so that two records of it differ in
SQLite's own salts only. Around each step it reports `begin STEP` and `done STEP`; what is done is acknowledged. The
store checkpoints its write-ahead log after a few pages instead of a thousand, and indexes words after a few events, so
that a small store, of which images are made and looked at fast, meets all of it.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

import strandline
from strandline import message
from strandline.engine import search_index
from strandline.stores.sqlite import store as sqlite_store
from strandline.stores.sqlite.store import SqliteStore
from strandline.testing import FixedClock, SeededEntropy

TENANT: Final = "acme"
WORKFLOW: Final = "session"
FORK: Final = "aside"
BUDGET: Final = 600  # tokens
WHOLE: Final = 1_000_000  # tokens: a budget in which every context fits
AUTO_CHECKPOINT_PAGES: Final = 40
PERSON: Final = "Zebulon Quartermain"
STORE: Final = "store.db"
BACKUP: Final = "backup.db"
INDEXED_EVENTS: Final = 8


def opened(store: Path, durability: str = "full", *, seed: int) -> strandline.Strandline:
    """Open a store with a clock that stands still, and an entropy that no opening has had before."""
    return strandline.open(store, durability=durability, clock=FixedClock(), entropy=SeededEntropy(seed))


def text_of(*texts: str) -> strandline.StateValue:
    return strandline.StateValue(
        tuple(strandline.Part(kind="text", data=text.encode()) for text in texts), many=len(texts) > 1
    )


def talk(start: int, count: int) -> list[strandline.NewEvent]:
    texts = [f"Run {n} is done, see logs/run-{n}.txt." for n in range(start, start + count)]
    return [message("assistant", text, actor="builder", key=f"run-{start + n}") for n, text in enumerate(texts)]


class EveryVerb:
    """The steps, in order; each is named by its method."""

    def __init__(self, folder: Path, durability: str) -> None:
        self._folder, self._durability = folder, durability
        self._db: strandline.Strandline | None = None
        self._openings = 0
        self._context: strandline.Context | None = None

    @property
    def _wf(self) -> strandline.Workflow:
        assert self._db is not None
        return self._db.tenant(TENANT).workflow(WORKFLOW)

    def open(self) -> None:
        self._openings += 1
        self._db = opened(self._folder / STORE, self._durability, seed=self._openings)

    def close(self) -> None:
        assert self._db is not None
        self._db.close()

    def append_one(self) -> None:
        self._wf.append(message("user", "Never write to bucket-prod.", key="rule"))

    def append_batch(self) -> None:
        self._wf.append(
            [
                strandline.constraint("publish", "Publish only after the security review.", actor="lead"),
                strandline.issue("scope", "The token may write."),
                strandline.approval("publish", "Go.", granter="ann"),
                strandline.tool_call("c1", "create_bucket", {"region": "eu"}, actor="builder"),
                strandline.tool_result("c1", "created bucket-7f3a", refs=["bucket-7f3a"], actor="builder"),
                message("user", f"{PERSON} asked for vol-1234 at /srv/zebulon.", actor="zebulon"),
                *talk(0, 12),
            ]
        )

    def append_long(self) -> None:
        """A text of several pages, which hardly deflates, and has few words to index."""
        chance = random.Random(1)
        self._wf.append(message("assistant", "".join(chance.choices("·–«»†‡§¶%&+=<>~^|{}[]() ", k=24_000)), key="long"))

    def append_again(self) -> None:
        """Some keys are known: the others are appended (I3)."""
        self._wf.append(talk(8, 10))

    def define_view(self) -> None:
        assert self._db is not None
        self._wf.define_view("narrow", audiences={"all", "release"}, budget=BUDGET)

    def compact(self) -> None:
        self._compacted()

    def checkpoint(self) -> None:
        self._context = self._wf.context(WHOLE)
        self._wf.checkpoint({"step": "publish"}, turn=1, basis=self._context)

    def search(self) -> None:
        """The first search makes the index of words."""
        self._wf.search("token")

    def save_states(self) -> None:
        states = self._wf.states
        states.save("s1", {"plan": text_of("a", "b"), "n": text_of("1")})
        states.save("s2", {"plan": text_of("a", "b", "c"), "n": text_of("2")}, parent="s1")
        states.write("s2", [strandline.StateWrite(task="t", index=0, channel="out", value=text_of("x"))])

    def permit_and_effect(self) -> None:
        self._wf.append(strandline.resolve("scope", "It reads only."))
        needs = [strandline.approved("publish"), strandline.resolved("scope")]
        permit = self._wf.guard("publish", needs=needs, by="builder")
        self._wf.effect("publish-42", "publish", {"version": "42"}, run=lambda: "published", permit=permit)

    def effect(self) -> None:
        self._wf.effect("look-1", "look", {"at": "bucket-7f3a"}, run=lambda: "empty")

    def fork(self) -> None:
        assert self._db is not None
        self._wf.fork(None, FORK, by="ann", why="another way")
        self._db.tenant(TENANT).workflow(FORK).append(talk(100, 6))

    def recover(self) -> None:
        self._wf.recover(needs=["bucket-7f3a"], budget=WHOLE)

    def compact_again(self) -> None:
        self._wf.append(talk(40, 12))
        self._compacted()

    def report_and_revert(self) -> None:
        generation = self._wf.context(WHOLE).generation
        self._wf.report_regression(generation, by="ann", why="it says less")
        self._wf.revert(generation - 1, by="ann", why="it says less")

    def refused_recovery(self) -> None:
        """Opens a case, which is answered."""
        try:
            self._wf.recover(needs=["logs/run-9.txt"], budget=WHOLE)
        except strandline.SummaryReconciliationError as error:
            self._wf.reconcile(error.case_id, strandline.ReplayFromExact(), by="ann", why="the log is right")

    def backup(self) -> None:
        assert self._db is not None
        self._db.backup(self._folder / BACKUP)

    def rewind(self) -> None:
        self._wf.rewind(40, by="ann", why="a wrong turn")
        self._wf.append(talk(60, 4))

    def due(self) -> None:
        assert self._db is not None
        self._wf.compact_later(BUDGET)
        for key in self._db.sweep():
            self._db.run_due(key)

    def hold(self) -> None:
        self._wf.hold("case-7", by="dpo", why="a case at law")
        self._wf.lift_hold("case-7", by="dpo", why="it is over")

    def prune_states(self) -> None:
        self._wf.states.prune()

    def append_person(self) -> None:
        self._wf.append(message("user", f"{PERSON} asked again.", actor="zebulon"))

    def erase(self) -> None:
        """The store's files are searched for it, and written anew where they hold it."""
        self._wf.erase(person=PERSON, by="dpo", why="request 12")

    def append_behind(self) -> None:
        self._wf.append(talk(70, 30))

    def _compacted(self) -> None:
        outcome = self._wf.compact(BUDGET)
        if outcome.outcome != "activated":
            raise AssertionError(f"{outcome.outcome}: {outcome.reason}")


STEPS: Final[tuple[Callable[[EveryVerb], None], ...]] = (
    EveryVerb.open,
    EveryVerb.append_one,
    EveryVerb.append_batch,
    EveryVerb.append_long,
    EveryVerb.append_again,
    EveryVerb.define_view,
    EveryVerb.compact,
    EveryVerb.checkpoint,
    EveryVerb.search,
    EveryVerb.save_states,
    EveryVerb.permit_and_effect,
    EveryVerb.effect,
    EveryVerb.close,
    EveryVerb.open,
    EveryVerb.fork,
    EveryVerb.recover,
    EveryVerb.compact_again,
    EveryVerb.report_and_revert,
    EveryVerb.refused_recovery,
    EveryVerb.backup,
    EveryVerb.rewind,
    EveryVerb.due,
    EveryVerb.hold,
    EveryVerb.prune_states,
    EveryVerb.append_person,
    EveryVerb.erase,
    EveryVerb.append_behind,
    EveryVerb.close,
)


def run(folder: Path, durability: str, report: Callable[[str], None]) -> None:
    """Write with every verb to a store in the folder; to be called in a process of its own, for it changes sizes."""
    _make_small(durability)
    program = EveryVerb(folder, durability)
    for step in STEPS:
        report(f"begin {step.__name__}")
        step(program)
        report(f"done {step.__name__}")


def _make_small(durability: str) -> None:
    """Let the store checkpoint after a few pages, and index after a few events."""
    connect = SqliteStore.connect

    def connect_often(self: SqliteStore, *, read_only: bool) -> sqlite3.Connection:
        connection = connect(self, read_only=read_only)
        connection.execute(f"PRAGMA wal_autocheckpoint={AUTO_CHECKPOINT_PAGES}")
        return connection

    SqliteStore.connect = connect_often  # type: ignore[method-assign]
    search_index.SEARCH_CHUNK_EVENTS = INDEXED_EVENTS
    if durability == "off":  # which nobody can ask for
        sqlite_store._DURABILITY["off"] = "OFF"
