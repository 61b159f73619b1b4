"""Define a view: which audiences it reads, and its budget (C18, I21).

A view's summary is made from what its audiences may read. So with other audiences it begins anew, under a new
generation with the content of generation 0, and nothing that was made before comes back: running attempts are fenced,
jobs are void, cases about the old summaries are closed, and `defined_by` tells what is too old for it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from strandline.engine.cases import settle_case
from strandline.engine.claim import fence_holder, record_fence
from strandline.engine.environment import Environment
from strandline.engine.lineage import add_entry, definition_key, next_seq
from strandline.engine.reading import UNWRITTEN_MAIN, find_view, read_view
from strandline.engine.watching import watched
from strandline.errors import InvalidInputError
from strandline.limits import NAME_CHARS_MAX, VIEW_AUDIENCES_MAX, VIEWS_MAX
from strandline.model.candidate import CandidateState
from strandline.model.case import ANSWER_NAMES, Abandon, CaseKind, CaseState
from strandline.model.ids import DEFAULT_VIEW, EVERYONE, check_name
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.model.view import View, ViewHead
from strandline.ports import Transaction
from strandline.ports.occurrences import ViewTold
from strandline.rules.planning import check_budget

_NOTHING: Final = "nothing was written"
_STRANDLINE: Final = "strandline"
_ENDS: Final = {
    CandidateState.PENDING: CandidateState.VOID,
    CandidateState.VALIDATED: CandidateState.VOID,
    CandidateState.ACTIVE: CandidateState.SUPERSEDED,
}


@watched("define_view")
def define_view(env: Environment, name: str, audiences: Collection[str] | None, budget: int | None) -> View:
    """Make a view, or give it another budget or other audiences.

    Args:
        env: ports and workflow.
        name: of the view.
        audiences: which it reads beside everyone's; None: everything, which is for `main` alone.
        budget: tokens of its contexts where a call names none.

    Raises:
        InvalidInputError: no collection of names, too many of them or of views, `main` with audiences, or a budget that
            can't be; nothing was written.
        TenantScopeError: no view can have this name.
    """
    check_name("view", name)
    wanted = _checked(name, audiences)
    if budget is not None:
        check_budget(budget)
    with env.write() as tx:
        if tx.views.get(DEFAULT_VIEW) is None:
            tx.views.put(UNWRITTEN_MAIN)  # so that whoever goes through all views finds it among them
        there = tx.views.get(name)
        if there is None:
            head = _add(env, tx, name, wanted, budget)
        elif find_view(tx, name, str(env.scope)).audiences == wanted:
            head = replace(there, budget=budget)
            tx.views.put(head)
        else:
            head = _begin_anew(env, tx, replace(there, audiences=wanted, budget=budget))
    env.emit("view", ViewTold(view=name, generation=head.generation))
    return told(head)


@watched("views")
def list_views(env: Environment, view: str = DEFAULT_VIEW) -> list[View]:
    """Return the views of the workflow, `main` first; a narrow view is told of itself."""
    with env.read() as tx:
        reader = find_view(tx, view, str(env.scope))
        if reader.narrow:
            return [told(reader)]
        return [told(head) for head in tx.views.all() or [UNWRITTEN_MAIN]]


def told(head: ViewHead) -> View:
    """Return a view as its readers are told of it."""
    return View(
        name=head.name,
        audiences=head.audiences,
        budget=head.budget,
        audience_version=head.audience_version,
        generation=head.generation,
        watermark=head.watermark,
    )


def _checked(name: str, audiences: Collection[str] | None) -> frozenset[str] | None:
    """Return the audiences without everyone's, which every view reads."""
    if name == DEFAULT_VIEW:
        if audiences is not None:
            raise InvalidInputError(
                f"view {DEFAULT_VIEW!r} reads everything, and can't be given audiences; {_NOTHING}",
                hint="Define a view of another name. `main` may be given a budget.",
            )
        return None
    if isinstance(audiences, str | bytes) or not isinstance(audiences, Collection):
        given = type(audiences).__name__
        raise InvalidInputError(f"audiences is a collection of names, not a {given}; {_NOTHING}")
    if len(audiences) > VIEW_AUDIENCES_MAX:
        raise InvalidInputError(f"{len(audiences)} audiences; at most {VIEW_AUDIENCES_MAX} are allowed; {_NOTHING}")
    for audience in audiences:
        if not isinstance(audience, str) or not audience or len(audience) > NAME_CHARS_MAX:
            raise InvalidInputError(
                f"an audience is a name of 1 to {NAME_CHARS_MAX} characters, not {audience!r}; {_NOTHING}"
            )
    return frozenset(audiences) - {EVERYONE}


