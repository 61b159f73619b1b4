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
from strandline.model.register import Fact
from strandline.ports import Transaction

_NO_RESULT: Final = "No result came within the limits of an open call."


def close_overdue_calls(env: Environment, view_name: str) -> None:
    """Close every call that has been open for more than OPEN_CALL_EVENTS_MAX events or OPEN_CALL_S_MAX seconds.

    Its outcome stays unknown, and a late result is taken (I8). Each opens a case, in the transaction that closes it.

    Raises:
        UnreconciledSummaryError: the view stands under an open blocking case (I11); nothing was closed.
    """
    with env.read() as tx:
        check_unblocked(env, tx, find_view(tx, view_name, str(env.scope)))
        if not _overdue(env, tx):
            return
    with env.write() as tx:
        view = find_view(tx, view_name, str(env.scope))
        check_unblocked(env, tx, view)
        while overdue := _overdue(env, tx):
            closing = [abandoned(call.key.subject, _NO_RESULT, actor="strandline") for call in overdue]
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


def _overdue(env: Environment, tx: Transaction) -> list[Fact]:
    """Return the overdue calls that `abandoned` events would close: each closes the latest open call of its id, so
    those of one id come newest first, up to one that is not overdue.
    """
    revision, now = tx.log.head().revision, env.clock.now_us()
    overdue: list[Fact] = []
    open_still: set[str] = set()
    for call in sorted(tx.register.open_calls(), key=lambda fact: fact.source_seq, reverse=True):
        if call.key.subject in open_still:
            continue
        if (
            revision - call.source_seq > OPEN_CALL_EVENTS_MAX
            or now - read_one(tx, call.source_seq, env.scope.workflow).at_us > OPEN_CALL_S_MAX * 1_000_000
        ):
            overdue.append(call)
        else:
            open_still.add(call.key.subject)
    return overdue
