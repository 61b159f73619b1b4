"""Reconcile: answer a case, once, in the transaction that does what the answer says (I11, I17, C21)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from strandline.codec import encode_json, encode_text, keyed_hex
from strandline.engine.append import LogWriter, prepare
from strandline.engine.cases import (
    answer_key,
    as_read,
    check_cases_whole,
    get_case,
    open_case,
    settle_case,
    stored_case,
)
from strandline.engine.effect_rows import (
    IN_DOUBT,
    call_id_of,
    find_effect,
    give_up,
    prepare_told,
    record_told,
    result_of,
)
from strandline.engine.environment import Environment, check_author
from strandline.engine.lineage import check_entry, first_generation, next_seq, summary_of
from strandline.engine.reading import find_view, read_one
from strandline.engine.retrieve import divergences, held_by, last_known
from strandline.engine.retry import retry_in
from strandline.engine.revert import revert_in
from strandline.engine.rewind import find_checkpoint, rewind_in
from strandline.engine.watching import watched
from strandline.errors import (
    CaseAnsweredError,
    CompactionLineageError,
    CorruptRecordError,
    InvalidInputError,
    SummaryReconciliationError,
)
from strandline.limits import CASE_TEXT_CHARS_MAX
from strandline.model import constructors
from strandline.model.case import (
    ANSWER_NAMES,
    Abandon,
    AcceptDivergence,
    Case,
    CaseAnswer,
    CaseKind,
    CaseState,
    EffectDone,
    EffectNeverHappened,
    ReplayFromCheckpoint,
    ReplayFromExact,
    Retry,
)
from strandline.model.effect import Effect
from strandline.model.event import Event, EventKind, NewEvent
from strandline.model.ids import DEFAULT_VIEW, EVERYONE
from strandline.model.lineage import LineageKind
from strandline.model.outcome import ActedOn
from strandline.model.register import FactKind
from strandline.ports import Controller, Transaction
from strandline.ports.occurrences import AnswerTold
from strandline.rules.reconciling import check_answer, check_fits

STRANDLINE = "strandline"  # the actor of events that an answer appends
_PASSED_OVER = (CaseKind.CHECKPOINT_DIGEST, CaseKind.LINEAGE_REFUSAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """An answer that is being given."""

    env: Environment
    tx: Transaction
    case: Case
    answer: CaseAnswer
    by: str
    why: str
    view: str  # through which it is given
    acted_on: list[ActedOn] = field(default_factory=list)  # what was made from a summary that the answer left

    def append(self, *events: NewEvent) -> tuple[int, ...]:
        """Append events in the name of Strandline, and return their seqs."""
        prepared = [prepare(replace(event, actor=STRANDLINE), self.env.references) for event in events]
        return LogWriter(self.env, self.tx).add(prepared).seqs

    def held(self, ref: str) -> Event:
        """Return the newest event that holds a reference.

        Raises:
            InvalidInputError: no live event that the view may read holds it verbatim.
        """
        reader = find_view(self.tx, self.case.view, str(self.env.scope))
        event = held_by(self.tx, ref, reader, self.env.scope.workflow)
        if event is None:
            raise InvalidInputError(
                f"no live event of {self.env.scope} holds {ref!r} verbatim; nothing was written",
                hint="Append the value as an event first, where it comes from the outside; or give another answer.",
            )
        return event


@watched("reconcile")
def reconcile(
    env: Environment, case_id: str, answer: CaseAnswer, *, by: str, why: str, view: str = DEFAULT_VIEW
) -> Case:
    """Answer a case. What the answer does, its entry in the lineage and the answered case are one transaction.

    The first answer wins; the same answer, given again, returns the case as it was answered. `done` says what it did,
    `acted_on` what was made from the bad summary that it left: once, for it is not kept.

    Raises:
        InvalidInputError: no such case, an answer that does not fit it or can't be carried out; nothing was written.
        CaseAnsweredError: it was answered before, and otherwise.
    """
    check_answer(answer)
    check_author(by, why)
    digest = _digest(env, answer)
    with env.write() as tx:
        case = as_read(env, tx, stored_case(env, tx, case_id, view))
        if case.state is CaseState.ANSWERED:
            return _answered_before(tx, case, digest)
        check_fits(case, answer)
        given = _Given(env=env, tx=tx, case=case, answer=answer, by=by, why=why, view=view)
        accepts = isinstance(answer, AcceptDivergence)
        detail = _carry_out(given)
        answered = settle_case(
            env,
            tx,
            case,
            kind=LineageKind.DIVERGENCE if accepts else LineageKind.ANSWER,
            answer=ANSWER_NAMES[type(answer)],
            by=by,
            why=why,
            detail={"digest": digest, **detail},
        )
        answered = replace(as_read(env, tx, answered), done=detail, acted_on=tuple(given.acted_on))
    env.emit("answer", AnswerTold(case_id=case_id, answer=str(answered.answer), by=by))
    return answered


def _digest(env: Environment, answer: CaseAnswer) -> str:
    """Return what tells two answers apart, without what they say."""
    said: list[object] = [ANSWER_NAMES[type(answer)]]
    if isinstance(answer, AcceptDivergence):
        said += [answer.old_ref, answer.new_ref]
    if isinstance(answer, ReplayFromCheckpoint):
        said.append(answer.checkpoint_seq)
    if isinstance(answer, EffectDone):
        said.append(answer.result)
    return keyed_hex(env.store.digest_key, encode_json(said))


def _answered_before(tx: Transaction, case: Case, digest: str) -> Case:
    entry = tx.lineage.by_op_key(answer_key(case.case_id))
    if entry is None:
        raise CorruptRecordError("the lineage does not hold its answer", place=f"case_file {case.case_id!r}")
    check_entry(tx, entry)
    if entry.detail.get("digest") == digest:
        return replace(case, done={name: said for name, said in entry.detail.items() if name not in _NOT_DONE})
    raise CaseAnsweredError(
        f"the case {case.case_id} was answered by {case.by!r} with {case.answer}; nothing was written",
        case_id=case.case_id,
        answer=case.answer,
        by=case.by,
    )


_NOT_DONE = ("case", "kind", "answer", "digest")  # what the entry of an answer says beside what it did


def _carry_out(given: _Given) -> Mapping[str, object]:
    """Do what an answer says, and return what the lineage tells of it beside the answer."""
    answer = given.answer
    if isinstance(answer, AcceptDivergence):
        return _diverge(given, answer)
    if isinstance(answer, ReplayFromCheckpoint):
        return _to_checkpoint(given, answer.checkpoint_seq)
    if given.case.kind is CaseKind.EFFECT_UNKNOWN:
        return _settle_effect(given)
    if isinstance(answer, ReplayFromExact):
        return _replay(given)
    if isinstance(answer, Retry):
        return retry_in(given.env, given.tx, given.case)
    return {}


# ---------------------------------------------------------------------------------------------- replay from exact


def _replay(given: _Given) -> Mapping[str, object]:
    case = given.case
    if case.kind is CaseKind.MISSING_DEPENDENCY:
        held = [given.held(ref) for ref in case.missing_refs]
        pins = [
            replace(
                constructors.pin(ref, f"{ref} replayed from event {event.seq} (case {case.case_id})"),
                audience=None if event.audience == EVERYONE else event.audience,
            )
            for ref, event in zip(case.missing_refs, held, strict=True)
        ]
        return {"events": [event.seq for event in held], "pins": list(given.append(*pins))}
    if case.kind is CaseKind.CORRUPT_SUMMARY or case.kind is CaseKind.REGRESSION:
        return _back_to_good(given)
    if case.kind in _PASSED_OVER:
        return {"passed_over": case.checkpoint_seq}
    return {}


def _back_to_good(given: _Given) -> Mapping[str, object]:
    """Point the view to the newest verified generation that does not rest on the bad one, and under which no blocking
    case is open; where the bad one is active no more, do nothing.
    """
    env, tx, case = given.env, given.tx, given.case
    view = find_view(tx, case.view, str(env.scope))
    if not _rests_on_bad(given, view.summary_no):
        return {}
    for generation in range(view.generation - 1, first_generation(tx, view) - 1, -1):
        try:
            number = summary_of(tx, view.name, generation)
            if number and (_rests_on_bad(given, number) or tx.cases.blocking(view.name, number) is not None):
                continue
            done = revert_in(env, tx, view.name, generation, by=given.by, why=given.why, case=case)
        except (InvalidInputError, CorruptRecordError):  # bad or damaged itself: nothing was written
            continue
        given.acted_on.extend(done.acted_on)
        return {"to_generation": generation, "generation": done.generation, "acted_on": done.acted_on_count}
    raise CorruptRecordError("no generation before it can be read", place=f"view {view.name!r} of {env.scope}")


def _rests_on_bad(given: _Given, number: int) -> bool:
    """Tell whether a summary is the one that a case is about; or holds its text, where that is the fault (C14)."""
    bad, regression = given.case.summary_no, given.case.kind is CaseKind.REGRESSION
    while regression and number > bad:  # a base is older, so its number is smaller
        summary = given.tx.summaries.get(number, texts_only=True)
        number = summary.base_no if summary is not None else 0
    return bool(number) and number == bad


def passed_over(tx: Transaction, name: str) -> set[int]:
    """Return the checkpoints of a name that answers said to pass over."""
    if tx.log.head().cases == 0:
        return set()
    check_cases_whole(tx)
    exact = ANSWER_NAMES[ReplayFromExact]
    return {
        case.checkpoint_seq
        for kind in _PASSED_OVER
        for case in tx.cases.of_kind(kind, CaseState.ANSWERED)
        if case.answer == exact and case.checkpoint_name == name and case.checkpoint_seq is not None
    }


def _to_checkpoint(given: _Given, checkpoint_seq: int) -> Mapping[str, object]:
    """Begin a branch at a checkpoint's revision, on which its state may be restored (I17)."""
    entry = find_checkpoint(given.tx, checkpoint_seq, find_view(given.tx, given.view, str(given.env.scope)))
    done = rewind_in(given.env, given.tx, entry.revision, by=given.by, why=given.why, checkpoint=entry)
    now = find_view(given.tx, given.case.view, str(given.env.scope))
    if given.case.kind is CaseKind.REGRESSION and _rests_on_bad(given, now.summary_no):
        raise InvalidInputError(
            f"on the branch of checkpoint {checkpoint_seq} the bad summary would be active again; nothing was written",
            hint="Take a checkpoint from before it, or answer replay-from-exact.",
        )
    return {"checkpoint": checkpoint_seq, "to": done.to_revision, "branch": done.branch}


