"""The recorded results of effects: given again under their own key, and for the same request in other words (I18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from strandline.codec import decode_json, encode_json
from strandline.engine.effect_rows import (
    KEY_PREFIX,
    REPEAT_OF,
    REPLAYED_FROM,
    EffectRequest,
    acknowledged,
    add_events,
    args_of,
    call_event,
    call_id_of,
    call_key,
    copy_of_call,
    find_effect,
    read_effect_event,
    result_of,
    untold,
)
from strandline.engine.environment import Environment
from strandline.engine.reading import find_view, read_one
from strandline.errors import EffectUnknownError, IdempotencyConflictError
from strandline.model.constructors import tool_result
from strandline.model.effect import Effect, EffectOutcome, EffectOutcomeKind
from strandline.model.event import EventKind
from strandline.model.ids import EVERYONE
from strandline.ports import Transaction
from strandline.rules.repeats import Execution

_ASK_THERE: Final = "It was done, and is not run again. What it made can be had from the other side."


def outcome_of(kind: EffectOutcomeKind, effect: Effect, result: object) -> EffectOutcome:
    """Return the answer that an effect gives."""
    return EffectOutcome(
        kind=kind,
        key=effect.key,
        result=result,
        call_seq=effect.call_seq,
        result_seq=effect.result_seq or 0,
        effect=effect,
    )


def replay(env: Environment, effect: Effect, kind: EffectOutcomeKind) -> EffectOutcome:
    """Return the recorded result; call and result are appended once more on a branch that does not hold them."""
    with env.read() as tx:
        recorded = read_effect_event(env, tx, effect, effect.result_seq or 0, EventKind.TOOL_RESULT)
        if recorded.body is None:
            message = f"the effect {effect.key!r} was done, and its result was erased"
            raise EffectUnknownError(message, key=effect.key, case_id=None, hint=_ASK_THERE)
        made = read_effect_event(env, tx, effect, effect.call_seq, EventKind.TOOL_CALL)
        named, answered = call_key(effect.key, effect.attempt), recorded.key or ""
        live = {key: event.seq for key, event in tx.log.by_keys([named, answered]).items()}
    if len(live) < 2:
        marks = {REPLAYED_FROM: {"workflow": effect.workflow, "seq": made.seq}}
        call = copy_of_call(effect, None if made.body is None else args_of(made), marks, made.audience)
        marks = {REPLAYED_FROM: {"workflow": effect.workflow, "seq": recorded.seq}}
        body = {**decode_json(recorded.body, f"body of event {recorded.seq}"), **marks}
        answer = replace(
            tool_result(call_id_of(effect.key, effect.attempt), "", key=answered, actor=effect.actor), body=body
        )

        def copy() -> dict[str, int]:
            with env.write() as tx:
                return add_events(env, tx, [call, answer])

        live = acknowledged(copy)
    outcome = outcome_of(kind, effect, result_of(recorded))
    return replace(outcome, call_seq=live[named], result_seq=live[answered])


# ---------------------------------------------------------------------------------------------- likely repeats


def _repeat_keys(key: str) -> tuple[str, str]:
    return f"{KEY_PREFIX}{key}:repeat:call", f"{KEY_PREFIX}{key}:repeat:result"


def answer_repeat(env: Environment, request: EffectRequest, earlier: Execution) -> EffectOutcome:
    """Answer by the result of the earlier execution, and record that it was asked for again."""
    with env.read() as tx:
        if earlier.effect is not None and earlier.effect.result_seq is not None:
            recorded = read_effect_event(env, tx, earlier.effect, earlier.effect.result_seq, EventKind.TOOL_RESULT)
        else:
            recorded = read_one(tx, earlier.result_seq or 0, env.scope.workflow)
        if not find_view(tx, request.view, str(env.scope)).reads(recorded.audience):
            raise untold(request)
    if recorded.body is None:
        raise EffectUnknownError(
            f"the effect {request.key!r} was done before (event {earlier.call_seq}), and its result was erased",
            key=request.key,
            case_id=None,
            hint=_ASK_THERE,
        )
    earlier_key = earlier.effect.key if earlier.effect is not None else None
    cited = {"key": earlier_key, "call_seq": earlier.call_seq, "result_seq": earlier.result_seq}
    call_named, result_named = _repeat_keys(request.key)
    if recorded.audience != EVERYONE:  # what is said again is said to the same
        request = replace(request, audience=recorded.audience)
    call = call_event(request, 1, key=call_named, marks={REPEAT_OF: cited})
    body = {"type": "tool_result", "tool_use_id": request.key, "content": result_of(recorded), REPEAT_OF: cited}
    answer = replace(tool_result(request.key, "", key=result_named, actor=request.actor), body=body)

    def record() -> dict[str, int]:
        with env.write() as tx:
            return add_events(env, tx, [call, answer])

    acknowledged(record)
    return _repeated(request.key, result_of(recorded), cited, earlier.effect)


def _repeated(key: str, result: object, cited: Mapping[str, object], earlier: Effect | None) -> EffectOutcome:
    call_seq, result_seq = cited.get("call_seq"), cited.get("result_seq")
    return EffectOutcome(
        kind=EffectOutcomeKind.LIKELY_REPEAT,
        key=key,
        result=result,
        call_seq=call_seq if isinstance(call_seq, int) else 0,
        result_seq=result_seq if isinstance(result_seq, int) else 0,
        effect=earlier,
    )


def noted_repeat(env: Environment, tx: Transaction, request: EffectRequest) -> EffectOutcome | None:
    """Return what this key was answered with before as a likely repeat, on this branch: it stays the answer."""
    call_named, result_named = _repeat_keys(request.key)
    stored = tx.log.by_keys([call_named, result_named])
    if len(stored) < 2:
        return None
    call, answer = (read_one(tx, stored[key].seq, env.scope.workflow) for key in (call_named, result_named))
    if answer.body is None:
        return None
    if not find_view(tx, request.view, str(env.scope)).reads(answer.audience):
        raise untold(request)
    args = None if call.body is None else args_of(call)
    check_same(request, call.envelope.tool or "", args, call.body is None, call.seq)
    cited = decode_json(answer.body, f"body of event {answer.seq}").get(REPEAT_OF, {})
    earlier = find_effect(tx, str(cited["key"])) if cited.get("key") else None
    return _repeated(request.key, result_of(answer), cited, earlier)


def check_same(request: EffectRequest, tool: str, args: object, erased: bool, seq: int) -> None:
    """Refuse a key that was used for something else; what was erased can't be compared."""
    other = "another tool" if tool != request.tool else "other arguments"
    if tool == request.tool and (erased or encode_json(args) == encode_json(request.args)):
        return
    raise IdempotencyConflictError(
        f"the key {request.key!r} is taken by an effect with {other} (event {seq}); nothing ran",
        key=request.key,
        seq=seq,
        hint="One key names one effect, with its arguments: use another key for another effect.",
    )
