"""What is needed from outside: time, chance, token counts, summarizers, and who is told."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from strandline.model.candidate import Draft
from strandline.model.case import Case, CaseAnswer
from strandline.model.event import SourceEvent
from strandline.model.judgement import JudgedClaim, Objection
from strandline.model.summary import Anchor


class Clock(Protocol):
    """The only source of time. No wall clock decides an order (DESIGN §3)."""

    def now_us(self) -> int:
        """Return the wall-clock time in microseconds since 1970."""
        ...

    def monotonic_s(self) -> float:
        """Return a time in seconds that never goes back; for durations only."""
        ...

    def sleep_s(self, seconds: float) -> None:
        """Wait."""
        ...


class Entropy(Protocol):
    """The only source of randomness."""

    def salt(self) -> bytes:
        """Return 16 fresh random bytes."""
        ...

    def fraction(self) -> float:
        """Return a random number in [0, 1); for jitter only."""
        ...


class TokenCounter(Protocol):
    """Counts tokens, as an estimate with a name and a version that is stamped on every summary (DESIGN §3)."""

    @property
    def name(self) -> str:
        """The counter's name and version, such as `bytes/3`."""
        ...

    def count(self, text: str) -> int:
        """Return the tokens of `text`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """One segment to be drafted.

    `events` are the events that the draft speaks for, oldest first, in full; when they don't fit the summarizer's
    window, `prior` holds the texts of older segments that stand in for the first of them (I12).
    `anchors` are facts that Strandline adds itself: they need no place in the draft. `attempt` counts from 1 within one
    compaction: from 2 on, `violations` says what was wrong with the attempt before, and the form may be asked for more
    strictly.
    """

    from_seq: int
    through_seq: int
    budget_tokens: int
    events: Sequence[SourceEvent]
    anchors: Sequence[Anchor] = ()
    prior: Sequence[str] = ()
    violations: Sequence[str] = ()  # what was wrong with the attempt before
    attempt: int = 1
    counter: TokenCounter


@runtime_checkable
class Summarizer(Protocol):
    """Drafts a summary. What it returns is untrusted; it may fail, stall or lie.

    `name` and `version` are part of the candidate's identity: change them when the output changes.
    `window_tokens` is the most that it can be shown; None: no bound.
    """

    name: str
    version: str
    window_tokens: int | None

    def summarize(self, request: SummaryRequest) -> Draft:
        """Return a draft of at most `request.budget_tokens` tokens.

        Raises:
            TransientSummarizerError: worth another try.
            MalformedDraftError: no finished summary came back.
        """
        ...


@runtime_checkable
class AsyncSummarizer(Protocol):
    """A summarizer that is awaited. Under the sync driver it runs in a loop of its own."""

    name: str
    version: str
    window_tokens: int | None

    async def summarize(self, request: SummaryRequest) -> Draft:
        """As `Summarizer.summarize`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """A draft that the rules let pass, with all that it was made from.

    `claims` is what the rules said of it; what they call unverifiable is what a judge is for.
    """

    draft: Draft
    events: Sequence[SourceEvent]
    prior: Sequence[str]
    facts: Sequence[Anchor]
    claims: Sequence[JudgedClaim]


@runtime_checkable
class Judge(Protocol):
    """Looks at a draft that the rules let pass, and may refuse it; it can't make one pass that they refuse (C13).

    `name` and `version` are part of the candidate's identity.
    """

    name: str
    version: str

    def judge(self, request: JudgeRequest) -> Iterable[Objection | str] | Awaitable[Iterable[Objection | str]]:
        """Return what speaks against the draft, nothing if nothing does; may be awaited.

        Raises:
            TimeoutError, ConnectionError: worth another try.
        """
        ...


@runtime_checkable
class Controller(Protocol):
    """Answers cases in place of a person, while a recovery waits (C21). `name` is written down as who answered."""

    name: str

    def decide(self, case: Case) -> CaseAnswer | None:
        """Return an answer that fits the case, or None to leave it open."""
        ...


class Hook(Protocol):
    """Told of what happened, after the commit. A hook that raises is ignored."""

    def emit(self, name: str, details: Mapping[str, object]) -> None:
        """Take note of one occurrence: `ports.occurrences` says which there are, and their details."""
        ...


class Tracer(Hook, Protocol):
    """A hook that also watches each verb and its phases while they run, such as `compact` and `compact.draft`."""

    def span(self, name: str, details: Mapping[str, object]) -> AbstractContextManager[object]:
        """Return what is entered when the phase begins and left when it ends, with what it raised.

        Phases nest in the context (`contextvars`) of the verb, whichever threads it runs in, and so does what it calls.
        """
        ...