# ---------------------------------------------------------------------------------------------- divergence


def _diverge(given: _Given, answer: AcceptDivergence) -> Mapping[str, object]:
    """Append the divergence, in the epoch that its own entry begins."""
    tx, old, new = given.tx, answer.old_ref, answer.new_ref
    encode_text(new, "the new reference")
    held = [given.held(ref) for ref in (old, new)]
    audiences = {event.audience for event in held} - {EVERYONE}
    if len(audiences) > 1:
        raise InvalidInputError(f"{old!r} and {new!r} stand in events of different audiences: {sorted(audiences)}")
    tx.log.set_head(replace(tx.log.head(), epoch=next_seq(tx)))
    said = NewEvent(
        kind=EventKind.DIVERGENCE,
        body=f"{new} takes the place of {old} as a new fact, accepted by {given.by}: {given.why}",
        audience=next(iter(audiences), None),
        refs=(old, new),
    )
    ids = tx.refs.find([old, new])
    (seq,) = given.append(said)
    left = _ask_for_the_rest(given, old)
    done = {"event": seq, "old": ids[old], "new": ids[new], "events": [event.seq for event in held]}
    return done if left is None else {**done, "left_open": left.case_id}


def _ask_for_the_rest(given: _Given, old: str) -> Case | None:
    """Open a case for what else the answered one misses, as the next recovery would: one pair settles one of them."""
    env, tx, case = given.env, given.tx, given.case
    view = find_view(tx, case.view, str(env.scope))
    instead = divergences(tx, case.missing_refs, view)
    pins = {ref_id: tx.register.standing(FactKind.PIN, str(ref_id)) for ref_id in case.missing_ids}
    pinned = {ref_id for ref_id, facts in pins.items() if any(view.reads(fact.audience) for fact in facts)}
    rest = {
        ref_id: ref
        for ref_id, ref in zip(case.missing_ids, case.missing_refs, strict=True)
        if ref != old and ref not in instead and ref_id not in pinned
    }
    if not rest:
        return None
    checkpoint = None if case.checkpoint_seq is None else find_checkpoint(tx, case.checkpoint_seq)
    known = last_known(tx, next(iter(rest.values())), view, env.scope.workflow)
    return open_case(
        env,
        tx,
        case.kind,
        view=view,
        reason=case.reason,
        checkpoint=checkpoint,
        missing_ids=tuple(rest),
        last_known=known,
    )


