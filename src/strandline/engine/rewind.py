"""Rewind: go on from an earlier event on a new branch, and delete nothing (C22).

The events behind it are abandoned: they stay readable, and stand in no context of the new branch. Every view's pointer
goes back to a summary that covers none of them, under a new generation (I13). What must not be undone, a revocation or
a lifted constraint, is stated again on the new branch, so that the register stays the fold of the live log.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from strandline.engine.append import LogWriter, PreparedEvent, again
from strandline.engine.checkpoint import load_checkpoint
from strandline.engine.claim import fence_all
from strandline.engine.environment import Environment, check_author, check_whole
from strandline.engine.lineage import (
    add_entry,
    check_entry,
    first_generation,
    made_for,
    next_seq,
    own_key,
    read_entries,
    summary_of,
)
from strandline.engine.reading import (
    abandoned_of,
    check_register_whole,
    find_view,
    load_summary,
    read_live,
    read_log,
    read_one,
    visible,
)
from strandline.engine.revert import left_by
from strandline.engine.watching import watched
from strandline.errors import CorruptRecordError, InvalidInputError, StaleRevisionError
from strandline.model.candidate import CandidateState
from strandline.model.event import Event, EventKind
from strandline.model.ids import DEFAULT_VIEW, EVERYONE
from strandline.model.lineage import AbandonedRange, LineageEntry, LineageKind
from strandline.model.outcome import Rewound
from strandline.model.register import FactKey
from strandline.model.summary import Summary
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.ports.occurrences import RewindTold
from strandline.rules.branches import Abandoned
from strandline.rules.register import ENDED_BY_LIFT, rewound

_NEVER_UNDONE = frozenset({EventKind.REVOKE, EventKind.LIFT_CONSTRAINT})
_GOES_ON = frozenset({CandidateState.PENDING, CandidateState.VALIDATED})


@watched("rewind")
def rewind(
    env: Environment,
    to_revision: int,
    *,
    by: str,
    why: str,
    view: str = DEFAULT_VIEW,
    keep: Collection[int] = (),
    expected_revision: int | None = None,
) -> Rewound:
    """Abandon every live event behind `to_revision`, in one transaction, and state those of `keep` again.

    Raises:
        InvalidInputError: it is no live event and not 0, nothing stands behind it, nobody says who decides, or `keep`
            names an event that does not stand behind it, or can't be stated again.
        StaleRevisionError: the workflow has another revision than the one that was expected.
        CorruptRecordError: what would have to be read is not what was written. Nothing was written.
    """
    check_whole("expected_revision", expected_revision)
    with env.write() as tx:
        actual = tx.log.head().revision
        if expected_revision is not None and expected_revision != actual:
            raise StaleRevisionError(expected=expected_revision, actual=actual)
        done = rewind_in(env, tx, to_revision, by=by, why=why, keep=keep)
        told = _told(env, tx, done, find_view(tx, view, str(env.scope)))
    _emit(env, done)
    return told


@watched("rewind")
def rewind_to_checkpoint(
    env: Environment, checkpoint_seq: int, *, by: str, why: str, view: str = DEFAULT_VIEW
) -> Rewound:
    """Go back to the revision of a checkpoint; recovery then restores it (I17).

    Raises:
        InvalidInputError: there is no such checkpoint, an earlier rewind abandoned what it was made from, or a revert
            left that as bad.
        CorruptRecordError: the checkpoint, or its summary, is not what was written. Nothing was written.
    """
    check_whole("checkpoint_seq", checkpoint_seq)
    with env.write() as tx:
        reader = find_view(tx, view, str(env.scope))
        entry = find_checkpoint(tx, checkpoint_seq, reader)
        done = rewind_in(env, tx, entry.revision, by=by, why=why, checkpoint=entry)
        told = _told(env, tx, done, reader)
    _emit(env, done)
    return told


def find_checkpoint(tx: Transaction, checkpoint_seq: int, reader: ViewHead | None = None) -> LineageEntry:
    """Return the entry of a checkpoint; with `reader`, one that the view may go back to.

    Raises:
        InvalidInputError: there is none at this place of the lineage.
    """
    found = tx.lineage.read(checkpoint_seq - 1, 1) if 0 < checkpoint_seq <= tx.log.head().lineage_seq else []
    is_one = bool(found) and found[0].kind is LineageKind.CHECKPOINT
    if not is_one or (reader is not None and not made_for(tx, reader)(found[0])):
        raise InvalidInputError(
            f"lineage {checkpoint_seq} is no checkpoint", hint="`strandline lineage` lists the checkpoints."
        )
    return found[0]


def _emit(env: Environment, done: Rewound) -> None:
    env.emit("rewind", RewindTold(to_revision=done.to_revision, events=done.events, branch=done.branch))


def _told(env: Environment, tx: Transaction, done: Rewound, reader: ViewHead) -> Rewound:
    """Return what a view may know of a rewind, which is one of the whole workflow (I21)."""
    if not reader.narrow:
        return done
    before = abandoned_of(tx).until(done.branch - 1).live_spans(done.from_seq, done.through_seq) if done.events else ()
    behind = chain.from_iterable(read_log(tx, first, last, env.scope.workflow) for first, last in before)
    restated = [(pair, read_one(tx, pair[0], env.scope.workflow)) for pair in done.restated]
    jobs = [(attempt, tx.jobs.candidate(attempt.rpartition(".")[0])) for attempt in done.fenced]
    return replace(
        done,
        events=sum(1 for _ in visible(reader, behind)),
        generations={reader.name: done.generations[reader.name]},
        restated=tuple(pair for pair, event in restated if reader.reads(event.audience)),
        fenced=tuple(attempt for attempt, job in jobs if job is not None and job.view == reader.name),
    )


def rewind_in(
    env: Environment,
    tx: Transaction,
    to_revision: int,
    *,
    by: str,
    why: str,
    checkpoint: LineageEntry | None = None,
    keep: Collection[int] = (),
) -> Rewound:
    """As `rewind`, in a writing transaction that is open.

    With `checkpoint`, the entry of a checkpoint of that revision, the pointer of the view that its state was made from
    goes to the summary of its generation, and recovery restores it until a newer one passes the gate (I17).
    """
    check_author(by, why)
    left, head = abandoned_of(tx), tx.log.head()
    if checkpoint is None:
        to = _place(left, head.revision, to_revision)
    else:
        to = _of_checkpoint(tx, left, checkpoint, to_revision)
        _check_sound(tx, checkpoint, env.scope.workflow)
    events, kept = _read_behind(env, tx, to, frozenset(keep))
    if not events and checkpoint is None:
        raise InvalidInputError(f"no live event stands behind {to}: there is nothing to abandon; nothing was written")
    fenced = fence_all(env, tx)
    if events:
        _abandon(tx, left, to, events)
    restated = _restate(env, tx, kept)
    _void_candidates(tx, to)
    order = _Order(
        to=to, through=head.revision, events=events, by=by, why=why, restated=restated, fenced=fenced, named=checkpoint
    )
    moved = [_move(env, tx, order, view, is_first=not n) for n, view in enumerate(tx.views.all())]
    return Rewound(
        to_revision=to,
        revision=tx.log.head().revision,
        branch=tx.log.head().branch,
        from_seq=to + 1,
        through_seq=head.revision,
        events=events,
        generations={view.name: view.generation for view in moved},
        lineage_seq=tx.log.head().lineage_seq,
        restated=restated,
        fenced=tuple(fenced),
    )


# ---------------------------------------------------------------------------------------------- where to


def _place(left: Abandoned, revision: int, to: int) -> int:
    """Return the event to go back to, if it is one; 0: before the first."""
    if isinstance(to, bool) or not isinstance(to, int):
        raise InvalidInputError(f"a revision is a whole number, not {to!r}")
    if not 0 <= to <= revision:
        raise InvalidInputError(f"revision {to} lies outside 0..{revision}, where the log ends; nothing was written")
    if to in left:
        raise InvalidInputError(
            f"event {to} is abandoned already; the last live event before it is {left.last_live(to)}",
            hint="Go back to a live event; `strandline lineage` lists the rewinds.",
        )
    return to


def _of_checkpoint(tx: Transaction, left: Abandoned, entry: LineageEntry, to: int) -> int:
    """Return the last event of a checkpoint's past, if that is still a part of the live one."""
    check_entry(tx, entry)
    made = load_checkpoint(tx, entry)
    if to != made.revision:
        raise InvalidInputError(
            f"the checkpoint at lineage {entry.lineage_seq} is of revision {made.revision}, not {to}"
        )
    if not left.keeps(made.revision, made.branch):
        raise InvalidInputError(
            f"the checkpoint at lineage {entry.lineage_seq} was made at revision {made.revision} of branch "
            f"{made.branch}, which a later rewind abandoned; nothing was written"
        )
    return left.until(made.branch).last_live(made.revision)


