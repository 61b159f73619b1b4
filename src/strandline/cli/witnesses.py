"""Files of witnesses, and the key that they are signed with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.errors import CorruptRecordError, InvalidInputError, NotContinuedError
from strandline.limits import WITNESS_FILE_BYTES_MAX, WITNESS_KEY_BYTES_MAX

if TYPE_CHECKING:
    from strandline import Problem, Strandline, Tenant

WITNESS: Final = "witness"  # the place of a problem that a witness finds, and the store itself does not
KEY_VARIABLE: Final = "STRANDLINE_WITNESS_KEY"
_KEY_HELP: Final = f"Sign, or demand a signature, with the key in this file.  [default: that in {KEY_VARIABLE}]"
KeyFile = Annotated[Path | None, typer.Option("--key-file", metavar="FILE", help=_KEY_HELP)]


def key_of(file: Path | None) -> bytes | None:
    """Return the key of a file, or of the environment; None: there is none. A line's end is no part of it."""
    if file is None:
        text = os.environ.get(KEY_VARIABLE)
        return text.encode("utf-8", "surrogateescape") if text else None
    return _read(file, WITNESS_KEY_BYTES_MAX).rstrip(b"\r\n")


def read_file(file: Path, *, may_be_new: bool = False) -> bytes:
    """Return a file of witnesses; of one that may be new, and is not there, nothing."""
    try:
        return _read(file, WITNESS_FILE_BYTES_MAX)
    except InvalidInputError as error:
        if may_be_new and isinstance(error.__cause__, FileNotFoundError):
            return b""
        raise


def refuse_unsigned(file: Path, kept: bytes) -> None:
    """Refuse to add a line that is not signed to those that are: no check with a key would accept the file again."""
    from strandline.codec import read_witnesses

    if kept and any(line.signature for line in read_witnesses(kept, None)):
        raise InvalidInputError(
            f"{file}: its lines are signed, and there is no key; nothing was added",
            hint=f"Give --key-file, or set {KEY_VARIABLE}; or begin a new file.",
        )


def _read(file: Path, most: int) -> bytes:
    try:
        with file.open("rb") as opened:
            data = opened.read(most + 1)
    except OSError as error:
        raise InvalidInputError(
            f"{file}: {error.strerror}", hint="Give the path of a file that can be read."
        ) from error
    if len(data) > most:
        raise InvalidInputError(f"{file}: more than {most:,} bytes")
    return data


def keep_line(file: Path, line: str, kept: bytes) -> None:
    """Add a line to a file of witnesses, and flush it; what stands there is never changed.

    Raises:
        InvalidInputError: the file can't be written.
    """
    begin = b"\n" if kept and not kept.endswith(b"\n") else b""
    data = begin + line.encode() + b"\n"
    try:
        handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if os.write(handle, data) != len(data):
                raise OSError(0, "the line was written in part; delete it")
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        hint = "Nothing of the store was changed; check the path, its permissions and the disk space."
        raise InvalidInputError(f"{file}: {error.strerror}", hint=hint) from error


def not_continued(proved: Strandline | Tenant, kept: bytes, key: bytes | None) -> tuple[Problem, ...]:
    """Return what a witness finds wrong, as `verify` says it."""
    from strandline import NotContinued, Problem

    try:
        proved.check_witness(kept, key=key)
    except NotContinuedError as error:
        return tuple(
            Problem(workflow=f"{one.tenant}/{one.workflow}", place=WITNESS, reason=one.reason)
            for one in error.findings
            if isinstance(one, NotContinued)
        )
    except CorruptRecordError as error:
        return (Problem(workflow="", place=error.place, reason=error.reason),)
    return ()
