"""What was made from a generation: effects, permits, artifacts, events, checkpoints, each by its basis (C14, C17)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Final

from strandline.engine.environment import Environment
from strandline.engine.family import ledger
from strandline.engine.reading import read_log, read_one
from strandline.errors import CorruptRecordError
from strandline.limits import ACTED_ON_LISTED_MAX
from strandline.model.event import Basis, EventKind
from strandline.model.lineage import LineageEntry
from strandline.model.outcome import ActedOn, ActedOnKind
from strandline.model.view import ViewHead
from strandline.ports import Transaction


def read_acted_on(
    env: Environment,
    tx: Transaction,
    view: ViewHead,
    left: Container[int],
    revision: int,
    checkpoints: Iterable[LineageEntry],
) -> tuple[list[ActedOn], int]:
    """Return what was made from generations of a view, at most ACTED_ON_LISTED_MAX, and how much it is in all.

    What has consequences outside comes first.

    Args:
        env: ports and workflow.
        tx: a transaction.
        view: whose generations; what it may not read is neither listed nor counted (I21).
        left: which.
        revision: of the log when the first of them became active: only what came later is read.
        checkpoints: the entries of checkpoints since then.

    Raises:
        CorruptRecordError: an event, an effect or a permit is missing or damaged.
    """
    listed: dict[ActedOnKind, list[ActedOn]] = {kind: [] for kind in ActedOnKind}
    total = 0
    for found in _all(env, tx, revision, checkpoints):
        if found.basis.view == view.name and found.basis.generation in left and _reads(env, tx, view, found):
            total += 1
            if len(listed[found.kind]) < ACTED_ON_LISTED_MAX:
                listed[found.kind].append(found)
    return [found for kind in ActedOnKind for found in listed[kind]][:ACTED_ON_LISTED_MAX], total


_EVENTS: Final = frozenset({ActedOnKind.EFFECT, ActedOnKind.ARTIFACT, ActedOnKind.EVENT})


def _reads(env: Environment, tx: Transaction, view: ViewHead, found: ActedOn) -> bool:
    if not view.narrow or found.kind not in _EVENTS:
        return True
    return view.reads(read_one(tx, found.seq, env.scope.workflow).audience)


def _all(env: Environment, tx: Transaction, revision: int, checkpoints: Iterable[LineageEntry]) -> Iterator[ActedOn]:
    """Yield all that says from which context it was made: effects and permits of this workflow, events, checkpoints."""
    root, workflow = ledger(tx), env.scope.workflow
    counted = 0
    calls: set[int] = set()  # the effects' own: each is listed once, as the effect
    for effect in root.effects.all():
        counted += 1
        if effect.basis is not None and effect.workflow == workflow:
            calls.add(effect.call_seq)
            yield ActedOn(
                kind=ActedOnKind.EFFECT,
                name=effect.key,
                state=effect.state.value,
                seq=effect.call_seq,
                actor=effect.actor,
                basis=effect.basis,
            )
    _check_count("effect", counted, root.log.head().effects)
    counted = 0
    for permit in root.permits.all():
        counted += 1
        if permit.basis is not None and permit.workflow == workflow:
            yield ActedOn(
                kind=ActedOnKind.PERMIT,
                name=f"{permit.action} ({permit.permit_id})",
                state=permit.state.value,
                seq=permit.revision,
                actor=permit.by,
                basis=permit.basis,
            )
    _check_count("permit", counted, root.log.head().permits)
    for event in read_log(tx, revision + 1, tx.log.head().revision, workflow):
        if event.basis is not None and event.seq not in calls:
            made = event.kind is EventKind.ARTIFACT
            yield ActedOn(
                kind=ActedOnKind.ARTIFACT if made else ActedOnKind.EVENT,
                name=event.envelope.subject or "" if made else event.kind.value,
                state="",
                seq=event.seq,
                actor=event.actor,
                basis=event.basis,
            )
    for entry in checkpoints:
        if entry.generation is not None and entry.view is not None:
            yield ActedOn(
                kind=ActedOnKind.CHECKPOINT,
                name=entry.name or "",
                state="",
                seq=entry.revision,
                actor="",
                basis=Basis(view=entry.view, generation=entry.generation, revision=entry.revision),
            )


def _check_count(table: str, counted: int, written: int) -> None:
    """Refuse to list when a row is gone: what it says would be missing in silence."""
    if counted != written:
        raise CorruptRecordError(f"{counted} are stored, {written} were written", place=table)
