"""Law (C14): whatever a model's server does, `compact` ends as the table of failure classes says, and I5 holds.

Each class is a story over real HTTP, told to `llmock` in both protocols; what it can't tell, to a model of ours.
Before and after each failure the agent reads the same: the summary that stood before it, and the tail.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import strandline
from strandline import AnthropicSummarizer, OpenAISummarizer
from strandline.limits import ATTEMPTS_MAX
from strandline.summarizers.model import ModelSummarizer
from strandline.testing import Reply, ScriptedModel, SeededEntropy, VirtualClock
from tests.conftest import Llmock
from tests.unit.test_engine_faults import FaultyStore

pytestmark = pytest.mark.long

BUDGET = 700
RULE = "Publish only after the security review."
MAKES: dict[str, Callable[..., ModelSummarizer]] = {
    "openai": lambda mock, **options: OpenAISummarizer("m", base_url=mock.openai_url, api_key="none", **options),
    "anthropic": lambda mock, **options: AnthropicSummarizer(
        "m", base_url=mock.anthropic_url, api_key="none", **options
    ),
}


def claims(*told: tuple[str, str]) -> str:
    """Return an answer that cites the first event; each claim with a quote, for the strict form."""
    return json.dumps({"claims": [{"text": text, "events": [3], "quote": quote} for text, quote in told]})


def plain(*texts: str) -> str:
    return json.dumps({"claims": [{"text": text, "events": [3]} for text in texts]})


GOOD = plain("The export is being built, a step at a time.")
GOOD_STRICT = claims(("The export is being built, a step at a time.", "of the nightly export is done"))


@pytest.fixture(params=sorted(MAKES))
def asks(request: pytest.FixtureRequest, llmock: Llmock) -> Callable[..., ModelSummarizer]:
    """Make the summarizer over llmock, in each protocol."""
    return lambda **options: MAKES[request.param](llmock, **options)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[strandline.Strandline]:
    with strandline.open(tmp_path / "store.db", entropy=SeededEntropy(3)) as db:
        log(db)
        yield db


def log(db: strandline.Strandline) -> strandline.Workflow:
    """Return the workflow, with its events if it is new: a constraint, an open issue, and the steps of some work."""
    wf = db.tenant("acme").workflow("export")
    if not wf.basis().revision:
        wf.append([strandline.constraint("publish", RULE), strandline.issue("scope", "The token may write.")])
        wf.append([strandline.note(f"Step {n} of the nightly export is done.") for n in range(1, 120)])
    return wf


def first_summary(wf: strandline.Workflow) -> strandline.Context:
    """Let the extractive summarizer make generation 1, add to the log, and return what is read then."""
    assert wf.compact(BUDGET).generation == 1
    wf.append([strandline.note(f"Step {n} of the nightly export is done.") for n in range(120, 240)])
    return wf.context(100_000)


def reply(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "reply", "text": text, **more}


def failures(outcome: strandline.CompactionOutcome) -> list[str | None]:
    return [attempt.failure and attempt.failure.value for attempt in outcome.attempts]


def prompts(llmock: Llmock) -> list[str]:
    return [json.dumps(sent["body"], ensure_ascii=False) for sent in llmock.requests()]


# ---------------------------------------------------------------------------------------------- transient


def test_transient_a_rate_limit_is_waited_for_as_the_server_asks(db: Any, asks: Any, llmock: Llmock) -> None:
    llmock.script({"type": "fail", "status": 429, "retry_after": 1}, reply(GOOD))
    begun = time.monotonic()
    outcome = log(db).compact(BUDGET, asks())
    assert (outcome.outcome, failures(outcome)) == ("activated", ["transient", None])
    assert time.monotonic() - begun >= 1.0


@pytest.mark.parametrize(
    "behaviors",
    [
        [{"type": "fail", "status": 529, "times": 9}],
        [reply(GOOD, times=9), {"type": "stream_fault", "kind": "disconnect", "after_chunks": 4, "times": 9}],
        [reply(GOOD, times=9), {"type": "stream_fault", "kind": "stall", "after_chunks": 4, "times": 9}],
        [reply(GOOD, times=9), {"type": "delay", "seconds": 9, "times": 9}],
    ],
    ids=["overloaded", "disconnected", "stalled", "too slow"],
)
def test_transient_what_does_not_pass_ends_as_a_dead_letter(
    db: Any, asks: Any, llmock: Llmock, tmp_path: Path, behaviors: list[dict[str, Any]]
) -> None:
    wf = log(db)
    before = first_summary(wf)
    llmock.script(*behaviors)
    outcome = wf.compact(BUDGET, asks(stall_s=0.3, deadline_s=2.0))
    assert (outcome.outcome, failures(outcome)) == ("dead_letter", ["transient"] * ATTEMPTS_MAX)
    assert wf.context(100_000).parts == before.parts
    assert [case.kind for case in wf.cases()] == ["dead_letter"]
    llmock.reset()
    llmock.script(reply(GOOD))
    an_hour_later = VirtualClock(time.time_ns() // 1_000 + 3_600_000_000)  # behind what was left for it to cool down
    with strandline.open(tmp_path / "store.db", clock=an_hour_later) as later:
        assert log(later).compact(BUDGET, asks()).outcome == "activated"  # it passed: the same job goes on


# ---------------------------------------------------------------------------------------------- malformed

MALFORMED = {
    "cut off": [reply(GOOD, finish_reason="length")],
    "filtered": [reply(GOOD, finish_reason="content_filter")],
    "just ends": [reply(GOOD), {"type": "stream_fault", "kind": "truncate", "after_chunks": 6}],
    "broken stream": [reply(GOOD), {"type": "stream_fault", "kind": "malformed", "after_chunks": 6}],
    "empty": [reply("")],
    "no claims": [reply('{"claims": []}')],
    "prose": [reply("The agent built the export.")],
    "placeholder": [reply(plain("[Summary goes here]"))],
    "nothing to see": [reply(plain("I don't see any events to summarize."))],
    "error text": [reply("Error: 503 Service Unavailable")],
    "refusal": [reply(plain("I'm sorry, but I can't help with that."))],
    "not shown": [reply(GOOD.replace("[3]", "[4000]"))],
}


@pytest.mark.parametrize("name", sorted(MALFORMED))
def test_malformed_it_is_asked_again_told_why_and_more_strictly(db: Any, asks: Any, llmock: Llmock, name: str) -> None:
    llmock.script(*MALFORMED[name], reply(GOOD_STRICT))
    outcome = log(db).compact(BUDGET, asks())
    assert (outcome.outcome, failures(outcome)) == ("activated", ["malformed", None])
    first, second = prompts(llmock)
    assert "quote" not in first
    assert "An answer before this one was refused" in second
    assert "copied letter by letter" in second


def test_malformed_without_end_is_rejected_and_nothing_changes(db: Any, asks: Any, llmock: Llmock) -> None:
    wf = log(db)
    before = first_summary(wf)
    llmock.script(reply("TODO", times=None))
    outcome = wf.compact(BUDGET, asks())
    assert outcome.outcome == "rejected"
    assert set(failures(outcome)) == {"malformed"}
    assert wf.context(100_000).parts == before.parts
    asked = len(llmock.requests())
    assert wf.compact(BUDGET, asks()).outcome == "rejected"
    assert len(llmock.requests()) == asked  # nothing is repeated until events, budget or summarizer change


def test_malformed_a_prompt_that_is_too_long_comes_in_smaller_parts(db: Any, asks: Any, llmock: Llmock) -> None:
    too_long = {"type": "fail", "status": 400, "message": "prompt is too long: 9 tokens > 8 maximum"}
    llmock.script(too_long, reply(GOOD), reply(GOOD.replace("[3]", "[80]")))
    outcome = log(db).compact(BUDGET, asks())
    assert (outcome.outcome, failures(outcome)) == ("activated", ["malformed", None])
    sizes = [len(prompt) for prompt in prompts(llmock)]
    assert len(sizes) == 3
    assert max(sizes[1:]) < sizes[0]


# ---------------------------------------------------------------------------------------------- semantic

SEMANTIC = {
    "invented reference": "Step 7 made bucket-9f3a0c77 in /srv/export/v2.parquet.",
    "invented approval": "The security review was approved by Dana.",
    "issue called resolved": "The scope issue is resolved: the token only reads.",
    "constraint called lifted": "The constraint on publishing was lifted.",
}


@pytest.mark.parametrize("name", sorted(SEMANTIC))
def test_semantic_it_is_told_what_was_wrong_and_does_better(db: Any, asks: Any, llmock: Llmock, name: str) -> None:
    bad = plain("The export is being built.", SEMANTIC[name])
    llmock.script(reply(bad), reply(GOOD_STRICT))
    outcome = log(db).compact(BUDGET, asks())
    assert (outcome.outcome, failures(outcome)) == ("activated", ["semantic", None])
    assert SEMANTIC[name] not in log(db).context(100_000).text
    assert "An answer before this one was refused" in prompts(llmock)[1]


@pytest.mark.parametrize("name", sorted(SEMANTIC))
def test_semantic_one_that_goes_on_never_activates(db: Any, asks: Any, llmock: Llmock, name: str) -> None:
    wf = log(db)
    told = ("The export is being built.", "of the nightly export is done"), (SEMANTIC[name], "nightly export is done")
    llmock.script(reply(claims(*told)), reply(claims(*told)), reply(claims(*told), times=None))
    kept = wf.compact(BUDGET, asks(), fallback=False)
    assert kept.generation == 0
    assert kept.outcome in ("quarantined", "rejected")
    assert RULE in wf.context(100_000).text


def test_semantic_the_extractive_summarizer_takes_over_where_it_may(db: Any, asks: Any, llmock: Llmock) -> None:
    wf = log(db)
    lie = SEMANTIC["invented reference"]
    llmock.script(reply(plain(lie)), reply(claims((lie, "of the nightly export is done")), times=None))
    outcome = wf.compact(BUDGET, asks())
    assert outcome.outcome == "activated"
    assert "semantic" in failures(outcome)
    assert lie not in wf.context(100_000).text
    assert outcome.refs_unaccounted == 0


# ------------------------------------------------------------------------------------- conflict, storage, crash


def test_conflict_what_was_drafted_meanwhile_wins_and_a_late_draft_is_refused(db: Any) -> None:
    wf = log(db)

    with ScriptedModel(Reply(text=GOOD, pause_s=0.5)) as model, ThreadPoolExecutor() as pool:
        slow = OpenAISummarizer("slow", base_url=f"{model.url}/v1", api_key="none")
        drafting = pool.submit(wf.compact, BUDGET, slow)
        while not model.requests:
            time.sleep(0.01)
        first, late = wf.compact(BUDGET), drafting.result(60)
    assert (first.outcome, first.generation) == ("activated", 1)
    assert late.outcome != "activated"
    assert wf.context().generation == 1
    assert "a step at a time" not in wf.context(100_000).text
    assert wf.verify().ok


@pytest.mark.parametrize(
    "error", [strandline.StoreUnavailableError("disk full"), strandline.OutcomeUnknownError("cut off")]
)
def test_storage_a_draft_that_was_stored_is_not_asked_for_again(
    db: Any, asks: Any, llmock: Llmock, error: Exception
) -> None:
    store = FaultyStore(db.store)
    wf = log(strandline.Strandline(store, entropy=SeededEntropy(5)))
    llmock.script(reply(GOOD))
    store.at_pointer = error
    with pytest.raises(type(error)):
        wf.compact(BUDGET, asks())
    assert wf.context().generation == 0
    outcome = wf.compact(BUDGET, asks())
    assert (outcome.outcome, outcome.generation) == ("activated", 1)
    assert len(llmock.requests()) == 1


def test_storage_a_commit_whose_answer_was_lost_is_found(db: Any, asks: Any, llmock: Llmock) -> None:
    store = FaultyStore(db.store)
    wf = log(strandline.Strandline(store, entropy=SeededEntropy(5)))
    llmock.script(reply(GOOD))
    store.after_commit = strandline.OutcomeUnknownError("the answer was lost")
    assert wf.compact(BUDGET, asks()).outcome == "activated"
    assert (wf.context().generation, len(llmock.requests())) == (1, 1)


CRASHES = """
import sys, strandline
store, url = sys.argv[1:]
with strandline.open(store) as db:
    model = strandline.OpenAISummarizer("gpt", base_url=url, api_key="none")
    db.tenant("acme").workflow("export").compact({budget}, model)
