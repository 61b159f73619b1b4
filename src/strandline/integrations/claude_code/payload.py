"""What Claude Code tells a hook: one JSON object on stdin. Fields that are not known are left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from strandline.errors import InvalidInputError
from strandline.limits import HOOK_INPUT_BYTES_MAX

_MISSING: Final = "It is what Claude Code sends; see docs/claude-code.md."


class Payload(msgspec.Struct, frozen=True, gc=False):
    """The fields that a hook here uses; each is there for some events only."""

    session_id: str = ""
    transcript_path: str = ""
    hook_event_name: str = ""
    source: str = ""  # SessionStart: startup, resume, clear, compact, fork
    trigger: str = ""  # PreCompact, PostCompact: manual, auto
    compact_summary: str | None = None  # PostCompact, since 2.1.76
    tool_name: str = ""  # PreToolUse
    tool_input: msgspec.Raw = msgspec.Raw(b"null")
    tool_use_id: str = ""

    @property
    def session_file(self) -> Path | None:
        """The file of the session; None: none is named."""
        return Path(self.transcript_path).expanduser() if self.transcript_path else None


_PAYLOAD: Final = msgspec.json.Decoder(Payload)


def read_payload(data: bytes, event: str) -> Payload:
    """Return what was said to the hook of an event.

    Raises:
        InvalidInputError: more than HOOK_INPUT_BYTES_MAX, no JSON object, no session, or it is of another event.
    """
    if len(data) > HOOK_INPUT_BYTES_MAX:
        raise InvalidInputError(f"an input of more than {HOOK_INPUT_BYTES_MAX:,} bytes", hint=_MISSING)
    try:
        payload = _PAYLOAD.decode(data)
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"the input is not what a hook gets: {error}", hint=_MISSING) from error
    if not payload.session_id:
        raise InvalidInputError("the input names no session_id", hint=_MISSING)
    if payload.hook_event_name not in ("", event):
        raise InvalidInputError(f"the input is of {payload.hook_event_name!r}, and the hook of {event!r}")
    return payload
