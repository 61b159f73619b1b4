"""What every summarizer keeps to: `strandline.ports.Summarizer` and `AsyncSummarizer`, law by law."""

from __future__ import annotations

import asyncio
import enum
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Final

import pytest

import strandline
from strandline.errors import MalformedDraftError, SummarizerSetupError, TransientSummarizerError
from strandline.limits import NAME_CHARS_MAX
from strandline.model.candidate import Draft
from strandline.model.event import EventKind, Role, SourceEvent
from strandline.ports import AsyncSummarizer, Summarizer, SummaryRequest
from strandline.rules.validation import FINISHED
from strandline.stores.memory import MemoryStore
from strandline.summarizers.counting import as_counter
from strandline.testing.fakes import SeededEntropy, VirtualClock

MakeSummarizer = Callable[[], Summarizer | AsyncSummarizer]
TENANT: Final = "conformance"
WORKFLOW: Final = "summarized"
DIGEST_KEY: Final = bytes(range(32))
BUDGETS: Final = (60, 200, 1_000)  # tokens
CONTEXT_BUDGET: Final = 600  # tokens, of the compactions
EVENTS: Final = 24
CALLERS: Final = 4
HANGS_S: Final = 0.3  # that a cancelled call was given
PATIENCE_S: Final = 10.0  # within which it is over


class Trouble(enum.StrEnum):
    """What a model behind a summarizer does in the laws on errors."""

    TIMEOUT = "timeout"  # it does not answer in time
    CONNECTION = "connection"  # nobody is there
    RATE_LIMIT = "rate_limit"
    LENGTH = "length"  # it stops at the most that it may write
    CUT_OFF = "cut_off"  # its answer breaks off in the middle
    EMPTY = "empty"  # it answers nothing
    SETUP = "setup"  # the key, the model's name or an option is wrong
    HANG = "hang"  # it never answers


FailingSummarizer = Callable[[Trouble], Summarizer | AsyncSummarizer | None]


def said(number: int) -> str:
    """Return the text of an event, with references of its own."""
    return f"Step {number} created bucket-{number:04x} and wrote /srv/out/{number:04x}/report.json; 12 tests passed."


def make_request(count: int = EVENTS, *, budget_tokens: int = 200, first: int = 1) -> SummaryRequest:
    """Return a request for a summary of plain messages."""
    counter = as_counter(None)
    events = tuple(
        SourceEvent(
            seq=seq,
            kind=EventKind.MESSAGE,
            role=Role.ASSISTANT,
            actor="agent",
            text=said(seq),
            tokens=counter.count(said(seq)),
            extracted=(f"bucket-{seq:04x}", f"/srv/out/{seq:04x}/report.json"),
        )
        for seq in range(first, first + count)
    )
    return SummaryRequest(
        from_seq=first,
        through_seq=first + count - 1,
        budget_tokens=budget_tokens,
        events=events,
        counter=counter,
    )


def ask(summarizer: Summarizer | AsyncSummarizer, request: SummaryRequest) -> Draft:
    """Return the draft of any summarizer; one that is awaited gets a loop of its own."""
    answer = summarizer.summarize(request)
    if inspect.isawaitable(answer):

        async def awaited() -> Draft:
            return await answer

        return asyncio.run(awaited())
    return answer


class SummarizerLaws:
    """Makes the summarizer of a test."""

    deterministic: ClassVar[bool] = False

    @pytest.fixture
    def make_summarizer(self) -> MakeSummarizer:
        """Give the callable that makes the summarizer; a subclass overrides it."""
        raise NotImplementedError("override the fixture make_summarizer: it gives a callable that makes yours")

    @pytest.fixture
    def failing_summarizer(self) -> FailingSummarizer:
        """Give a callable that makes one whose model is in trouble; None: it can't be. A subclass may override it."""
        return lambda trouble: None

    @pytest.fixture
    def summarizer(self, make_summarizer: MakeSummarizer) -> Summarizer | AsyncSummarizer:
        """Make one."""
        return make_summarizer()


