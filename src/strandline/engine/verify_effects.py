"""The part of `verify` that walks the ledger of effects (C5, I18)."""

from __future__ import annotations

from strandline.engine.effect_rows import IN_DOUBT, check_effects_whole, check_no_result, read_effect_event
from strandline.engine.environment import Environment
from strandline.engine.verify_log import Notes
from strandline.errors import CorruptRecordError
from strandline.model.effect import EffectState
from strandline.model.event import EventKind
from strandline.ports import Transaction


def check_effects(env: Environment, tx: Transaction, notes: Notes) -> None:
    """Every row of the family's ledger is there, and so are the events that it names; for `verify`."""
    if tx.log.head().parent is not None:
        return  # it stands at the root
    for effect in tx.effects.all():
        named = [(effect.call_seq, EventKind.TOOL_CALL), (effect.result_seq, EventKind.TOOL_RESULT)]
        for seq, kind in named:
            try:
                if seq is not None:
                    read_effect_event(env, tx, effect, seq, kind)
            except CorruptRecordError as error:
                notes.say(f"effect {effect.key!r}", f"its {kind} is not there: {error}")
        if effect.result_seq is None and effect.state in (EffectState.DONE, EffectState.FAILED):
            notes.say(f"effect {effect.key!r}", f"it is {effect.state}, and names no result")
        try:
            if effect.state in IN_DOUBT:
                check_no_result(env, tx, effect)
        except CorruptRecordError as error:
            notes.say(f"effect {effect.key!r}", error.reason)
        permit = tx.permits.get(effect.permit_id) if effect.permit_id is not None else None
        if effect.permit_id is not None and (permit is None or permit.consumed_by != effect.key):
            notes.say(f"effect {effect.key!r}", f"it rests on the permit {effect.permit_id}, which it did not use up")
    check_effects_whole(tx)
