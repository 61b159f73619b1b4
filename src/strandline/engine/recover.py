"""Recover: continue from a state that really existed, or stop with an error that says what is missing (I15, I16).

Fence, choice and the restore's own entry are one transaction. Nothing is overwritten before the decision is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from strandline.codec import decode_json
from strandline.engine.cases import Question, ask, case_on, find_case, get_case, name_case
from strandline.engine.checkpoint import load_checkpoint
from strandline.engine.choose_checkpoint import choose_checkpoint
from strandline.engine.claim import fence_all, record_fence
from strandline.engine.environment import Environment
from strandline.engine.external import EXTERNAL, Loader, state_text, with_loads
from strandline.engine.lineage import add_entry, check_entry, own_key, summary_of
from strandline.engine.read_context import Context, assemble_context, check_needs, first_set
from strandline.engine.reading import OF_A_SUMMARY, UNWRITTEN_MAIN, find_view, read_view
from strandline.engine.reconcile import answer_by_controller, check_controller
from strandline.engine.retrieve import divergences, last_known
from strandline.engine.watching import watched
from strandline.errors import (
    CompactionLineageError,
    ContextOverflowError,
    CorruptRecordError,
    SummaryReconciliationError,
)
from strandline.limits import RECOVERY_ANSWERS_MAX
from strandline.model.case import CaseKind
from strandline.model.checkpoint import Checkpoint, CheckpointView, ExternalState
from strandline.model.context import ContextView, PartKind
from strandline.model.ids import check_name
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.model.recovery import (
    ReconciliationReason,
    RecoveredExternal,
    RecoveryKind,
    ResumePoint,
    SummaryAtRecovery,
)
from strandline.model.register import OpenCall
from strandline.model.view import ViewHead
from strandline.ports import Controller, Transaction
from strandline.ports.occurrences import CaseTold, RecoveryTold
from strandline.rules.planning import check_budget
from strandline.rules.recovery import missing_dependencies, resume_from_checkpoint, select_recovery_target


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorState:
    """The newest state that was not restored: stale, handed over on request only (I15)."""

    turn: int
    lineage_seq: int
    state: object
    stale: bool = True
    external: ExternalState | None = None  # where it lives; then `state` is None: it is not loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What the agent goes on from.

    On "restore" `state` is the checkpoint's, and `context` holds every live event after its basis, marked
    `since_checkpoint`. A state that lives elsewhere is bytes, or None if nothing was given to load it with; `external`
    says where it lives. On "replay" the context is the active summary with its tail; `state` is None, unless the
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
    external: RecoveredExternal | None = None

    @property
    def divergences(self) -> Mapping[str, str]:
        """The needs that another reference meets, by a divergence that was accepted: old to new (I17)."""
        return self.context.divergences

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The tool calls without a result: answer each, or append `abandoned` for it."""
        return self.context.open_calls


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryRequest:
    """What was asked for."""

    name: str
    view: str
    needs: Sequence[str]
    budget: int | None
    dry_run: bool
    with_prior_state: bool
    controller: Controller | None = None
    loader: Loader = field(default_factory=lambda: Loader(None))


Refusal = SummaryReconciliationError | CompactionLineageError


@dataclass(slots=True)
class _Seen:
    """How far a decision has come: what the case of a refusal names."""

    view: str
    checkpoint: LineageEntry | None = None


def recover(env: Environment, request: RecoveryRequest) -> Recovery:
    """Fence what is in flight, choose by the gate, check, and record; or fail closed, with a case.

    A controller is asked about the case of each refusal; what it leaves open is raised.

    A state that lives elsewhere is loaded outside any transaction; then the choice is made anew.

    Raises:
        SummaryReconciliationError: summary, checkpoint or a dependency is not what going on would need.
        CompactionLineageError: the gate refuses.
        ContextOverflowError: the context does not fit the budget.
        CorruptRecordError: the log itself is damaged.
    """
    watch = watched("recover.dry_run" if request.dry_run else "recover")
    return watch(lambda here: with_loads(request.loader, lambda: _recover(here, request)))(env)


