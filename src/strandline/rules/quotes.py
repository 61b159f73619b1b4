"""Does a sentence of a draft stand verbatim in what the draft was made from? A quote is never refused (I10).

Compared are plain one-line texts in lower case (`rules.wording`). A sentence stands when it is a whole sentence of a
source, or a part of one; a part only where the whole says the same: "the release is approved" is no quote of "I don't
think the release is approved". A line that carries the label `[12] actor/kind:` or a cut mark (`…`) is known to be an
excerpt, and any part of the source will do.

An index of the sources is built at the first question: most drafts claim nothing, and need none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from strandline.model.event import SourceEvent
from strandline.rules.wording import Sentence, bare, one_line, plain, sentences

QUOTE_WORDS_MIN: Final = 2  # a shorter part of a sentence stands anywhere, and quotes nothing
PLACES_MAX: Final = 64  # places of one part that are looked at in one text

_CUT: Final = re.compile(r"\.{3,}|\[\.\.\.\]")
_ARGUMENT: Final = re.compile(r"[a-z_]{1,40}: ")
_SPAN: Final = re.compile(r'"([^"\n]+)"')


class Sources:
    """The covered events and prior texts of one draft, as far as they speak of what the draft may claim.

    Args:
        events: the covered events.
        prior: the texts of older segments.
        touches: tells, fast, whether a text in lower case may speak of it.
        mentions: tells whether a sentence does.
    """

    def __init__(
        self,
        events: Sequence[SourceEvent],
        prior: Sequence[str],
        *,
        touches: Callable[[str], bool],
        mentions: Callable[[str], bool],
    ) -> None:
        self._events = events
        self._prior = prior
        self._touches = touches
        self._mentions = mentions

    def quoted(self, sentence: Sentence, at: int, says_it: Callable[[str], bool]) -> bool:
        """Tell whether the sentence, or the quotation in it that holds the place `at`, stands verbatim in a source.

        `says_it` tells of a source's sentence whether it makes the same claim.
        """
        if self._stands(sentence.text, says_it, excerpt=self._labelled(sentence)):
            return True
        return any(
            span.start() <= at < span.end() and self._stands(span[1], says_it, excerpt=False)
            for span in _SPAN.finditer(sentence.text)
        )

    @cached_property
    def kinds(self) -> Mapping[int, str]:
        """The kind of each covered event, by seq."""
        return {event.seq: event.kind.value for event in self._events}

    def _labelled(self, sentence: Sentence) -> bool:
        """Tell whether the line has a true label: the event is covered and of that kind, or a prior text holds it."""
        if sentence.seq is None:
            return False
        if sentence.seq in self.kinds:
            return self.kinds[sentence.seq] == sentence.kind
        return any(f"[{sentence.seq}]" in text for text in self._prior)

    def _stands(self, text: str, says_it: Callable[[str], bool], *, excerpt: bool) -> bool:
        if bare(text) in self._exact:
            return True
        parts = [part for part in map(bare, _CUT.split(text)) if part]
        excerpt = excerpt or len(parts) > 1 or bool(_CUT.search(text))
        return bool(parts) and all(self._holds(part, says_it, excerpt=excerpt) for part in parts)

    def _holds(self, part: str, says_it: Callable[[str], bool], *, excerpt: bool) -> bool:
        if part in self._exact:
            return True
        if not excerpt and part.count(" ") + 1 < QUOTE_WORDS_MIN:
            return False
        found = False
        for at in _places(part, self._joined, whole_words=not excerpt):
            found = True
            if excerpt or says_it(_line_at(self._joined, at)):
                return True
        if found:
            return False
        # it may run on over the end of a line or a sentence
        if any(True for text in self._flat for _ in _places(part, text, whole_words=not excerpt)):
            return True
        named = _ARGUMENT.match(part) if excerpt else None  # an extract writes a call's argument as `name: value`
        return named is not None and self._holds(part[named.end() :], says_it, excerpt=True)

    @cached_property
    def _texts(self) -> list[str]:
        texts = [*(text for event in self._events for text in _texts_of(event)), *self._prior]
        return [text for text in map(plain, texts) if self._touches(text.casefold())]

    @cached_property
    def _lines(self) -> dict[str, None]:
        return dict.fromkeys(
            one_line(line.text).casefold()
            for text in self._texts
            for line in sentences(text)
            if self._mentions(line.text)
        )

    @cached_property
    def _exact(self) -> frozenset[str]:
        return frozenset(map(bare, self._lines))

    @cached_property
    def _joined(self) -> str:
        return "\n".join(self._lines)

    @cached_property
    def _flat(self) -> list[str]:
        return [one_line(text).casefold() for text in self._texts]


def _texts_of(event: SourceEvent) -> Iterator[str]:
    """Yield the text of an event, and the strings of its payload: the text of a call is JSON, with escapes."""
    yield event.text
    pending = [event.payload]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            pending.extend(value.values())
        elif isinstance(value, list | tuple):
            pending.extend(value)


def _places(part: str, text: str, *, whole_words: bool) -> Iterator[int]:
    """Yield where the part stands in the text; the first PLACES_MAX are looked at."""
    at = -1
    for _ in range(PLACES_MAX):
        at = text.find(part, at + 1)
        if at < 0:
            return
        inside = text[max(0, at - 1) : at].isalnum() or text[at + len(part) : at + len(part) + 1].isalnum()
        if not (whole_words and inside):
            yield at


def _line_at(text: str, at: int) -> str:
    end = text.find("\n", at)
    return text[text.rfind("\n", 0, at) + 1 : end if end >= 0 else len(text)]
