"""`strandline recall`: the verbatim events that hold a reference (C4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, Target, number
from strandline.cli.output import count, plain
from strandline.limits import RECALL_HITS_MAX

if TYPE_CHECKING:
    from strandline import RecallHit

Ref = Annotated[str, typer.Argument(metavar="REF", help="The reference; put -- before one that begins with a dash.")]
Limit = Annotated[
    int, typer.Option(metavar="N", parser=number(1, RECALL_HITS_MAX), help="Events, newest first, at most.")
]
_TEXT_CHARS_MAX: Final = 2_000  # of a hit, for people; JSON has all of it
_EXCERPT_CHARS: Final = 400  # before the reference, and behind it


def recall(target: Target, ref: Ref, limit: Limit = RECALL_HITS_MAX) -> Answer:
    """Print the events that hold a reference.

    None is no failure: the exit code is 0, and `hits` of --json is empty.
    """
    with target.open() as workflow:
        hits = workflow.recall(ref, limit)
    instead = hits[0].instead if hits else None
    more = "; there may be more" if len(hits) == limit else ""
    return Answer(
        value={"ref": ref, "hits": plain(hits)},
        heading=f"{count(len(hits), 'event')} with {ref!r}{more}" if hits else f"no event holds {ref!r}",
        facts=[("instead", instead and f"{instead} was accepted in the place of {ref}")],
        text="".join(f"\n{_shown(hit, ref)}\n" for hit in hits).removesuffix("\n"),
    )


def _shown(hit: RecallHit, ref: str) -> str:
    said, at = hit.text, max(0, hit.text.find(ref))
    if len(said) > _TEXT_CHARS_MAX:
        said = f"… {said[max(0, at - _EXCERPT_CHARS) : at + len(ref) + _EXCERPT_CHARS]} …"
        said += f"\n({len(hit.text):,} characters; --json prints them all)"
    who = f"{hit.actor}/{hit.kind}" if hit.actor else hit.kind
    return f"[{hit.seq}] {who}{', declared' if hit.declared else ''}{', abandoned' if hit.abandoned else ''}\n{said}"
