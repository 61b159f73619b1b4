"""Targeted retrieval (C19): an event that holds what is needed is quoted, whole or around it.

A quote is cut only where every token ends, so that nothing stands in it that does not stand in its event (`$500` in
`$5000`). Only of a run of more than REFERENCE_CHARS_MAX characters without such a place is the needed reference alone
quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from strandline.limits import REFERENCE_CHARS_MAX, RETRIEVAL_CONTEXT_CHARS
from strandline.model.context import ContextPart, Excerpt, Omission, PartKind, Rung
from strandline.model.event import SourceEvent
from strandline.rules.verbatim import ends_every_token, first_standing

GAP_CHARS_MIN: Final = 80  # what is shorter is not left out: to say so would take as much

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An event that is to be quoted, its text, and the references for whose sake; each stands verbatim in the text."""

    event: SourceEvent
    text: str
    refs: tuple[str, ...]


def quote(source: Source, context_chars: int | None, count: Count) -> ContextPart:
    """Return an event as a part of a context: whole, or so many characters on either side of what is needed.

    Args:
        source: the event.
        context_chars: None: the whole text.
        count: the tokens of a part.
    """
    spans = [(0, len(source.text))] if context_chars is None else _windows(source, context_chars)
    excerpts = tuple(Excerpt(from_char=start, to_char=end, text=source.text[start:end]) for start, end in spans)
    text = _labelled(source, excerpts)
    seq = source.event.seq
    return ContextPart(
        kind=PartKind.RETRIEVED, from_seq=seq, through_seq=seq, tokens=count(text), text=text, excerpts=excerpts
    )


def narrowest(sources: Sequence[Source], count: Count) -> list[ContextPart]:
    """Return the shortest quote of each event."""
    return [quote(source, RETRIEVAL_CONTEXT_CHARS[-1], count) for source in sources]


def widen(sources: Sequence[Source], free: int, count: Count) -> list[ContextPart]:
    """Return a quote of each event: the widest that the free tokens allow, first come, first served; by seq."""
    quotes = []
    for source, least in zip(sources, narrowest(sources, count), strict=True):
        wider = (quote(source, chars, count) for chars in (None, *RETRIEVAL_CONTEXT_CHARS[:-1]))
        chosen = next((each for each in wider if each.tokens - least.tokens <= free), least)
        free -= chosen.tokens - least.tokens
        quotes.append(chosen)
    return sorted(quotes, key=lambda quoted: quoted.from_seq)


def rests(sources: Sequence[Source], quotes: Sequence[ContextPart], count: Count) -> list[Omission]:
    """Name what is left out of the events that are quoted in part; the quotes stand by seq."""
    return [
        Omission(
            kind=PartKind.RETRIEVED,
            from_seq=quoted.from_seq,
            through_seq=quoted.through_seq,
            tokens=max(0, quote(source, None, count).tokens - quoted.tokens),
            reason=Rung.RETRIEVED,
        )
        for source, quoted in zip(sorted(sources, key=lambda source: source.event.seq), quotes, strict=True)
        if sum(len(excerpt.text) for excerpt in quoted.excerpts) < len(source.text)
    ]


def _windows(source: Source, context_chars: int) -> list[tuple[int, int]]:
    """Return the stretches around what is needed, in order; those with less than GAP_CHARS_MIN between are one."""
    text = source.text
    windows: list[tuple[int, int]] = []
    for start, end in sorted(_places(source)):
        left, right = _cut_left(text, start, context_chars), _cut_right(text, end, context_chars)
        before = windows[-1][1] if windows else 0
        if left - before < GAP_CHARS_MIN:
            left = windows.pop()[0] if windows else 0
        windows.append((left, max(right, before)))
    left, right = windows[-1]
    return [*windows[:-1], (left, len(text) if len(text) - right < GAP_CHARS_MIN else right)]


def _places(source: Source) -> list[tuple[int, int]]:
    found = ((first_standing(ref, source.text), len(ref)) for ref in source.refs)
    return [(start, start + length) for start, length in found if start is not None]


def _cut_left(text: str, start: int, context_chars: int) -> int:
    """Return where a quote begins that has at most so many characters before `start`, or the next place before them."""
    near = max(0, start - context_chars)
    far = max(0, near - REFERENCE_CHARS_MAX)
    if near == 0:
        return 0
    inside = next((at + 1 for at in range(near - 1, start) if ends_every_token(text[at])), None)
    outside = next((at + 1 for at in range(near - 2, far - 1, -1) if ends_every_token(text[at])), None)
    if inside is not None:
        return inside
    return outside if outside is not None else (0 if far == 0 else start)


def _cut_right(text: str, end: int, context_chars: int) -> int:
    """Return where a quote ends, as `_cut_left`."""
    near = min(len(text), end + context_chars)
    far = min(len(text), near + REFERENCE_CHARS_MAX)
    if near == len(text):
        return near
    inside = next((at for at in range(near, end - 1, -1) if ends_every_token(text[at])), None)
    outside = next((at for at in range(near + 1, far) if ends_every_token(text[at])), None)
    if inside is not None:
        return inside
    return outside if outside is not None else (far if far == len(text) else end)


def _labelled(source: Source, excerpts: Sequence[Excerpt]) -> str:
    """Return the quote with what it is, and with what is left out of it, so that a model knows what it reads."""
    event = source.event
    lines = [f"Event {event.seq} ({event.kind}), looked up in the log; later events may have changed what it says:"]
    at = 0
    for excerpt in excerpts:
        if excerpt.from_char > at:
            lines.append(_gap(at, excerpt.from_char))
        lines.append(excerpt.text)
        at = excerpt.to_char
    if at < len(source.text):
        lines.append(_gap(at, len(source.text)))
    return "\n".join([*lines, f"(end of event {event.seq})"])


def _gap(start: int, end: int) -> str:
    return f"[characters {start} to {end} left out]"
