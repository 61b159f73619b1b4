r"""Unpaired surrogate escapes, such as the `\ud83d` that is left of an emoji cut in half.

JSON allows them, UTF-8 can't hold them, and msgspec refuses the whole text. So that the rest of the line can be read,
each is replaced by a stand-in of the same six bytes: a private-use character that the line does not hold, and the last
two digits of the escape. Offsets stay, and every slice of the line can be turned back into the bytes that stood there.
"""

from __future__ import annotations

import re

from strandline.errors import InvalidInputError

_ESCAPE = re.compile(
    rb"\\(?:"
    rb"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    rb"|u([dD][89a-fA-F])([0-9a-fA-F]{2})"  # an unpaired one
    rb"|.)",
    re.DOTALL,
)
_HEADS = [d + x for d in (b"d", b"D") for x in (b"8", b"9", *(bytes([c]) for c in b"abcdefABCDEF"))]
_BLOCK_CHARS = 64  # characters that share the first three of their four bytes
_PLANE = range(0xF0000, 0xFFFC0, _BLOCK_CHARS)  # supplementary private use area A


class StandIns:
    """The stand-ins of one line: `data` is the line with them, `first` the offset of the first."""

    __slots__ = ("_characters", "_pattern", "data", "first")

    def __init__(self, data: bytes, first: int) -> None:
        prefix = next((p for p in (chr(c).encode()[:3] for c in _PLANE) if p not in data), None)
        if prefix is None:
            raise InvalidInputError("too many private-use characters beside an unpaired surrogate escape")
        stand_ins = {head: prefix + bytes([0x80 + n]) for n, head in enumerate(_HEADS)}
        self.first = first
        self._characters = re.compile("[" + "".join(c.decode() for c in stand_ins.values()) + "]")
        self._pattern = re.compile(re.escape(prefix) + b"([\x80-\xbf])(..)", re.DOTALL)

        def stand_in(escape: re.Match[bytes]) -> bytes:
            return stand_ins[escape[1]] + escape[2] if escape[1] else escape[0]

        self.data = _ESCAPE.sub(stand_in, data)

    @classmethod
    def of(cls, data: bytes) -> StandIns | None:
        """Return the stand-ins of a line, or None when it holds no unpaired surrogate escape.

        Raises:
            InvalidInputError: the line holds characters of every block that could stand in.
        """
        first = next((escape.start() for escape in _ESCAPE.finditer(data) if escape[1]), None)
        return None if first is None else cls(data, first)

    def restore(self, part: bytes) -> bytes:
        """Return a slice of the line as it stood."""
        return self._pattern.sub(lambda m: b"\\u" + _HEADS[m[1][0] - 0x80] + m[2], part)

    def stand_in(self, text: str) -> bool:
        """Tell whether a decoded text holds a stand-in."""
        return self._characters.search(text) is not None
