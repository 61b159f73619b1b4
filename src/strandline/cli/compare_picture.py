"""The picture of a comparison: an SVG that stands on its own, on light and on dark pages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape, quoteattr

from strandline.cli.output import count, printable, span

if TYPE_CHECKING:
    from strandline import ComparedSummary, Comparison, Tally

SUMMARIES_DRAWN_MAX: Final = 40
CLASSES_DRAWN_MAX: Final = 8
NAME_CHARS_MAX: Final = 60

WIDTH: Final = 1_080
LEFT: Final = 48
RIGHT: Final = WIDTH - LEFT
BARS_FROM: Final = 310
BARS_TO: Final = 900
ROW: Final = 82
CLASS_COLUMNS: Final = 4
CLASS_ROW: Final = 104

INK: Final = "#17303d"
QUIET: Final = "#5d707a"
PAPER: Final = "#fbf7ee"
SAND: Final = "#efe6d3"
LINE: Final = "#ddd0b6"
COLOURS: Final = ("#c08a4a", "#4aa79c", "#0f5e7d")  # driftwood, shallow water, deep water: also apart in grey
INKS: Final = ("#8a5a1f", "#1d6f66", "#0f5e7d")  # the same, dark enough to be read as text
NAMES: Final = ("their summary", "theirs + our ledger", "ours, same length")
CLASS_NAMES: Final = {"camel_case": "camelCase"}
FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def draw(found: Comparison, name: str) -> str:
    """Return the picture of a comparison that has at least one summary."""
    title = printable(name)
    title = title if len(title) <= NAME_CHARS_MAX else title[: NAME_CHARS_MAX - 1] + "…"
    shown = found.summaries[:SUMMARIES_DRAWN_MAX]
    parts = _header(found, title)
    parts += _gauges(found, 128)
    y = 330
    parts += _rows(shown, y)
    y += 44 + ROW * len(shown)
    if len(found.summaries) > len(shown):
        parts.append(_text(LEFT, y + 4, f"and {len(found.summaries) - len(shown):,} more, in the table", 14, QUIET))
        y += 30
    if found.needed_by_class:
        parts += _classes(found.needed_by_class, y + 26)
        y += 60 + CLASS_ROW * math.ceil(min(len(found.needed_by_class), CLASSES_DRAWN_MAX) / CLASS_COLUMNS)
    parts += _footer(found, y + 12)
    height = y + 112
    said = ", ".join(
        f"{name}: {kept} of {found.needed.needed}" for name, kept in zip(NAMES, _kept(found.needed), strict=True)
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'role="img" font-family={quoteattr(FONT)}>',
            f"<title>{escape(f'What the summaries of {title} kept')}</title>",
            f"<desc>{escape(f'Of the references that the agent needed after a compaction, {said}.')}</desc>",
            f'<rect width="{WIDTH}" height="{height}" rx="18" fill="{PAPER}"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _kept(tally: Tally) -> tuple[int, int, int]:
    return tally.theirs, tally.theirs_and_ledger, tally.ours


def _percent(kept: int, needed: int) -> str:
    return f"{100 * kept / needed:.0f}%" if needed else "–"


def _text(
    x: float, y: float, text: str, size: int, fill: str = INK, *, weight: int = 400, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" font-weight="{weight}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )


def _rect(x: float, y: float, width: float, height: float, fill: str, radius: float = 4) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:.1f}" height="{height:g}" rx="{radius:g}" fill="{fill}"/>'


def _header(found: Comparison, title: str) -> list[str]:
    compactions = count(len(found.summaries), "compaction")
    needed = count(found.needed.needed, "reference")
    return [
        _text(LEFT, 62, "What was kept of what was needed", 32, weight=700),
        _text(LEFT, 94, f"{title} · {compactions} by another tool · {needed} needed afterwards", 17, QUIET),
    ]


def _gauges(found: Comparison, y: float) -> list[str]:
    """Draw one tide gauge for each of the three: the water stands as high as the share that was kept."""
    needed = found.needed.needed
    theirs = sum(each.theirs_tokens for each in found.summaries)
    ledgers = sum(each.ledger_tokens for each in found.summaries)
    ours = sum(each.ours_tokens for each in found.summaries)
    sizes = (f"{theirs:,} tokens", f"{theirs + ledgers:,} tokens", f"{ours:,} tokens")
    gap = 24
    width = (RIGHT - LEFT - 2 * gap) / 3
    parts = []
    for place, (kept, size) in enumerate(zip(_kept(found.needed), sizes, strict=True)):
        x = LEFT + place * (width + gap)
        parts.append(_rect(x, y, width, 152, SAND, 14))
        parts += _water(x + width - 92, y + 16, 72, 120, kept / needed if needed else 0.0, place)
        parts.append(_text(x + 22, y + 38, NAMES[place], 16, weight=600))
        parts.append(_text(x + 22, y + 94, _percent(kept, needed), 50, INKS[place], weight=700))
        parts.append(_text(x + 22, y + 118, f"{kept:,} of {needed:,}", 15))
        parts.append(_text(x + 22, y + 138, size, 13, QUIET))
    return parts


def _water(x: float, y: float, width: float, height: float, share: float, place: int) -> list[str]:
    level = y + height * (1 - share)
    swell = min(5.0, height * share / 2, height * (1 - share) / 2)  # still at the bottom and at the brim
    half = width / 2
    surface = f"Q{x + half / 2:g} {level - swell:.1f} {x + half:g} {level:.1f} T{x + width:g} {level:.1f}"
    return [
        f'<clipPath id="gauge{place}">{_rect(x, y, width, height, PAPER, 10)}</clipPath>',
        _rect(x, y, width, height, PAPER, 10),
        f'<path clip-path="url(#gauge{place})" fill="{COLOURS[place]}" '
        f'd="M{x:g} {level:.1f} {surface} V{y + height:g} H{x:g} Z"/>',
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="10" fill="none" stroke="{LINE}"/>',
    ]


def _rows(shown: tuple[ComparedSummary, ...], y: float) -> list[str]:
    parts = [_text(LEFT, y, "Each compaction", 19, weight=700)]
    bottom = y + 32 + ROW * len(shown) - 18
    for percent in (0, 25, 50, 75, 100):
        x = BARS_FROM + (BARS_TO - BARS_FROM) * percent / 100
        parts.append(f'<path d="M{x:g} {y + 14:g} V{bottom:g}" stroke="{LINE}"/>')
        parts.append(_text(x, y + 4, f"{percent}%", 12, QUIET, anchor="middle"))
    for place, each in enumerate(shown):
        parts += _row(each, place + 1, y + 26 + place * ROW)
    return parts


def _row(each: ComparedSummary, number: int, y: float) -> list[str]:
    needed = each.needed.needed
    parts = [
        _text(LEFT, y + 17, f"{number}", 22, weight=700),
        _text(LEFT + 40, y + 12, f"events {span(1, each.foreign.through_seq)}", 15, weight=600),
        _text(LEFT + 40, y + 31, f"{needed:,} needed until event {each.until_seq:,}", 13, QUIET),
        _text(LEFT + 40, y + 48, f"summary of {each.theirs_tokens:,} tokens", 13, QUIET),
    ]
    for place, kept in enumerate(_kept(each.needed)):
        at = y + place * 19
        length = (BARS_TO - BARS_FROM) * kept / needed if needed else 0.0
        parts.append(_rect(BARS_FROM, at, BARS_TO - BARS_FROM, 14, SAND, 3))
        if length:
            parts.append(_rect(BARS_FROM, at, length, 14, COLOURS[place], 3))
        missing = place == 2 and bool(each.ours_reason)
        said = "none fits" if missing else f"{_percent(kept, needed)} · {kept:,}" if needed else "none needed"
        parts.append(_text(BARS_TO + 12, at + 12, said, 13, INKS[place], weight=600))
    return parts


def _classes(classes: Mapping[str, Tally], y: float) -> list[str]:
    """Draw the most needed classes of reference, each with its three bars."""
    parts = [_text(LEFT, y, "By kind of reference", 19, weight=700)]
    gap = 20
    width = (RIGHT - LEFT - gap * (CLASS_COLUMNS - 1)) / CLASS_COLUMNS
    for place, (name, tally) in enumerate(_most_needed(classes).items()):
        x = LEFT + place % CLASS_COLUMNS * (width + gap)
        top = y + 18 + place // CLASS_COLUMNS * CLASS_ROW
        parts.append(_rect(x, top, width, CLASS_ROW - 16, SAND, 10))
        parts.append(_text(x + 14, top + 22, CLASS_NAMES.get(name, name), 14, weight=600))
        parts.append(_text(x + width - 14, top + 22, f"{tally.needed:,} needed", 12, QUIET, anchor="end"))
        for bar, kept in enumerate(_kept(tally)):
            at = top + 34 + bar * 16
            room = width - 28 - 34
            parts.append(_rect(x + 14, at, room, 11, PAPER, 3))
            if kept:
                parts.append(_rect(x + 14, at, room * kept / tally.needed, 11, COLOURS[bar], 3))
            parts.append(_text(x + width - 14, at + 10, f"{kept:,}", 12, INKS[bar], weight=600, anchor="end"))
    return parts


def _most_needed(classes: Mapping[str, Tally]) -> dict[str, Tally]:
    """Return the most needed classes by name, and the others as one."""
    if len(classes) <= CLASSES_DRAWN_MAX:
        return dict(classes)
    names = list(classes)[: CLASSES_DRAWN_MAX - 1]
    others = [tally for name, tally in classes.items() if name not in names]
    return {name: classes[name] for name in names} | {"others": type(others[0]).sum(others)}


def _footer(found: Comparison, y: float) -> list[str]:
    mild = found.needed_by_name
    named = ", ".join(_percent(kept, mild.needed) for kept in _kept(mild))
    lines = (
        "Needed: a reference of the covered events that the agent used between this compaction and the next, before"
        " anybody showed it again.",
        f"Kept: it stands word for word. Where the file name alone may stand for its path: {named}.",
        f"Ours has the same length at most; the ledger adds up to {found.ledger_budget:,} tokens to theirs "
        f"({found.token_counter}). Drawn by strandline compare.",
    )
    return [_text(LEFT, y + 14 + 22 * place, line, 13, QUIET) for place, line in enumerate(lines)]
