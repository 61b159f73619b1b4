"""Close calls that were open for too long, so that none can keep a view from being compacted (I8)."""

from __future__ import annotations

from typing import Final

from strandline.engine.append import LogWriter, prepare
from strandline.engine.cases import check_unblocked, open_case
from strandline.engine.environment import Environment
from strandline.engine.reading import find_view, read_one
from strandline.limits import OPEN_CALL_EVENTS_MAX, OPEN_CALL_S_MAX
from strandline.model.case import CaseKind
from strandline.model.constructors import abandoned
from strandline.model.ids import EVERYONE
from strandline.model.register import Fact
from strandline.model.view import ViewHead
from strandline.ports import Transaction

_NO_RESULT: Final = "No result came within the limits of an open call."


def close_overdue_calls(env: Environment, view_name: str) -> None:
    """Close every call that has been open for more than OPEN_CALL_EVENTS_MAX events or OPEN_CALL_S_MAX seconds.

    Its outcome stays unknown, and a late result is taken (I8). Each opens a case, in the transaction that closes it.

    Raises:
        UnreconciledSummaryError: the view stands under an open blocking case (I11); nothing was closed.
    """
    with env.read() as tx:
        view = find_view(tx, view_name, str(env.scope))
        check_unblocked(env, tx, view)
        if not _overdue(env, tx, view):
            return
    with env.write() as tx:
        view = find_view(tx, view_name, str(env.scope))
        check_unblocked(env, tx, view)
        while overdue := _overdue(env, tx, view):
            closing = [
                abandoned(call.key.subject, _NO_RESULT, actor="strandline", audience=call.audience) for call in overdue
            ]
            LogWriter(env, tx).add([prepare(event, env.references) for event in closing])
            for call in overdue:
                open_case(
                    env,
                    tx,
                    CaseKind.OPEN_CALL,
                    view=view,
                    reason=f"the call of event {call.source_seq} had no result within its limits, and was closed",
                    subject=call.key.subject,
                    detail={"call_seq": call.source_seq},
                )


def _overdue(env: Environment, tx: Transaction, view: ViewHead) -> list[Fact]:
    """Return the overdue calls, of those that the view reads, that `abandoned` events would close: each closes the
    latest open call of its id and audience, of everyone's the latest of its id, so those come newest first, up to one
    that is not overdue. What the view does not read holds no watermark of it, and its case would name it (I21).
    """
    revision, now = tx.log.head().revision, env.clock.now_us()
    overdue: list[Fact] = []
    open_still: set[tuple[str, str]] = set()
    for call in sorted(tx.register.open_calls(), key=lambda fact: fact.source_seq, reverse=True):
        call_id, audience = call.key.subject, call.audience
        if (call_id, audience) in open_still:
            continue
        if view.reads(audience) and (
            revision - call.source_seq > OPEN_CALL_EVENTS_MAX
            or now - read_one(tx, call.source_seq, env.scope.workflow).at_us > OPEN_CALL_S_MAX * 1_000_000
        ):
            overdue.append(call)
        else:
            open_still |= {(call_id, audience), (call_id, EVERYONE)}
    return overdue