# ---------------------------------------------------------------------------------------------- effects


def _settle_effect(given: _Given) -> Mapping[str, object]:
    """Settle the effect of a case in the ledger that the family shares."""
    env, tx, key = given.env, given.tx, given.case.subject
    effect = find_effect(tx, key)
    if effect is None:
        raise CorruptRecordError("the effect of an open case is missing", place=f"effect {key!r}")
    if effect.state not in IN_DOUBT:
        if isinstance(given.answer, Abandon):  # its outcome is known; the case only told of it
            return {"effect": effect.state.value}
        raise InvalidInputError(f"the effect {key!r} is {effect.state}, not unknown; nothing was written")
    if isinstance(given.answer, Abandon):
        settled = give_up(env, tx, effect)
    else:
        exact = isinstance(given.answer, ReplayFromExact)
        told = EffectDone(_logged_result(given, effect)) if exact else given.answer
        if not isinstance(told, EffectDone | EffectNeverHappened):
            raise AssertionError("an answer that does not fit an effect")
        result = prepare_told(env, effect, told)
        if result.refusal is not None:
            raise InvalidInputError(f"the result can't be recorded: {result.refusal}")
        settled = record_told(env, tx, effect, told, result)
    return {"effect": settled.state.value, "result": settled.result_seq}


