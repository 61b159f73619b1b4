"""What the extractive summarizer may quote, and what each quote is worth.

Worth is the value of the kind of event, times what its words make of it (`spans`), recency, and whether it is used
later; less for each further quote of one event, and divided by the root of the length.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from strandline.model.event import EventKind, Role, SourceEvent
from strandline.model.summary import Anchor
from strandline.ports import SummaryRequest
from strandline.rules.updates import Changes, changes
from strandline.summarizers import spans
from strandline.summarizers.spans import Span

NAME_CHARS_MAX: Final = 60
ARGUMENTS_MAX: Final = 8
ARGUMENT_CHARS_MAX: Final = 160
KEYED_CHARS_MAX: Final = 40
NUMBER_MAX: Final = 10**18
USED_LATER_FACTOR: Final = 1.5
USED_LATER_MAX: Final = 12  # references of one result for whose lines it is searched

CARRIED_KINDS: Final = frozenset(
    {
        EventKind.CONSTRAINT,
        EventKind.LIFT_CONSTRAINT,
        EventKind.APPROVAL,
        EventKind.REVOKE,
        EventKind.ISSUE,
        EventKind.ARTIFACT,
        EventKind.RELEASE_ARTIFACT,
        EventKind.PIN,
        EventKind.UNPIN,
        EventKind.DIVERGENCE,
    }
)
"""Kinds whose current state the anchors tell; a quote of an old one could contradict it (I10)."""

WORDS: Final = frozenset({EventKind.MESSAGE, EventKind.THINKING, EventKind.TOOL_CALL})

VALUES: Final[Mapping[EventKind, float]] = {
    EventKind.FAILED_ATTEMPT: 70.0,
    EventKind.DECISION: 70.0,
    EventKind.EFFECT: 50.0,
    EventKind.RESOLVE: 40.0,
    EventKind.ABANDONED: 30.0,
    EventKind.NOTE: 25.0,
    EventKind.MESSAGE: 12.0,
    EventKind.TOOL_CALL: 9.0,
    EventKind.TOOL_RESULT: 5.0,
    EventKind.THINKING: 2.0,
}
USER_VALUE: Final = 100.0
FINAL_VALUE: Final = 45.0  # what the assistant said last before the user spoke, or before the range ends
SYSTEM_VALUE: Final = 30.0
ERROR_VALUE: Final = 30.0
FIRST_REQUEST_FACTOR: Final = 2.0
FAILED_CALL_FACTOR: Final = 3.0
CHANGING_CALL_FACTOR: Final = 2.0  # a call that changes something says more than one that looks
PRIOR_FACTOR: Final = 2.0  # a line that was worth quoting once
RECENCY_WEIGHT: Final = 0.6  # the newest event is worth 1, the oldest 1 - 0.6
PRIOR_RECENCY_WEIGHT: Final = 0.2
USER_RECENCY_WEIGHT: Final = 0.3  # what a user said to stand does not age as what was done does
NEWS_FACTOR: Final = 3.0  # it replaces something older: whoever changes a fact speaks of what matters now
CROWDING: Final = 0.3  # each further quote of one event is worth less
LENGTH_OFFSET_CHARS: Final = 30

_LABEL = re.compile(r"\[(?P<seqs>(?:\d{1,12}→)?\d{1,12})\](?: ?(?P<voice>[^\n\[\]]{0,200}?/[a-z_]{1,30}): ?| )(?=\S)")
_PLAIN_KEY = re.compile(r"[a-z]{1,30}")
_NO_NAME = re.compile(r"[\s:/\[\]\x00-\x1f\ud800-\udfff]+")
_CHANGING = re.compile(
    r"(?i)(?<![a-z])(?:appl[iy]|book|cancel|commit|creat|delet|deploy|edit|execut|install|merg|mov|pay|publish|push|"
    r"refund|remov|renam|send|submit|updat|upload|writ)"
)


class Source(NamedTuple):
    """What is quoted: an event, or one line of an older summary.

    `seqs` are the numbers of its label, `12` or `9→12` where event 12 replaces what event 9 said; `voice` is who speaks
    and the kind of event, `user/message`. Both are empty for a line of a summary that has no label.
    """

    text: str
    seqs: str = ""
    voice: str = ""

    def label(self, voice_before: str = "") -> str:
        """How its line begins; who speaks is named where the line before has another voice."""
        if not self.seqs:
            return ""
        return f"[{self.seqs}] " if self.voice == voice_before else f"[{self.seqs}] {self.voice}: "


class Quote(NamedTuple):
    """A candidate: a stretch of a source. Quotes sort by what they are worth for their length, the best first."""

    worth: float  # negative
    place: int  # index of its source, in log order
    start: int
    end: int
    beside: int = -1  # picked only where the quote that begins here is


# ---------------------------------------------------------------------------------------------- older summaries


def prior_quotes(text: str, sources: list[Source]) -> list[Quote]:
    """Add the distinct lines of an older summary to the sources, and return their quotes; each keeps its own label."""
    quotes: list[Quote] = []
    lines = list(dict.fromkeys(line.strip() for line in text.splitlines()))
    voice = ""
    for index, line in enumerate(lines):
        label = _LABEL.match(line)
        voice = (label["voice"] or voice) if label else ""
        body = line[label.end() :] if label else line
        value = _voice_value(voice) * PRIOR_FACTOR * _recency(index, len(lines), PRIOR_RECENCY_WEIGHT)
        quotes += _ranked(spans.prose(body), value, len(sources))
        sources.append(Source(body, label["seqs"], voice) if label else Source(line))
    return quotes


def _voice_value(voice: str) -> float:
    """Return the value of what a label names."""
    who, _, kind = voice.rpartition("/")
    if kind == EventKind.MESSAGE and Role.USER in who:
        return USER_VALUE
    if kind == EventKind.TOOL_RESULT and "error" in who:
        return ERROR_VALUE
    return next((value for known, value in VALUES.items() if known == kind), VALUES[EventKind.NOTE])


# ---------------------------------------------------------------------------------------------- events


def event_quotes(
    request: SummaryRequest, sources: list[Source], *, fold: bool = False
) -> tuple[list[Quote], list[Quote]]:
    """Add the events to the sources, and return the quotes of what users said, and those of everything else."""
    events = request.events
    offset = len(sources)
    changed = changes(events, fold=fold)
    reader = _Reader(request.anchors, changed)
    said = Counter(line.strip() for event in events if _is_user(event) for line in event.text.splitlines())
    sources += [Source("")] * len(events)
    first_request = next((index for index, event in enumerate(events) if _is_user(event)), -1)
    spoken: list[Quote] = []
    others: list[Quote] = []
    for index in range(len(events) - 1, -1, -1):
        event = events[index]
        text, value, found = reader.read(event)
        if not found:
            continue
        replaced = changed.replaces.get(event.seq)
        seqs = str(event.seq) if replaced is None else f"{replaced}→{event.seq}"
        sources[offset + index] = Source(text, seqs, _voice(event))
        value *= _recency(index, len(events), USER_RECENCY_WEIGHT if _is_user(event) else RECENCY_WEIGHT)
        value *= FIRST_REQUEST_FACTOR if index == first_request else 1.0
        value *= NEWS_FACTOR if replaced is not None else 1.0
        if _is_user(event):
            value /= math.sqrt(said[text.strip()] or 1)  # what is said again and again tells little each time
            spoken.extend(_ranked(found, value, offset + index))
        else:
            others.extend(_ranked(found, value, offset + index))
    return spoken, others


class _Reader:
    """Reads events from the newest to the oldest, so that it knows of each what came of it."""

    def __init__(self, anchors: Sequence[Anchor], changed: Changes) -> None:
        self._carried_seqs = {anchor.seq for anchor in anchors}
        self._carried = "\n".join(anchor.text for anchor in anchors)
        self._changed = changed
        self._seen: set[str] = set()
        self._used: set[str] = set()  # references that agent or user speak of later
        self._failed: set[str | None] = set()  # calls whose result is an error
        self._closing = True  # nobody but the user speaks before the next event

    def read(self, event: SourceEvent) -> tuple[str, float, list[Span]]:
        """Return the text that is quoted of the event, its value, and its stretches that say something new."""
        text, value = event.text, 0.0
        found: Iterable[Span] = ()
        if event.kind not in CARRIED_KINDS:
            unbroken = [ref for ref in (*event.declared, *event.extracted) if " " in ref]
            used = [ref for ref in event.extracted if ref in self._used]
            value = self._value(event) * (USED_LATER_FACTOR if used else 1.0)
            if event.kind is EventKind.TOOL_RESULT:
                refs = used[:USED_LATER_MAX]
                found = spans.result(event.text, is_error=event.is_error, refs=refs, unbroken=unbroken)
            elif event.kind is EventKind.TOOL_CALL and isinstance(event.payload, Mapping):
                text = _arguments(event, event.payload, unbroken)
                found = spans.whole(text)
            elif event.kind is EventKind.THINKING:
                found = spans.prose(event.text, unbroken, head=spans.EDGE_LINES, tail=spans.EDGE_LINES)
            elif event.kind is EventKind.MESSAGE and not _is_user(event):
                found = spans.prose(event.text, unbroken)
            else:
                found = spans.prose(event.text, unbroken, factor=spans.statement_factor)
        new = [span for span in found if self._is_new(text, span, event.seq)]
        self._note(event)
        return text, value, new

    def _value(self, event: SourceEvent) -> float:
        value = VALUES.get(event.kind, VALUES[EventKind.NOTE])
        if event.kind is EventKind.MESSAGE:
            if event.role is Role.USER:
                return USER_VALUE
            if event.role is Role.SYSTEM:
                return SYSTEM_VALUE
            return FINAL_VALUE if self._closing else value
        if event.kind is EventKind.TOOL_CALL:
            value *= FAILED_CALL_FACTOR if event.call_id in self._failed else 1.0
            return value * (CHANGING_CALL_FACTOR if _CHANGING.search(event.tool or "") else 1.0)
        return ERROR_VALUE if event.kind is EventKind.TOOL_RESULT and event.is_error else value

    def _is_new(self, text: str, span: Span, seq: int) -> bool:
        piece = text[span.start : span.end]
        if span.beside >= 0:
            return True  # it goes with the stretch beside it
        if piece in self._seen or (seq in self._carried_seqs and piece in self._carried):
            return False
        if seq in self._changed.stale and self._changed.is_stale(seq, span.start, span.end):
            return False
        self._seen.add(piece)
        return True

    def _note(self, event: SourceEvent) -> None:
        if event.kind in WORDS:
            self._used.update(event.extracted)
        if event.is_error and event.call_id is not None:
            self._failed.add(event.call_id)
        if event.kind is not EventKind.THINKING:
            self._closing = _is_user(event)


def _ranked(found: Iterable[Span], value: float, place: int) -> Iterator[Quote]:
    """Yield the quotes of one source: the further down its own list a stretch is, the less it adds."""
    for order, span in enumerate(sorted(found, key=_by_factor)):
        length = span.end - span.start + LENGTH_OFFSET_CHARS
        rank = value * span.factor / (1 + CROWDING * order) / math.sqrt(length)
        yield Quote(-rank, place, span.start, span.end, span.beside)


def _recency(index: int, count: int, weight: float) -> float:
    return 1 - weight + weight * (index + 1) / count


def _by_factor(span: Span) -> tuple[float, int]:
    return -span.factor, span.start


def _is_user(event: SourceEvent) -> bool:
    return event.kind is EventKind.MESSAGE and event.role is Role.USER


def _voice(event: SourceEvent) -> str:
    """Return `who/kind`; who is the actor with role or tool behind it, or one of these alone."""
    names = [event.actor, event.role or "", event.tool or ""]
    shown = [*dict.fromkeys(_shown(name) for name in names if name), *(["error"] if event.is_error else [])]
    rest = f"({','.join(shown[1:])})" if shown[1:] else ""
    return f"{shown[0] if shown else ''}{rest}/{event.kind}"


def _shown(name: str) -> str:
    """Return a name as a label shows it: without what ends a label, and without what can't be encoded."""
    if name.isidentifier() and name.isascii():
        return name[:NAME_CHARS_MAX]
    return _NO_NAME.sub("_", name)[:NAME_CHARS_MAX]


