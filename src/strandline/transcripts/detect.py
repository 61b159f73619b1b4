"""Which format a transcript is in, by its first records."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final, Literal

import msgspec

from strandline.limits import IMPORT_DETECT_RECORDS_MAX
from strandline.transcripts.lines import Line

Format = Literal["claude_code", "jsonl"]

_LOOKED_FOR: Final = (
    "neither Claude Code session JSONL (records with 'type' and 'sessionId') "
    'nor Strandline JSONL (records with \'kind\', such as {"kind":"message","role":"user","text":"…"})'
)


_ABSENT: Final = msgspec.Raw(b"")


class _Head(msgspec.Struct, rename="camel", gc=False):
    kind: object = None
    type: object = None
    session_id: object = None
    leaf_uuid: object = None  # of a summary, which names no session
    message_id: object = None  # of a file-history-snapshot, which names no session
    message: msgspec.Raw = _ABSENT


_HEAD: Final = msgspec.json.Decoder(_Head)


def detect_format(lines: Iterable[Line]) -> Format:
    """Return the format of a file. One without any record is an empty file of our own.

    Raises:
        ImportFormatError: no known format, or damaged before it could be told.
    """
    first: Line | None = None
    for line in islice(lines, IMPORT_DETECT_RECORDS_MAX):
        first = first or line
        head = line.decode(_HEAD)
        if isinstance(head.kind, str) and head.type is None:
            return "jsonl"
        if isinstance(head.type, str) and _is_claude_code(head):
            return "claude_code"
    if first is None:
        return "jsonl"
    raise first.fault(f"unknown format: {_LOOKED_FOR}")


def _is_claude_code(head: _Head) -> bool:
    if head.type in ("user", "assistant") and head.message is not _ABSENT:
        return True
    return any(isinstance(mark, str) for mark in (head.session_id, head.leaf_uuid, head.message_id))
