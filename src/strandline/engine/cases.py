"""Cases: open questions for the controller; one is opened in the transaction that fails closed (I11, C21)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from strandline.codec import ERASED_TEXT, job_id
from strandline.engine.environment import Environment, check_whole
from strandline.engine.lineage import add_entry, defined_by, first_generation
from strandline.engine.reading import find_view
from strandline.engine.retrieve import held_by
from strandline.engine.watching import watched
from strandline.errors import (
    CompactionLineageError,
    CorruptRecordError,
    InvalidInputError,
    LastKnown,
    SummaryReconciliationError,
    UnreconciledSummaryError,
)
from strandline.limits import CASE_ESCALATES_S, CASES_LISTED_MAX, SEMANTIC_FAILURES_MAX
from strandline.model.case import Case, CaseKind, CaseState
from strandline.model.ids import DEFAULT_VIEW
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.rules.reconciling import FITTING, TYPED, typed


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked. The same question, asked again while its case is open, finds that case (I11)."""

    kind: CaseKind
    view: ViewHead  # its pointer names the summary that the question is about
    reason: str
    checkpoint: LineageEntry | None = None
    missing_ids: tuple[int, ...] = ()  # in the order in which they were asked for
    last_known: LastKnown | None = None  # of the first of them
    subject: str = ""
    detail: Mapping[str, object] = field(default_factory=dict)

    def identity(self, env: Environment) -> str:
        """Return a keyed digest of what makes it this question."""
        return job_id(
            env.store.digest_key,
            "question",
            env.scope.tenant,
            env.scope.workflow,
            self.kind.value,
            self.view.name,
            self.view.generation,
            self.checkpoint.lineage_seq if self.checkpoint else None,
            self.reason,
            sorted(self.missing_ids),
            self.subject,
        )


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
    """Return the open case of a question, or open one; in the transaction of whoever can't decide.

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
    return ask(
        env,
        tx,
        Question(
            kind=kind,
            view=view,
            reason=reason,
            checkpoint=checkpoint,
            missing_ids=tuple(missing_ids),
            last_known=last_known,
            subject=subject,
            detail=dict(detail or {}),
        ),
    )


def ask(env: Environment, tx: Transaction, question: Question) -> Case:
    """As `open_case`, of a question that stands already."""
    identity = question.identity(env)
    there = tx.cases.open_one(identity)
    if there is not None:
        return there
    head, view, checkpoint = tx.log.head(), question.view, question.checkpoint
    turn = None if checkpoint is None else checkpoint.detail.get("turn")
    case = Case(
        case_id=job_id(env.store.digest_key, "case", identity, tx.cases.count_of(identity)),
        identity=identity,
        kind=question.kind,
        state=CaseState.OPEN,
        view=view.name,
        generation=view.generation,
        summary_no=view.summary_no,
        reason=question.reason,
        revision=head.revision,
        opened_us=env.clock.now_us(),
        checkpoint_name=checkpoint.name if checkpoint else None,
        checkpoint_seq=checkpoint.lineage_seq if checkpoint else None,
        checkpoint_turn=turn if isinstance(turn, int) else None,
        missing_ids=question.missing_ids,
        last_known=question.last_known,
        subject=question.subject,
        detail=question.detail,
    )
    tx.cases.add(case)
    tx.log.set_head(replace(head, cases=head.cases + 1))
    return case


def find_case(env: Environment, tx: Transaction, question: Question) -> Case | None:
    """Return the open case of a question, or None."""
    return tx.cases.open_one(question.identity(env))


def name_case(env: Environment, error: SummaryReconciliationError | CompactionLineageError, case: Case) -> None:
    """Let a refusal name its case, and say how it is answered."""
    error.case_id = case.case_id
    command = how_to_answer(env, case)
    if case.kind is CaseKind.MISSING_DEPENDENCY:
        error.hint = (
            f"Recall the reference and check that it still holds, then answer the case: `{command}`. Nothing was "
            "overwritten. A pin(ref) that you append meets the need too, and leaves the case open."
        )
    else:
        error.hint = f"Answer the case: `{command}`. {error.hint}"


def how_to_answer(env: Environment, case: Case) -> str:
    """Return the command that gives a case its ordinary answer; where no command can open the store, the call."""
    ordinary = FITTING[case.kind][0]
    command = env.command(f"reconcile {case.case_id} {TYPED[ordinary]} --by WHO --why TEXT")
    return command or f"wf.reconcile({case.case_id!r}, {ordinary.__name__}(), by=…, why=…)"


def settle_case(
    env: Environment,
    tx: Transaction,
    case: Case,
    *,
    kind: LineageKind,
    answer: str,
    by: str,
    why: str,
    detail: Mapping[str, object],
) -> Case:
    """Answer an open case: entry in the lineage and answered form, in the transaction that does what it says."""
    entry = add_entry(
        tx,
        LineageEntry(
            lineage_seq=0,
            kind=kind,
            op_key=answer_key(case.case_id),
            revision=tx.log.head().revision,
            at_us=env.clock.now_us(),
            view=case.view,
            by=by,
            why=why,
            detail={"case": case.case_id, "kind": case.kind.value, "answer": answer, **detail},
        ),
    )
    answered = replace(
        case,
        state=CaseState.ANSWERED,
        answer=answer,
        by=by,
        why=why,
        answered_us=entry.at_us,
        answered_seq=entry.lineage_seq,
        missing_refs=(),
        logged=False,
        escalated=False,
        summary_active=False,
        compacted_since=False,
    )
    if not tx.cases.settle(answered):
        raise AssertionError("a case was answered while the head was locked")
    due = tx.due.get(case.view)
    if due is not None and due.parked and due.case_id == case.case_id:
        tx.due.settle(replace(due, due_us=entry.at_us, case_id=None), fence=due.fence)
    return answered


def answer_key(case_id: str) -> str:
    """Return the op_key of the lineage entry that answers a case."""
    return f"answer:{case_id}"


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


def check_unquarantined(env: Environment, tx: Transaction, view: ViewHead) -> None:
    """Refuse an automatic compaction of a view with SEMANTIC_FAILURES_MAX open cases of quarantined candidates (C13).

    Raises:
        UnreconciledSummaryError: there are as many; the error names the oldest.
        CorruptRecordError: a case that was opened is gone, and might be one of them.
    """
    if tx.log.head().cases == 0:
        return
    check_cases_whole(tx)
    found = tx.cases.of_kind(CaseKind.QUARANTINED, CaseState.OPEN)
    quarantined = [case for case in found if case.view == view.name]
    if len(quarantined) >= SEMANTIC_FAILURES_MAX:
        failures = f"{len(quarantined)} candidates of view {view.name!r} are quarantined"
        raise unreconciled(
            env, quarantined[0], f"{failures}: it is compacted by hand only until their cases are answered"
        )


def unreconciled(env: Environment, case: Case, what: str) -> UnreconciledSummaryError:
    """Return the refusal that names a case: what is not done while it is open."""
    age_s = (env.clock.now_us() - case.opened_us) // 1_000_000
    late = f", and escalated: it has been open for {age_s} s" if _escalated(env, case) else ""
    asked = case.kind.value if case.reason == case.kind else f"{case.kind}: {case.reason}"
    return UnreconciledSummaryError(
        f"{what}: the case {case.case_id} ({asked}) is open{late}; nothing was written",
        case_id=case.case_id,
        hint=f"Answer the case: `{how_to_answer(env, case)}`. Answers that fit it: {typed(case.kind)}.",
    )


def case_on(tx: Transaction, view: ViewHead) -> str | None:
    """Return the id of the oldest open blocking case of the view's summary, for who reads it all the same (I11)."""
    case = tx.cases.blocking(view.name, view.summary_no) if tx.log.head().cases else None
    return None if case is None else case.case_id