def _arguments(event: SourceEvent, payload: Mapping[str, object], unbroken: Sequence[str]) -> str:
    """Return the arguments of a call that tell most, short ones first: of each scalar the head of its first line.

    Each is quoted as it stands. A key goes only before a single word or number, which it can't turn into a claim, and
    only where it is a plain word, which is no reference.
    """
    told: list[tuple[bool, str]] = []
    for key, value in payload.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            continue
        if isinstance(value, int) and abs(value) > NUMBER_MAX:
            continue
        text = value.strip() if isinstance(value, str) else str(value)
        line = text.split("\n", 1)[0].rstrip()
        shown = line[: spans.cut(line, 0, len(line), ARGUMENT_CHARS_MAX, unbroken)]
        if not shown or (not isinstance(value, str) and shown not in event.text):  # 1e5 reads as 100000.0
            continue
        keyed = _PLAIN_KEY.fullmatch(key) and len(shown) <= KEYED_CHARS_MAX and not any(map(str.isspace, shown))
        told.append((shown != text, f"{key}: {shown}" if keyed else shown))
    told.sort(key=lambda item: item[0])  # stable: otherwise in the order of the payload
    shown_whole = len(told) <= ARGUMENTS_MAX and not any(was_cut for was_cut, _ in told)
    return " … ".join(text for _, text in told[:ARGUMENTS_MAX]) + ("" if shown_whole else " …")
