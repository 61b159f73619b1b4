"""Whether a call of a tool goes through: by durable facts, and once where it is to be done once (I18, I20).

What is recorded is that the call was let through: its permit is checked again and used in the transaction that says so,
before Claude Code is told. What the tool did then, the session's file tells.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from strandline import ActionDeniedError, EffectNeverHappened, EffectOutcomeKind, EffectUnknownError, Workflow
from strandline.errors import InvalidInputError
from strandline.integrations.claude_code.config import GuardRule, Refusal
from strandline.integrations.claude_code.payload import Payload
from strandline.integrations.claude_code.session import ACTOR
from strandline.limits import JSON_DEPTH_MAX

_LET_THROUGH: Final = "let_through"


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that does not go through by itself: denied, or the user is asked."""

    decision: Refusal
    reason: str


def applying(rules: Sequence[GuardRule], payload: Payload) -> list[GuardRule]:
    """Return the rules that a call falls under.

    Raises:
        InvalidInputError: its input is nested too deep to be looked through.
    """
    named = [rule for rule in rules if rule.tool in ("*", payload.tool_name)]
    if not any(rule.mentions for rule in named):
        return named
    said = [_flat(text) for text in _texts(_input(payload))]
    return [rule for rule in named if not rule.mentions or _mentioned(rule, said)]


def _mentioned(rule: GuardRule, said: Sequence[str]) -> bool:
    return any(_flat(phrase) in text for phrase in rule.mentions for text in said)


def decide(workflow: Workflow, rules: Sequence[GuardRule], payload: Payload) -> Refused | None:
    """Return why a call does not go through; None: it does, as far as these rules say.

    Every rule must let it through. The first that does not decides.

    Raises:
        InvalidInputError: the call has no id.
        StrandlineError: it can't be decided.
    """
    if not payload.tool_use_id:
        raise InvalidInputError("the input names no tool_use_id, by which a call is let through once")
    return next((refused for rule in rules if (refused := _refused(workflow, rule, payload)) is not None), None)


def _refused(workflow: Workflow, rule: GuardRule, payload: Payload) -> Refused | None:
    action, needs = rule.action or payload.tool_name, list(rule.needs())
    arguments = _input(payload)
    what = _digest(arguments) if rule.once else payload.tool_use_id
    key = f"{ACTOR}:{action}:{what}"
    try:
        known = any(effect.key == key and effect.result_seq for effect in workflow.effects())
        permit = workflow.guard(action, needs, by=ACTOR) if needs and not known else None
        outcome = workflow.effect(
            key,
            action,
            arguments,
            lambda: {_LET_THROUGH: payload.tool_use_id},
            EffectNeverHappened,  # what is not recorded was never told to Claude Code
            permit=permit,
            actor=ACTOR,
            again=True,
        )
    except ActionDeniedError as denied:
        return Refused(rule.otherwise, f"{action!r} is not permitted: {'; '.join(denied.reasons)}")
    except EffectUnknownError as unknown:
        return Refused(rule.again, unknown.message)
    let_through = outcome.result.get(_LET_THROUGH) if isinstance(outcome.result, dict) else None
    if outcome.kind is EffectOutcomeKind.RAN or let_through == payload.tool_use_id:
        return None
    said = f"{action!r} with this input was let through before, by the call {let_through!r} [event {outcome.call_seq}]"
    return Refused(rule.again, said)


def _input(payload: Payload) -> object:
    try:
        return msgspec.json.decode(payload.tool_input)
    except RecursionError as error:
        raise InvalidInputError(f"tool_input is nested deeper than {JSON_DEPTH_MAX} levels") from error


def _digest(arguments: object) -> str:
    return hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()


def _texts(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict | list):
            waiting += one.values() if isinstance(one, dict) else one


def _flat(text: str) -> str:
    """Return a text with one blank wherever there are several: `git   push` is `git push`."""
    return " ".join(text.split())
