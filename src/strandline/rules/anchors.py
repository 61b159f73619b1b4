"""Which facts must stand in a summary, and how they are written (SPEC §2, anchors; I8, I10)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from strandline.limits import UNKNOWN_CALL_ANCHORS_MAX
from strandline.model.event import Envelope
from strandline.model.found import FoundConstraint, FoundState
from strandline.model.ids import EVERYONE
from strandline.model.register import Fact, FactKey, FactKind, FactState
from strandline.model.summary import Anchor

ANCHORS_HEADING = "Facts in force, verbatim from the log:"
OLDER_CALLS_HEADING = "Older calls of unknown outcome:"
PERHAPS_HEADING = "Said by the user, perhaps meant to last:"
_LABELS = {
    FactKind.CONSTRAINT: "constraint",
    FactKind.APPROVAL: "approval",
    FactKind.REVOCATION: "revoked",
    FactKind.ISSUE: "open issue",
    FactKind.ARTIFACT: "artifact",
    FactKind.CALL: "outcome unknown",
    FactKind.PIN: "pinned",
    FactKind.DIVERGENCE: "divergence",
    FactKind.FOUND: "found constraint",
}
_ORDER = list(_LABELS)
_HEADINGS = (ANCHORS_HEADING.casefold(), OLDER_CALLS_HEADING.casefold(), PERHAPS_HEADING.casefold())
_ANCHOR_LINE = re.compile(rf"(?:{'|'.join(_LABELS.values())})\b.{{0,1000}}?\[event [0-9]+\]")


def choose_anchors(facts: Sequence[Fact]) -> tuple[list[Fact], list[Fact]]:
    """Return the facts that are anchors, and the calls of unknown outcome that are too old to be one (I8)."""
    unknown = [fact for fact in facts if fact.key.kind is FactKind.CALL and fact.state is FactState.UNKNOWN]
    unknown.sort(key=lambda fact: fact.source_seq)
    older = unknown[: max(0, len(unknown) - UNKNOWN_CALL_ANCHORS_MAX)]
    chosen = [fact for fact in facts if fact.key.kind is not FactKind.CALL] + unknown[len(older) :]
    chosen.sort(key=lambda fact: (_ORDER.index(fact.key.kind), fact.source_seq, fact.ordinal))
    return chosen, older


def make_anchor(fact: Fact, envelope: Envelope, text: str, expires_at: str | None) -> Anchor:
    """Return the anchor of a fact.

    Args:
        fact: the fact.
        envelope: of the event that states it.
        text: the statement, verbatim; for a pin the reference itself, for a call nothing.
        expires_at: when an approval expires, in words.
    """
    notes = []
    if envelope.granter:
        notes.append(f"by {envelope.granter}")
    if envelope.scope:
        notes.append(f"scope {envelope.scope}")
    if expires_at:
        notes.append(f"expires {expires_at}")
    if envelope.single_use:
        notes.append("single use")
    if fact.key.kind is FactKind.CALL:
        notes.append(f"tool {envelope.tool}")
    return Anchor(key=fact.key, state=fact.state, seq=fact.source_seq, text=text, note=", ".join(notes))


def found_anchors(
    found: Sequence[FoundConstraint], budget_tokens: int, count: Callable[[str], int]
) -> tuple[list[Anchor], int]:
    """Return the anchors of found constraints that stand and are sure, as many of the newest as fit; and how many don't
    fit.

    They are no mandatory facts, for nobody declared them: the budget cuts them where it would refuse. It also holds the
    line that counts those that don't fit; where it holds no anchor beside that line, nothing is carried or counted.
    """
    pinned = [one for one in found if one.sure and one.state is FoundState.STANDING]
    chosen: list[Anchor] = []
    rooms: list[int] = []  # what is left after each
    for one in reversed(pinned):
        key = FactKey(kind=FactKind.FOUND, subject=one.name, holder="" if one.audience == EVERYONE else one.audience)
        anchor = Anchor(key=key, state=FactState.STANDING, seq=one.seq, text=one.text)
        budget_tokens -= count(anchor_line(anchor) + "\n")
        if budget_tokens < 0:
            break
        chosen.append(anchor)
        rooms.append(budget_tokens)
    while chosen and len(chosen) < len(pinned) and count(_left_out(len(pinned) - len(chosen)) + "\n") > rooms[-1]:
        chosen.pop()
        rooms.pop()
    return chosen[::-1], len(pinned) - len(chosen) if chosen else 0


def render_perhaps(found: Sequence[FoundConstraint], budget_tokens: int, count: Callable[[str], int]) -> str:
    """Quote what a user said and perhaps meant to last, the newest first, as much as fits."""
    text = ""
    for one in reversed(found):
        if one.sure or one.state is not FoundState.STANDING:
            continue
        longer = f"{text or PERHAPS_HEADING}\n- {one.name}: {_no_anchor_inside(one.text)}"
        if count(longer) > budget_tokens:
            break
        text = longer
    return text


def render_older_calls(calls: Sequence[Anchor], budget_tokens: int, count: Callable[[str], int]) -> str:
    """Write the calls of unknown outcome that are too old to be anchors, the newest first, as many as fit (I8)."""
    text = ""
    for call in reversed(calls):
        longer = f"{text or OLDER_CALLS_HEADING}\n{_flat(call.key.subject)} ({_flat(call.note)}) [event {call.seq}]"
        if count(longer) > budget_tokens:
            break
        text = longer
    return text


def forged_anchor(text: str) -> str | None:
    """Return the first line that passes itself off as one of ours: only we write anchors (I10)."""
    return next((line for line in text.splitlines() if _passes_for_anchor(line)), None)


def _passes_for_anchor(line: str) -> bool:
    plain = " ".join(line.casefold().replace("_", " ").split()).lstrip(" -*•>#`~")
    return plain.startswith(_HEADINGS) or _ANCHOR_LINE.match(plain) is not None


def _no_anchor_inside(statement: str) -> str:
    """Mark the lines of a statement that would read as an anchor of its own; all else stays as it stands."""
    first, *rest = statement.splitlines(keepends=True) or [""]
    return first + "".join(f"  | {line}" if _passes_for_anchor(line) else line for line in rest)


def _flat(text: str) -> str:
    """Return a name on one line: it can't begin an anchor of its own."""
    return " ".join(text.splitlines())


def render_anchors(anchors: Sequence[Anchor], found_left_out: int = 0) -> str:
    """Write the anchors as text, one a line; "" where there is none. Found constraints that don't fit are counted."""
    if not anchors:
        return ""
    lines = [ANCHORS_HEADING, *(anchor_line(anchor) for anchor in anchors)]
    if found_left_out:
        lines.append(_left_out(found_left_out))
    return "\n".join(lines)


def _left_out(number: int) -> str:
    """Say how many found constraints were left out."""
    return f"- {number} older found constraints stand in the log only"


def anchor_line(anchor: Anchor) -> str:
    """Write one anchor."""
    subject = "" if anchor.key.kind in (FactKind.PIN, FactKind.DIVERGENCE) else f" {_flat(anchor.key.subject)}"
    note = f" ({_flat(anchor.note)})" if anchor.note else ""
    text = f": {_no_anchor_inside(anchor.text)}" if anchor.text else ""
    return f"- {_LABELS[anchor.key.kind]}{subject}{note} [event {anchor.seq}]{text}"
