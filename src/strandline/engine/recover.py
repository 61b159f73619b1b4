"""Recover: continue from a state that really existed, or stop with an error that says what is missing (I15, I16).

Fence, choice and the restore's own entry are one transaction. Nothing is overwritten before the decision is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strandline.codec import decode_json, leaf_text
from strandline.engine.checkpoint import check_checkpoint
from strandline.engine.claim import fence_holder
from strandline.engine.environment import Environment
from strandline.engine.lineage import add_entry
from strandline.engine.read_context import Context, assemble_context, check_needs, last_known
from strandline.engine.reading import UNWRITTEN_MAIN, read_view
from strandline.errors import ContextOverflowError, CorruptRecordError, SummaryReconciliationError
from strandline.limits import CONTEXT_BUDGET_TOKENS
from strandline.model.checkpoint import Checkpoint, CheckpointView
from strandline.model.context import ContextView, PartKind
from strandline.model.ids import check_name
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.model.recovery import (
    ReconciliationReason,
    RecoveryKind,
    RecoveryTarget,
    ResumePoint,
    SummaryAtRecovery,
)
from strandline.ports import Transaction
from strandline.rules.planning import check_budget
from strandline.rules.recovery import missing_dependencies, resume_from_checkpoint, select_recovery_target


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorState:
    """The newest state that was not restored: stale, handed over on request only (I15)."""

    turn: int
    lineage_seq: int
    state: object
    stale: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What the agent goes on from.

    On "restore" `state` is the checkpoint's, and `context` holds every live event after its basis, marked
    `since_checkpoint`. On "replay" the context is the active summary with its tail; `state` is None, unless the
    checkpoint is context-free: such a state is paired with the replayed context.
    """

    kind: RecoveryKind
    name: str
    lineage_seq: int | None  # of the entry that records it; None on a dry run
    generation: int
    revision: int
    turn: int | None
    checkpoint_seq: int | None
    state: object
    context: Context
    prior_state: PriorState | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryRequest:
    """What was asked for."""

    name: str
    view: str
    needs: Sequence[str]
    budget: int | None
    dry_run: bool
    with_prior_state: bool


def recover(env: Environment, request: RecoveryRequest) -> Recovery:
    """Fence what is in flight, choose by the gate, check, and record; or fail closed.

    Raises:
        SummaryReconciliationError: summary, checkpoint or a dependency is not what going on would need.
        CompactionLineageError: the gate refuses.
        ContextOverflowError: the context does not fit the budget.
        CorruptRecordError: the log itself is damaged.
    """
    check_name("checkpoint", request.name)
    check_needs(request.needs)
    if request.dry_run:
        with env.store.read(env.scope) as tx:
            return _decide(env, tx, request)
    with env.store.write(env.scope) as tx:
        fenced = _fence_all(env, tx)
        decided = _decide(env, tx, request)
        entry = add_entry(tx, _entry(env, tx, decided, fenced))
    recovered = replace(decided, lineage_seq=entry.lineage_seq)
    env.emit("recovery", {"scope": str(env.scope), "kind": recovered.kind.value, "lineage_seq": entry.lineage_seq})
    return recovered


def _fence_all(env: Environment, tx: Transaction) -> list[str]:
    """Raise the fence of every view, and return the attempts that held a lease."""
    fenced = []
    for view in tx.views.all() or [UNWRITTEN_MAIN]:
        holder = fence_holder(tx, view, env.clock.now_us())
        if holder is not None:
            fenced.append(holder)
        tx.views.put(replace(view, fence=view.fence + 1, lease_attempt=None, lease_until_us=0))
    return fenced


def _entry(env: Environment, tx: Transaction, decided: Recovery, fenced: list[str]) -> LineageEntry:
    restored = decided.kind is RecoveryKind.RESTORE
    revision = tx.log.head().revision
    return LineageEntry(
        lineage_seq=0,
        kind=LineageKind.RESTORE if restored else LineageKind.REPLAY,
        op_key=f"recover:{tx.log.head().lineage_seq + 1}",
        revision=revision,
        at_us=env.clock.now_us(),
        view=decided.context.view,
        generation=decided.generation,
        name=decided.name,
        restored_seq=decided.checkpoint_seq if restored else None,
        detail={"turn": decided.turn, "fenced": fenced},
    )


def _decide(env: Environment, tx: Transaction, request: RecoveryRequest) -> Recovery:
    target, newest = choose_checkpoint(tx, request.name)
    if target is not None:
        _check_target(env, target)
    basis = next((v for v in target.views if v.basis_revision is not None), None) if target else None
    view_name = basis.view if basis else request.view
    snapshot = _read_snapshot(env, tx, view_name, target)
    stored = tx.views.get(view_name)
    own = stored.budget if stored else None
    context = assemble_context(snapshot, env.counter, check_budget(request.budget or own or CONTEXT_BUDGET_TOKENS))
    state = decode_json(target.state, f"checkpoint {target.lineage_seq}") if target else None
    _check_resumable(tx, request, target, state, basis, snapshot, context)
    restored = target is not None and not target.context_free
    if restored and basis is not None and basis.basis_revision is not None:
        context = _marked(context, basis.basis_revision)
    return Recovery(
        kind=RecoveryKind.RESTORE if restored else RecoveryKind.REPLAY,
        name=request.name,
        lineage_seq=None,
        generation=snapshot.generation,
        revision=snapshot.revision,
        turn=target.turn if target else None,
        checkpoint_seq=target.lineage_seq if target else None,
        state=state,
        context=context,
        prior_state=_prior(newest) if request.with_prior_state and target is None else None,
        dry_run=request.dry_run,
    )