def _check_sound(tx: Transaction, entry: LineageEntry, workflow: str) -> None:
    """Refuse a checkpoint whose state was made from a summary that a revert has left as bad since (C17), or that was
    made for other audiences than its view has now (I21).
    """
    if entry.view is None:
        return
    if (entry.generation or 0) < first_generation(tx, find_view(tx, entry.view, workflow)):
        raise InvalidInputError(
            f"the checkpoint at lineage {entry.lineage_seq} was made when view {entry.view!r} read other audiences; "
            "nothing was written",
            hint=f"Go back to its revision instead: rewind to {entry.revision}.",
        )
    number = summary_of(tx, entry.view, entry.generation or 0)
    for later in read_entries(tx, workflow, entry.lineage_seq):
        if later.kind is LineageKind.REVERT and later.view == entry.view and number in left_by(later):
            raise InvalidInputError(
                f"the checkpoint at lineage {entry.lineage_seq} was made from generation {entry.generation}, which the "
                f"revert at lineage {later.lineage_seq} left as bad; nothing was written",
                hint=f"Go back to its revision instead: rewind to {entry.revision}.",
            )


def _read_behind(env: Environment, tx: Transaction, to: int, keep: frozenset[int]) -> tuple[int, list[Event]]:
    """Return how many live events stand behind `to`, and those of them that are to be kept or are never undone."""
    events = 0
    kept = []
    for event in read_live(tx, to + 1, tx.log.head().revision, env.scope.workflow):
        events += 1
        if event.seq in keep or event.kind in _NEVER_UNDONE:
            kept.append(event)
    lost = keep - {event.seq for event in kept}
    if lost:
        raise InvalidInputError(f"event {min(lost)} is to be kept, and no live event behind {to} is it")
    return events, kept


