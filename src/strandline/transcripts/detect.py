"""Which format a transcript is in, by its first records."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from strandline.errors import ImportFormatError
from strandline.limits import IMPORT_DETECT_RECORDS_MAX, IMPORT_JSON_BYTES_MAX
from strandline.transcripts.document import fault_of, load
from strandline.transcripts.forms import tell_form
from strandline.transcripts.lines import Line, Tally, read_lines
from strandline.transcripts.openai_records import ITEM_TYPES, kind_of, name_kindred
from strandline.transcripts.structure import skip_blank

Format = str  # "claude_code", "jsonl", or the name of a form of conversations


class Detected(NamedTuple):
    """A format, and whether the file is one JSON document rather than lines."""

    format: Format
    document: bool = False


_LOOKED_FOR: Final = (
    "neither Claude Code session JSONL (records with 'type' and 'sessionId') "
    'nor Strandline JSONL (records with \'kind\', such as {"kind":"message","role":"user","text":"…"}) '
    "nor OpenAI messages (records with 'role', 'messages', 'traj' or 'choices'; JSONL or one JSON document) "
    "nor a rollout of Codex, a session of Gemini CLI or pi, a trajectory of SWE-agent, events of OpenHands, "
    "a log of Who&When or of Inspect"
)
_UNKNOWN_HINT: Final = "Nothing was written. Write it in one of these formats; docs/transcripts.md describes each."
_DOCUMENT_HINT: Final = "Write one message or one conversation a line: JSONL is read record by record."
_OPEN: Final = (b"{", b"[", b",", b":")  # how a line ends inside a document that is written over several lines
_ABSENT: Final = msgspec.Raw(b"")


class _Head(msgspec.Struct, rename="camel", gc=False):
    kind: object = None
    type: object = None
    session_id: object = None
    leaf_uuid: object = None  # of a summary, which names no session
    message_id: object = None  # of a file-history-snapshot, which names no session
    message: msgspec.Raw = _ABSENT


_HEAD: Final = msgspec.json.Decoder(_Head)


def detect_format(path: Path, size_bytes: int) -> Detected:
    """Return the format of a file. One without any record is an empty file of our own.

    Raises:
        ImportFormatError: no known format, damaged before it could be told, or a document that is too large.
        InvalidInputError: the file can't be read.
    """
    first: Line | None = None
    fault: ImportFormatError | None = None
    in_lines = True  # whether a line may be a message: not inside a document
    for line in islice(read_lines(path, Tally()), IMPORT_DETECT_RECORDS_MAX):
        if first is None:
            first = line
            if line.data.lstrip().startswith(b"["):
                break
        try:
            head = line.decode(_HEAD)
        except ImportFormatError as error:
            fault = fault or error
            in_lines = in_lines and not (line is first and line.data.rstrip().endswith(_OPEN))
            continue
        if (named := _format_of(head, line, in_lines=in_lines)) is not None:
            return Detected(named)
    if first is None:
        return Detected("jsonl")
    whole = _document(path, first, size_bytes)
    if whole is not None:
        if (form := _form_of(whole)) is not None:
            return Detected(form, document=True)
        if _holds_messages(whole):
            return Detected("openai", document=True)
        if first.data.lstrip().startswith(b"["):
            fault = fault_of(whole)
    unknown = first.fault(_kindred(first, whole) or f"unknown format: {_LOOKED_FOR}")
    unknown.hint = _UNKNOWN_HINT
    raise fault or unknown


def _format_of(head: _Head, line: Line, *, in_lines: bool) -> Format | None:
    if isinstance(head.kind, str) and head.type is None:
        return "jsonl"
    if isinstance(head.type, str) and _is_claude_code(head):
        return "claude_code"
    if in_lines and (form := tell_form(line.data)) is not None:
        return form
    return "openai" if in_lines and _is_openai(head, line) else None


def _is_claude_code(head: _Head) -> bool:
    if head.type in ("user", "assistant") and head.message is not _ABSENT:
        return True
    return any(isinstance(mark, str) for mark in (head.session_id, head.leaf_uuid, head.message_id))


def _is_openai(head: _Head, line: Line) -> bool:
    return (head.type is None or head.type in ITEM_TYPES) and bool(kind_of(line.data, skip_blank(line.data, 0)))


def _kindred(first: Line, whole: Line | None) -> str | None:
    """Name the form of the first record: of the first line, or of the first value of a list."""
    at = skip_blank(first.data, 0)
    if whole is None or first.data[at : at + 1] == b"{":
        return name_kindred(first.data, at)
    return name_kindred(whole.data, skip_blank(whole.data, skip_blank(whole.data, 0) + 1))


def _document(path: Path, first: Line, size_bytes: int) -> Line | None:
    """Return a file that may be one JSON document, whole or damaged; None where it is none."""
    sign = first.data.lstrip()[:1]
    if sign == b"[" and size_bytes > IMPORT_JSON_BYTES_MAX:
        error = first.fault(f"one JSON document of {size_bytes} bytes; at most {IMPORT_JSON_BYTES_MAX} are read as one")
        error.hint = _DOCUMENT_HINT
        raise error
    return load(path) if sign in (b"[", b"{") and size_bytes <= IMPORT_JSON_BYTES_MAX else None


def _form_of(whole: Line) -> str | None:
    at = skip_blank(whole.data, 0)
    return tell_form(whole.data, at + 1 if whole.data.startswith(b"[", at) else at)


def _holds_messages(whole: Line) -> bool:
    data = whole.data
    at = skip_blank(data, 0)
    if data.startswith(b"{", at):
        return kind_of(data, at) is not None
    at = skip_blank(data, at + 1)
    return data[at : at + 1] in (b"", b"]") or kind_of(data, at) is not None
