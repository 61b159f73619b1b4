"""`strandline refs`: which references a file holds, and why (C3). No store is opened."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, AsJson, RefsConfig, as_usage, show
from strandline.cli.output import count, table_of
from strandline.cli.reference_rules import rules_of

if TYPE_CHECKING:
    from strandline.rules.reference_rules import References, Seen

File = Annotated[Path, typer.Argument(metavar="FILE", help="A transcript, JSON, or any text in UTF-8; - is stdin.")]
Explain = Annotated[bool, typer.Option("--explain", help="Say what found each, where, and what was not taken and why.")]
Patterns = Annotated[
    list[str] | None, typer.Option("--pattern", metavar="NAME=REGEX", help="A pattern of a whole token. Repeatable.")
]
JsonPaths = Annotated[
    list[str] | None, typer.Option("--json-path", metavar="NAME=PATH", help="Values in JSON: $.a[*].b. Repeatable.")
]
Off = Annotated[list[str] | None, typer.Option("--off", metavar="CLASS", help="A class to leave out. Repeatable.")]
_ROWS_SHOWN_MAX: Final = 200


@dataclass(slots=True, kw_only=True)
class _Row:
    seen: Seen
    first: str  # where it was seen first
    times: int = 0


def refs(
    file: File,
    explain: Explain = False,
    patterns: Patterns = None,
    json_paths: JsonPaths = None,
    off: Off = None,
    refs_config: RefsConfig = None,
    as_json: AsJson = False,
) -> None:
    """List the references of a file; test rules of your own."""
    from strandline.client.patterns import is_installed, references_with

    options = (patterns or (), json_paths or (), off or ())
    with as_usage():
        stated = rules_of(None, *options)  # by themselves: a fault in them is one of usage
        if stated and stated.patterns and is_installed():
            references_with(stated)
    rules = rules_of(refs_config, *options)
    references = references_with(rules)
    with tempfile.TemporaryDirectory(prefix="strandline-") as folder:
        source = file
        if str(file) == "-":
            source = Path(folder, "stdin")
            with source.open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
        kind, rows = _rows(references, source, str(file), explain)
    taken = [row for row in rows if not row.seen.refused]
    refused = [row for row in rows if row.seen.refused]
    known = {**(rules.patterns if rules else {}), **(rules.json_paths if rules else {})}
    found = Counter(row.seen.by for row in taken)
    if explain:
        found.update(dict.fromkeys(known, 0))  # a rule that found nothing says so
    by_class = found.most_common()
    value: dict[str, object] = {"file": str(file), "read_as": kind, "extractor": references.name}
    value |= {"classes": dict(by_class), "refs": [_value(row) for row in taken]}
    if explain:
        value["refs"] = [{**_value(row), "found_by": _found_by(row, known)} for row in taken]
    if explain:
        value["not_taken"] = [_value(row) for row in refused]
    show(
        Answer(
            value=value,
            heading=f"{count(len(taken), 'reference')} in {str(file)!r}, read as {kind}",
            facts=[("extractor", references.name), *((name, f"{times:,}") for name, times in by_class)],
            text="\n".join(filter(None, (_table(taken, known, explain), _not_taken(refused)))),
        ),
        as_json=as_json,
    )


def _value(row: _Row) -> dict[str, object]:
    value: dict[str, object] = {"ref": row.seen.ref, "class": row.seen.by, "first": row.first, "times": row.times}
    return {**value, "why": row.seen.refused} if row.seen.refused else value


def _table(rows: list[_Row], rules: dict[str, str], explain: bool) -> str:
    if not rows:
        return ""
    shown = rows[:_ROWS_SHOWN_MAX]
    if explain:
        lines = [(row.seen.by, row.first, row.times, row.seen.ref, _found_by(row, rules)) for row in shown]
        text = table_of([("class", "first", "times", "reference", "found by"), *lines])
    else:
        text = table_of([(row.seen.by, row.seen.ref) for row in shown])
    return f"\n{text}{_rest(rows)}"


def _found_by(row: _Row, rules: dict[str, str]) -> str:
    return "built in" if row.seen.built_in else rules[row.seen.by]


def _not_taken(rows: list[_Row]) -> str:
    if not rows:
        return ""
    lines = [(row.seen.by, row.first, row.times, row.seen.ref, row.seen.refused) for row in rows[:_ROWS_SHOWN_MAX]]
    return f"\n{table_of([('not taken', 'first', 'times', 'text', 'why'), *lines])}{_rest(rows)}"


def _rest(rows: list[_Row]) -> str:
    more = len(rows) - _ROWS_SHOWN_MAX
    return f"\n… and {more:,} more; --json prints them all" if more > 0 else ""


def _rows(references: References, file: Path, name: str, explain: bool) -> tuple[str, list[_Row]]:
    from strandline.rules.reference_rules import Seen

    kind, contents = _contents(file, name)
    rows: dict[Seen, _Row] = {}
    for place, content in contents:
        if explain:
            seen = references.explain(content)
        else:
            found = references.of_text(content) if isinstance(content, str) else references.of_json(content)
            seen = [Seen(ref=ref, by=name) for ref, name in found.items()]
        for one in seen:
            rows.setdefault(one, _Row(seen=one, first=place)).times += 1
    return kind, list(rows.values())


def _contents(file: Path, name: str) -> tuple[str, Iterator[tuple[str, object]]]:
    """Return how a file is read, and its events, its JSON or its lines, each with its place."""
    from strandline.errors import ImportFormatError, InvalidInputError
    from strandline.transcripts import open_transcript

    try:
        data = file.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{name!r} can't be read: {error.strerror}") from error
    try:
        transcript = open_transcript(file, digest=lambda _: "")
    except ImportFormatError:
        pass
    else:
        if data.strip():
            return f"a transcript ({transcript.format})", _events(file)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{name!r} is no UTF-8: byte {error.start} can't be read") from error
    if text.lstrip()[:1] in ("{", "["):
        try:
            return "JSON", iter([("JSON", json.loads(text))])
        except (ValueError, RecursionError):
            pass  # a text that begins like JSON
    return "text", ((f"line {number}", line) for number, line in enumerate(text.split("\n"), start=1))


def _events(file: Path) -> Iterator[tuple[str, object]]:
    from strandline.codec import encode_body, reference_source
    from strandline.model.event import NewEvent
    from strandline.transcripts import open_transcript

    transcript = open_transcript(file, digest=lambda _: "")
    for item in transcript.items():
        if isinstance(item, NewEvent):
            text, value = reference_source(item, *encode_body(item))
            yield transcript.where, text or value
