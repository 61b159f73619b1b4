"""The history checker: what was acknowledged has one place in the order of commits, between call and answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from strandline.model.ids import Scope
from strandline.testing.simulator.schedule import Step

if TYPE_CHECKING:
    from strandline.testing.simulator.checker import Change, Checker
    from strandline.testing.simulator.verbs import Answer


_IDEMPOTENT: Final = frozenset({"reconcile"})  # the same answer again tells what the first one recorded


class BrokenInvariantError(Exception):
    """An invariant of the specification does not hold."""

    def __init__(self, law: str, what: str) -> None:
        super().__init__(f"{law}: {what}")
        self.law = law
        self.what = what


@dataclass(slots=True)
class Op:
    """One call of a verb: when it began and ended, counted in commits, and what it committed in between."""

    actor: int
    number: int
    step: Step
    invoked: int
    answered: int | None = None
    answer: Answer | None = None
    refused: str = ""
    torn: bool = False  # it read a torn record
    lost: bool = False  # it was never answered: it may have happened, or not
    commits: list[int] = field(default_factory=list)
    made: list[Change] = field(default_factory=list)


def check_history(ops: list[Op], checker: Checker) -> None:
    """Prove that the acknowledged history linearizes with the lineage (I2, I3, I13).

    Commits of one workflow have one order, in which lineage and log grow without a gap (it was checked at each). So it
    is enough that each acknowledged verb has its own commit between its call and its answer, and that what it told
    stands at that commit; an append of keys that were there already, at an earlier one.

    Raises:
        BrokenInvariantError: one has none.
    """
    for op in ops:
        answer = op.answer
        if answer is None or op.answered is None:
            continue
        if any(not op.invoked < commit <= op.answered for commit in op.commits):
            raise BrokenInvariantError("I13", f"{op.step.verb} committed outside of its call")
        scope = Scope(tenant=op.step.tenant, workflow=op.step.workflow)
        if answer.lineage_seq is not None:
            made = [seq for change in op.made if change.scope == scope for seq in change.lineage]
            repeats = op.step.verb in _IDEMPOTENT and checker.recorded(scope, answer.lineage_seq)
            if answer.lineage_seq not in made and not repeats:
                raise BrokenInvariantError(
                    "I13", f"{op.step.verb} told of lineage {answer.lineage_seq}, and recorded {made}"
                )
        if answer.seqs:
            _check_append(op, answer, scope, checker)


def _check_append(op: Op, answer: Answer, scope: Scope, checker: Checker) -> None:
    made = {seq for change in op.made if change.scope == scope for seq in change.seqs}
    if len(made & set(answer.seqs)) != answer.added:
        raise BrokenInvariantError(
            "I2", f"an append of {list(answer.seqs)} told of {answer.added} new events, and committed {sorted(made)}"
        )
    for seq in answer.seqs:
        if seq not in made and checker.commit_of(scope, seq) > (op.answered or 0):
            raise BrokenInvariantError("I3", f"an append told of event {seq}, which was not there yet")
    for key, seq in answer.keys:
        if checker.key_of(scope, seq) != key:
            raise BrokenInvariantError("I3", f"an append told that {key!r} stands at {seq}, where it does not")
