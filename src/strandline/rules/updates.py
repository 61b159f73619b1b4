"""Which statements of a log a later one replaces: the newest value of a thing stands, an older one is stale.

"FACT: The cap is $500 in total." and, later, "FACT: Total spending is capped at $600." speak of one thing in different
words. A later statement of another event replaces an earlier one when all of this holds:

- something says that it may: both begin with the same heading in capitals, or the later one says that things changed
  ("now", "instead", "wrong"), or the two are equal but for the values that they say something *is*;
- the later one holds a value of each *shape* that the earlier one holds (`$9`, `A-9`, a name), and not the same values;
  without values, both are about what there is only one of: what is next, what is current;
- they share enough stems, weighted by how rare a stem is among all statements (IDF), for the smaller of the two, and
  each is the other's best match;
- nothing tells them apart: words of contrasting scope (prod and staging), different words before a stem that they share
  ("project spending", "trip spending"), words in the place of others in an otherwise equal sentence.

Where in doubt, both stand: a stale value beside the new one can be read as history, a fact that is gone can't be read.
"Never send X" is not replaced by "Never send Y": both hold.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from strandline.model.event import EventKind, Role, SourceEvent
from strandline.rules.shapes import HEADING, SENTENCE_GAP, STATEMENT_CHARS_MAX, Statement, read_statement
from strandline.rules.verbatim import stands_verbatim

STATEMENTS_MAX: Final = 2_000  # the newest are compared; older ones stand
MESSAGE_LINES_MAX: Final = 8  # of a message that states something; what is longer is pasted, or tells a story
COMMON_MAX: Final = 64  # a stem of more statements brings none of them together
OVERLAP_MIN: Final = 0.22
PARALLEL_SHARE: Final = 0.7  # of the words of both: from here on two sentences are one with words exchanged

KEYED_KINDS: Final = frozenset({EventKind.CONSTRAINT, EventKind.DECISION})
"""Kinds of events whose subject is a key: the newest of a subject stands, whatever the words."""

_BULLET = re.compile(r"\s*(?:[-*•] )?")
_SCOPES: Final = tuple(
    {word: number for number, words in enumerate(group.split("|")) for word in words.split()}
    for group in (
        "prod production live|stag staging stage|dev development|test testing qa|local",
        "primary main|secondary backup replica standby fallback",
        "unit|integration|e2e",
        "frontend client ui|backend server",
        "read reads|write writes",
        "min minimum lower|max maximum upper",
        "internal|external|public",
        "before|after",
        "first|third|last",
        "morning|evening|night",
        "daily|weekly|monthly|yearly",
        "source|target destination",
        "input|output",
        "start starts|end ends",
        "request|response",
    )
)


class Stretch(NamedTuple):
    """The characters start..end of an event's text."""

    seq: int
    start: int
    end: int


class Changes(NamedTuple):
    """What was said anew: the stretches that are stale, by event, and the events that replace one, with its seq."""

    stale: Mapping[int, Sequence[Stretch]]
    replaces: Mapping[int, int]

    def is_stale(self, seq: int, start: int, end: int) -> bool:
        """Tell whether a part of an event lies within a stale stretch."""
        return any(one.start <= start and end <= one.end for one in self.stale.get(seq, ()))


def changes(events: Sequence[SourceEvent], *, fold: bool = False) -> Changes:
    """Find what later events replace: statements of users and notes by their words, keyed events by their subject.

    Args:
        events: in log order.
        fold: let a rule replace one that is like it but for what it is about; both may hold ("Never send X", "Never
            send Y"), so this is for whoever has no room for both and knows it.
    """
    said = [*deque(_said(events), maxlen=STATEMENTS_MAX)]
    stale: dict[int, list[Stretch]] = defaultdict(list)
    replaces: dict[int, int] = {}
    for index, last in updates([(stretch.seq, statement) for stretch, statement in said], fold=fold).items():
        stretch, later = said[index][0], said[last][1]
        replaces[said[last][0].seq] = stretch.seq
        stale[stretch.seq].append(stretch)
        for following, statement in said[index + 1 : index + 1 + MESSAGE_LINES_MAX]:
            if following.seq != stretch.seq or not _told_again(statement, later):
                break
            stale[stretch.seq].append(following)
    newest: dict[tuple[EventKind, str], SourceEvent] = {}
    for event in events:
        if event.kind in KEYED_KINDS and event.subject:
            before = newest.get((event.kind, event.subject))
            newest[event.kind, event.subject] = event
            if before is not None:
                stale[before.seq].append(Stretch(before.seq, 0, len(before.text)))
                replaces[event.seq] = before.seq
    return Changes(stale, replaces)


def stale_references(events: Sequence[SourceEvent]) -> set[str]:
    """Return the references that stand in stale statements only: nothing newer, and nothing else, holds them."""
    found = changes(events)
    stale: set[str] = set()
    for event in events:
        refs = {*event.declared, *event.extracted}
        if event.seq in found.stale:
            rest = _without(event.text, found.stale[event.seq])
            refs -= (only := {ref for ref in refs if not stands_verbatim(ref, rest)})
            stale |= only
        stale -= refs
    return stale