def choose_checkpoint(tx: Transaction, name: str) -> tuple[Checkpoint | None, Checkpoint | None]:
    """Return the newest checkpoint of a name that passes the gate, and the newest of all (I15).

    Only numbers of the lineage are compared; a wall clock is never asked. A checkpoint with a basis can't pass below
    the smallest move of any pointer, so the search ends there.
    """
    moves = {view.name: view.moved_lineage_seq for view in tx.views.all()}
    floor = min(moves.values(), default=0)
    restore = tx.lineage.newest_restore(name)
    newest: list[Checkpoint] = []
    passing: list[Checkpoint] = []
    for context_free in (False, True):
        before = tx.log.head().lineage_seq + 1
        while (made := tx.checkpoints.newest(name, before, context_free=context_free)) is not None:
            if before == tx.log.head().lineage_seq + 1:
                newest.append(made)
            before = made.lineage_seq
            if not _left_by(restore, made) and (context_free or _passes(made, moves)):
                passing.append(made)
                break
            if not context_free and made.lineage_seq <= floor:
                break
    return _newest(passing), _newest(newest)


def _newest(checkpoints: Sequence[Checkpoint]) -> Checkpoint | None:
    return max(checkpoints, key=lambda made: made.lineage_seq, default=None)


def _left_by(restore: LineageEntry | None, made: Checkpoint) -> bool:
    """Tell whether a checkpoint is of a past that a restore has left: between what was restored and the restore."""
    if restore is None or restore.restored_seq is None:
        return False
    return restore.restored_seq < made.lineage_seq < restore.lineage_seq


def _passes(checkpoint: Checkpoint, moves: dict[str, int]) -> bool:
    """Ask the pure gate for every view that the state was built from; recovery has fenced what was in flight."""
    bases = [view for view in checkpoint.views if view.basis_revision is not None]
    return all(
        select_recovery_target(checkpoint.lineage_seq, moves.get(view.view, 0), compaction_in_flight=False)
        is RecoveryTarget.CHECKPOINT
        for view in bases
    )


def _check_target(env: Environment, target: Checkpoint) -> None:
    """A checkpoint that passes the gate but fails its digest is a reconciliation, never skipped in silence (I15)."""
    try:
        check_checkpoint(target)
    except CorruptRecordError as error:
        raise SummaryReconciliationError(
            f"the checkpoint {target.name!r} of turn {target.turn} (lineage {target.lineage_seq}) of {env.scope} is "
            "the one to restore, but it does not match its digest",
            summary_generation=None,
            checkpoint_turn=target.turn,
            reason=ReconciliationReason.CHECKPOINT_DIGEST,
        ) from error


def _read_snapshot(env: Environment, tx: Transaction, view: str, target: Checkpoint | None) -> ContextView:
    """Read summary and tail; a summary that is not what was activated is a reconciliation (I16)."""
    try:
        return read_view(env, tx, view)
    except CorruptRecordError as error:
        if not error.place.startswith(("summary ", "segment ")):
            raise
        stored = tx.views.get(view)
        raise SummaryReconciliationError(
            f"the active summary of view {view!r} can't be used: {error}",
            summary_generation=stored.generation if stored else None,
            checkpoint_turn=target.turn if target else None,
            reason=ReconciliationReason.CORRUPT_SUMMARY,
        ) from error


def _check_resumable(
    tx: Transaction,
    request: RecoveryRequest,
    target: Checkpoint | None,
    state: object,
    basis: CheckpointView | None,
    snapshot: ContextView,
    context: Context,
) -> None:
    """Ask the pure rule whether the agent may go on (I16)."""
    state_text = leaf_text(state) if target else ""
    missing = missing_dependencies(request.needs, context.text, state_text)
    known = {ref: last_known(tx, ref, snapshot) for ref in missing}
    resume_from_checkpoint(
        ResumePoint(
            generation=basis.generation if basis else snapshot.generation,
            turn=target.turn if target else 0,
            last_durable_seq=target.revision if target else snapshot.watermark,
            summary=SummaryAtRecovery(
                generation=snapshot.generation,
                complete=True,
                reaches_seq=snapshot.revision,
                text=context.text,
            ),
            state_text=state_text,
            last_known={ref: place for ref, place in known.items() if place is not None},
        ),
        request.needs,
    )


def _marked(context: Context, basis_revision: int) -> Context:
    """Mark the events that came after the basis of the restored state; its own are among them, none is dropped (I16).

    Raises:
        ContextOverflowError: not all of them fit the budget.
    """
    for omission in context.omitted:
        if omission.kind is PartKind.EVENT and omission.through_seq > basis_revision:
            raise ContextOverflowError(
                f"events after {basis_revision}, the basis of the restored state, do not fit",
                needed=context.tokens + omission.tokens,
                budget=context.budget,
            )
    parts = tuple(
        replace(part, since_checkpoint=True) if part.event is not None and part.from_seq > basis_revision else part
        for part in context.parts
    )
    return replace(context, parts=parts)


def _prior(newest: Checkpoint | None) -> PriorState | None:
    if newest is None:
        return None
    check_checkpoint(newest)
    state = decode_json(newest.state, f"checkpoint {newest.lineage_seq}")
    return PriorState(turn=newest.turn, lineage_seq=newest.lineage_seq, state=state)
