"""The end of a run: a process that knows nothing recovers each workflow, the model is asked, and `verify`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from strandline import Strandline
from strandline.errors import CompactionLineageError, StrandlineError, SummaryReconciliationError
from strandline.model.ids import TENANT_RULES, Scope
from strandline.ports import Clock
from strandline.stores.memory import MemoryStore
from strandline.testing.fakes import SeededEntropy
from strandline.testing.protocol import conforms
from strandline.testing.simulator.checker import Checker
from strandline.testing.simulator.history import BrokenInvariantError

VERIFIED_EVERY: Final = 4  # seeds: to prove every byte takes as long as a verb, and the checker saw each commit
_WHOLE: Final = 10_000_000


def recover_all(
    store: MemoryStore, clock: Clock, checker: Checker, seed: int, tell: Callable[[str], None], *, verified: bool
) -> None:
    """Recover by a fresh process every workflow that was written to, and ask the model whether it allows what each of
    them recorded (ADR 67); `verified`: prove every byte of them, too (C5, I15, I16).

    Raises:
        BrokenInvariantError: one can't be recovered, did what the protocol forbids, or is not what was written.
    """
    db = Strandline(store, clock=clock, entropy=SeededEntropy(~seed))
    touched = checker.touched()
    for scope in touched:
        if scope.workflow == TENANT_RULES:
            continue
        if checker.known[scope].head.revision:
            tell(f"a process that knows nothing recovers {scope}")
            _recover(db, checker, scope)
        refused = conforms(db.tenant(scope.tenant).workflow(scope.workflow))
        if refused is not None:
            raise BrokenInvariantError(refused.law, f"the model does not allow {scope}: {refused}")
    if not verified:
        return
    tell("and the store is verified")
    report = db._verify(touched, None)
    if not report.ok:
        raise BrokenInvariantError(
            "C5", "; ".join(f"{one.workflow}: {one.place}: {one.reason}" for one in report.problems)
        )


def _recover(db: Strandline, checker: Checker, scope: Scope) -> None:
    since = checker.commits
    try:
        got = db.tenant(scope.tenant).workflow(scope.workflow).recover(budget=_WHOLE)
    except (SummaryReconciliationError, CompactionLineageError) as error:
        if not checker.erased(scope):  # only what an erasure took away can be missing without a need
            raise BrokenInvariantError("I16", f"{scope} can't be recovered without a need: {error}") from error
        checker.committed(scope)
        return
    except StrandlineError as error:
        raise BrokenInvariantError("I15", f"{scope} can't be recovered: {type(error).__name__}: {error}") from error
    checker.committed(scope)
    checker.check_context(scope, got.context, since)
