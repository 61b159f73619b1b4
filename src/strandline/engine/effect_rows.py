"""The ledger of effects: its rows, and the events that hold request and result (I18, C23).

A family of forks has one ledger, at its root; the events stand in the log of whoever wrote them. Their keys name the
effect and its attempt, so that the same event is found on whatever branch, and is never written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from strandline.codec import decode_json, encode_json, job_id, keyed_hex, storable
from strandline.engine.ancestry import compose
from strandline.engine.append import LogWriter, PreparedEvent, prepare
from strandline.engine.cases import open_case, settle_case
from strandline.engine.environment import Environment
from strandline.engine.family import ledger
from strandline.engine.landing import unanswered
from strandline.engine.reading import find_view, read_one
from strandline.engine.watching import watched
from strandline.errors import (
    CorruptRecordError,
    EffectUnknownError,
    InvalidInputError,
    OutcomeUnknownError,
    StoreUnavailableError,
)
from strandline.limits import EFFECT_ROUNDS_MAX, FAILURE_CHARS_MAX
from strandline.model.action import Permit
from strandline.model.case import ANSWER_NAMES, Case, CaseKind, CaseState, EffectDone, EffectNeverHappened
from strandline.model.constructors import abandoned, tool_call, tool_result
from strandline.model.effect import Effect, EffectState, KeyedProbe
from strandline.model.event import Basis, Event, EventKind, NewEvent
from strandline.model.ids import DEFAULT_VIEW
from strandline.model.lineage import LineageKind
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.rules.repeats import request_identity

T = TypeVar("T")

KEY_PREFIX: Final = "effect:"
UNRECORDED: Final = "unrecorded"  # a member of the body of a result that was no JSON value
REPLAYED_FROM: Final = "replayed_from"  # a member of the body of a call or result that stands elsewhere, too
REPEAT_OF: Final = "repeat_of"  # a member of the body of a call or result that an earlier effect answers
OUTCOME_UNKNOWN: Final = "whether it happened is not known"
OTHERWISE: Final = "it ran, and its outcome was settled otherwise meanwhile"
IN_DOUBT: Final = frozenset({EffectState.INTENDED, EffectState.UNKNOWN})


class MovedError(Exception):
    """Somebody else moved the effect meanwhile: look at it anew. Engine-internal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRequest:
    """What was asked for. `run` takes no argument, nor does a `probe` that is no KeyedProbe."""

    key: str
    tool: str
    args: object
    run: Callable[[], object]
    probe: Callable[[], object] | KeyedProbe | None
    view: str
    subject: str | None = None
    again: bool = False
    permit: Permit | str | None = None
    basis: Basis | None = None
    actor: str = ""
    refs: Sequence[str] = ()
    audience: str | None = None  # of its call, and so of its result; None: everyone


# ---------------------------------------------------------------------------------------------- names


def call_key(key: str, attempt: int) -> str:
    """Return the event key of an attempt's call."""
    return f"{KEY_PREFIX}{key}:{attempt}:call"


def result_key(key: str, attempt: int) -> str:
    """Return the event key of an attempt's result."""
    return f"{KEY_PREFIX}{key}:{attempt}:result"


def call_id_of(key: str, attempt: int) -> str:
    """Return the id of an attempt's call: the key, so that a provider's call id stays what it is."""
    return key if attempt == 1 else f"{key}#{attempt}"


def fingerprint_of(env: Environment, tool: str, subject: str | None, args: object) -> str:
    """Return what two wordings of one request share: keyed, so that nothing can be guessed from it."""
    identity = encode_json(request_identity(tool, subject, args))
    return job_id(env.store.digest_key, "request", identity.decode())


# ---------------------------------------------------------------------------------------------- events


def call_event(
    request: EffectRequest, attempt: int, *, key: str | None = None, marks: Mapping[str, object] | None = None
) -> NewEvent:
    """Return the event of a request.

    Raises:
        InvalidInputError: no tool, or arguments that are no JSON value.
    """
    call = tool_call(
        call_id_of(request.key, attempt),
        request.tool,
        request.args,
        key=key or call_key(request.key, attempt),
        actor=request.actor,
        audience=request.audience,
        refs=request.refs,
    )
    return _marked(replace(call, envelope=call.envelope._replace(subject=request.subject)), marks)


def copy_of_call(effect: Effect, args: object, marks: Mapping[str, object], audience: str | None) -> NewEvent:
    """Return the event of an effect's request once more, for a branch that does not hold it, and for the same eyes."""
    call = tool_call(
        call_id_of(effect.key, effect.attempt),
        effect.tool,
        args,
        key=call_key(effect.key, effect.attempt),
        actor=effect.actor,
        audience=audience,
    )
    return _marked(replace(call, envelope=call.envelope._replace(subject=effect.subject)), marks)


