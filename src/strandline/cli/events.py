"""`strandline events`: the log as it stands, event by event (C1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, Target, as_usage, number
from strandline.cli.output import count, plain, span
from strandline.limits import EVENTS_PAGE_MAX

if TYPE_CHECKING:
    from strandline import SourceEvent

_FIRST_HELP: Final = "The first event; without THROUGH, that one alone. Without both: the newest ones."
_LAST_HELP: Final = f"The last event; at most {EVENTS_PAGE_MAX:,} at once."
First = Annotated[int | None, typer.Argument(metavar="[FROM]", parser=number(1), help=_FIRST_HELP)]
Last = Annotated[int | None, typer.Argument(metavar="[THROUGH]", parser=number(1), help=_LAST_HELP)]
_NEWEST: Final = 20  # printed when none is named
_TEXT_CHARS_MAX: Final = 2_000  # of an event, for people; JSON has all of it


def events(target: Target, first: First = None, last: Last = None) -> Answer:
    """Print events of the log, word for word.

    What a rewind left is there too, and says so. None is no failure: the exit code is 0, `events` of --json is empty.
    """
    with target.open() as workflow, as_usage():
        revision = workflow.basis().revision
        if first is None:
            first, last = max(1, revision - _NEWEST + 1), max(1, revision)
        last = first if last is None else last
        found = workflow.events(first, last)
    heading = f"{count(len(found), 'event')}, {span(found[0].seq, found[-1].seq)}" if found else "no such event"
    return Answer(
        value={"revision": revision, "events": [plain(event._asdict()) for event in found]},
        heading=f"{heading}; the log ends at {revision:,}",
        text="".join(f"\n{_shown(event)}\n" for event in found).removesuffix("\n"),
    )


def _shown(event: SourceEvent) -> str:
    about = [event.subject and repr(event.subject), event.call_id and f"call {event.call_id}"]
    about += ["error" if event.is_error else "", "late" if event.late else "", "abandoned" if event.abandoned else ""]
    who = f"{event.actor}/{event.kind}" if event.actor else event.kind
    text = event.text
    if len(text) > _TEXT_CHARS_MAX:
        text = f"{text[:_TEXT_CHARS_MAX]} …\n({len(text):,} characters; --json prints them all)"
    return f"[{event.seq}] {', '.join([who, *filter(None, about)])}\n{text}"