def _recover(env: Environment, request: RecoveryRequest) -> Recovery:
    check_name("checkpoint", request.name)
    check_needs(request.needs)
    check_controller(request.controller)
    if request.dry_run:
        return _dry_run(env, request)
    asked: set[str] = set()  # a question that an answer leaves as it was is not put again
    for _ in range(RECOVERY_ANSWERS_MAX):
        outcome = _recover_once(env, request)
        if isinstance(outcome, Recovery):
            return outcome
        if request.controller is None or outcome.case_id is None:
            raise outcome
        question = get_case(env, outcome.case_id, request.view).identity
        if question in asked:
            raise outcome
        asked.add(question)
        answer_by_controller(env, request.controller, outcome, request.view)
    outcome = _recover_once(env, request)
    if isinstance(outcome, Recovery):
        return outcome
    raise outcome


def _dry_run(env: Environment, request: RecoveryRequest) -> Recovery:
    """Decide and write nothing; a case that stands open already is named."""
    seen = _Seen(request.view)
    with env.read() as tx:
        try:
            return _decide(env, tx, request, seen)
        except (SummaryReconciliationError, CompactionLineageError) as error:
            question = _question(tx, seen, error)
            there = None if question is None else find_case(env, tx, question)
            if there is not None:
                name_case(env, error, there)
            raise


def _recover_once(env: Environment, request: RecoveryRequest) -> Recovery | Refusal:
    """Recover, or return the refusal whose case was opened in the same transaction, which keeps the fence too (I16).

    What no answer could help, such as a reference that no event holds, opens no case: it is raised, and nothing is
    written.
    """
    seen = _Seen(request.view)
    outcome: Recovery | Refusal
    with env.write() as tx:
        before = tx.views.all()
        with env.phase("recover.fence"):
            fenced = fence_all(env, tx)
        try:
            with env.phase("recover.choose"):
                decided = _decide(env, tx, request, seen)
            with env.phase(f"recover.{decided.kind}"):
                entry = add_entry(tx, _entry(env, tx, decided, fenced))
            outcome = replace(decided, lineage_seq=entry.lineage_seq)
        except (SummaryReconciliationError, CompactionLineageError) as error:
            question = _question(tx, seen, error)
            if question is None:
                raise
            for view in before:
                record_fence(tx, view, env.clock.now_us())
            name_case(env, error, ask(env, tx, question))
            outcome = error
    if isinstance(outcome, Recovery):
        seq, reader, generation = outcome.lineage_seq, outcome.context.view, outcome.generation
        env.emit("recovery", RecoveryTold(outcome=outcome.kind, lineage_seq=seq, view=reader, generation=generation))
    else:
        env.emit("case", CaseTold(case_id=outcome.case_id, error=type(outcome).__name__))
    return outcome


def _question(tx: Transaction, seen: _Seen, error: Refusal) -> Question | None:
    """Return what a refusal asks the controller, or None where no answer could help (I11)."""
    view = tx.views.get(seen.view) or UNWRITTEN_MAIN
    if isinstance(error, CompactionLineageError):
        refused = CaseKind.LINEAGE_REFUSAL
        return Question(kind=refused, view=view, reason=refused.value, checkpoint=seen.checkpoint)
    kind = _KINDS.get(ReconciliationReason(error.reason))
    if kind is None or (error.missing_refs and error.last_known is None):
        return None
    ids = tx.refs.find(error.missing_refs)
    return Question(
        kind=kind,
        view=view,
        reason=error.reason,
        checkpoint=seen.checkpoint,
        missing_ids=tuple(ids[ref] for ref in error.missing_refs),
        last_known=error.last_known,
    )


_KINDS = {
    ReconciliationReason.NO_SUMMARY: CaseKind.GENERATION_MISMATCH,
    ReconciliationReason.GENERATION_MISMATCH: CaseKind.GENERATION_MISMATCH,
    ReconciliationReason.BEHIND_CHECKPOINT: CaseKind.GENERATION_MISMATCH,
    ReconciliationReason.HALF_WRITTEN: CaseKind.CORRUPT_SUMMARY,
    ReconciliationReason.CORRUPT_SUMMARY: CaseKind.CORRUPT_SUMMARY,
    ReconciliationReason.CHECKPOINT_DIGEST: CaseKind.CHECKPOINT_DIGEST,
    ReconciliationReason.CHECKPOINT_ERASED: CaseKind.CHECKPOINT_DIGEST,
    ReconciliationReason.DEPENDENCY_NOT_VERBATIM: CaseKind.MISSING_DEPENDENCY,
}


