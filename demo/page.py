"""The page: one file, no network, nothing in it that the transcript could run."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Final

from demo.facts import Step, Story
from demo.markup import Markup, tag, trusted
from demo.picture import spending, timeline
from demo.sections import dropped, kept, lineage, log, refused, section, shown_events
from demo.visible import counted

TEMPLATES: Final = Path(__file__).parent / "templates"


def write_page(story: Story, path: Path) -> None:
    """Write the report of a run as one HTML file."""
    path.write_text("<!doctype html>\n" + page(story), encoding="utf-8")


def page(story: Story) -> Markup:
    """Return the report of a run."""
    style = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"Strandline: {story.source.path.name}"),
        tag("style", trusted(style)),
    )
    body = tag(
        "body",
        tag("a", "Skip to what was dropped", class_="skip", href="#dropped") if story.generations else None,
        tag("main", _header(story), *_sections(story)),
        _footer(story),
        tag("script", trusted(script)),
    )
    return tag("html", head, body, lang="en")


def _sections(story: Story) -> list[Markup | None]:
    shown = shown_events(story)
    compacted = bool(story.generations)
    return [
        _pictures(story) if compacted else None,
        section("story", "What happened", "", tag("ol", *(_step(step) for step in story.steps), class_="story")),
        kept(story.generations[-1], shown) if compacted else None,
        dropped(story, shown) if compacted else None,
        refused(story.refusal) if story.refusal else None,
        lineage(story) if story.lineage else None,
        log(story, shown) if story.log else None,
    ]


def _header(story: Story) -> Markup:
    held = sum(check.held for check in story.checks)
    all_of = f"{held} of {len(story.checks)} checks held"
    if not story.ok:
        title = f"{len(story.checks) - held} of {len(story.checks)} checks failed"
    elif story.killed:
        title = "Compacted twice, killed once, and nothing committed was lost"
    elif story.generations:
        title = "Compacted, and nothing committed was lost"
    else:
        title = "Imported; too small to compact"
    lead = f"{counted(story.source.lines, 'line')}, {counted(story.events, 'event')}, {story.tokens:,} tokens. {all_of}"
    if story.counter:
        lead += f"; tokens are estimates by {story.counter}"
    return tag(
        "header",
        tag("p", f"Strandline · {story.source.path.name}", class_="eyebrow"),
        tag("h1", title),
        tag("p", lead + ". Every figure on this page was measured in this run.", class_="lead"),
        tag("dl", *_figures(story), class_="figures") if story.generations else None,
    )


def _figures(story: Story) -> list[Markup]:
    last = story.generations[-1]
    recalled = sum(1 for row in story.dropped if row.recalled)
    figures = [
        _figure("tokens of the transcript, and of the context now", f"{story.tokens:,} → {last.tokens_after:,}"),
        _figure("references seen: verbatim, in the manifest, unaccounted for", f"{last.refs_seen:,}",
                f" = {last.refs_verbatim:,} + {last.refs_dropped:,} + {last.refs_unaccounted:,}"),
        _figure("dropped references recalled from the log", f"{recalled:,}", f" of {len(story.dropped):,}"),
    ]  # fmt: skip
    if story.killed:
        figures.append(_figure("places where the store holds the killed attempt's draft", f"{story.killed.hits:,}"))
    return figures


def _figure(what: str, value: str, small: str = "") -> Markup:
    return tag(
        "div", tag("dt", what), tag("dd", tag("span", value, class_="nowrap"), tag("small", small) if small else None)
    )


def _pictures(story: Story) -> Markup:
    return section(
        "picture",
        "The picture",
        "",
        _picture(
            timeline(story),
            "From left to right the log. Each generation speaks for the events up to its watermark and leaves "
            "the later ones as they stand. Below it, diamonds are anchors and thin lines ledger entries, each under "
            "the event that states it or holds it last.",
        ),
        _picture(spending(story), "What is handed to the model, before and after each compaction, in tokens."),
    )


def _picture(svg: Markup, caption: str) -> Markup:
    return tag("figure", tag("div", svg, class_="scroll", tabindex="0"), tag("figcaption", caption))


def _step(step: Step) -> Markup:
    checks = [
        tag(
            "li",
            tag("span", "ok" if check.held else "FAILED", class_="held" if check.held else "failed"),
            tag("span", check.claim),
        )
        for check in step.checks
    ]
    return tag(
        "li",
        tag("span", step.number, class_="number"),
        tag(
            "div",
            tag("h3", step.title),
            *(tag("p", said) for said in step.said),
            tag("ul", *checks, class_="checks") if checks else None,
        ),
        tag("span", f"{step.seconds:.2f} s", class_="time"),
    )


def _footer(story: Story) -> Markup:
    beside = "The store of this run lies beside this page, as store.db"
    if story.killed:
        beside += "; half-draft.txt is what the killed process had written"
    return tag("footer", tag("p", f"Made in {story.seconds:.1f} s by python -m demo.main_job. {beside}."))
