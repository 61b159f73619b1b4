"""Law (I4, I11, I16): a recovery that reads a torn record fails closed, with a case that holds up only what it names.

The store is whole, so the next recovery goes on. Only what the case blocks waits for its answer.
"""

from __future__ import annotations

from random import Random

import pytest

import strandline
from strandline.model.ids import Scope
from strandline.stores.memory import MemoryStore
from strandline.testing.simulator.faults import Fault, Point
from strandline.testing.simulator.store import SimulatedStore
from strandline.testing.simulator.tearing import Tear
from strandline.testing.simulator.worlds import world_of

WHOLE = 100_000
CHANCES = 100  # one of them tears what the case is about


class Disk:
    """Tears a record in the next write, once."""

    def __init__(self, chance: int) -> None:
        self.told: list[str] = []
        self._tear: Tear | None = Tear(Random(chance), self.told.append)

    def cross(self, point: Point) -> Fault:
        return Fault.TORN if self._tear is not None and point is Point.WRITE else Fault.NONE

    def tear(self) -> Tear:
        tear, self._tear = self._tear, None
        assert tear is not None
        return tear

    def committed(self, scope: Scope, inner: MemoryStore) -> None:
        """Nobody looks."""


def torn_recovery(world: str, reason: str) -> strandline.Workflow:
    """Return a workflow whose recovery was refused for this reason, by a torn read alone."""
    for chance in range(CHANCES):
        disk = Disk(chance)
        workflow = (
            strandline.Strandline(SimulatedStore(world_of(world).store.copied(), disk)).tenant("acme").workflow("run")
        )
        try:
            workflow.recover(budget=WHOLE)
        except strandline.CorruptRecordError:
            assert not workflow.cases()
        except strandline.SummaryReconciliationError as error:
            assert disk.told
            if error.reason == reason:
                return workflow
    raise AssertionError(f"{reason}: in none of {CHANCES}")


def compact(workflow: strandline.Workflow) -> str:
    return workflow.compact(320, lambda request: strandline.Draft(text=f"On from {request.from_seq}.")).outcome.value


def test_a_summary_that_was_read_torn_is_asked_about_and_used_meanwhile() -> None:
    workflow = torn_recovery("compacted", "corrupt_summary")
    assert workflow.recover(budget=WHOLE).generation == 1
    workflow.append([strandline.message("assistant", f"{number}: " + "on and on " * 90) for number in range(4)])
    (case,) = workflow.cases()
    with pytest.raises(strandline.UnreconciledSummaryError, match=case.case_id):
        compact(workflow)
    workflow.reconcile(case.case_id, strandline.Abandon(), by="ops", why="read again, it is whole")
    assert compact(workflow) == "activated"


def test_a_checkpoint_that_was_read_torn_is_restored_when_it_is_read_again() -> None:
    workflow = torn_recovery("checkpointed", "checkpoint_digest")
    assert workflow.recover(budget=WHOLE).checkpoint_seq == 2
    (case,) = workflow.cases()
    assert not case.blocking