class IdentityLaws(SummarizerLaws):
    """Name, version and window: they are part of a candidate's identity."""

    def test_it_is_a_summarizer(self, summarizer: Summarizer | AsyncSummarizer) -> None:
        """It has what the Protocol asks for."""
        lacks = [name for name in ("name", "version", "window_tokens", "summarize") if not hasattr(summarizer, name)]
        assert isinstance(summarizer, Summarizer | AsyncSummarizer), f"it lacks {', '.join(lacks)}"

    @pytest.mark.parametrize("what", ["name", "version"])
    def test_it_has_a_name_and_a_version(self, summarizer: Summarizer | AsyncSummarizer, what: str) -> None:
        """Texts, not empty, at most NAME_CHARS_MAX."""
        value = getattr(summarizer, what)
        assert isinstance(value, str)
        assert 0 < len(value) <= NAME_CHARS_MAX

    def test_what_is_made_alike_has_one_name(self, make_summarizer: MakeSummarizer) -> None:
        """I6: else a redelivered job would be another candidate."""
        first, second = make_summarizer(), make_summarizer()
        assert (first.name, first.version) == (second.name, second.version)

    def test_a_window_is_none_or_at_least_1(self, summarizer: Summarizer | AsyncSummarizer) -> None:
        """C10: it bounds what is shown."""
        window = summarizer.window_tokens
        assert window is None or (isinstance(window, int) and window >= 1)