# ---------------------------------------------------------------------------------------------- log and register


def _abandon(tx: Transaction, left: Abandoned, to: int, events: int) -> None:
    """Mark the events behind `to`, and let the register say what it said there."""
    head = tx.log.head()
    revision = head.revision
    check_register_whole(tx)
    standing = tx.register.as_of(revision)
    # facts that begin at the last event are among those that stand, unless an earlier rewind ended them there
    again_here = any(before.through_seq == revision for before in left.ranges)
    begun_here = tx.register.all() if again_here else iter(standing)
    ordinal = max((fact.ordinal + 1 for fact in begun_here if fact.from_seq == revision), default=0)
    step = rewound(standing, tx.register.as_of(to) if to else (), revision, ordinal)
    tx.register.end(step.ended)
    tx.register.begin(step.begun)
    tx.log.abandon(AbandonedRange(branch=head.branch + 1, from_seq=to + 1, through_seq=revision))
    tx.log.set_head(
        replace(
            head,
            branch=head.branch + 1,
            live_events=head.live_events - events,
            facts=head.facts + len(step.begun) - len(step.ended),
        )
    )


def _restate(env: Environment, tx: Transaction, events: Sequence[Event]) -> tuple[tuple[int, int], ...]:
    """State again what is kept, and what is never undone where it still says something; return (new seq, old seq).

    A revocation always does; the lift of a constraint where the constraint stands again.
    """
    chosen: list[tuple[PreparedEvent, int]] = []
    lifted: set[FactKey] = set()
    for event in events:
        if event.kind is EventKind.LIFT_CONSTRAINT:
            subject = event.envelope.subject or ""
            standing = [fact for kind in ENDED_BY_LIFT for fact in tx.register.standing(kind, subject)]
            ends = {fact.key for fact in standing if event.audience in (EVERYONE, fact.audience)} - lifted
            if not ends:
                continue
            lifted |= ends
        prepared = again(tx, event)
        chosen.append((replace(prepared, new=replace(prepared.new, key=None)), event.seq))
    if not chosen:
        return ()
    added = LogWriter(env, tx).add([prepared for prepared, _ in chosen])
    return tuple((new, old) for new, (_, old) in zip(added.seqs, chosen, strict=True))


