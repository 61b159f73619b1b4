"""Revert: go back to the content of an earlier generation, and say what was made from what is left behind (C14, C17).

A revert moves the pointer on, to a generation that no view had before (I13). It fences the view first, so that no
compaction of what is left behind becomes active, however late it lands (I6).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace

from strandline.codec import record_digest
from strandline.engine.acted_on import read_acted_on
from strandline.engine.cases import as_read, open_case
from strandline.engine.claim import fence_holder
from strandline.engine.environment import Environment, check_author
from strandline.engine.lineage import add_entry, first_generation, next_seq, own_key, read_entries, summary_of
from strandline.engine.reading import check_reach, find_view, load_summary
from strandline.engine.watching import watched
from strandline.errors import CorruptRecordError, InvalidInputError
from strandline.model.candidate import CandidateState
from strandline.model.case import Case, CaseKind
from strandline.model.lineage import MOVES, LineageEntry, LineageKind
from strandline.model.outcome import Reverted
from strandline.model.summary import Summary
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.ports.occurrences import RegressionTold, RevertTold


@watched("revert")
def revert(env: Environment, view: str, to_generation: int, *, by: str, why: str) -> Reverted:
    """Go back to the content of a generation, in one transaction.

    Raises:
        InvalidInputError: there never was such a generation, its content is the active one, or it was left as bad.
        CorruptRecordError: its summary, or the lineage, is not what was written. Nothing was written.
    """
    with env.write() as tx:
        reverted = revert_in(env, tx, view, to_generation, by=by, why=why)
    env.emit(
        "revert",
        RevertTold(
            view=view,
            generation=reverted.generation,
            to_generation=to_generation,
            acted_on=reverted.acted_on_count,
            case_id=reverted.case_id,
        ),
    )
    return reverted


def revert_in(
    env: Environment,
    tx: Transaction,
    view_name: str,
    to_generation: int,
    *,
    by: str,
    why: str,
    case: Case | None = None,
) -> Reverted:
    """As `revert`, in a writing transaction that is open. `case` is the one that it answers; None: one is opened."""
    check_author(by, why)
    view = find_view(tx, view_name, str(env.scope))
    target = _target(env, tx, view, to_generation)
    since = _read_since(env, tx, view, to_generation)
    _check_sound(target, since, to_generation)
    left = _left(tx, target, since)
    acted_on, total = read_acted_on(env, tx, view, left, since.revision, since.checkpoints)
    now = env.clock.now_us()
    fenced = fence_holder(tx, view, now)
    shifted = replace(
        view,
        generation=view.generation + 1,
        summary_no=target.summary_no,
        watermark=target.watermark,
        moved_lineage_seq=next_seq(tx),
        fence=view.fence + 1,
        lease_attempt=None,
        lease_until_us=0,
    )
    if not tx.views.shift_pointer(shifted, base_generation=view.generation):
        raise AssertionError("the pointer moved while the head was locked")
    _settle_candidates(tx, target, left, since)
    entry = add_entry(
        tx,
        LineageEntry(
            lineage_seq=0,
            kind=LineageKind.REVERT,
            op_key=own_key(env, f"revert:{view.name}"),
            revision=tx.log.head().revision,
            at_us=now,
            view=view.name,
            generation=shifted.generation,
            by=by,
            why=why,
            detail={
                "to": to_generation,
                "summary_no": target.summary_no,
                "watermark": target.watermark,
                "left_generations": sorted(left),
                "left_summaries": sorted(set(left.values())),
                "fenced": fenced,
                "acted_on": total,
            },
        ),
    )
    case = case or _open_regression(env, tx, view, by=by, why=why)
    return Reverted(
        view=view.name,
        to_generation=to_generation,
        generation=shifted.generation,
        watermark=shifted.watermark,
        lineage_seq=entry.lineage_seq,
        left=tuple(sorted(left)),
        fenced=fenced,
        acted_on=tuple(acted_on),
        acted_on_count=total,
        case_id=case.case_id,
    )


@watched("report_regression")
def report_regression(env: Environment, view: str, generation: int, *, by: str, why: str) -> Case:
    """Open a case on a bad summary; nothing is moved. While it is active it is not compacted again (I11).

    Raises:
        InvalidInputError: there never was such a generation, or its summary is the empty one.
    """
    check_author(by, why)
    with env.write() as tx:
        head = find_view(tx, view, str(env.scope))
        number = _summary_of(tx, head, generation)
        if number == 0:
            raise InvalidInputError(
                f"generation {generation} of view {view!r} is the empty summary, which says nothing that could be bad"
            )
        bad = replace(head, generation=generation, summary_no=number)
        case = as_read(env, tx, _open_regression(env, tx, bad, by=by, why=why))
    env.emit("regression", RegressionTold(view=view, generation=generation, case_id=case.case_id))
    return case


def _open_regression(env: Environment, tx: Transaction, view: ViewHead, *, by: str, why: str) -> Case:
    """Open the case on the summary that the view's pointer names, or find it: who asks and why is no part of what."""
    detail = {"by": by, "why": why}
    return open_case(env, tx, CaseKind.REGRESSION, view=view, reason="a bad summary was active", detail=detail)


