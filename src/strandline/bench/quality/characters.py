"""Length in characters, so that what is measured depends on no tokenizer."""

from __future__ import annotations

from typing import Final


class Characters:
    """A token counter for which a character is a token."""

    name: Final = "characters-1"

    def count(self, text: str) -> int:
        """Return the characters of a text."""
        return len(text)
