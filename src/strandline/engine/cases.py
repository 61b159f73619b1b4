"""Cases: open questions for the controller; one is opened in the transaction that fails closed (I11, C21)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from strandline.codec import ERASED_TEXT, job_id
from strandline.engine.environment import Environment, check_whole
from strandline.errors import CorruptRecordError, InvalidInputError, LastKnown, UnreconciledSummaryError
from strandline.limits import CASE_ESCALATES_S, CASES_LISTED_MAX
from strandline.model.case import Case, CaseKind, CaseState
from strandline.model.lineage import LineageEntry
from strandline.model.view import ViewHead
from strandline.ports import Transaction


def open_case(
    env: Environment,
    tx: Transaction,
    kind: CaseKind,
    *,
    view: ViewHead,
    reason: str,
    checkpoint: LineageEntry | None = None,
    missing_ids: Sequence[int] = (),
    last_known: LastKnown | None = None,
    subject: str = "",
    detail: Mapping[str, object] | None = None,
) -> Case:
    """Return the open case of this question, or open one; in the transaction of whoever can't decide.

    Args:
        env: ports and workflow.
        tx: a writing transaction.
        kind: what the question is about.
        view: the view that it is about; its pointer names the summary that a blocking case blocks.
        reason: why, in a word or a sentence; a part of the question's identity.
        checkpoint: the entry of the checkpoint that it is about.
        missing_ids: the references that are missing, in the order in which they were asked for.
        last_known: where the first of them was last seen.
        subject: what else it names: an effect's key, a call's id, a candidate.
        detail: whatever else helps to answer it; no texts of references (C31).
    """
    there = find_case(
        env, tx, kind, view=view, reason=reason, checkpoint=checkpoint, missing_ids=missing_ids, subject=subject
    )
    if there is not None:
        return there
    identity = _identity(env, kind, view, checkpoint, reason, missing_ids, subject)
    head = tx.log.head()
    turn = None if checkpoint is None else checkpoint.detail.get("turn")
    case = Case(
        case_id=job_id(env.store.digest_key, "case", identity, tx.cases.count_of(identity)),
        identity=identity,
        kind=kind,
        state=CaseState.OPEN,
        view=view.name,
        generation=view.generation,
        summary_no=view.summary_no,
        reason=reason,
        revision=head.revision,
        opened_us=env.clock.now_us(),
        checkpoint_name=checkpoint.name if checkpoint else None,
        checkpoint_seq=checkpoint.lineage_seq if checkpoint else None,
        checkpoint_turn=turn if isinstance(turn, int) else None,
        missing_ids=tuple(missing_ids),
        last_known=last_known,
        subject=subject,
        detail=dict(detail or {}),
    )
    tx.cases.add(case)
    tx.log.set_head(replace(head, cases=head.cases + 1))
    return case


def find_case(
    env: Environment,
    tx: Transaction,
    kind: CaseKind,
    *,
    view: ViewHead,
    reason: str,
    checkpoint: LineageEntry | None = None,
    missing_ids: Sequence[int] = (),
    subject: str = "",
) -> Case | None:
    """Return the open case of this question, or None."""
    return tx.cases.open_one(_identity(env, kind, view, checkpoint, reason, missing_ids, subject))


def _identity(
    env: Environment,
    kind: CaseKind,
    view: ViewHead,
    checkpoint: LineageEntry | None,
    reason: str,
    missing_ids: Iterable[int],
    subject: str,
) -> str:
    """Name the question: asked again while it is open, it finds its case (I11)."""
    return job_id(
        env.store.digest_key,
        "question",
        env.scope.tenant,
        env.scope.workflow,
        kind.value,
        view.name,
        view.generation,
        checkpoint.lineage_seq if checkpoint else None,
        reason,
        sorted(missing_ids),
        subject,
    )


def check_unblocked(env: Environment, tx: Transaction, view: ViewHead) -> None:
    """Refuse to compact a summary that stands under an open blocking case (I11).

    Raises:
        UnreconciledSummaryError: it does; the error names the oldest such case.
        CorruptRecordError: a case that was opened is gone, and might be the one.
    """
    if tx.log.head().cases == 0:
        return
    check_cases_whole(tx)
    case = tx.cases.blocking(view.name, view.summary_no)
    if case is None:
        return
    raise unreconciled(env, case, f"generation {view.generation} of view {view.name!r} is not compacted again")


def unreconciled(env: Environment, case: Case, what: str) -> UnreconciledSummaryError:
    """Return the refusal that names a case: what is not done while it is open."""
    age_s = (env.clock.now_us() - case.opened_us) // 1_000_000
    late = f", and escalated: it has been open for {age_s} s" if _escalated(env, case) else ""
    return UnreconciledSummaryError(
        f"{what}: the case {case.case_id} ({case.kind}: {case.reason}) is open{late}; nothing was written",
        case_id=case.case_id,
    )


def blocking_case(tx: Transaction, view: ViewHead) -> Case | None:
    """Return the oldest open blocking case of the view's summary, for who reads it all the same (I11)."""
    return tx.cases.blocking(view.name, view.summary_no) if tx.log.head().cases else None


