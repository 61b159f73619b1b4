"""`strandline append`: events from a file or stdin, or one from options (C1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, Target, number, refused
from strandline.cli.output import count, pick, span
from strandline.cli.spool import is_stdin, spooled

if TYPE_CHECKING:
    from strandline import NewEvent

Events = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="Our own JSONL, or OpenAI messages; - is stdin.", show_default=False),
]
_OF_ONE_REF: Final = ("pin", "unpin")
_FIELDS_HINT: Final = (
    "The fields text, subject, role, granter, scope, expires_at, single_use, ref are options; see "
    "`strandline append --help`. "
    "`strandline append -` takes all others, as JSON."
)
_KIND_HELP: Final = (
    "message, thinking, note, decision, failed_attempt, issue, resolve, constraint, lift_constraint, approval, revoke, "
    "pin, unpin or release_artifact; other kinds: FILE or -.  [default: message]"
)
Kind = Annotated[str | None, typer.Option(metavar="KIND", help=_KIND_HELP)]
Role = Annotated[
    str | None, typer.Option(metavar="ROLE", help="Of a message: user, assistant or system.  [default: user]")
]
Text = Annotated[str | None, typer.Option(metavar="TEXT", help="What it says.")]
Subject = Annotated[str | None, typer.Option(metavar="NAME", help="What it speaks of.")]
Granter = Annotated[str | None, typer.Option(metavar="NAME", help="Who gave an approval.")]
Scope = Annotated[str | None, typer.Option(metavar="NAME", help="What an approval is for; without it, everything.")]
Expires = Annotated[str | None, typer.Option(metavar="TIME", help="When an approval expires: 2026-01-31T12:00:00Z.")]
SingleUse = Annotated[bool, typer.Option("--single-use", help="One effect uses the approval up.")]
Key = Annotated[str | None, typer.Option(metavar="KEY", help="Names the event: given again, nothing is added.")]
Actor = Annotated[str | None, typer.Option(metavar="NAME", help="Who states it.")]
Audience = Annotated[
    str | None, typer.Option(metavar="NAME", help="Who may read it.  [default: everyone; of a result, its call's]")
]
_REF_HELP: Final = "A declared reference; with the kind pin or unpin, the one that is meant. Repeatable."
Refs = Annotated[list[str] | None, typer.Option("--ref", metavar="REF", help=_REF_HELP)]
Expected = Annotated[int | None, typer.Option(metavar="N", parser=number(0), help="Refuse at another revision.")]


def append(
    target: Target,
    file: Events = None,
    kind: Kind = None,
    role: Role = None,
    text: Text = None,
    subject: Subject = None,
    granter: Granter = None,
    scope: Scope = None,
    expires_at: Expires = None,
    single_use: SingleUse = False,
    key: Key = None,
    actor: Actor = None,
    audience: Audience = None,
    refs: Refs = None,
    expected_revision: Expected = None,
) -> Answer:
    """Append the events of FILE, or the one stated, all or none."""
    record: dict[str, object] = {"kind": kind, "role": role, "text": text, "subject": subject, "granter": granter}
    record |= {"scope": scope, "expires_at": expires_at, "single_use": single_use or None}
    record |= {"key": key, "actor": actor, "audience": audience, "refs": refs or None}
    record = {name: value for name, value in record.items() if value is not None}
    if bool(record) == (file is not None):
        raise typer.BadParameter("give a file (- for stdin), or one event by options such as --text", param_hint="FILE")
    events = [_stated(record)] if file is None else _read(file)
    with target.open(create=True, file=None if file is None or is_stdin(file) else file) as workflow:
        appended = workflow.append(events, expected_revision=expected_revision)
    seqs, known = appended.seqs, len(events) - appended.added
    return Answer(
        value=pick(appended, "revision seqs added"),
        heading=f"{count(appended.added, 'event')} appended",
        facts=[
            ("revision", appended.revision),
            ("seqs", span(min(seqs), max(seqs)) if seqs else ""),
            ("known already", known),
        ],
    )


def _stated(record: dict[str, object]) -> NewEvent:
    """Make one event from options, by the rules for a line of a file."""
    from strandline.engine.append import prepare
    from strandline.errors import ImportFormatError, InvalidInputError
    from strandline.transcripts.jsonl import read_event
    from strandline.transcripts.lines import Line

    record.setdefault("kind", "message")
    if record["kind"] == "message":
        record.setdefault("role", "user")
    if record["kind"] in _OF_ONE_REF and isinstance(refs := record.pop("refs", None), list):
        if len(refs) > 1:
            raise typer.BadParameter(f"a {record['kind']} takes one reference, not {len(refs)}", param_hint="--ref")
        record["ref"] = refs[0]
    try:
        event = read_event(Line(1, 0, json.dumps(record).encode(), ended=True))
        prepare(event)
    except ImportFormatError as error:
        raise refused(InvalidInputError(f"{error.reason}; nothing was appended", hint=_FIELDS_HINT)) from error
    except InvalidInputError as error:
        raise refused(error) from error
    return event


def _read(file: Path) -> list[NewEvent]:
    from strandline.transcripts import read_events

    with spooled(file) as path:
        return list(read_events(path))
