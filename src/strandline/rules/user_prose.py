"""A user's own words in a message: its sentences and where they stand, without what was pasted into it.

Code, quotes, output of commands, logs and blocks in tags are data that the user shows, not what the user says; what
they demand binds nobody. All work is linear in the text, and bounded by USER_PROSE_CHARS_MAX.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from strandline.limits import USER_PROSE_CHARS_MAX

SENTENCE_CHARS_MAX: Final = 500  # a longer one was pasted, or speaks of too much at once to be quoted
_WRAPPED_CHARS_MIN: Final = 40  # a line of fewer characters was not wrapped
_PROSE_LETTERS_MIN: Final = 0.7  # of a line that is prose: letters and blanks among its characters

_ALIKE: Final = {ord("’"): "'", ord("‘"): "'", ord("“"): '"', ord("”"): '"', ord("\t"): " ", ord("\xa0"): " "}
_NO_LETTER: Final = re.compile(r"[^\w ]+|[\d_]+")
_FENCE: Final = ("```", "~~~")
_TAG: Final = re.compile(r"<([a-z][a-z0-9_-]{0,40})>")
_SENTENCE_END: Final = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)(?<!\bapprox)[.!?]{1,8}[\"')\]]{0,4}(?=\s)", re.IGNORECASE
)
_BULLET: Final = re.compile(r"[ ]{0,20}(?:[-*•+–]|\(?\d{1,3}[.)]|\[[ x]\])[ ]{1,4}(?:\[[ x]\] )?")
_DATA: Final = re.compile(  # how a line of output, of a diff or of code begins or ends
    r"[ ]{0,20}(?:[{}\[(<|>$#❯⏺⎿➜+=/\\@]|\d{1,5}[ :|]+[-+=]|\w+\(|\d{4}-\d\d|[A-Z][a-z]{2} +\d|[A-Z_]{2,}[=:]\S"
    r"|at \S+[:(]"
    r"|(?:import|from|def|func|var|const|let|return|class|package|type) \S+ ?[=({]?|//|\d+[.:]\d+[.:])"
    r"|.{0,400}(?:[{}\\]|\);)$"
)


class Prose(NamedTuple):
    """A sentence of the user: text[start:end] of the message, and the same with plain quotes and blanks."""

    start: int
    end: int
    text: str
    heading: bool = False  # a list belongs to it, and stands in it


def user_sentences(text: str) -> Iterator[Prose]:
    """Yield the sentences that a user wrote in a message. A heading comes with the list below it, as one, and then they
    come one by one. Of a long message its beginning and its end are read: what lies between was pasted.
    """
    half = USER_PROSE_CHARS_MAX // 2
    windows = [(0, text)] if len(text) <= 2 * half else [(0, text[:half]), (len(text) - half, text[-half:])]
    for offset, window in windows:
        for sentence in _of_window(window.translate(_ALIKE)):
            yield sentence._replace(start=sentence.start + offset, end=sentence.end + offset)


def _of_window(shown: str) -> Iterator[Prose]:
    for lines in _paragraphs(shown, _own_lines(shown)):
        start, end = lines[0][0], lines[-1][1]
        if _BULLET.match(shown, *lines[-1]) and len(lines) > 1:
            if end - start <= SENTENCE_CHARS_MAX:
                yield Prose(start, end, shown[start:end], True)
            for line in lines:
                yield from _sentences(shown, *line)
        else:
            yield from _sentences(shown, start, end)


def _sentences(shown: str, start: int, end: int) -> Iterator[Prose]:
    at = start
    for found in _SENTENCE_END.finditer(shown, start, end):
        yield from _sentence(shown, at, found.end())
        at = found.end()
    yield from _sentence(shown, at, end)


def _sentence(shown: str, start: int, end: int) -> Iterator[Prose]:
    bullet = _BULLET.match(shown, start, end)
    start = bullet.end() if bullet else start
    while start < end and shown[start].isspace():
        start += 1
    while end > start and shown[end - 1].isspace():
        end -= 1
    if 0 < end - start <= SENTENCE_CHARS_MAX:
        yield Prose(start, end, shown[start:end].replace("\n", " "))


def _own_lines(shown: str) -> Iterator[tuple[int, int]]:
    """Yield the lines that may be prose, without fenced code, blocks in tags, quotes and data."""
    tagged = _tagged(shown)
    hidden = next(tagged, None)
    fenced = False
    at = 0
    for line in shown.splitlines(keepends=True):
        start, end, at = at, at + len(line.rstrip()), at + len(line)
        while hidden is not None and hidden[1] <= start:
            hidden = next(tagged, None)
        if line.lstrip().startswith(_FENCE):
            fenced = not fenced
        elif not fenced and start < end and (hidden is None or end <= hidden[0]) and _is_prose(shown[start:end]):
            yield start, end


def _tagged(shown: str) -> Iterator[tuple[int, int]]:
    """Yield the blocks from a tag to its end; a tag that is never closed hides nothing."""
    unclosed: set[str] = set()
    at = 0
    while found := _TAG.search(shown, at):
        name, at = found[1], found.end()
        end = -1 if name in unclosed else shown.find(f"</{name}>", at)
        if end < 0:
            unclosed.add(name)
        else:
            at = end + len(name) + 3
            yield found.start(), at


def _is_prose(line: str) -> bool:
    bullet = _BULLET.match(line)
    words = line[bullet.end() :] if bullet else line
    if _DATA.match(words):
        return False
    return len(_NO_LETTER.sub("", words)) >= _PROSE_LETTERS_MIN * len(words)


def _paragraphs(shown: str, lines: Iterator[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Yield lines, each with those that go on with it: wrapped ones, and the list below a heading."""
    held: list[tuple[int, int]] = []
    for line in lines:
        if held and not _goes_on(shown, held, line):
            yield held
            held = []
        held.append(line)
    if held:
        yield held


def _goes_on(shown: str, held: list[tuple[int, int]], line: tuple[int, int]) -> bool:
    start, end = held[-1]
    apart = shown.count("\n", end, line[0])
    in_list = _BULLET.match(shown, start, end) is not None
    if _BULLET.match(shown, *line):  # a blank line may stand between items
        return apart <= 2 and ((in_list and len(held) > 1) or shown[end - 1] == ":")
    if apart > 1:
        return False
    wrapped = end - start >= _WRAPPED_CHARS_MIN and shown[end - 1] not in ".!?:"
    return wrapped and not in_list and shown[line[0]].islower()