# ---------------------------------------------------------------------------------------------- the memory


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """What the entries of one rewind say in common."""

    to: int
    through: int
    events: int
    by: str
    why: str
    restated: tuple[tuple[int, int], ...]
    fenced: list[str]
    named: LineageEntry | None


def _move(env: Environment, tx: Transaction, order: _Order, view: ViewHead, *, is_first: bool) -> ViewHead:
    """Move a view's pointer, and record it."""
    named = order.named
    is_basis = named is not None and (named.view == view.name or (named.view is None and is_first))
    left, target = _target(tx, order, view)
    moved = replace(
        view,
        generation=view.generation + 1,
        summary_no=target.summary_no if target else 0,
        watermark=target.watermark if target else 0,
        moved_lineage_seq=next_seq(tx),
    )
    if not tx.views.shift_pointer(moved, base_generation=view.generation):
        raise AssertionError("the pointer moved while the head was locked")
    detail: dict[str, object] = {
        "to": order.to,
        "from_seq": order.to + 1,
        "through_seq": order.through,
        "events": order.events,
        "branch": tx.log.head().branch,
        "summary_no": moved.summary_no,
        "watermark": moved.watermark,
    }
    if is_first:
        detail |= {"fenced": order.fenced, "restated": [list(pair) for pair in order.restated]}
    add_entry(
        tx,
        LineageEntry(
            lineage_seq=0,
            kind=LineageKind.REWIND,
            op_key=own_key(env, f"rewind:{view.name}"),
            revision=tx.log.head().revision,
            at_us=env.clock.now_us(),
            view=view.name,
            generation=moved.generation,
            name=named.name if named is not None and is_basis else None,
            restored_seq=named.lineage_seq if named is not None and is_basis else None,
            by=order.by,
            why=order.why,
            detail=detail,
        ),
    )
    for summary in left:
        _mark(tx, summary, CandidateState.REVERTED)
    if target is not None:
        _mark(tx, target, CandidateState.ACTIVE)
    return moved


def _target(tx: Transaction, order: _Order, view: ViewHead) -> tuple[list[Summary], Summary | None]:
    """Return the summaries that the view leaves, the newest first, and the one that it goes back to."""
    named = order.named
    wanted = None
    if named is not None and named.view == view.name:
        wanted = summary_of(tx, view.name, named.generation or 0)
    left: list[Summary] = []
    for summary in _chain(tx, view):
        if summary.watermark <= order.to if wanted is None else summary.summary_no <= wanted:
            if wanted is None and summary.erased:
                continue  # its content is gone; an older one may be whole
            wanted = summary.summary_no if wanted is None else wanted
            break
        left.append(summary)
    if not wanted:
        return left, None
    target = load_summary(tx, wanted, view.name, texts_only=True)
    if target.watermark > order.to:
        place = f"summary {wanted} of view {view.name!r}"
        raise CorruptRecordError(f"it covers more than event {order.to}, where its generation was", place=place)
    return left, target


def _chain(tx: Transaction, view: ViewHead) -> Iterator[Summary]:
    """Yield the view's summary and its bases, the newest first; their texts are not checked."""
    number = view.summary_no
    while number:
        summary = tx.summaries.get(number, texts_only=True)
        if summary is None:
            raise CorruptRecordError("the summary is missing", place=f"summary {number} of view {view.name!r}")
        yield summary
        number = summary.base_no


def _mark(tx: Transaction, summary: Summary, state: CandidateState) -> None:
    candidate_id = summary.summary_id.rpartition(".")[0]
    if tx.jobs.candidate(candidate_id) is not None:  # a fork has the summary, and not the job
        tx.jobs.set_candidate_state(candidate_id, state)


def _void_candidates(tx: Transaction, to: int) -> None:
    """Void the jobs that would cover abandoned events: none of them can become active any more."""
    for candidate in list(tx.jobs.all_candidates()):
        if candidate.state in _GOES_ON and candidate.plan.watermark > to:
            tx.jobs.set_candidate_state(candidate.candidate_id, CandidateState.VOID)