def _entry(env: Environment, tx: Transaction, decided: Recovery, fenced: list[str]) -> LineageEntry:
    restored = decided.kind is RecoveryKind.RESTORE
    revision = tx.log.head().revision
    return LineageEntry(
        lineage_seq=0,
        kind=LineageKind.RESTORE if restored else LineageKind.REPLAY,
        op_key=own_key(env, "recover"),
        revision=revision,
        at_us=env.clock.now_us(),
        view=decided.context.view,
        generation=decided.generation,
        name=decided.name,
        restored_seq=decided.checkpoint_seq if restored else None,
        detail={"turn": decided.turn, "fenced": fenced},
    )


def _decide(env: Environment, tx: Transaction, request: RecoveryRequest, seen: _Seen) -> Recovery:
    head = tx.log.head()
    if (head.revision, head.lineage_seq) == (0, 0):
        raise SummaryReconciliationError(
            f"nothing was ever recorded under {env.scope}: there is no state to go on from",
            summary_generation=None,
            checkpoint_turn=None,
            reason=ReconciliationReason.NOTHING_RECORDED,
            hint="A new workflow has nothing to recover: append its first events. If it should exist, check tenant, "
            "workflow and store.",
        )
    asking = find_view(tx, request.view, str(env.scope))
    chosen, newest = choose_checkpoint(tx, request.name, env.scope.workflow, asking)
    seen.checkpoint = chosen
    target = _load(env, tx, chosen) if chosen is not None else None
    basis = next((v for v in target.views if v.basis_revision is not None), None) if target else None
    view_name = seen.view = basis.view if basis else request.view
    stored = tx.views.get(view_name)
    budget = check_budget(first_set(request.budget, stored.budget if stored else None))
    snapshot = _read_snapshot(env, tx, view_name, budget, target)
    context = assemble_context(snapshot, env.counter, budget)
    state, external = _state_of(env, tx, request, chosen, target)
    reader = find_view(tx, view_name, str(env.scope))
    instead = divergences(tx, request.needs, reader)
    needs = [instead.get(need, need) for need in request.needs]
    _check_resumable(env, tx, needs, reader, target, state, basis, snapshot, context)
    context = replace(context, case_id=case_on(tx, reader), divergences=instead)
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
        prior_state=_prior(env, tx, newest, seen) if request.with_prior_state and target is None else None,
        dry_run=request.dry_run,
        external=external,
    )


def _state_of(
    env: Environment, tx: Transaction, request: RecoveryRequest, entry: LineageEntry | None, target: Checkpoint | None
) -> tuple[object, RecoveredExternal | None]:
    """Return the checkpoint's state; one that lives elsewhere as the bytes that were loaded, and where that is.

    Raises:
        CompactionLineageError: a compaction was in flight when it was registered, so it may hold half of it (I15).
        SummaryReconciliationError: it can't be loaded, or is not what was registered.
    """
    if entry is None or target is None:
        return None, None
    if target.external is None:
        return decode_json(target.state, f"checkpoint {target.lineage_seq}"), None
    view = tx.views.get(entry.view) if entry.view is not None else None
    select_recovery_target(
        target.lineage_seq,
        min(view.moved_lineage_seq if view else 0, target.lineage_seq - 1),  # the gate was passed
        compaction_in_flight=False,
        checkpoint_taken_in_flight=target.in_flight,
    )
    try:
        return request.loader.of(target.external)
    except CorruptRecordError as error:
        raise _not_as_kept(env, entry, error) from error


