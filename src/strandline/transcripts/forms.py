"""The forms of conversations by the name of their format, and by which members a record tells which it is in."""

from __future__ import annotations

from typing import Final

from strandline.transcripts import codex
from strandline.transcripts.codex import CODEX
from strandline.transcripts.gemini_cli import GEMINI_CLI
from strandline.transcripts.inspect_log import INSPECT
from strandline.transcripts.openai import OPENAI
from strandline.transcripts.openhands import OPENHANDS
from strandline.transcripts.pi import PI
from strandline.transcripts.structure import members, skip_blank
from strandline.transcripts.swe_agent import SWE_AGENT
from strandline.transcripts.who_and_when import WHO_AND_WHEN

FORMS: Final = {
    form.name: form for form in (OPENAI, CODEX, PI, GEMINI_CLI, SWE_AGENT, OPENHANDS, WHO_AND_WHEN, INSPECT)
}

_CODEX_TYPES: Final = tuple(f'"{name}"'.encode() for name in sorted(codex.TYPES))
_BLAMED: Final = (b'"mistake_agent"', b'"mistake_step"', b'"question_ID"')


def tell_form(data: bytes, at: int = 0) -> str | None:
    """Name the form of the record that begins at a place, OpenAI's messages aside; None: none of them.

    A record that is damaged or cut off is followed as far as it can be.
    """
    at = skip_blank(data, at)
    if data[at : at + 1] != b"{":
        return None
    places = dict(members(data, at))

    def begins(name: bytes, *signs: bytes) -> bool:
        return name in places and data.startswith(signs, places[name])

    if begins(b'"payload"', b"{") and begins(b'"type"', *_CODEX_TYPES):
        return "codex"
    if (begins(b'"type"', b'"session"') and b'"cwd"' in places) or (
        begins(b'"type"', b'"message"') and begins(b'"message"', b"{") and b'"role"' not in places
    ):
        return "pi"
    if begins(b'"sessionId"', b'"') and begins(b'"messages"', b"["):
        return "gemini_cli"
    if begins(b'"samples"', b"[") and begins(b'"eval"', b"{"):
        return "inspect"
    if begins(b'"history"', b"["):
        return _by_first(data, places)
    is_event = begins(b'"action"', b'"') or begins(b'"observation"', b'"')
    return "openhands" if is_event and b'"role"' not in places and b'"kind"' not in places else None


def _by_first(data: bytes, places: dict[bytes, int]) -> str | None:
    """Name the form of a record with a history: by its first entry, and by what stands beside it."""
    first = skip_blank(data, places[b'"history"'] + 1)
    if data[first : first + 1] != b"{":
        return None
    if tell_form(data, first) == "openhands":
        return "openhands"
    if b'"role"' not in dict(members(data, first)):
        return None
    if b'"trajectory"' in places or b'"info"' in places:
        return "swe_agent"
    return "who_and_when" if any(name in places for name in _BLAMED) else None
