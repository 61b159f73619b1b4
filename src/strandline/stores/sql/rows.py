"""Codes and packed forms that stand for longer ones in rows. A code is never given a second meaning."""

from __future__ import annotations

from typing import Final

from strandline.model.summary import DropReason

DROP_REASONS: Final = {
    1: DropReason.NOT_IN_SUMMARY,
    2: DropReason.MERGED_AWAY,
    3: DropReason.REDACTED,
    4: DropReason.ERASED,
}
DROP_CODES: Final = {reason: code for code, reason in DROP_REASONS.items()}

_TEXT: Final = b"\0"
_UUID: Final = b"\1"
_UUID_CHARS: Final = 36


def pack_key(key: str) -> bytes:
    """Return the key of an event as it is stored: transcripts name records by UUID, which takes 16 bytes, not 36."""
    if len(key) >= _UUID_CHARS and key[8] == key[13] == key[18] == key[23] == "-":
        try:
            packed = bytes.fromhex(key[:_UUID_CHARS].replace("-", ""))
        except ValueError:
            packed = b""
        if _show_uuid(packed) == key[:_UUID_CHARS]:
            return _UUID + packed + key[_UUID_CHARS:].encode()
    return _TEXT + key.encode()


def unpack_key(data: bytes) -> str:
    """Undo `pack_key`; what it never gave reads as some other key, which no chain holds."""
    if data[:1] == _UUID:
        return _show_uuid(data[1:17]) + data[17:].decode(errors="replace")
    return data[1:].decode(errors="replace")


def _show_uuid(data: bytes) -> str:
    digits = data.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