def _add(
    env: Environment, tx: Transaction, name: str, audiences: frozenset[str] | None, budget: int | None
) -> ViewHead:
    views = tx.views.all()
    if len(views) >= VIEWS_MAX:
        raise InvalidInputError(f"the workflow has {VIEWS_MAX} views, which is the most allowed; {_NOTHING}")
    made = ViewHead(
        view_id=max(view.view_id for view in views) + 1,
        name=name,
        audiences=audiences,
        budget=budget,
        moved_lineage_seq=next_seq(tx),  # no checkpoint from before can be of it
    )
    tx.views.put(made)
    _record(env, tx, made)
    return made


def _begin_anew(env: Environment, tx: Transaction, view: ViewHead) -> ViewHead:
    """Give a view other audiences: what its summary says is not theirs to read."""
    now = env.clock.now_us()
    there = find_view(tx, view.name, str(env.scope))
    record_fence(tx, there, now)
    fence_holder(tx, there, now)
    for candidate in list(tx.jobs.all_candidates()):
        if candidate.view == view.name and candidate.state in _ENDS:
            tx.jobs.set_candidate_state(candidate.candidate_id, _ENDS[candidate.state])
    moved = replace(
        view,
        audience_version=view.audience_version + 1,
        generation=view.generation + 1,
        summary_no=0,
        watermark=0,
        moved_lineage_seq=next_seq(tx),
        fence=view.fence + 1,
        lease_attempt=None,
        lease_until_us=0,
    )
    if not tx.views.shift_pointer(moved, base_generation=view.generation):
        raise AssertionError("the pointer moved while the head was locked")
    _record(env, tx, moved)
    _close_cases(env, tx, moved)
    _forget_runs(env, tx, moved)
    return moved


def _forget_runs(env: Environment, tx: Transaction, view: ViewHead) -> None:
    """Let the background begin anew with the view: how a run for other readers went is not these readers' to know, and
    a worker that still goes on with one settles nothing (I21).
    """
    row = tx.due.get(view.name)
    if row is None:
        return
    now = env.clock.now_us()
    due_us = None if row.due_us is None else now
    free = replace(
        row,
        due_us=due_us,
        wanted_us=due_us,
        runs=0,
        worker=None,
        lease_until_us=0,
        fence=row.fence + 1,
        outcome=None,
        failure=None,
        failure_text="",
        case_id=None,
    )
    if row.watch is not None:
        tokens = read_view(env, tx, view.name, budget=0).tail_tokens
        free = replace(free, watch=replace(row.watch, tokens=tokens, tokens_after=0, fires_us=None))
    tx.due.settle(free, fence=row.fence)


def _record(env: Environment, tx: Transaction, view: ViewHead) -> None:
    add_entry(
        tx,
        LineageEntry(
            lineage_seq=0,
            kind=LineageKind.DEFINE,
            op_key=definition_key(view.name, view.audience_version),
            revision=tx.log.head().revision,
            at_us=env.clock.now_us(),
            view=view.name,
            generation=view.generation,
            detail={
                "audiences": sorted(view.audiences or ()),
                "audience_version": view.audience_version,
                "summary_no": 0,
                "watermark": 0,
            },
        ),
    )


def _close_cases(env: Environment, tx: Transaction, view: ViewHead) -> None:
    """Close what is asked about the old summaries; what became of an effect is still to be found out."""
    if tx.log.head().cases == 0:
        return
    for case in list(tx.cases.all()):
        if case.view == view.name and case.state is CaseState.OPEN and case.kind is not CaseKind.EFFECT_UNKNOWN:
            settle_case(
                env,
                tx,
                case,
                kind=LineageKind.ANSWER,
                answer=ANSWER_NAMES[Abandon],
                by=_STRANDLINE,
                why="the view was given other audiences",
                detail={},
            )