class DraftLaws(SummarizerLaws):
    """What comes back where nothing is wrong."""

    def test_a_draft_is_finished_and_says_something(self, summarizer: Summarizer | AsyncSummarizer) -> None:
        """C14: only the finish reason "stop" is a finished summary."""
        draft = ask(summarizer, make_request())
        assert isinstance(draft, Draft), f"it returned a {type(draft).__name__}, not a Draft"
        assert draft.finish == FINISHED
        assert draft.text.strip(), "the text is empty"

    @pytest.mark.parametrize("budget_tokens", BUDGETS)
    def test_a_draft_stays_within_its_budget(
        self, summarizer: Summarizer | AsyncSummarizer, budget_tokens: int
    ) -> None:
        """By the counter of the request."""
        request = make_request(budget_tokens=budget_tokens)
        tokens = request.counter.count(ask(summarizer, request).text)
        assert tokens <= budget_tokens, f"{tokens} tokens, budget {budget_tokens}"

    def test_a_later_attempt_and_older_texts_are_taken(self, summarizer: Summarizer | AsyncSummarizer) -> None:
        """C14, I12: a request may tell what was wrong before, and stand on older summaries."""
        first = make_request(4)
        request = SummaryRequest(
            from_seq=1,
            through_seq=8,
            budget_tokens=200,
            events=make_request(4, first=5).events,
            prior=[said(1)],
            violations=["not_finished: finish reason 'length', not 'stop'"],
            attempt=2,
            counter=first.counter,
        )
        assert ask(summarizer, request).finish == FINISHED

    def test_a_request_is_left_as_it_is(self, summarizer: Summarizer | AsyncSummarizer) -> None:
        """It is shown to others, too."""
        request = make_request()
        before = list(request.events)
        ask(summarizer, request)
        assert list(request.events) == before

    def test_what_fits_the_window_is_drafted(self, summarizer: Summarizer | AsyncSummarizer) -> None:
        """C10: it can really be shown as much as it says; without a window, a long source."""
        size = make_request(1).events[0].tokens
        window = summarizer.window_tokens
        count = 20 * EVENTS if window is None else max(1, min(20 * EVENTS, window // (2 * size)))
        assert ask(summarizer, make_request(count)).finish == FINISHED

    def test_callers_do_not_mix(self, make_summarizer: MakeSummarizer) -> None:
        """One object serves several threads: each gets the draft of its own request."""
        summarizer = make_summarizer()
        requests = [make_request(6, first=1 + 100 * number) for number in range(CALLERS)]
        with ThreadPoolExecutor(CALLERS) as pool:
            drafts = list(pool.map(lambda request: ask(summarizer, request), requests))
        for number, draft in enumerate(drafts):
            others = [f"bucket-{1 + 100 * other:04x}" for other in range(CALLERS) if other != number]
            assert not [ref for ref in others if ref in draft.text]


class DeterminismLaws(SummarizerLaws):
    """Asked of those that claim it."""

    def test_the_same_request_gives_the_same_text(self, make_summarizer: MakeSummarizer) -> None:
        """Also by another object of its kind."""
        if not self.deterministic:
            pytest.skip("it does not claim to be deterministic")
        texts = {ask(make_summarizer(), make_request()).text for _ in range(3)}
        assert len(texts) == 1, f"three requests that are alike gave {len(texts)} texts"


class CompactionLaws(SummarizerLaws):
    """Within a compaction, as it will be used."""

    def _memory(self) -> strandline.Strandline:
        store = MemoryStore(DIGEST_KEY)
        db = strandline.Strandline(store, clock=VirtualClock(), entropy=SeededEntropy(1))
        texts = [strandline.message("assistant", said(number)) for number in range(1, EVENTS + 1)]
        db.tenant(TENANT).workflow(WORKFLOW).append(texts)
        return db

    def test_its_draft_becomes_the_memory(self, summarizer: Summarizer | AsyncSummarizer) -> None:
        """I5, I10: it passes validation; nothing drafts in its place."""
        workflow = self._memory().tenant(TENANT).workflow(WORKFLOW)
        outcome = workflow.compact(CONTEXT_BUDGET, summarizer, fallback=False)
        assert outcome.outcome == "activated", outcome.reason
        assert workflow.verify().ok

    def test_its_draft_becomes_the_memory_in_an_event_loop(self, summarizer: Summarizer | AsyncSummarizer) -> None:
        """Whether it is awaited or not."""
        workflow = strandline.AsyncStrandline(self._memory()).tenant(TENANT).workflow(WORKFLOW)
        outcome = asyncio.run(workflow.compact(CONTEXT_BUDGET, summarizer, fallback=False))
        assert outcome.outcome == "activated", outcome.reason


class ErrorLaws(SummarizerLaws):
    """What comes back where something is wrong. Asked of those that can be brought into trouble."""

    def _in_trouble(self, failing_summarizer: FailingSummarizer, trouble: Trouble) -> Summarizer | AsyncSummarizer:
        summarizer = failing_summarizer(trouble)
        if summarizer is None:
            pytest.skip(f"its model can't be brought into trouble: {trouble}")
        return summarizer

    @pytest.mark.parametrize("trouble", [Trouble.TIMEOUT, Trouble.CONNECTION, Trouble.RATE_LIMIT])
    def test_what_passes_is_worth_another_try(self, failing_summarizer: FailingSummarizer, trouble: Trouble) -> None:
        """C14, transient: a foreign exception would end the compaction instead."""
        with pytest.raises(TransientSummarizerError):
            ask(self._in_trouble(failing_summarizer, trouble), make_request())

    @pytest.mark.parametrize("trouble", [Trouble.LENGTH, Trouble.CUT_OFF, Trouble.EMPTY])
    def test_what_is_not_finished_says_so(self, failing_summarizer: FailingSummarizer, trouble: Trouble) -> None:
        """C14, malformed: an error, or a draft with another finish reason or no text; never a part that looks whole."""
        summarizer = self._in_trouble(failing_summarizer, trouble)
        try:
            draft = ask(summarizer, make_request())
        except (MalformedDraftError, TransientSummarizerError):
            return
        assert draft.finish != FINISHED or not draft.text.strip()

    def test_a_wrong_setup_is_told_to_who_can_change_it(self, failing_summarizer: FailingSummarizer) -> None:
        """C14: a repeat would fail alike; none is made."""
        with pytest.raises(SummarizerSetupError):
            ask(self._in_trouble(failing_summarizer, Trouble.SETUP), make_request())

    def test_who_waits_can_be_cancelled(self, failing_summarizer: FailingSummarizer) -> None:
        """I22: an awaited call ends when its task is cancelled."""
        summarizer = self._in_trouble(failing_summarizer, Trouble.HANG)
        if not inspect.iscoroutinefunction(summarizer.summarize):
            pytest.skip("it is not awaited")

        async def cancelled() -> bool:
            task = asyncio.ensure_future(summarizer.summarize(make_request()))  # type: ignore[arg-type]
            await asyncio.wait({task}, timeout=HANGS_S)
            task.cancel()
            await asyncio.wait({task}, timeout=PATIENCE_S)
            return task.cancelled()

        assert asyncio.run(cancelled())