def check_cases_whole(tx: Transaction) -> None:
    """Check that no case is missing.

    Raises:
        CorruptRecordError: one is.
    """
    counted, opened = tx.cases.count(), tx.log.head().cases
    if counted != opened:
        raise CorruptRecordError(f"{counted} cases are stored, and {opened} were opened", place="case_file")


@watched("cases")
def list_cases(
    env: Environment, include_answered: bool = False, limit: int = CASES_LISTED_MAX, view: str = DEFAULT_VIEW
) -> list[Case]:
    """Return the open cases, the oldest first; then, if asked for, the answered ones, the newest first. A narrow view
    is told of its own.

    Raises:
        InvalidInputError: a limit outside 1..CASES_LISTED_MAX.
        CorruptRecordError: one is missing or not what was written.
    """
    check_whole("limit", limit)
    if not 1 <= limit <= CASES_LISTED_MAX:
        raise InvalidInputError(f"a limit of {limit} lies outside 1..{CASES_LISTED_MAX}")
    with env.read() as tx:
        check_cases_whole(tx)
        shown = _shown_to(env, tx, view)
        cases = [case for case in tx.cases.all() if shown(case)]
        opened = [case for case in cases if case.state is CaseState.OPEN][:limit]
        answered = [case for case in cases if case.state is CaseState.ANSWERED] if include_answered else []
        return [as_read(env, tx, case) for case in (*opened, *reversed(answered))][:limit]