def check_cases_whole(tx: Transaction) -> None:
    """Check that no case is missing.

    Raises:
        CorruptRecordError: one is.
    """
    counted, opened = sum(1 for _ in tx.cases.all()), tx.log.head().cases
    if counted != opened:
        raise CorruptRecordError(f"{counted} cases are stored, and {opened} were opened", place="case_file")


def list_cases(env: Environment, include_answered: bool = False, limit: int = CASES_LISTED_MAX) -> list[Case]:
    """Return the open cases, the oldest first; then, if asked for, the answered ones, the newest first.

    Raises:
        InvalidInputError: a limit outside 1..CASES_LISTED_MAX.
        CorruptRecordError: one is missing or not what was written.
    """
    check_whole("limit", limit)
    if not 1 <= limit <= CASES_LISTED_MAX:
        raise InvalidInputError(f"a limit of {limit} lies outside 1..{CASES_LISTED_MAX}")
    with env.read() as tx:
        check_cases_whole(tx)
        opened = [case for case in tx.cases.all() if case.state is CaseState.OPEN][:limit]
        answered = [case for case in tx.cases.all() if case.state is CaseState.ANSWERED] if include_answered else []
        return [as_read(env, tx, case) for case in (*opened, *reversed(answered))][:limit]


def get_case(env: Environment, case_id: str) -> Case:
    """Return a case.

    Raises:
        InvalidInputError: there is none of this id.
    """
    with env.read() as tx:
        return as_read(env, tx, stored_case(env, tx, case_id))


def stored_case(env: Environment, tx: Transaction, case_id: str) -> Case:
    """Return a case as it is stored.

    Raises:
        InvalidInputError: there is none of this id.
    """
    if not isinstance(case_id, str) or not case_id or "\0" in case_id:
        raise InvalidInputError(f"{case_id!r} is no id of a case", hint=_WHICH)
    case = tx.cases.get(case_id)
    if case is None:
        raise InvalidInputError(f"{env.scope} has no case {case_id!r}", hint=_WHICH)
    return case


_WHICH = "`strandline cases --all` lists them."


def as_read(env: Environment, tx: Transaction, case: Case) -> Case:
    """Return a case with what is not stored in it: the texts of its references, and whether it escalated."""
    texts = tx.refs.texts(case.missing_ids) if case.missing_ids else {}
    refs = tuple(texts.get(ref_id, ERASED_TEXT) for ref_id in case.missing_ids)
    return replace(case, missing_refs=refs, escalated=_escalated(env, case))


def _escalated(env: Environment, case: Case) -> bool:
    age_us = env.clock.now_us() - case.opened_us
    return case.state is CaseState.OPEN and age_us > CASE_ESCALATES_S * 1_000_000