def result_event(
    effect: Effect, content: object, *, is_error: bool = False, marks: Mapping[str, object] | None = None
) -> NewEvent:
    """Return the event of an attempt's result."""
    return _marked(
        tool_result(
            call_id_of(effect.key, effect.attempt),
            content,
            is_error=is_error,
            key=result_key(effect.key, effect.attempt),
            actor=effect.actor,
        ),
        marks,
    )


def _marked(event: NewEvent, marks: Mapping[str, object] | None) -> NewEvent:
    if not marks or not isinstance(event.body, Mapping):
        return event
    return replace(event, body={**event.body, **marks})


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedResult:
    """A result, encoded before any lock is held. `refusal`: it was no JSON value, and is recorded without it."""

    event: PreparedEvent
    value: object
    refusal: InvalidInputError | None = None


def prepare_result(env: Environment, effect: Effect, content: object, *, is_error: bool = False) -> PreparedResult:
    """Encode a result. One that can't be stored is recorded as done, without it: the effect has happened."""
    try:
        event = prepare(result_event(effect, content, is_error=is_error), env.references)
        return PreparedResult(event=event, value=decode_json(encode_json(content)))
    except (InvalidInputError, OverflowError, RecursionError, TypeError, ValueError) as error:
        why = storable(str(error), FAILURE_CHARS_MAX).replace("\0", "")
    text = f"[it is done; its result could not be recorded: {why}]"
    refusal = InvalidInputError(
        f"the effect {effect.key!r} ran, and its result could not be recorded: {why}. It is recorded as done, without "
        "a result, and will not run again",
        hint="Return a JSON value; what the effect made can be had from the other side.",
    )
    event = prepare(result_event(effect, text, marks={UNRECORDED: True}), env.references)
    return PreparedResult(event=event, value=None, refusal=refusal)


def read_effect_event(env: Environment, tx: Transaction, effect: Effect, seq: int, kind: EventKind) -> Event:
    """Return an event of an effect, checked; also one of another workflow of the family.

    Raises:
        CorruptRecordError: it is missing, damaged, or not this effect's.
    """
    elsewhere = effect.workflow != env.scope.workflow
    holder = (
        compose(tx.relative(effect.workflow)) if elsewhere else tx
    )  # a second snapshot would be a second connection
    event = read_one(holder, seq, effect.workflow)
    if event.kind is not kind or not (event.key or "").startswith(f"{KEY_PREFIX}{effect.key}:"):
        reason = f"the ledger takes it for the {kind} of the effect {effect.key!r}, which it is not"
        raise CorruptRecordError(reason, place=f"event {seq} of {effect.workflow!r}")
    return event


def args_of(event: Event) -> object:
    """Return the arguments that a call was made with."""
    block = decode_json(event.body or b"null", f"body of event {event.seq}")
    return block.get("input") if isinstance(block, dict) else None


def result_of(event: Event) -> object:
    """Return what a result says, as it was recorded; None where it could not be."""
    block = decode_json(event.body or b"null", f"body of event {event.seq}")
    return block.get("content") if isinstance(block, dict) and not block.get(UNRECORDED) else None


def add_events(env: Environment, tx: Transaction, events: Sequence[NewEvent | PreparedEvent]) -> dict[str, int]:
    """Append those events whose key the branch does not hold yet; return the seq of each by its key."""
    ready = [event if isinstance(event, PreparedEvent) else prepare(event, env.references) for event in events]
    keys = [event.new.key or "" for event in ready]
    seqs = {key: event.seq for key, event in tx.log.by_keys(keys).items()}
    missing = [event for event in ready if event.new.key not in seqs]
    if missing:
        appended = LogWriter(env, tx).add(missing)
        seqs |= {event.new.key or "": seq for event, seq in zip(missing, appended.seqs, strict=True)}
    return seqs


# ---------------------------------------------------------------------------------------------- rows


def find_effect(tx: Transaction, key: str) -> Effect | None:
    """Return the effect of a key, or None if there is none.

    Raises:
        CorruptRecordError: a row is missing, and might be this one.
    """
    book = ledger(tx)
    effect = book.effects.get(key)
    if effect is None:
        check_effects_whole(book)
    return effect


def check_effects_whole(book: Transaction) -> None:
    """Check that no row of the ledger is missing.

    Raises:
        CorruptRecordError: one is.
    """
    counted, written = book.effects.count(), book.log.head().effects
    if counted != written:
        raise CorruptRecordError(f"{counted} are stored, and {written} were written", place="effect")


def may_read(env: Environment, tx: Transaction, reader: ViewHead, effect: Effect) -> bool:
    """Tell whether a view may know of an effect: if it may read its call (I21)."""
    if not reader.narrow:
        return True
    return reader.reads(read_effect_event(env, tx, effect, effect.call_seq, EventKind.TOOL_CALL).audience)


