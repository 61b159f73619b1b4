"""Where and why a line is no record. msgspec tells that it is none, but its offset is often beside the fault."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from strandline.limits import JSON_DEPTH_MAX


class _Nothing(msgspec.Struct):
    """Takes any object, so that every value in it is only skimmed, and faults are told in one way."""


_SKIM: Final = msgspec.json.Decoder(_Nothing)
_SKIM_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])
_AT_BYTE: Final = re.compile(r"JSON is malformed: (.*) \(byte (\d+)\)")
_ESCAPE: Final = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|(\\(?:u[0-9a-fA-F]{0,3})?)')
_WORDS: Final = {word[0]: word for word in (b"true", b"false", b"null")}


def explain(data: bytes, error: Exception, *, ended: bool, document: bool = False) -> tuple[str, int]:
    """Return the reason why a record could not be decoded, and the offset of the first byte that can't stand there.

    Args:
        data: the record, without the end of its line; valid UTF-8.
        error: what the decoder raised.
        ended: whether a line feed ended the line.
        document: the record is all of the file, an object or a list.

    A torn record is faulty as a whole: its offset is 0. A torn document is faulty where it ends.
    """
    if isinstance(error, RecursionError):
        return f"nested deeper than {JSON_DEPTH_MAX} levels", 0
    if (at := data.find(0)) >= 0:
        return "a NUL byte", at
    try:
        (_SKIM_LIST if document and data.lstrip().startswith(b"[") else _SKIM).decode(data)
        message = str(error)
    except msgspec.DecodeError as first:
        message = str(first)
    if message.startswith("Expected `object`"):
        return f"the record is no object ({message[0].lower()}{message[1:]})", 0
    found = _AT_BYTE.fullmatch(message)
    reason, at = (found[1], int(found[2])) if found else (message, 0)
    torn = "truncated" in reason
    if not found and not torn:
        return f"JSON that can't be kept: {message}", 0
    if (torn or "escape" in reason) and (escape := _first_bad_escape(data)) is not None:
        torn, reason, at = False, "invalid escape", escape
    elif reason == "invalid character":
        at = _end_of_word(data, at)
    elif reason == "trailing characters":
        at -= 1
    if torn or at >= len(data):
        what, place = ("document", len(data)) if document else ("record", 0)
        return f"the {what} is torn: the {'line' if ended else 'file'} ends in the middle of it", place
    if reason != "trailing characters":
        return f"malformed JSON: {reason}", at
    return _what_follows(data, at, document=document), at


def _what_follows(data: bytes, at: int, *, document: bool) -> str:
    if document:
        return "something follows the document"
    if data[at : at + 1] == b"{":
        return "another record begins on the same line"
    return "something follows the record on the same line"


def _first_bad_escape(data: bytes) -> int | None:
    """Return the offset of the first byte that makes an escape invalid."""
    return next((escape.end() for escape in _ESCAPE.finditer(data) if escape[1]), None)


def _end_of_word(data: bytes, at: int) -> int:
    """Return where a `true`, `false` or `null` goes wrong, of which the second byte was named."""
    word = _WORDS.get(data[at - 1]) if 0 < at < len(data) and data[at] >= ord(" ") else None
    if word is None:
        return at
    start = at - 1
    return start + next(n for n in range(len(word) + 1) if data[start : start + n + 1] != word[: n + 1])
