"""What an erasure takes along, and by what that which was erased is known again in other texts (C31).

A summary is derived: nobody can tell what of an event a model wove into it. So every text that was made from an erased
event goes, whatever it says. Texts that were not made from it, a state, a case, an error, go if they repeat it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from strandline.limits import ERASURE_PHRASE_CHARS_MIN, ERASURE_PHRASE_WORDS, ERASURE_PHRASES_MAX
from strandline.model.event import EventKind
from strandline.rules.verbatim import verbatim_subset

STATES_A_FACT: Final = frozenset(
    {
        EventKind.CONSTRAINT,
        EventKind.APPROVAL,
        EventKind.REVOKE,
        EventKind.ISSUE,
        EventKind.ARTIFACT,
        EventKind.DIVERGENCE,
    }
)
"""Events whose text stands as an anchor: a summarizer of any later segment was shown it."""

_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Reach:
    """The erased events that a reader could read, in order, and the first of them that was shown as an anchor."""

    seqs: Sequence[int]
    stated: int | None = None

    def covered(self, from_seq: int, through_seq: int) -> bool:
        """Tell whether one of them lies in a closed range."""
        at = bisect_left(self.seqs, from_seq)
        return at < len(self.seqs) and self.seqs[at] <= through_seq

    def touches(self, from_seq: int, through_seq: int) -> bool:
        """Tell whether a text made from a closed range was made from one of them."""
        return self.covered(from_seq, through_seq) or (self.stated is not None and self.stated <= through_seq)


class Traces:
    """The phrases and references that only erased events held.

    A phrase is ERASURE_PHRASE_WORDS words in a row, whatever stands between them; of a shorter text the whole, from
    ERASURE_PHRASE_CHARS_MIN characters on. Beyond ERASURE_PHRASES_MAX, and with `everywhere`, every text has to be
    taken for one that repeats them.
    """

    def __init__(self, *, everywhere: bool = False) -> None:
        self._phrases: set[int] = set()
        self._sizes: set[int] = set()  # words of the phrases
        self._refs: set[str] = set()
        self._everywhere = everywhere

    @property
    def everywhere(self) -> bool:
        """Whether every text has to be taken for one that repeats what is erased."""
        return self._everywhere

    def take(self, *texts: str) -> None:
        """Take what an erased event says."""
        for text in texts:
            words = list(_WORD.finditer(text))
            size = min(len(words), ERASURE_PHRASE_WORDS)
            if len(self._phrases) > ERASURE_PHRASES_MAX:
                self._everywhere = True
            elif size == ERASURE_PHRASE_WORDS or len(text.strip()) >= ERASURE_PHRASE_CHARS_MIN:
                self._sizes.add(size)
                self._phrases.update(phrase for phrase, _ in _phrases(words, size))

    def take_refs(self, refs: Iterable[str]) -> None:
        """Take references that no event holds any more."""
        self._refs.update(refs)

    def spare(self, *texts: str) -> bool:
        """Take out what texts repeat that are not erased; tell whether they did repeat anything."""
        found = False
        for text in texts:
            words = list(_WORD.finditer(text))
            held = {phrase for size in self._sizes for phrase, _ in _phrases(words, size) if phrase in self._phrases}
            self._phrases -= held
            found = found or bool(held) or bool(verbatim_subset(self._refs, text))
        return found

    def stand_in(self, *texts: str) -> bool:
        """Tell whether one of the texts has to be taken for one that repeats what is erased."""
        return self._everywhere or self.repeated_by(*texts)

    def repeated_by(self, *texts: str) -> bool:
        """Tell whether one of the texts does repeat it."""
        return any(self.fragment(text) or verbatim_subset(self._refs, text) for text in texts)

    def fragment(self, text: str) -> str:
        """Return the first phrase of a text that only erased events held, as it stands there; "": there is none."""
        words = list(_WORD.finditer(text))
        for size in self._sizes:
            for phrase, (start, end) in _phrases(words, size):
                if phrase in self._phrases:
                    return text[start:end]
        return ""


def _phrases(words: Sequence[re.Match[str]], size: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield each run of `size` words as a number, which is compared within this process only, and where it stands."""
    folded = [word[0].casefold() for word in words]
    for at in range(len(words) - size + 1 if size else 0):
        yield hash(tuple(folded[at : at + size])), (words[at].start(), words[at + size - 1].end())


def spans_of(seqs: Iterable[int]) -> list[tuple[int, int]]:
    """Return sorted numbers as closed ranges."""
    spans: list[tuple[int, int]] = []
    for seq in seqs:
        if spans and seq == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], seq)
        else:
            spans.append((seq, seq))
    return spans