def _summary_of(tx: Transaction, view: ViewHead, generation: int) -> int:
    """Return the number of the summary that a generation of the view had; 0: the empty one.

    Raises:
        InvalidInputError: the view never was at this generation, or read other audiences then (I21).
    """
    if isinstance(generation, bool) or not isinstance(generation, int) or not 0 <= generation <= view.generation:
        raise InvalidInputError(
            f"view {view.name!r} never was at generation {generation!r}; it is at {view.generation}"
        )
    first = first_generation(tx, view)
    if generation < first:
        raise InvalidInputError(
            f"generation {generation} of view {view.name!r} was made from other audiences; nothing was written",
            hint=f"It began anew at generation {first}, which is the empty summary; go back to that, or a later one.",
        )
    return summary_of(tx, view.name, generation)


def _number(entry: LineageEntry, name: str) -> int:
    value = entry.detail.get(name)
    if not isinstance(value, int):
        raise CorruptRecordError(f"it does not say {name!r}", place=f"lineage {entry.lineage_seq}")
    return value


# ---------------------------------------------------------------------------------------------- what to go back to


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """The summary to go back to; None: the empty one."""

    summary: Summary | None

    @property
    def summary_no(self) -> int:
        return self.summary.summary_no if self.summary else 0

    @property
    def watermark(self) -> int:
        return self.summary.watermark if self.summary else 0


@dataclass(slots=True, kw_only=True)
class _Since:
    """What the lineage says of the time since the first move behind the target."""

    revision: int  # of the log at its beginning
    moves: list[LineageEntry] = field(default_factory=list)  # of this view
    checkpoints: list[LineageEntry] = field(default_factory=list)  # whose basis is this view


def _target(env: Environment, tx: Transaction, view: ViewHead, to_generation: int) -> _Target:
    number = _summary_of(tx, view, to_generation)
    if to_generation == view.generation:
        raise InvalidInputError(f"view {view.name!r} is at generation {to_generation} already")
    if number == view.summary_no:
        raise InvalidInputError(
            f"the content of generation {to_generation} of view {view.name!r} is the active one, as generation "
            f"{view.generation}"
        )
    if number == 0:
        return _Target(summary=None)
    if _is_erased(tx, number):
        raise InvalidInputError(
            f"an erasure took the content of generation {to_generation} of view {view.name!r} away; "
            "nothing was written",
            hint="`strandline lineage` lists the erasures. Go back to a generation since the last of them, or to 0.",
        )
    summary = load_summary(tx, number, view.name)
    if record_digest(tuple(tx.summaries.changes(number))) != summary.manifest_digest:
        raise CorruptRecordError("its changes do not match their digest", place=f"manifest of summary {number}")
    check_reach(replace(view, watermark=summary.watermark), tx.log.head().revision, env.scope.workflow)
    return _Target(summary=summary)


