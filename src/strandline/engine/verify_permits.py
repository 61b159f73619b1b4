"""The part of `verify` that compares permits with the approvals that they used up (C5, I20)."""

from __future__ import annotations

from collections import Counter

from strandline.engine.verify_log import Notes
from strandline.model.action import PermitState
from strandline.ports import Transaction


def check_permits(tx: Transaction, notes: Notes) -> None:
    """Check that every decision and every use is there, and that each use is that of a permit which rests on it.

    They are kept with the root of a family: a fork has none of its own.
    """
    head, decisions = tx.log.head(), Counter[str]()
    used_up: dict[tuple[str, int], str] = {}  # as the permits say
    for permit in tx.permits.all():
        decisions[permit.state.value] += 1
        if permit.state is PermitState.CONSUMED:
            for place in permit.single_uses:
                if place in used_up:
                    notes.say(f"permit {permit.permit_id!r}", f"it used what permit {used_up[place]!r} had used up")
                used_up[place] = permit.permit_id
    uses = {(workflow, seq): permit_id for workflow, seq, permit_id in tx.permits.all_uses()}
    if decisions.total() != head.permits:
        notes.say("permit", f"{decisions.total()} are stored, {head.permits} were written")
    if len(uses) != head.approval_uses:
        notes.say("approval_use", f"{len(uses)} are stored, {head.approval_uses} were written")
    for place in sorted(uses.keys() | used_up.keys()):
        if uses.get(place) != used_up.get(place):
            told, by_permit = uses.get(place) or "none", used_up.get(place) or "none"
            reason = f"used up by permit {told!r}, and of the permits that were used {by_permit!r} rests on it"
            notes.say(f"approval_use of event {place[1]} of {place[0]!r}", reason)
