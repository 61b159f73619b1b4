"""Keys for the events of a file whose records bear none (C2, I3).

An event is named by everything before it in the file, and not by itself. So a grown file adds the rest, equal events
have different keys, and a file that was changed anywhere before its old end meets, at the first change, a key that is
taken by another content: it is refused there, instead of being appended a second time.
"""

from __future__ import annotations

from collections.abc import Callable


class KeyChain:
    """Names events, each by a keyed digest over those before it; the first one by itself, for nothing is before it."""

    def __init__(self, prefix: str, digest: Callable[[bytes], str]) -> None:
        self._prefix = prefix
        self._digest = digest
        self._before = ""

    def next(self, content: bytes) -> str:
        """Return the key of the next event. `content` is all that makes it this event."""
        before = self._before
        self._before = self._digest(before.encode() + content)
        return f"{self._prefix}:after:{before}" if before else f"{self._prefix}:first:{self._before}"

    @property
    def here(self) -> str:
        """The name of the place behind the newest event."""
        return f"{self._prefix}:here:{self._before}"
