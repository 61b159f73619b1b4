"""A transcript that is one JSON document: its messages or conversations, behind each of which it can be cut."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from strandline.limits import IMPORT_JSON_BYTES_MAX
from strandline.transcripts.conversations import list_at
from strandline.transcripts.forms import FORMS
from strandline.transcripts.openai import OPENAI
from strandline.transcripts.structure import Walk, skip_blank, value_end, values

_LOGS: Final = tuple(form.logs for form in FORMS.values() if form.logs is not None)
_LISTS: Final = tuple(dict.fromkeys(name for form in FORMS.values() for name in form.lists))


@dataclass(frozen=True, slots=True)
class Document:
    """What the document's list holds, and where each of it ends."""

    data: bytes
    part: str  # message or conversation
    ends: list[int]
    rest: bytes  # from the end of the list

    def beginning(self, parts: int) -> bytes:
        """Return a document that holds the first parts, byte for byte as they stand."""
        return self.data[: self.ends[parts - 1]] + self.rest


def read_document(path: Path) -> Document | None:
    """Return a file as a document that can be cut; None: it is none, such as lines, or damaged."""
    if path.stat().st_size > IMPORT_JSON_BYTES_MAX:
        return None
    data = path.read_bytes()
    at = skip_blank(data, 3 if data.startswith(b"\xef\xbb\xbf") else 0)
    end = value_end(data, at)
    if data[at : at + 1] not in (b"[", b"{") or end is None or skip_blank(data, end) < len(data):
        return None
    if data.startswith(b"{", at):
        return _conversation(data, at, end)
    walk = values(data, at + 1)
    inner = _conversation(data, *walk.spans[0]) if walk.spans else None
    if inner is not None and len(walk.spans) == 1:
        return inner
    return _cut(data, walk, "message" if inner is None else "conversation")


def _conversation(data: bytes, start: int, end: int) -> Document | None:
    at = list_at(data[start:end], OPENAI.lists)
    return None if at is None else _cut(data, values(data, start + at + 1), "message")
    for names, part in ((_LOGS, "conversation"), (_LISTS, "message")):
        at = list_at(data[start:end], names)
        if at is not None:
            return _cut(data, values(data, start + at + 1), part)
    return None


def _cut(data: bytes, walk: Walk, part: str) -> Document | None:
    ends = [end for _, end in walk.spans]
    return Document(data, part, ends, data[walk.end - 1 :]) if walk.closed and ends else None