def updates(statements: Sequence[tuple[int, Statement]], *, fold: bool = False) -> dict[int, int]:
    """Return, for each statement that a later one replaces, the index of the later one.

    Args:
        statements: with the number of its event before each, in log order.
        fold: as of `changes`.
    """
    read = [statement for _, statement in statements]
    weights = _weights(read)
    before: dict[int, tuple[float, int]] = {}  # the best match of a statement among the earlier ones
    after: dict[int, tuple[float, int]] = {}
    for first, second in _pairs(read):
        if statements[first][0] == statements[second][0] or not _replaces(read[second], read[first], fold):
            continue
        score = _score(read[first], read[second], weights)
        if score >= OVERLAP_MIN or not read[first].values:
            before[second] = max(before.get(second, (0.0, -1)), (score, first))
            after[first] = max(after.get(first, (0.0, -second)), (score, -second))
    return {first: -last for first, (_, last) in after.items() if before[-last][1] == first}


def _said(events: Iterable[SourceEvent]) -> Iterator[tuple[Stretch, Statement]]:
    """Yield the statements in short messages of users, and in notes: sentences, each with the heading of its line."""
    for event in events:
        if not (event.kind is EventKind.NOTE or (event.kind is EventKind.MESSAGE and event.role is Role.USER)):
            continue
        if len(event.text) > MESSAGE_LINES_MAX * STATEMENT_CHARS_MAX or event.text.count("\n") >= MESSAGE_LINES_MAX:
            continue
        at = 0
        for line in event.text.split("\n"):
            bullet = _BULLET.match(line)
            start = bullet.end() if bullet else 0
            heading = HEADING.match(line, start)
            head = heading[0] if heading else ""
            start += len(head)
            for end, following in (
                *((gap.start(), gap.end()) for gap in SENTENCE_GAP.finditer(line, start)),
                (len(line), 0),
            ):
                statement = read_statement(line[start:end], head)
                if statement is not None:
                    yield Stretch(event.seq, at + start, at + end), statement
                start = following
            at += len(line) + 1


def _without(text: str, stretches: Iterable[Stretch]) -> str:
    for stretch in sorted(stretches, reverse=True):
        text = f"{text[: stretch.start]}\n{text[stretch.end :]}"
    return text


def _weights(statements: Sequence[Statement]) -> dict[str, float]:
    """Return how much a stem tells: the logarithm of how rare it is."""
    seen = Counter(word for statement in statements for word in statement.stems)
    return {word: math.log((1 + len(statements)) / count) for word, count in seen.items()}


def _pairs(statements: Sequence[Statement]) -> Iterator[tuple[int, int]]:
    """Yield the pairs that share a stem or a word for a single thing, each once, the earlier statement first."""
    holding: dict[str, list[int]] = defaultdict(list)
    for index, statement in enumerate(statements):
        met: set[int] = set()
        for word in statement.stems | statement.single:
            if len(holding[word]) <= COMMON_MAX:
                met.update(holding[word])
                holding[word].append(index)
        for other in sorted(met):
            yield other, index


def _score(first: Statement, second: Statement, weights: Mapping[str, float]) -> float:
    """Return the weight of the stems that both hold, as a share of what the lighter of the two holds."""
    shared = sum(weights[word] for word in first.stems & second.stems)
    least = min(sum(weights[word] for word in one.stems) for one in (first, second))
    return shared / least if least else 0.0


def _told_again(sentence: Statement, later: Statement) -> bool:
    """Tell whether a sentence behind a replaced one says what the later statement says too."""
    return not sentence.values and 2 * len(sentence.stems & later.stems) >= len(sentence.stems)


def _replaces(later: Statement, earlier: Statement, fold: bool) -> bool:
    """Tell whether the later statement may take the place of the earlier one, whatever they share."""
    if earlier.text == later.text or not later.stands_alone or not _announced(later, earlier):
        return False
    folded = fold and not earlier.values and not later.values and earlier.rules and later.rules
    if not (folded or _answers(later, earlier)) or _scopes_differ(later, earlier):
        return False
    return not (earlier.values and (_differently_modified(earlier, later) or _exchanged(earlier, later)))


def _announced(later: Statement, earlier: Statement) -> bool:
    """Tell whether something says that the later one speaks of the same thing anew."""
    if earlier.head and later.head:
        return earlier.head == later.head
    return earlier.states and (later.news or earlier.words == later.words)


def _answers(later: Statement, earlier: Statement) -> bool:
    """Tell whether the later one has another value for each of the earlier one, or both are of a single thing."""
    if not earlier.values and not later.values:
        return bool(earlier.single & later.single)
    if not earlier.values or not earlier.shapes <= later.shapes or earlier.values == later.values:
        return False
    if earlier.words == later.words:  # "step 3 is done" and "step 4 is done" are of two things
        return earlier.tells or (bool(earlier.head) and not earlier.names)
    return True


def _scopes_differ(one: Statement, other: Statement) -> bool:
    """Tell whether words of contrasting scope tell two statements apart."""
    for group in _SCOPES:
        scopes, others = ({group[word] for word in said & group.keys()} for said in (one.said, other.said))
        if scopes and others and scopes.isdisjoint(others):
            return True
    return False


def _differently_modified(one: Statement, other: Statement) -> bool:
    """Tell whether a stem that both hold follows different words, each of which only one of them holds."""
    for word in one.stems & other.stems:
        before, instead = one.modified.get(word), other.modified.get(word)
        if before and instead and before not in other.stems and instead not in one.stems:
            return True
    return False


def _exchanged(one: Statement, other: Statement) -> bool:
    """Tell whether the two are one sentence in which words that carry meaning were exchanged for others."""
    match = SequenceMatcher(None, one.words, other.words, autojunk=False)
    return match.ratio() >= PARALLEL_SHARE and any(
        kind == "replace"
        and one.stems.issuperset(one.words[start:end])
        and other.stems.issuperset(other.words[at:till])
        for kind, start, end, at, till in match.get_opcodes()
    )
