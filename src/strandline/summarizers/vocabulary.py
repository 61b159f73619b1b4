"""A counter by the published vocabulary of a model: exact for models that use it, an estimate for others."""

from __future__ import annotations

from typing import Final

from strandline.errors import InvalidInputError, extra_hint

ENCODINGS: Final = ("o200k_base", "cl100k_base", "o200k_harmony", "llama3", "qwen3")


class VocabularyCounter:
    """Counts as a vocabulary splits texts; the extra `tokens`. Nothing is downloaded: the vocabularies come with it.

    Args:
        encoding: one of `ENCODINGS`: `o200k_base` is that of GPT-4o and newer, `cl100k_base` that of GPT-4.

    Raises:
        InvalidInputError: no such vocabulary, or the extra is not installed.
    """

    def __init__(self, encoding: str = "o200k_base") -> None:
        if encoding not in ENCODINGS:
            raise InvalidInputError(f"the encoding is one of {', '.join(ENCODINGS)}, not {encoding!r}")
        try:
            import quicktok
        except ImportError as error:
            raise InvalidInputError("quicktok is not installed", hint=extra_hint("tokens")) from error
        self._encode = quicktok.get_encoding(encoding).encode_ordinary
        self.name = f"{encoding}/quicktok-{quicktok.__version__}"

    def count(self, text: str) -> int:
        """Return the tokens of `text`. Names of special tokens are text; a lone surrogate counts as `?`."""
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode()
        return len(self._encode(text))
