"""`strandline search`: the verbatim events that hold words (C4)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, Target, number
from strandline.cli.output import count, plain, when
from strandline.limits import SEARCH_HITS, SEARCH_HITS_MAX

if TYPE_CHECKING:
    from strandline import SearchHit

_BLANKS: Final = re.compile(r"\s+")
_TEXT_HELP: Final = "Words; phrases in quotes; a beginning with * behind it. Put -- before one that begins with a dash."
Text = Annotated[list[str], typer.Argument(metavar="TEXT...", help=_TEXT_HELP)]
Limit = Annotated[
    int, typer.Option(metavar="N", parser=number(1, SEARCH_HITS_MAX), help="Events, newest first, at most.")
]
Before = Annotated[int | None, typer.Option(metavar="SEQ", parser=number(1), help="Only events before this one.")]
Reindex = Annotated[bool, typer.Option("--reindex", help="Make the index of words anew first.")]


def search(
    target: Target, text: Text, limit: Limit = SEARCH_HITS, before: Before = None, reindex: Reindex = False
) -> Answer:
    """Print the events in which all words stand, the newest first.

    None is no failure: the exit code is 0, and `hits` of --json is empty.
    """
    asked = " ".join(text)
    with target.open() as workflow:
        hits = workflow.search(asked, limit, before=before, reindex=reindex)
    return Answer(
        value={"text": asked, "hits": [_plain(hit) for hit in hits]},
        heading=f"{count(len(hits), 'event')} with {asked}" if hits else f"no event holds {asked}",
        marked=[line for hit in hits for line in _shown(hit)],
        note=f"there may be more: --before {hits[-1].seq}" if len(hits) == limit else "",
    )


def _plain(hit: SearchHit) -> dict[str, object]:
    return {
        "seq": hit.seq,
        "at_us": hit.at_us,
        "excerpt": hit.excerpt,
        "matches": plain(hit.matches),
        "event": plain(hit.event._asdict()),
    }


def _shown(hit: SearchHit) -> list[list[tuple[str, str]]]:
    """Return a hit in lines: whose it is, and the excerpt on one line, with the places in colour."""
    event = hit.event
    who = f"{event.actor}/{event.kind}" if event.actor else event.kind
    about = f"[{hit.seq}] {who}, {when(hit.at_us)}{', abandoned' if event.abandoned else ''}"
    parts, end = [("… " if hit.cut[0] else "", "")], 0
    for start, stop in hit.matches:
        parts += [(_one_line(hit.excerpt[end:start]), ""), (_one_line(hit.excerpt[start:stop]), "yellow")]
        end = stop
    return [[("", "")], [(about, "bold")], [*parts, (_one_line(hit.excerpt[end:]) + (" …" if hit.cut[1] else ""), "")]]


def _one_line(text: str) -> str:
    return _BLANKS.sub(" ", text)
