"""The parts of the page that show data: what was kept, what was dropped, what was refused, the log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import strandline
from demo.facts import LogEvent, Refusal, Story
from demo.markup import Markup, join, tag
from demo.visible import one_line, span

MANIFEST_ROWS_MAX: Final = 500
LEDGER_ENTRIES_MAX: Final = 400
LOG_EVENTS_MAX: Final = 500
SEGMENT_CHARS_MAX: Final = 40_000
REFUSAL_CHARS_MAX: Final = 4_000
_DATE_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:[Zz]|[+-]\d\d:?\d\d)?)?)", re.ASCII
)
_REASONS: Final = {
    "not_in_summary": "no room",
    "merged_away": "segment made anew",
    "redacted": "redacted",
    "erased": "erased",
}


def shown_events(story: Story) -> dict[int, LogEvent]:
    """Return the events that the page shows: all of a small log; of a large one, those that the page speaks of."""
    if len(story.log) <= LOG_EVENTS_MAX:
        return {event.seq: event for event in story.log}
    spoken_of = [story.refusal.seq] if story.refusal else []
    summary = story.generations[-1].summary if story.generations else None
    if summary:
        spoken_of += [anchor.seq for anchor in summary.anchors]
    spoken_of += [row.last_seq for row in story.dropped[:MANIFEST_ROWS_MAX]]
    chosen = sorted(dict.fromkeys(spoken_of[:LOG_EVENTS_MAX]))
    return {seq: story.log[seq - 1] for seq in chosen}


def kept(outcome: strandline.CompactionOutcome, shown: dict[int, LogEvent]) -> Markup:
    """Show the segments, anchors and ledger of the active generation."""
    summary = outcome.summary
    if summary is None:
        return join()
    texts = [
        tag(
            "details",
            tag(
                "summary",
                f"Segment: {span(s.head.from_seq, s.head.through_seq)}, ",
                tag("span", f"{s.head.source_tokens:,} → {s.head.tokens:,} tokens", class_="count"),
            ),
            _bounded_text(s.text, SEGMENT_CHARS_MAX),
            class_="fold",
            open=len(summary.segments) == 1 or None,
        )
        for s in summary.segments
    ]
    anchors = [
        tag(
            "tr",
            tag("td", anchor.key.kind.value, class_="nowrap"),
            tag(
                "td",
                tag("code", *_dates_whole(anchor.key.subject)),
                tag("br") if anchor.note else None,
                *_dates_whole(anchor.note),
            ),
            tag("td", *_dates_whole(anchor.text or _unstated(anchor.state.value))),
            tag("td", _event_link(anchor.seq, shown), class_="num"),
        )
        for anchor in summary.anchors
    ]
    ledger = [tag("li", tag("code", entry.text)) for entry in summary.ledger[:LEDGER_ENTRIES_MAX]]
    return section(
        "kept",
        "What was kept",
        f"Generation {outcome.generation} is what an agent reads in place of {span(1, outcome.watermark)}. A "
        "summarizer writes the segments; Strandline itself adds the anchors and the ledger, out of the log and never "
        "by a model.",
        *texts,
        _heading("Anchors", f"{len(anchors)} facts in force, verbatim"),
        tag(
            "div",
            _table(["Kind", "Subject", "As it stands in the log", ("Event", "num")], anchors),
            class_="scroll anchors",
            tabindex="0",
            role="region",
            aria_label="The anchors",
        )
        if anchors
        else tag("p", "None."),
        _heading("Ledger", f"{len(summary.ledger):,} references, verbatim"),
        tag("ul", *ledger, _more(len(summary.ledger), LEDGER_ENTRIES_MAX, "li"), class_="refs"),
    )


def dropped(story: Story, shown: dict[int, LogEvent]) -> Markup:
    """Show the manifest: every reference that the summary does not hold, and the event that still does."""
    rows = [
        tag(
            "tr",
            tag("td", tag("code", one_line(row.ref, 200))),
            tag("td", row.generation, class_="num"),
            tag("td", _REASONS.get(row.reason, row.reason), class_="nowrap"),
            tag("td", _event_link(row.last_seq, shown, words=True), class_="nowrap"),
            tag("td", _recalled(row.recalled)),
        )
        for row in story.dropped[:MANIFEST_ROWS_MAX]
    ]
    more = len(story.dropped) - len(rows)
    return section(
        "dropped",
        "What was dropped, and where it still stands",
        f"The drop manifest, {len(story.dropped):,} references, is computed from the log, not told by a model. What "
        "covered events hold is either verbatim in the summary or listed here, with the last covered event that holds "
        "it. That event is still in the log; follow the link to read it as it stands.",
        tag(
            "div",
            _table(["Reference", ("Dropped by", "num"), "Reason", "Still stands in", "Recalled now"], rows),
            class_="bounded scroll",
            tabindex="0",
            role="region",
            aria_label="The drop manifest",
        ),
        tag("p", f"… and {more:,} more, which this page leaves out. The store holds them all.") if more else None,
    )


def refused(refusal: Refusal) -> Markup:
    """Show the error that recovery failed with, and the event that recall found."""
    error, known = refusal.error, refusal.error.last_known
    fields = [
        ("missing_ref", refusal.ref),
        ("summary_generation", error.summary_generation),
        ("checkpoint_turn", error.checkpoint_turn),
        ("reason", str(error.reason)),
        ("last_known", f"event {known.seq} ({known.event_kind}), dropped by generation {known.generation_dropped}")
        if known
        else ("last_known", "no event holds it"),
    ]
    return section(
        "refused",
        "What recovery refused",
        "The next turn said that it needs this reference. The summary had dropped it, so recovery stopped and wrote "
        "nothing, instead of letting the agent go on without it or make up another one.",
        tag(
            "div",
            tag("p", tag("strong", type(error).__name__)),
            tag("dl", *(part for name, value in fields for part in (tag("dt", name), tag("dd", tag("code", value))))),
            class_="card",
        ),
        tag("h3", "What recall returns: ", tag("a", f"event {refusal.seq}", href=f"#e{refusal.seq}"), ", verbatim"),
        tag("pre", *_marked(refusal.text, refusal.ref), class_="prose"),
    )


def log(story: Story, shown: dict[int, LogEvent]) -> Markup:
    """Show events as recall gives them back, each folded."""
    folded = [
        tag(
            "details",
            tag(
                "summary",
                tag("span", f"{event.seq:,}", class_="seq"),
                tag("span", _what(event), class_="what"),
                tag("span", one_line(event.text, 160), class_="start"),
            ),
            _bounded_text(event.text, len(event.text), event.chars),
            id=f"e{event.seq}",
        )
        for event in shown.values()
    ]
    few = len(shown) < len(story.log)
    return section(
        "log",
        "The log" if not few else f"The log: the {len(shown):,} events that this page speaks of, of {len(story.log):,}",
        "Events as recall gives them back. Long texts are cut on this page, and say so; never in the store.",
        tag("div", *folded, class_="log"),
    )


def section(id_: str, title: str, lead: str, *children: object) -> Markup:
    """Return a section with its heading and a sentence about it."""
    return tag("section", tag("h2", title, id=id_), tag("p", lead) if lead else None, *children, aria_labelledby=id_)


def _table(heads: Sequence[str | tuple[str, str]], rows: list[Markup]) -> Markup:
    cells = [
        tag("th", h, scope="col") if isinstance(h, str) else tag("th", h[0], scope="col", class_=h[1]) for h in heads
    ]
    return tag("table", tag("thead", tag("tr", *cells)), tag("tbody", *rows))


def lineage(story: Story) -> Markup:
    """Show the lineage: what happened to the memory, in its one order."""
    rows = [
        tag(
            "tr",
            tag("td", row.seq, class_="num"),
            tag("td", row.kind),
            tag("td", "" if row.generation is None else row.generation, class_="num"),
            tag("td", row.revision, class_="num"),
            tag("td", row.detail),
        )
        for row in story.lineage
    ]
    heads: list[str | tuple[str, str]] = [
        ("Lineage", "num"),
        "What",
        ("Generation", "num"),
        ("At event", "num"),
        "Detail",
    ]
    return section(
        "lineage",
        "The lineage",
        "What happened to the memory, in one order without gaps. Recovery compares places in this list, never clocks."
        + (" The killed attempt is not in it: it changed nothing." if story.killed else ""),
        tag("div", _table(heads, rows), class_="scroll"),
    )


def _heading(title: str, count: str) -> Markup:
    return tag("h3", title, " ", tag("span", count, class_="count"))


def _event_link(seq: int, shown: dict[int, LogEvent], *, words: bool = False) -> Markup:
    event = shown.get(seq)
    label = f"event {seq:,}" if words else f"{seq:,}"
    if event is None:
        return join(label)
    return join(tag("a", label, href=f"#e{seq}"), tag("span", f" {_what(event)}", class_="count") if words else None)


def _what(event: LogEvent) -> str:
    return " · ".join(part for part in (event.actor, event.kind, event.tool) if part)


def _unstated(state: str) -> str:
    return "outcome unknown" if state == "unknown" else "open"


def _dates_whole(text: str) -> list[object]:
    """Return the text with each date and time in a piece that no line ends in."""
    pieces: list[object] = list(_DATE_TIME.split(text))
    pieces[1::2] = [tag("span", date, class_="nowrap") for date in pieces[1::2]]
    return pieces


def _recalled(recalled: bool | None) -> Markup:
    if recalled is None:
        return tag("span", "not asked", class_="count")
    return tag("span", "ok", class_="held") if recalled else tag("span", "FAILED", class_="failed")


def _bounded_text(text: str, chars: int, whole: int | None = None) -> Markup:
    left = (len(text) if whole is None else whole) - min(chars, len(text))
    note = f"\n… {left:,} more characters, left out on this page" if left > 0 else None
    return tag("pre", text[:chars] if text else "(empty)", note, class_="prose", tabindex="0")


def _marked(text: str, ref: str) -> list[object]:
    at = text.find(ref)
    if at < 0:
        return [text[:REFUSAL_CHARS_MAX]]
    start = max(0, at - REFUSAL_CHARS_MAX // 2)
    end = at + len(ref) + REFUSAL_CHARS_MAX // 2
    return [
        "… " if start else None,
        text[start:at],
        tag("mark", ref),
        text[at + len(ref) : end],
        " …" if end < len(text) else None,
    ]


def _more(there: int, shown: int, name: str) -> Markup | None:
    return tag(name, f"… and {there - shown:,} more", class_="count") if there > shown else None
