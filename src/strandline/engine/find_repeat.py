"""What was executed between a checkpoint and the recovery after it, and may be asked for again in other words (I18)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from strandline.engine.effect_rows import KEY_PREFIX, EffectRequest, args_of, call_key, fingerprint_of, result_key
from strandline.engine.environment import Environment
from strandline.engine.family import ledger
from strandline.engine.lineage import check_entry
from strandline.engine.reading import read_log
from strandline.limits import EFFECTS_ALIKE_MAX, REPEAT_SCAN_EVENTS_MAX, REPEAT_WINDOWS_KEPT_MAX
from strandline.model.event import EventKind
from strandline.model.ids import Scope
from strandline.model.lineage import AbandonedRange, LineageEntry, LineageKind
from strandline.ports import Transaction
from strandline.rules.repeats import EXECUTED, Execution


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The events after the basis of a checkpoint, up to the recovery: what the agent may not know that it did.

    `branch` and `recovery_seq` tell whether it is still the one to look at; `chain` is that of its
    last event, so that no other log has the same window.
    """

    recovery_seq: int  # 0: there was no recovery
    branch: int
    chain: bytes = b""
    after: int = 0
    through: int = 0


def find_window(tx: Transaction) -> Window:
    """Return the window of the newest recovery."""
    head, recovery = tx.log.head(), tx.lineage.newest_recovery()
    if recovery is None:
        return Window(recovery_seq=0, branch=head.branch)
    check_entry(tx, recovery)
    last = next(iter(tx.log.read(recovery.revision, recovery.revision)), None)
    return Window(
        recovery_seq=recovery.lineage_seq,
        branch=head.branch,
        chain=last.chain if last is not None else b"",
        after=max(_basis_revision(tx, recovery), recovery.revision - REPEAT_SCAN_EVENTS_MAX),
        through=recovery.revision,
    )


def _basis_revision(tx: Transaction, recovery: LineageEntry) -> int:
    """Return the revision that the state was made from: of the restored checkpoint; on a replay, of the newest one."""
    if recovery.kind is LineageKind.RESTORE:
        seqs = [recovery.restored_seq or 0]
    else:
        before = recovery.lineage_seq
        made = [tx.lineage.newest_checkpoint(recovery.name or "", before, context_free=free) for free in (False, True)]
        seqs = [entry.lineage_seq for entry in made if entry is not None]
    checkpoint = tx.checkpoints.get(max(seqs)) if seqs else None
    if checkpoint is None:
        return 0
    bases = [view.basis_revision for view in checkpoint.views if view.basis_revision is not None]
    return min(bases, default=checkpoint.revision)


def effects_executed(tx: Transaction, request: EffectRequest, fingerprint: str, window: Window) -> list[Execution]:
    """Return the effects of this fingerprint that were executed in the window, the newest intent first."""
    if window.recovery_seq == 0:
        return []
    found = []
    for effect in ledger(tx).effects.alike(fingerprint, EFFECTS_ALIKE_MAX):
        if effect.key == request.key or effect.state not in EXECUTED:
            continue
        call = held_event(tx, call_key(effect.key, effect.attempt))
        if call is not None and window.after < call <= window.through:
            result = held_event(tx, result_key(effect.key, effect.attempt)) or effect.result_seq
            found.append(Execution(call_seq=call, result_seq=result, effect=effect))
    return found


def held_event(tx: Transaction, key: str) -> int | None:
    """Return the seq of the event with this key: of this branch, or of one that a rewind left."""
    here = tx.log.by_keys([key]).get(key) or next(iter(tx.log.key_holders(key)), None)
    return None if here is None else here.seq


def calls_executed(env: Environment, tx: Transaction, request: EffectRequest, window: Window) -> list[Execution]:
    """Return the calls of the same request that only stand in the log, on this branch, the newest first.

    A call that failed was not executed; one without a result may have been.
    """
    if window.recovery_seq == 0:
        return []
    left = tx.log.abandoned() if window.branch else []
    wanted = fingerprint_of(env, request.tool, None, request.args)
    alike = [(call, result) for fingerprint, call, result in _calls_in(env, tx, window, left) if fingerprint == wanted]
    answered = dict(alike)
    head = tx.log.head().revision
    if None in answered.values() and head > window.through:  # its result may have come after the recovery
        last = min(head, window.through + REPEAT_SCAN_EVENTS_MAX)
        for event in read_log(tx, window.through + 1, last, env.scope.workflow):
            if event.kind is EventKind.TOOL_RESULT and event.call_seq in answered and not _abandoned(left, event.seq):
                _answer(answered, event.call_seq, event.seq, is_error=event.envelope.is_error)
    return [Execution(call_seq=call, result_seq=result) for call, result in sorted(answered.items(), reverse=True)]


_Call = tuple[str, int, int | None]  # fingerprint, call, result

_WALKED: dict[tuple[Scope, Window], list[_Call]] = {}
"""The calls of windows that were walked: what stands before a recovery does not change, and each effect asks for it."""


def _calls_in(env: Environment, tx: Transaction, window: Window, left: Sequence[AbandonedRange]) -> list[_Call]:
    """Return the calls of a window that did not fail."""
    known = _WALKED.get((env.scope, window))
    if known is not None:
        return known
    fingerprints: dict[int, str] = {}
    answered: dict[int, int | None] = {}
    for event in read_log(tx, window.after + 1, window.through, env.scope.workflow):
        if event.kind is EventKind.TOOL_CALL and event.body is not None:
            if not (event.key or "").startswith(KEY_PREFIX) and not _abandoned(left, event.seq):
                fingerprints[event.seq] = fingerprint_of(env, event.envelope.tool or "", None, args_of(event))
                answered[event.seq] = None
        elif event.kind is EventKind.TOOL_RESULT and event.call_seq in answered:
            _answer(answered, event.call_seq, event.seq, is_error=event.envelope.is_error)
    calls = [(fingerprints[call], call, result) for call, result in answered.items()]
    while len(_WALKED) >= REPEAT_WINDOWS_KEPT_MAX:
        with suppress(KeyError, StopIteration, RuntimeError):  # another thread did
            del _WALKED[next(iter(_WALKED))]
    _WALKED[env.scope, window] = calls
    return calls


def _answer(answered: dict[int, int | None], call_seq: int, seq: int, *, is_error: bool) -> None:
    if is_error:
        del answered[call_seq]
    elif answered[call_seq] is None:
        answered[call_seq] = seq


def _abandoned(left: Iterable[AbandonedRange], seq: int) -> bool:
    return any(away.from_seq <= seq <= away.through_seq for away in left)
