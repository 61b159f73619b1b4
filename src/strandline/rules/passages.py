"""A text as the passages that it states: sentences with their line, and the heading that they stand under.

A sentence may be wrapped over lines, stand in a bullet or behind a label. What decides whether it is asserted is
kept with it: its heading ("Rejected ideas:"), and its neighbours ("This no longer applies.").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from strandline.rules.wording import LABEL, one_line, plain

PASSAGE_CHARS_MAX: Final = 2_000  # a longer sentence is cut: what is judged takes bounded time
HEADING_WORDS_MAX: Final = 6  # a longer line with a colon announces a list, and no paragraph

_EMPHASIS: Final = re.compile(r"(?<![\w_])_{1,2}(?=[^\s_])([^_\n]{1,2000})(?<=\S)_{1,2}(?![\w_])")
_ITEM: Final = re.compile(r"\s*(?:[-•+>]|\d{1,4}[.)]|#{1,6}|\|)\s*(?:\[[ xX]\]\s*)?")
_HEADING: Final = re.compile(r"\s*(?:#{1,6}\s*(?P<hashed>[^\n]{1,200})|(?P<plain>[^\n:.!?]{1,80}):)\s*$")
_SENTENCE_END: Final = re.compile(r"""(?:(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)\.|[!?;])["')\]]{0,8}\s+(?!\d{1,3}\.\s)""")
_ENDS: Final = (".", "!", "?", ";", ":", '"', ")", "|")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One sentence of a text, plain and in one line."""

    text: str
    line: int  # from 1
    through: int  # the line on which it ends
    heading: str = ""
    block: int = 0  # sentences of one paragraph, or of items that follow each other, share it
    bridge: bool = (
        False  # two lines read as one, which may as well be two: it may state a fact, and speaks against none
    )


def passages(text: str) -> Iterator[Passage]:
    """Yield the sentences of a text in its order. Time is linear in the text."""
    reader = _Reader()
    for number, line in enumerate(plain(text).replace("`", "").splitlines(), start=1):
        yield from reader.take(number, _EMPHASIS.sub(r"\1", line))
    yield from reader.settle()


class _Reader:
    """Takes the lines of a text, and keeps those of the sentence that may go on."""

    def __init__(self) -> None:
        self._gathered: list[str] = []
        self._begun = self._ended = self._block = 0
        self._heading = ""
        self._hashed = self._listed = False  # whether the heading is one of Markdown; whether anything stands under it

    def take(self, number: int, line: str) -> Iterator[Passage]:
        """Take the next line, and yield what it ends."""
        heading = _HEADING.match(line)
        if not line.strip():
            yield from self.settle()
            self._block += 1
            if self._listed and not self._hashed:
                self._heading = ""  # "Ideas:" speaks for the list behind it, not for the next paragraph
            return
        if heading:
            yield from self.settle()
            self._hashed, self._listed = heading["hashed"] is not None, False
            self._heading = (heading["hashed"] or heading["plain"]).strip()
            yield Passage(text=one_line(self._heading), line=number, through=number, block=self._block)
            return
        label, item = LABEL.match(line), _ITEM.match(line)
        said = line[label.end() if label else item.end() if item else 0 :]
        if self._gathered and not (label or item):
            if _runs_on(self._gathered[-1], line):
                self._gathered.append(said)
                self._ended = number
                return
            if not self._gathered[-1].rstrip().endswith(_ENDS):
                yield from self._bridge(number, said)
        yield from self.settle()
        if not self._hashed and not self._listed and not item and self._heading.count(" ") >= HEADING_WORDS_MAX:
            self._heading = ""
        self._gathered.append(said)
        self._begun = self._ended = number
        self._listed = True

    def settle(self) -> Iterator[Passage]:
        """Yield the sentences of the lines that are kept."""
        for sentence in _sentences(one_line(" ".join(self._gathered))):
            yield self._passage(sentence)
        self._gathered.clear()

    def _bridge(self, number: int, line: str) -> Iterator[Passage]:
        kept = list(_sentences(one_line(" ".join(self._gathered))))
        begins = next(_sentences(one_line(line)), "")
        if kept and begins:
            joined = self._passage(f"{kept[-1]} {begins}"[:PASSAGE_CHARS_MAX])
            yield replace(joined, through=number, bridge=True)

    def _passage(self, text: str) -> Passage:
        return Passage(text=text, line=self._begun, through=self._ended, heading=self._heading, block=self._block)


def _runs_on(before: str, line: str) -> bool:
    """Tell whether a line surely goes on with the sentence of the line before it."""
    before, begins = before.rstrip(), line.lstrip()[:1]
    return not before.endswith(_ENDS) and (begins.islower() or before.endswith((",", "-")))


def _sentences(line: str) -> Iterator[str]:
    at = 0
    for end in _SENTENCE_END.finditer(line):
        yield line[at : end.end()].strip()[:PASSAGE_CHARS_MAX]
        at = end.end()
    if line[at:].strip():
        yield line[at:].strip()[:PASSAGE_CHARS_MAX]