"""


def test_crash_a_worker_that_is_killed_leaves_its_job_to_the_next_one(db: Any, tmp_path: Path) -> None:
    with ScriptedModel(Reply(text=GOOD, pause_s=30.0), GOOD) as model:
        program = CRASHES.format(budget=BUDGET)
        words = [sys.executable, "-c", program, str(tmp_path / "store.db"), f"{model.url}/v1"]
        worker = subprocess.Popen(words)
        try:
            while not model.requests:
                assert worker.poll() is None
                time.sleep(0.02)
        finally:
            os.kill(worker.pid, signal.SIGKILL)
            worker.wait(30)
        wf = log(db)
        assert wf.context().generation == 0
        summarizer = OpenAISummarizer("gpt", base_url=f"{model.url}/v1", api_key="none")
        outcome = wf.compact(BUDGET, summarizer)
        assert (outcome.outcome, outcome.attempts[-1].number) == ("activated", 2)  # the same job, found by its id
        again = wf.compact(BUDGET, summarizer)  # delivered twice
        assert again.outcome == "nothing_to_do"
        assert len(model.requests) == 2


def test_regression_a_bad_summary_that_no_rule_noticed_is_reverted(db: Any, asks: Any, llmock: Llmock) -> None:
    wf = log(db)
    first_summary(wf)
    useless = "The export went on, a step at a time."
    llmock.script(reply(plain(useless), times=None))
    bad = wf.compact(BUDGET, asks())
    assert (bad.outcome, bad.generation) == ("activated", 2)
    assert useless in wf.context(100_000).text
    wf.checkpoint({"step": 1}, turn=1, basis=wf.context(100_000))
    reverted = wf.revert(1, by="ann", why="it says nothing")
    assert reverted.acted_on
    context = wf.context(100_000)
    assert context.generation == 3
    assert useless not in context.text
    assert RULE in context.text
    assert wf.verify().ok


def test_what_a_person_has_to_correct_is_raised_at_once_after_one_request(db: Any, asks: Any, llmock: Llmock) -> None:
    wf = log(db)
    before = first_summary(wf)
    llmock.script({"type": "fail", "status": 401, "times": None})
    with pytest.raises(strandline.SummarizerSetupError) as caught:
        wf.compact(BUDGET, asks())
    assert caught.value.hint
    assert len(llmock.requests()) == 1
    assert wf.context(100_000).parts == before.parts


def test_the_awaiting_door_tells_the_same_story(tmp_path: Path, llmock: Llmock) -> None:
    async def story() -> list[str | None]:
        async with strandline.aopen(tmp_path / "awaited.db") as db:
            wf = db.tenant("acme").workflow("export")
            await wf.append([strandline.note(f"Step {n} of the nightly export is done.") for n in range(120)])
            outcome = await wf.compact(BUDGET, MAKES["openai"](llmock))
            assert outcome.outcome == "activated"
            return failures(outcome)

    llmock.script({"type": "fail", "status": 500}, reply("TODO"), reply(GOOD_STRICT))
    assert asyncio.run(story()) == ["transient", "malformed", None]
