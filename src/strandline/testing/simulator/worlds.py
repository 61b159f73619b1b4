"""Where schedules begin: stores that real verbs made once, of which each run gets a copy."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from strandline import Strandline, Workflow
from strandline.errors import SummaryReconciliationError
from strandline.model import constructors as make
from strandline.model.candidate import Draft
from strandline.model.ids import Scope
from strandline.ports import SummaryRequest
from strandline.stores.memory import MemoryStore
from strandline.testing.fakes import SeededEntropy, VirtualClock
from strandline.testing.simulator.arguments import HUSHED, VIEW, paths_of, spoken
from strandline.testing.simulator.checker import Checker
from strandline.testing.simulator.known import Known
from strandline.testing.simulator.world import Outside

_KEY: Final = b"simulated store, key of 32 bytes"
_WHO: Final = {"by": "ops", "why": "simulated"}
_ASKED_BUDGET: Final = 420
_WHOLE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class World:
    """A beginning: a store, what the checker knows of it, and what happened outside."""

    store: MemoryStore
    known: dict[Scope, Known]
    outside: Outside


@cache
def world_of(name: str) -> World:
    """Return a world, made once by real verbs."""
    store, outside = MemoryStore(_KEY), Outside()
    checker = Checker(store, {})
    db = Strandline(store, clock=VirtualClock(), entropy=SeededEntropy(1))
    _BUILDERS[name](db.tenant("acme").workflow("run"), outside)
    checker.committed(Scope(tenant="acme", workflow="run"))
    _talk(db.tenant("zeta").workflow("run"), 4)
    checker.committed(Scope(tenant="zeta", workflow="run"))
    for known in checker.known.values():
        known.moments[:] = [replace(known.moments[-1], commit=0)]
    return World(store, checker.known, outside)


def _talk(wf: Workflow, turns: int) -> None:
    wf.append([spoken(number, key=f"m{number}") for number in range(1, turns + 1)])


def _honest(request: SummaryRequest) -> Draft:
    return Draft(text=f"Work went on from event {request.from_seq}.")


def _fresh(wf: Workflow, _: Outside) -> None:
    _talk(wf, 3)


def _talked(wf: Workflow, _: Outside) -> None:
    _talk(wf, 6)
    wf.append(
        [
            make.constraint("rule-0", "Never drop a table.", actor="user"),
            make.approval("release", "Go.", granter="alice"),
            make.issue("scope", "It leaks."),
        ]
    )


def _compacted(wf: Workflow, outside: Outside) -> None:
    _talked(wf, outside)
    wf.compact(320, _honest)
    wf.append([spoken(number) for number in range(7, 10)])


def _checkpointed(wf: Workflow, outside: Outside) -> None:
    _compacted(wf, outside)
    wf.checkpoint({"number": 1}, 1, basis=wf.context(_WHOLE))
    wf.append(spoken(10))


def _forked(wf: Workflow, outside: Outside) -> None:
    _talked(wf, outside)
    wf.fork(7, "side", **_WHO)
    wf.append(spoken(11))


def _viewed(wf: Workflow, outside: Outside) -> None:
    _talked(wf, outside)
    wf.define_view(VIEW, audiences=["press"], budget=_WHOLE)
    wf.append([spoken(400, key="h0", audience=HUSHED), spoken(12, audience="press"), spoken(13, audience="legal")])


def _asked(wf: Workflow, _: Outside) -> None:
    """More references than a ledger can carry: one is missed, and its case blocks the summary."""
    wf.append([make.message("assistant", f"Wrote {', '.join(paths_of(number))}.") for number in range(1, 8)])
    wf.compact(_ASKED_BUDGET, _honest)
    for number in range(1, 8):
        try:
            wf.recover([paths_of(number)[0]], budget=_WHOLE)
        except SummaryReconciliationError:
            return
    raise AssertionError("no reference was dropped")


def _doubtful(wf: Workflow, outside: Outside) -> None:
    _talk(wf, 4)

    def broken() -> None:
        outside.happened["acme/pay"] += 1
        raise ConnectionError("the answer was lost")

    with suppress(ConnectionError):
        wf.effect("pay", "pay", {"to": "a"}, broken)


def _granted(wf: Workflow, outside: Outside) -> None:
    _talked(wf, outside)
    wf.append(make.approval("deploy", "Go.", granter="alice", single_use=True))


_BUILDERS: Final[dict[str, Callable[[Workflow, Outside], None]]] = {
    "fresh": _fresh,
    "talk": _talked,
    "compacted": _compacted,
    "checkpointed": _checkpointed,
    "forked": _forked,
    "viewed": _viewed,
    "asked": _asked,
    "doubtful": _doubtful,
    "granted": _granted,
}