def _is_erased(tx: Transaction, number: int) -> bool:
    summary = tx.summaries.get(number, texts_only=True)
    return summary is not None and summary.erased


def _read_since(env: Environment, tx: Transaction, view: ViewHead, to_generation: int) -> _Since:
    """Read the lineage from the move that followed the target; the cost follows what came since."""
    first = tx.lineage.move_to(view.name, to_generation + 1)
    if first is None:
        place = f"lineage of view {view.name!r}"
        raise CorruptRecordError(f"the entry that moved it to generation {to_generation + 1} is missing", place=place)
    since = _Since(revision=first.revision)
    for entry in read_entries(tx, env.scope.workflow, first.lineage_seq - 1):
        if entry.view == view.name and entry.kind in MOVES and entry.generation is not None:
            since.moves.append(entry)
        elif entry.view == view.name and entry.kind is LineageKind.CHECKPOINT:
            since.checkpoints.append(entry)
    return since


def _check_sound(target: _Target, since: _Since, to_generation: int) -> None:
    """Refuse what was left as bad before, and what covers events that a rewind abandoned since."""
    for entry in since.moves:
        if entry.kind is LineageKind.REVERT and target.summary_no in left_by(entry):
            raise InvalidInputError(
                f"generation {to_generation} was left as bad by the revert at lineage {entry.lineage_seq}; "
                "go back to one before it"
            )
        if entry.kind is LineageKind.REWIND and _number(entry, "to") < target.watermark:
            raise InvalidInputError(
                f"generation {to_generation} covers events that the rewind at lineage {entry.lineage_seq} abandoned; "
                "go back to one before it"
            )


def left_by(entry: LineageEntry) -> list[int]:
    """Return the numbers of the summaries that a revert left as bad."""
    left = entry.detail.get("left_summaries")
    if not isinstance(left, list) and not isinstance(left, tuple):
        raise CorruptRecordError("it does not say 'left_summaries'", place=f"lineage {entry.lineage_seq}")
    return list(left)


# ---------------------------------------------------------------------------------------------- what is left behind


def _left(tx: Transaction, target: _Target, since: _Since) -> dict[int, int]:
    """Return the generations that are left as bad, each with the number of its summary.

    Those that have the target's own content, or that of one of its bases, are good.
    """
    moved = {entry.generation: _number(entry, "summary_no") for entry in since.moves if entry.generation is not None}
    left = {generation: number for generation, number in moved.items() if number != target.summary_no}
    base = target.summary
    while base is not None and base.base_no >= min(left.values(), default=0):
        left = {generation: number for generation, number in left.items() if number != base.base_no}
        base = tx.summaries.get(base.base_no, texts_only=True) if base.base_no else None
    return left


def _settle_candidates(tx: Transaction, target: _Target, left: dict[int, int], since: _Since) -> None:
    """Mark the jobs of the summaries left behind, so that none comes back by itself; the target's is active."""
    numbers = set(left.values())
    for entry in since.moves:
        if entry.kind is LineageKind.COMPACTION and _number(entry, "summary_no") in numbers:
            numbers.discard(_number(entry, "summary_no"))
            _mark(tx, str(entry.detail.get("summary_id")), CandidateState.REVERTED)
    for number in numbers:  # that were made before the target, or by a parent
        with suppress(CorruptRecordError):  # a damaged summary is a reason to leave it, and none to stay
            summary = tx.summaries.get(number, texts_only=True) if number else None
            if summary is not None:
                _mark(tx, summary.summary_id, CandidateState.REVERTED)
    if target.summary is not None:
        _mark(tx, target.summary.summary_id, CandidateState.ACTIVE)


def _mark(tx: Transaction, summary_id: str, state: CandidateState) -> None:
    candidate_id = summary_id.rpartition(".")[0]
    if tx.jobs.candidate(candidate_id) is not None:  # a fork has the summary, and not the job
        tx.jobs.set_candidate_state(candidate_id, state)
