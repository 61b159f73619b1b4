"""`strandline append`: events from a file, from stdin, or one from options (C1)."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.cli.options import COUNT_MAX, STORE, TENANT, VIEW, Json, Store, TenantName, ViewName, WorkflowName
from strandline.cli.output import Facts, Heading, count, show, span
from strandline.cli.target import Target

if TYPE_CHECKING:
    from strandline import NewEvent

Events = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="Events as JSONL of our own format; - is stdin.", show_default=False),
]
Kind = Annotated[str | None, typer.Option("--kind", metavar="KIND", help="message, note, decision, issue, resolve, …")]
Role = Annotated[str | None, typer.Option("--role", metavar="ROLE", help="Of a message: user, assistant or system.")]
Text = Annotated[str | None, typer.Option("--text", metavar="TEXT", help="What it says.")]
Subject = Annotated[str | None, typer.Option("--subject", metavar="NAME", help="What it speaks of.")]
Granter = Annotated[str | None, typer.Option("--granter", metavar="NAME", help="Who gave an approval.")]
Key = Annotated[str | None, typer.Option("--key", metavar="KEY", help="Names the event: again is no second event.")]
Actor = Annotated[str | None, typer.Option("--actor", metavar="NAME", help="Who states it.")]
Refs = Annotated[list[str] | None, typer.Option("--ref", metavar="REF", help="A declared reference. Repeatable.")]
Expected = Annotated[
    int | None,
    typer.Option("--expected-revision", metavar="N", min=0, max=COUNT_MAX, help="Refuse at any other revision."),
]


def append(
    file: Events = None,
    kind: Kind = None,
    role: Role = None,
    text: Text = None,
    subject: Subject = None,
    granter: Granter = None,
    key: Key = None,
    actor: Actor = None,
    refs: Refs = None,
    expected_revision: Expected = None,
    store: Store = STORE,
    tenant: TenantName = TENANT,
    workflow: WorkflowName = None,
    view: ViewName = VIEW,
    as_json: Json = False,
) -> None:
    """Append events, all or none: from FILE, or one from --text and its like."""
    given = {
        "kind": kind,
        "role": role,
        "text": text,
        "subject": subject,
        "granter": granter,
        "key": key,
        "actor": actor,
        "refs": refs or None,
    }
    record = {name: value for name, value in given.items() if value is not None}
    if bool(record) == (file is not None):
        raise typer.BadParameter(
            "give either FILE (- for stdin) or one event by options such as --text", param_hint="FILE"
        )
    if file is None:
        events = [_one(record)]
    else:
        events = list(_from_stdin() if str(file) == "-" else _from_file(file))
    target = Target(store=store, tenant=tenant, workflow=workflow, view=view)
    named = file if file is not None and str(file) != "-" else None
    with target.open(create=True, file=named) as opened:
        appended = opened.append(events, expected_revision=expected_revision)
        name = opened.name
    value = {
        "tenant": tenant,
        "workflow": name,
        "revision": appended.revision,
        "seqs": appended.seqs,
        "added": appended.added,
    }
    facts: list[tuple[str, object]] = [("revision", appended.revision)]
    if appended.seqs:
        facts.append(("seqs", span(min(appended.seqs), max(appended.seqs))))
    if appended.added < len(events):
        facts.append(("known already", count(len(events) - appended.added, "event")))
    show(value, [Heading(f"{tenant}/{name}: {count(appended.added, 'event')} appended"), Facts(facts)], as_json=as_json)


def _one(record: dict[str, object]) -> NewEvent:
    """Make one event from options, by the same rules as a line of a file."""
    from strandline.errors import ImportFormatError, InvalidInputError
    from strandline.transcripts.jsonl import _event
    from strandline.transcripts.lines import Line

    record.setdefault("kind", "message")
    if record["kind"] == "message":
        record.setdefault("role", "user")
    try:
        return _event(Line(1, 0, json.dumps(record).encode(), ended=True))
    except ImportFormatError as error:
        raise InvalidInputError(f"{error.reason}; nothing was appended") from error


def _from_file(path: Path) -> Iterator[NewEvent]:
    from strandline.transcripts.jsonl import _event
    from strandline.transcripts.lines import Tally, read_lines

    for line in read_lines(path, Tally()):
        yield _event(line)


def _from_stdin() -> Iterator[NewEvent]:
    with tempfile.TemporaryDirectory(prefix="strandline-") as folder:
        path = Path(folder, "stdin")
        with path.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield from _from_file(path)