def _load(env: Environment, tx: Transaction, entry: LineageEntry) -> Checkpoint:
    """Return the checkpoint of an entry. One that is gone, damaged or erased is a reconciliation, never skipped
    (I15).
    """
    try:
        check_entry(tx, entry)
        made = load_checkpoint(tx, entry)
    except CorruptRecordError as error:
        raise _not_as_kept(env, entry, error) from error
    if made.erased:
        raise SummaryReconciliationError(
            f"the checkpoint {made.name!r} of turn {made.turn} (lineage {made.lineage_seq}) of {env.scope} is the one "
            "to restore, but an erasure took its state away",
            summary_generation=entry.generation,
            checkpoint_turn=made.turn,
            reason=ReconciliationReason.CHECKPOINT_ERASED,
            hint="It is not damaged: it held what was erased. A context can still be read.",
        )
    return made


def _not_as_kept(env: Environment, entry: LineageEntry, error: CorruptRecordError) -> SummaryReconciliationError:
    turn = entry.detail.get("turn")
    return SummaryReconciliationError(
        f"the checkpoint {entry.name!r} of turn {turn} (lineage {entry.lineage_seq}) of {env.scope} is the one to "
        f"restore, but it can't be: {error}",
        summary_generation=entry.generation,
        checkpoint_turn=turn if isinstance(turn, int) else None,
        reason=ReconciliationReason.CHECKPOINT_DIGEST,
        hint=_HINT_ELSEWHERE if error.place.startswith(EXTERNAL) else _HINT_DAMAGED,
    )


_HINT_DAMAGED = "Run `strandline verify`, and restore the file from a backup; a context can still be read."
_HINT_ELSEWHERE = "Put back there what was registered, and recover again; a context can still be read."


def _read_snapshot(env: Environment, tx: Transaction, view: str, budget: int, target: Checkpoint | None) -> ContextView:
    """Read summary and tail; a summary that is not what was activated is a reconciliation (I16)."""
    try:
        return read_view(env, tx, view, budget)
    except CorruptRecordError as error:
        if not error.place.startswith(OF_A_SUMMARY):
            raise
        stored = tx.views.get(view)
        raise SummaryReconciliationError(
            f"the active summary of view {view!r} can't be used: {error}",
            summary_generation=stored.generation if stored else None,
            checkpoint_turn=target.turn if target else None,
            reason=ReconciliationReason.CORRUPT_SUMMARY,
            hint="Run `strandline verify`, and restore the file from a backup; the log does not need the summary.",
        ) from error


def _check_resumable(
    env: Environment,
    tx: Transaction,
    needs: Sequence[str],
    reader: ViewHead,
    target: Checkpoint | None,
    state: object,
    basis: CheckpointView | None,
    snapshot: ContextView,
    context: Context,
) -> None:
    """Ask the pure rule whether the agent may go on (I16). References that no event holds are named first (I11)."""
    text_of_state = state_text(state) if target else ""
    missing = missing_dependencies(needs, context.dependency_text, text_of_state)
    known = {ref: last_known(tx, ref, reader, env.scope.workflow) for ref in missing}
    resume_from_checkpoint(
        ResumePoint(
            generation=_generation(tx, basis, reader) if basis else snapshot.generation,
            turn=target.turn if target else None,
            last_durable_seq=target.revision if target else snapshot.watermark,
            summary=SummaryAtRecovery(
                generation=snapshot.generation,
                complete=True,
                reaches_seq=snapshot.revision,
                text=context.dependency_text,
            ),
            state_text=text_of_state,
            last_known={ref: place for ref, place in known.items() if place is not None},
        ),
        sorted(missing, key=lambda ref: known[ref] is not None),
    )


def _generation(tx: Transaction, basis: CheckpointView, reader: ViewHead) -> int:
    """Return the generation that the state was made from; after a rewind to it, the one that has its content now."""
    if basis.generation == reader.generation:
        return basis.generation
    same = summary_of(tx, basis.view, basis.generation) == reader.summary_no
    return reader.generation if same else basis.generation


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


def _prior(env: Environment, tx: Transaction, newest: LineageEntry | None, seen: _Seen) -> PriorState | None:
    if newest is None:
        return None
    seen.checkpoint = newest
    made = _load(env, tx, newest)
    state = decode_json(made.state, f"checkpoint {made.lineage_seq}")
    return PriorState(turn=made.turn, lineage_seq=made.lineage_seq, state=state, external=made.external)
