"""The picture of the run: the log, the watermark, what each generation holds, and the attempt that was killed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import strandline
from demo.facts import Killed, LogEvent, Story
from demo.markup import Markup, join, tag
from demo.visible import span

WIDTH: Final = 1_000
LEFT: Final = 150
RIGHT: Final = 984
LABEL: Final = 110  # room for a label
COLUMNS_MAX: Final = 420
_MESSAGES: Final = frozenset({"message"})
_CALLS: Final = frozenset({"tool_call", "tool_result"})
_OTHER: Final = frozenset({"thinking", "note"})
_CARRIERS: Final = {"segment": "segments", "carried": "anchors and ledger", "tail": "tail"}
_LEGEND: Final = (
    (0, "message", "message"),
    (92, "call", "tool call or result"),
    (234, "fact", "constraint, approval, issue, artifact, decision …"),
    (552, "other", "note, thinking"),
)
_RANKS: Final = ("other", "call", "message", "fact")  # where several events share a column, the last one wins


def timeline(story: Story) -> Markup:
    """Draw the log from left to right, and below it what each generation made of it."""
    axis = _Axis(max(1, story.events))
    rows: list[Markup] = [_log(axis, story.log)]
    y = 134
    for number, outcome in enumerate(story.generations):
        rows.append(_generation(axis, story.log, outcome, y))
        y += 92
        if number == 0 and story.killed is not None:
            rows.append(_killed(axis, story.killed, y))
            y += 72
    covered = ", ".join(f"generation {o.generation} covers events 1 to {o.watermark}" for o in story.generations)
    return _svg(
        y - 8,
        "The log and its summaries",
        f"{story.events} events from left to right; {covered}; the events behind each watermark stay verbatim.",
        rows,
    )


def spending(story: Story) -> Markup:
    """Draw what the tokens are spent on, before and after each compaction."""
    most = max(*(o.tokens_before for o in story.generations), story.budget)
    scale = (RIGHT - LEFT - 70) / most
    rows, y = [], 22
    for outcome in story.generations:
        segments = sum(s.head.tokens for s in outcome.summary.segments) if outcome.summary else 0
        parts = (
            ("segment", segments),
            ("carried", outcome.summary_tokens - segments),
            ("tail", outcome.tail_tokens),
        )
        rows.append(_text(0, y + 16, f"Generation {outcome.generation}", "strong"))
        rows.append(_text(LEFT - 10, y + 16, "before", "quiet", anchor="end"))
        rows.append(_rect(LEFT, y, outcome.tokens_before * scale, 22, "plain"))
        rows.append(_text(LEFT + outcome.tokens_before * scale + 8, y + 16, f"{outcome.tokens_before:,}"))
        rows.append(_text(LEFT - 10, y + 44, "after", "quiet", anchor="end"))
        x = float(LEFT)
        for kind, tokens in parts:
            rows.append(_rect(x, y + 28, max(0.0, tokens * scale - 1), 22, kind))
            x += tokens * scale
        x = max(x, LEFT + story.budget * scale)
        words = " + ".join(f"{tokens:,} {_CARRIERS[kind]}" for kind, tokens in parts)
        rows.append(_text(x + 10, y + 44, f"{outcome.tokens_after:,} = {words}"))
        y += 76
    edge = LEFT + story.budget * scale
    rows.append(_line(edge, 16, edge, y - 20, "cross"))
    rows.append(_text(edge, 10, f"budget {story.budget:,}", "quiet", anchor="middle"))
    return _svg(y - 10, "Tokens before and after", f"The budget is {story.budget} tokens.", rows)


class _Axis:
    """Where an event stands from left to right."""

    def __init__(self, events: int) -> None:
        self.events = events
        self.step = (RIGHT - LEFT) / events

    def start(self, seq: int) -> float:
        """Return the left edge of an event."""
        return LEFT + (seq - 1) * self.step

    def end(self, seq: int) -> float:
        """Return the right edge of an event."""
        return LEFT + seq * self.step

    def marks(self, log: Iterable[LogEvent], y: float, height: float) -> Markup:
        """Draw events as marks; where they are too many, several share one."""
        columns: dict[int, str] = {}
        share = max(1, -(-self.events // COLUMNS_MAX))
        for event in log:
            column, kind = (event.seq - 1) // share, _class_of(event.kind)
            if _RANKS.index(kind) >= _RANKS.index(columns.get(column, "other")):
                columns[column] = kind
        width = max(0.8, self.step * share - 0.9)
        return join(
            *(_rect(self.start(column * share + 1), y, width, height, kind) for column, kind in columns.items())
        )


def _class_of(kind: str) -> str:
    if kind in _MESSAGES:
        return "message"
    if kind in _CALLS:
        return "call"
    return "other" if kind in _OTHER else "fact"


def _log(axis: _Axis, log: Sequence[LogEvent]) -> Markup:
    parts = [
        _text(0, 54, "The log", "strong"),
        _text(0, 70, "every event,", "quiet"),
        _text(0, 84, "verbatim", "quiet"),
    ]
    parts.append(axis.marks(log, 40, 46))
    for seq in _ticks(axis.events):
        x = (axis.start(seq) + axis.end(seq)) / 2
        parts.append(_text(x, 30, f"{seq:,}", "quiet", anchor="middle"))
    for x, kind, words in _LEGEND:
        parts.append(_rect(LEFT + x, 97, 10, 10, kind))
        parts.append(_text(LEFT + x + 16, 106, words, "quiet"))
    return join(*parts)


def _ticks(events: int) -> list[int]:
    step = next(s for power in range(9) for s in (10**power, 2 * 10**power, 5 * 10**power) if events / s <= 10)
    inner = [seq for seq in range(step, events + 1, step) if events - seq >= step * 0.6]
    return [1, *(seq for seq in inner if seq > 1), *([events] if events > 1 else [])]


def _generation(axis: _Axis, log: Sequence[LogEvent], outcome: strandline.CompactionOutcome, y: float) -> Markup:
    summary = outcome.summary
    parts = [
        _text(0, y + 14, f"Generation {outcome.generation}", "strong"),
        _text(0, y + 30, f"{outcome.tokens_after:,} tokens", "quiet"),
    ]
    for segment in summary.segments if summary else ():
        head = segment.head
        x, width = axis.start(head.from_seq), axis.end(head.through_seq) - axis.start(head.from_seq)
        parts.append(_rect(x, y, width - 1, 32, "segment"))
        words = f"segment: {span(head.from_seq, head.through_seq)} in {head.tokens:,} tokens"
        if width > 6.6 * len(words):
            parts.append(_text(x + 10, y + 20, words))
    parts.append(axis.marks((e for e in log if outcome.watermark < e.seq <= outcome.revision), y, 32))
    x = axis.end(outcome.watermark)
    parts.append(_line(x, y - 9, x, y + 56, "mark"))
    near_left, near_right = x < LEFT + LABEL, x > RIGHT - LABEL
    at, anchored = (x + 6, None) if near_left else (x - 6, "end")
    parts.append(_text(at, y - 5, f"watermark {outcome.watermark:,}", "watermark", anchor=anchored))
    if outcome.watermark < outcome.revision:
        words = f"tail {outcome.watermark + 1:,}–{outcome.revision:,}"
        at, below, anchored = (RIGHT, 68, "end") if near_right else (x + 6, 48, None)
        parts.append(_text(at, y + below, words, "quiet", anchor=anchored))
    if summary:
        for entry in summary.ledger:
            at = (axis.start(entry.last_seq) + axis.end(entry.last_seq)) / 2
            parts.append(_line(at, y + 40, at, y + 52, "ledger"))
        parts += [_diamond((axis.start(anchor.seq) + axis.end(anchor.seq)) / 2, y + 46) for anchor in summary.anchors]
        words = f"◆ {len(summary.anchors)} anchors"
        parts.append(_text(0, y + 50, words, "quiet"))
        parts.append(_text(0, y + 66, f"| {len(summary.ledger)} in the ledger", "quiet"))
    return join(*parts)


def _killed(axis: _Axis, killed: Killed, y: float) -> Markup:
    x = axis.start(killed.from_seq)
    width = axis.end(killed.through_seq) - x
    half = width * min(1.0, killed.written_bytes / max(1, killed.draft_bytes))
    at, middle = x + half, y + 16
    words = "killed while it drafted; nothing of it was stored"
    long = 6.6 * len(words)
    if axis.end(killed.through_seq) - at > long + 16 or at - LEFT < long + 16:
        label = _text(at + 16, y + 20, words, "alert")
    else:
        label = _text((at if half > long + 16 else x) - 16, y + 20, words, "alert", anchor="end")
    return join(
        _text(0, y + 14, "The killed attempt", "alert strong"),
        _text(0, y + 30, f"signal {killed.signal}", "quiet"),
        _rect(x, y, half, 32, "half"),
        _rect(x, y, width - 1, 32, "dead"),
        _line(at - 6, middle - 6, at + 6, middle + 6, "cross"),
        _line(at - 6, middle + 6, at + 6, middle - 6, "cross"),
        label,
    )


def _svg(height: float, title: str, description: str, rows: Sequence[Markup]) -> Markup:
    return tag(
        "svg",
        tag("title", title),
        tag("desc", description),
        *rows,
        viewBox=f"0 0 {WIDTH} {height:.0f}",
        role="img",
        aria_label=f"{title}. {description}",
    )


def _text(x: float, y: float, words: str, class_: str | None = None, anchor: str | None = None) -> Markup:
    return tag("text", words, x=f"{x:.1f}", y=f"{y:.1f}", class_=class_, text_anchor=anchor)


def _rect(x: float, y: float, width: float, height: float, class_: str) -> Markup:
    return tag(
        "rect", x=f"{x:.1f}", y=f"{y:.1f}", width=f"{max(0.0, width):.1f}", height=f"{height:.1f}", class_=class_
    )


def _line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return tag("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_=class_)


def _diamond(x: float, y: float) -> Markup:
    return tag("path", d=f"M{x:.1f} {y - 6:.1f}l5 6l-5 6l-5-6z", class_="anchor")
