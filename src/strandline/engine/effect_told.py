"""What becomes of an effect in doubt when a probe has answered (I18)."""

from __future__ import annotations

from strandline.engine.effect_rows import (
    OUTCOME_UNKNOWN,
    EffectRequest,
    acknowledged,
    close_cases,
    mark_unknown,
    open_effect_case,
    prepare_told,
    record_told,
)
from strandline.engine.environment import Environment
from strandline.errors import (
    EffectUnknownError,
)
from strandline.model.case import EffectCantTell, ProbeAnswer
from strandline.model.effect import Effect


def conclude(env: Environment, request: EffectRequest, effect: Effect, answer: ProbeAnswer, why: str) -> Effect:
    """Settle an effect in doubt by an answer.

    Raises:
        EffectUnknownError: the answer is that nobody can tell; a case is open.
        MovedError: the outcome was told meanwhile.
    """
    if isinstance(answer, EffectCantTell):
        case_id = acknowledged(lambda: _record_unknown(env, request, effect, why))
        other = "" if request.key == effect.key else f"{request.key!r} asks for the same under another key, and waits: "
        raise EffectUnknownError(
            f"{other}whether the effect {effect.key!r} (tool {effect.tool!r}, attempt {effect.attempt}) happened is "
            f"not known: {why}; it is not run again, and the case {case_id} is open",
            key=effect.key,
            case_id=case_id,
        )
    told, result = answer, prepare_told(env, effect, answer)

    def record() -> Effect:
        with env.write() as tx:
            settled = record_told(env, tx, effect, told, result)
            close_cases(env, tx, settled, "probe")
            return settled

    settled = acknowledged(record)
    if result.refusal is not None:
        raise result.refusal
    return settled


def _record_unknown(env: Environment, request: EffectRequest, effect: Effect, why: str) -> str:
    with env.write() as tx:
        unknown = mark_unknown(env, tx, effect)
        return open_effect_case(env, tx, unknown, request.view, OUTCOME_UNKNOWN, why).case_id