def _logged_result(given: _Given, effect: Effect) -> object:
    """Return what the log holds as the result of the effect's call.

    Raises:
        InvalidInputError: it holds none.
    """
    call_id = call_id_of(effect.key, effect.attempt)
    fact = given.tx.register.newest(FactKind.CALL, call_id)
    if fact is not None and fact.through_seq is not None and fact.source_seq == effect.call_seq:
        event = read_one(given.tx, fact.through_seq + 1, given.env.scope.workflow)
        if event.kind is EventKind.TOOL_RESULT and event.call_seq == effect.call_seq and event.body is not None:
            return result_of(event)
    raise InvalidInputError(
        f"the log holds no result of the call {call_id!r} (event {effect.call_seq}); nothing was written",
        hint="Find out at the other side, then answer effect-done or effect-never-happened.",
    )


# ---------------------------------------------------------------------------------------------- controllers


def check_controller(controller: Controller | None) -> None:
    """Refuse what can decide nothing.

    Raises:
        InvalidInputError: it has no method `decide`.
    """
    if controller is not None and not callable(getattr(controller, "decide", None)):
        raise InvalidInputError(f"a {type(controller).__name__} is no controller: it has no method decide(case)")


def answer_by_controller(
    env: Environment, controller: Controller, refusal: SummaryReconciliationError | CompactionLineageError, view: str
) -> None:
    """Ask a controller about the case of a refusal, and give its answer.

    Raises:
        SummaryReconciliationError, CompactionLineageError: the refusal itself, where the case stays open: the
            controller leaves it open, fails, or answers what does not fit; its hint names the fault.
    """
    name = getattr(controller, "name", None)
    who = name if isinstance(name, str) and name.strip() else f"controller:{type(controller).__name__}"
    case_id = str(refusal.case_id)
    try:
        answer = controller.decide(get_case(env, case_id, view))
    except Exception as fault:
        refusal.hint += f" The controller {who[:CASE_TEXT_CHARS_MAX]} failed: {type(fault).__name__}: {fault}"
        raise refusal from fault
    if answer is None:
        raise refusal
    try:
        reconcile(env, case_id, answer, by=who, why="decided during a recovery", view=view)
    except CaseAnsweredError:  # by somebody else, meanwhile: what they decided is seen when it is tried again
        return
    except (InvalidInputError, CorruptRecordError) as fault:
        refusal.hint += f" The controller {who[:CASE_TEXT_CHARS_MAX]} gave an answer that can't be taken: {fault}"
        raise refusal from fault
