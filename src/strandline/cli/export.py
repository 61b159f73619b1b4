"""`strandline export`: a workflow as a transcript (C2)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

from strandline.cli.command import Answer, Target, as_usage
from strandline.cli.output import count, emit_bytes
from strandline.cli.progress import progress
from strandline.cli.spool import is_stdin

_FILE_HELP = "The file to write; what is there is never overwritten. - is stdout."
Form = Literal["strandline", "openai", "anthropic"]
File = Annotated[Path, typer.Argument(metavar="[FILE]", help=_FILE_HELP)]
Format = Annotated[Form, typer.Option("--format", help="Our own JSONL, or the messages of a provider, one a line.")]
Abandoned = Annotated[bool, typer.Option("--abandoned", help="What rewinds left behind, too; only in our own JSONL.")]
_STDOUT = Path("-")


def export(target: Target, file: File = _STDOUT, form: Format = "strandline", abandoned: Abandoned = False) -> Answer:
    """Write the events as a transcript that an import reads back."""
    to_stdout = is_stdin(file)
    if to_stdout and target.as_json:
        raise typer.BadParameter("with --json name a file: stdout is for the one object", param_hint="FILE")
    if not to_stdout and file.exists():
        raise typer.BadParameter(f"{str(file)!r} is there already", param_hint="FILE")
    with target.open() as workflow:
        revision = workflow.basis().revision
        with as_usage():
            lines = workflow.export(form, abandoned=abandoned)
        if to_stdout:
            return Answer(value={}, note=f"{count(emit_bytes(lines), 'line')}, up to event {revision:,}")
        written = _write(file, lines, revision)
    size_bytes = file.stat().st_size
    value = {"path": str(file), "format": form, "lines": written, "size_bytes": size_bytes, "revision": revision}
    return Answer(
        value={"view": target.view, **value},
        heading=f"{file}: {count(written, 'line')}, {size_bytes:,} bytes, up to event {revision:,}",
    )


def _write(file: Path, lines: Iterable[bytes], revision: int) -> int:
    """Write lines into a new file, whole or not at all, and return how many."""
    from strandline.errors import InvalidInputError

    part, written = file.with_name(f"{file.name}.{os.getpid()}.part"), 0
    try:
        with part.open("xb") as out, progress(f"exporting {file.name}") as tell:
            for written, line in enumerate(lines, 1):
                out.write(line)
                tell(min(written, revision), revision)
            out.flush()
            os.fsync(out.fileno())
        part.replace(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InvalidInputError(f"{str(file)!r} can't be written: {error.strerror or error}") from error
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return written