def _shown_to(env: Environment, tx: Transaction, view: str) -> Callable[[Case], bool]:
    """Return what tells whether a view is told of a case: a narrow one of its own, since it reads its audiences."""
    reader = find_view(tx, view, str(env.scope))
    if not reader.narrow:
        return lambda case: True
    defined, first = defined_by(tx, reader), first_generation(tx, reader)
    revision = defined.revision if defined is not None and first else -1
    return lambda case: case.view == view and (case.generation >= first or case.revision > revision)


def get_case(env: Environment, case_id: str, view: str = DEFAULT_VIEW) -> Case:
    """Return a case.

    Raises:
        InvalidInputError: there is none of this id that the view is told of.
    """
    with env.read() as tx:
        return as_read(env, tx, stored_case(env, tx, case_id, view))


def stored_case(env: Environment, tx: Transaction, case_id: str, view: str = DEFAULT_VIEW) -> Case:
    """Return a case as it is stored.

    Raises:
        InvalidInputError: there is none of this id that the view is told of.
    """
    if not isinstance(case_id, str) or not case_id.isascii() or not case_id.isalnum():
        raise InvalidInputError(f"{case_id!r} is no id of a case", hint=_which(env))
    case = tx.cases.get(case_id)
    if case is None or not _shown_to(env, tx, view)(case):
        raise InvalidInputError(f"{env.scope} has no case {case_id!r}", hint=_which(env))
    return case


def _which(env: Environment) -> str:
    return f"`{env.command('cases --all') or 'wf.cases(include_answered=True)'}` lists them."


def as_read(env: Environment, tx: Transaction, case: Case) -> Case:
    """Return a case with what is not stored in it: the texts of its references; of an open one, whether the log holds
    each of them still, whether it escalated, and what became of its summary.
    """
    texts = tx.refs.texts(case.missing_ids) if case.missing_ids else {}
    refs = tuple(texts.get(ref_id, ERASED_TEXT) for ref_id in case.missing_ids)
    if case.state is not CaseState.OPEN:
        return replace(case, missing_refs=refs)
    view = find_view(tx, case.view, str(env.scope))
    return replace(
        case,
        missing_refs=refs,
        logged=bool(refs) and all(held_by(tx, ref, view, env.scope.workflow) is not None for ref in refs),
        escalated=_escalated(env, case),
        summary_active=view.summary_no == case.summary_no,
        compacted_since=case.kind in _OF_A_COMPACTION and _compacted_since(tx, case, view),
    )


_OF_A_COMPACTION = (CaseKind.DEAD_LETTER, CaseKind.QUARANTINED)


def _compacted_since(tx: Transaction, case: Case, view: ViewHead) -> bool:
    moves = (tx.lineage.move_to(view.name, number) for number in range(case.generation + 1, view.generation + 1))
    return any(entry is not None and entry.kind is LineageKind.COMPACTION for entry in moves)


def _escalated(env: Environment, case: Case) -> bool:
    age_us = env.clock.now_us() - case.opened_us
    return case.state is CaseState.OPEN and age_us > CASE_ESCALATES_S * 1_000_000