def check_may_read(env: Environment, tx: Transaction, request: EffectRequest, effect: Effect) -> None:
    """Refuse an effect that is answered by what its view may not read: neither is it told, nor is it done again.

    Raises:
        EffectUnknownError: the view may not read it.
    """
    if may_read(env, tx, find_view(tx, request.view, str(env.scope)), effect):
        return
    raise untold(request)


def untold(request: EffectRequest) -> EffectUnknownError:
    """Return the refusal of an effect whose earlier execution its view may not read."""
    return EffectUnknownError(
        f"the effect {request.key!r} is answered by what view {request.view!r} may not read; nothing ran",
        key=request.key,
        case_id=None,
        hint="Ask through a view that reads it; if it is another effect, give it a key of its own, and `again=True`.",
    )


@watched("effects")
def list_effects(env: Environment, view: str = DEFAULT_VIEW, keys: Collection[str] | None = None) -> list[Effect]:
    """Return the effects of the workflow and of its family of forks, by the time of their intent, or in the order of
    the keys that are asked for; to a narrow view those whose calls it may read.

    Raises:
        CorruptRecordError: one is missing or damaged.
    """
    with env.read() as tx:
        book = ledger(tx)
        check_effects_whole(book)
        reader = find_view(tx, view, str(env.scope))
        asked = book.effects.all() if keys is None else map(book.effects.get, dict.fromkeys(keys))
        return [effect for effect in asked if effect is not None and may_read(env, tx, reader, effect)]


def read_args(env: Environment, key: str, view: str = DEFAULT_VIEW) -> object:
    """Return the arguments that the effect of a key was asked for with; None if they were erased.

    Raises:
        InvalidInputError: no effect has this key.
        CorruptRecordError: row or call are missing or damaged.
    """
    with env.read() as tx:
        effect = find_effect(tx, key)
        if effect is None or not may_read(env, tx, find_view(tx, view, str(env.scope)), effect):
            raise InvalidInputError(f"there is no effect {key!r}", hint="`effects` lists those that there are.")
        return args_of(read_effect_event(env, tx, effect, effect.call_seq, EventKind.TOOL_CALL))


def put_intent(tx: Transaction, effect: Effect, before: Effect | None) -> None:
    """Write the row of a new attempt.

    Raises:
        MovedError: somebody else did.
    """
    book = ledger(tx)
    if before is not None:
        settle(tx, effect, before)
        return
    book.effects.add(effect)
    head = book.log.head()
    book.log.set_head(replace(head, effects=head.effects + 1))


def settle(tx: Transaction, effect: Effect, before: Effect) -> None:
    """Replace a row, if it is still what it was.

    Raises:
        MovedError: it is not.
    """
    if not ledger(tx).effects.settle(effect, expected=before.state, attempt=before.attempt):
        raise MovedError


def still_in_doubt(tx: Transaction, effect: Effect) -> Effect:
    """Return the row as it stands, if this attempt's outcome is still to be told.

    Raises:
        MovedError: it was told.
    """
    there = find_effect(tx, effect.key)
    if there is None or there.attempt != effect.attempt or there.state not in IN_DOUBT:
        raise MovedError
    return there


def check_no_result(env: Environment, tx: Transaction, effect: Effect) -> None:
    """Check that the log does not know what the row takes for unknown, as a row does that was put back (I4).

    Raises:
        CorruptRecordError: it does.
    """
    book = tx if effect.workflow == env.scope.workflow else tx.relative(effect.workflow)
    held = book.log.by_keys([result_key(effect.key, effect.attempt)])
    for seq in [event.seq for event in held.values()]:
        if read_one(book, seq, effect.workflow).kind is EventKind.TOOL_RESULT:
            reason = f"the row says {effect.state}, and event {seq} of {effect.workflow!r} holds the result"
            raise CorruptRecordError(reason, place=f"effect {effect.key!r}")


def mark_unknown(env: Environment, tx: Transaction, effect: Effect) -> Effect:
    """Set an effect in doubt to UNKNOWN, and close its call: it holds no watermark up, and stays an anchor (I8)."""
    there = still_in_doubt(tx, effect)
    check_no_result(env, tx, there)
    if there.state is EffectState.UNKNOWN:
        return there
    unknown = replace(there, state=EffectState.UNKNOWN, settled_us=env.clock.now_us())
    settle(tx, unknown, there)
    if there.workflow == env.scope.workflow and tx.log.by_keys([call_key(there.key, there.attempt)]):
        call_id = call_id_of(there.key, there.attempt)
        key = f"{KEY_PREFIX}{there.key}:{there.attempt}:unknown"
        add_events(env, tx, [abandoned(call_id, f"[{OUTCOME_UNKNOWN}]", key=key, actor=there.actor)])
    return unknown


