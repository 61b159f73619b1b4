"""Requests that are held: the same one is in doubt under another key, and may have happened (I18).

In doubt is what is UNKNOWN, and an intent that a recovery left behind. An intent of after the newest recovery is taken
to be at work: parallel calls with equal arguments are made on purpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from strandline.codec import decode_json
from strandline.engine.effect_rows import (
    KEY_PREFIX,
    EffectRequest,
    add_events,
    call_key,
    check_may_read,
    find_effect,
    read_effect_event,
)
from strandline.engine.environment import Environment
from strandline.engine.family import ledger
from strandline.engine.find_repeat import Window, held_event
from strandline.engine.reading import read_one
from strandline.limits import EFFECTS_ALIKE_MAX
from strandline.model.constructors import note
from strandline.model.effect import Effect, EffectState
from strandline.model.event import EventKind
from strandline.model.ids import EVERYONE
from strandline.ports import Transaction

_HELD_FOR: Final = "held_for"  # a member of the body of the note: the keys of the effects in doubt


def doubtful_alike(tx: Transaction, request: EffectRequest, fingerprint: str, window: Window) -> list[Effect]:
    """Return the effects in doubt, of the whole family, that asked for the same under another key."""
    found = []
    for effect in ledger(tx).effects.in_doubt(fingerprint, EFFECTS_ALIKE_MAX):
        call = held_event(tx, call_key(effect.key, effect.attempt)) if effect.state is EffectState.INTENDED else 0
        if effect.key != request.key and call is not None and call <= window.through:
            found.append(effect)
    return found


def note_held(env: Environment, tx: Transaction, request: EffectRequest, doubtful: Sequence[Effect]) -> None:
    """Write down, once, what a request waits for: when that is told to be done, its result is the answer."""
    check_may_read(env, tx, request, doubtful[0])
    first = read_effect_event(env, tx, doubtful[0], doubtful[0].call_seq, EventKind.TOOL_CALL)
    audience = request.audience if first.audience == EVERYONE else first.audience  # it names the other's key
    keys = [effect.key for effect in doubtful]
    text = f"[{request.key!r} asks {request.tool!r} for the same as {keys[0]!r}, whose outcome is not known]"
    event = note(text, key=_note_key(request.key), actor=request.actor, audience=audience)
    add_events(env, tx, [replace(event, body={"type": "text", "text": text, _HELD_FOR: keys})])


def held_for(env: Environment, tx: Transaction, request: EffectRequest, fingerprint: str) -> Effect | None:
    """Return the effect that a request was held for, if it is done by now."""
    seq = held_event(tx, _note_key(request.key))
    body = None if seq is None else read_one(tx, seq, env.scope.workflow).body
    if body is None:
        return None
    for key in decode_json(body, f"body of event {seq}").get(_HELD_FOR, ()):
        effect = find_effect(tx, key)
        if effect is not None and effect.state is EffectState.DONE and effect.fingerprint == fingerprint:
            return effect
    return None


def _note_key(key: str) -> str:
    return f"{KEY_PREFIX}{key}:held"