def record_outcome(
    env: Environment, tx: Transaction, there: Effect, result: PreparedResult, state: EffectState
) -> Effect:
    """Append a result, and settle the row that is `there`; the call too, on a branch that does not hold it."""
    marks = {REPLAYED_FROM: {"workflow": there.workflow, "seq": there.call_seq}}
    named = call_key(there.key, there.attempt)
    event = result.event
    if tx.log.by_keys([event.new.key or ""]):  # by an event of somebody else: a result is never lost to it
        event = replace(event, new=replace(event.new, key=late_key(env, there, event.body)))
    batch: list[NewEvent | PreparedEvent] = [event]
    if not tx.log.by_keys([named]):
        call = read_effect_event(env, tx, there, there.call_seq, EventKind.TOOL_CALL)
        batch.insert(0, copy_of_call(there, args_of(call), marks, call.audience))
    seqs = add_events(env, tx, batch)
    settled = replace(
        there,
        state=state,
        workflow=env.scope.workflow,
        call_seq=seqs.get(named) or tx.log.by_keys([named])[named].seq,
        result_seq=seqs[event.new.key or ""],
        settled_us=env.clock.now_us(),
    )
    settle(tx, settled, there)
    return settled


def record_told(
    env: Environment, tx: Transaction, effect: Effect, told: EffectDone | EffectNeverHappened, result: PreparedResult
) -> Effect:
    """Record what a probe, or the answer to a case, told of an effect in doubt.

    Raises:
        MovedError: the effect is not in doubt any more.
    """
    state = EffectState.DONE if isinstance(told, EffectDone) else EffectState.FAILED
    return record_outcome(env, tx, still_in_doubt(tx, effect), result, state)


def prepare_told(env: Environment, effect: Effect, told: EffectDone | EffectNeverHappened) -> PreparedResult:
    """Encode what was told, before any lock is held."""
    if isinstance(told, EffectDone):
        return prepare_result(env, effect, told.result)
    return prepare_result(env, effect, "[it did not happen, and never will]", is_error=True)


def give_up(env: Environment, tx: Transaction, effect: Effect) -> Effect:
    """Give up an effect in doubt: it is never run again.

    Raises:
        MovedError: the effect is not in doubt any more.
    """
    unknown = mark_unknown(env, tx, effect)
    abandoned_ = replace(unknown, state=EffectState.ABANDONED, settled_us=env.clock.now_us())
    settle(tx, abandoned_, unknown)
    return abandoned_


# ---------------------------------------------------------------------------------------------- cases


def open_effect_case(env: Environment, tx: Transaction, effect: Effect, view: str, reason: str, why: str) -> Case:
    """Open the case of an effect, or find it: it is about no summary, so its view's generation does not count."""
    head = replace(find_view(tx, view, str(env.scope)), generation=0, summary_no=0)
    detail = {"tool": effect.tool, "attempt": effect.attempt, "workflow": effect.workflow, "call_seq": effect.call_seq}
    why = storable(why, FAILURE_CHARS_MAX)
    return open_case(
        env, tx, CaseKind.EFFECT_UNKNOWN, view=head, reason=reason, subject=effect.key, detail={**detail, "why": why}
    )


def close_cases(env: Environment, tx: Transaction, effect: Effect, by: str) -> None:
    """Answer the open case of an effect whose outcome is known now: there is nothing left to ask."""
    if tx.log.head().cases == 0:
        return
    about = (CaseKind.EFFECT_UNKNOWN, CaseState.OPEN, effect.key, OUTCOME_UNKNOWN)
    for case in [case for case in tx.cases.all() if (case.kind, case.state, case.subject, case.reason) == about]:
        settle_case(
            env,
            tx,
            case,
            kind=LineageKind.ANSWER,
            answer=ANSWER_NAMES[EffectDone if effect.state is EffectState.DONE else EffectNeverHappened],
            by=by,
            why="the effect's own outcome came to be known",
            detail={"effect": effect.state.value, "result": effect.result_seq},
        )


def late_key(env: Environment, effect: Effect, body: bytes) -> str:
    """Return the event key of a result for which the ledger has no place any more."""
    digest = keyed_hex(env.store.digest_key, body)
    return f"{KEY_PREFIX}{effect.key}:{effect.attempt}:late:{digest}"


def acknowledged(work: Callable[[], T]) -> T:
    """Do what begins with a look at the ledger, again where the store did not say what came of it (I19)."""
    for _ in range(EFFECT_ROUNDS_MAX - 1):
        try:
            return work()
        except (OutcomeUnknownError, StoreUnavailableError) as error:
            if not unanswered(error):
                raise
    return work()


def effect_basis(env: Environment, tx: Transaction, view: str) -> Basis:
    """Return the view's current generation and revision."""
    found = find_view(tx, view, str(env.scope))
    return Basis(view=found.name, generation=found.generation, revision=tx.log.head().revision)
