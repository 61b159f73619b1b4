"""The summarizers that are shipped keep the laws of summarizers, and the suite finds those that do not."""

import asyncio
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.errors import SummarizerSetupError
from strandline.model.candidate import Draft
from strandline.ports import SummaryRequest
from strandline.summarizers.callable import AsyncCallableSummarizer, CallableSummarizer
from strandline.summarizers.extractive import ExtractiveSummarizer
from strandline.testing import FaultyStore, SeededEntropy
from strandline.testing.conformance import StoreConformance, SummarizerConformance, Trouble
from strandline.testing.conformance.base import OpenStore
from strandline.testing.conformance.report import Report, reason_of, run, shown
from strandline.testing.conformance.summarizers import FailingSummarizer, MakeSummarizer

HANGS_S = 3_600.0


def honest(request: SummaryRequest) -> str:
    return "Work went on."


def in_trouble(trouble: Trouble, request: SummaryRequest) -> Draft:
    if trouble is Trouble.TIMEOUT:
        raise TimeoutError
    if trouble in (Trouble.CONNECTION, Trouble.RATE_LIMIT):
        raise ConnectionError
    if trouble is Trouble.SETUP:
        raise SummarizerSetupError("there is no key")
    if trouble is Trouble.EMPTY:
        return Draft(text="")
    return Draft(text="Work went", finish="length")


async def awaited(request: SummaryRequest) -> str:
    return honest(request)


async def awaited_in_trouble(trouble: Trouble, request: SummaryRequest) -> Draft:
    if trouble is Trouble.HANG:
        await asyncio.sleep(HANGS_S)  # it is cancelled
    return in_trouble(trouble, request)


class TestExtractiveSummarizer(SummarizerConformance):
    deterministic = True

    @pytest.fixture
    def make_summarizer(self) -> MakeSummarizer:
        return ExtractiveSummarizer


class TestCallableSummarizer(SummarizerConformance):
    deterministic = True

    @pytest.fixture
    def make_summarizer(self) -> MakeSummarizer:
        return lambda: CallableSummarizer(honest)

    @pytest.fixture
    def failing_summarizer(self) -> FailingSummarizer:
        return lambda trouble: CallableSummarizer(functools.partial(in_trouble, trouble))


class TestAsyncCallableSummarizer(SummarizerConformance):
    @pytest.fixture
    def make_summarizer(self) -> MakeSummarizer:
        return lambda: AsyncCallableSummarizer(awaited)

    @pytest.fixture
    def failing_summarizer(self) -> FailingSummarizer:
        async_trouble = awaited_in_trouble
        return lambda trouble: AsyncCallableSummarizer(functools.partial(async_trouble, trouble), name="troubled")


class TestFaultyStore(StoreConformance):
    """A store that is watched is a store."""

    durable = False

    @pytest.fixture
    def open_store(self) -> OpenStore:
        from strandline.stores.memory import MemoryStore

        entropy = SeededEntropy(1)
        return lambda: FaultyStore(MemoryStore(entropy.salt() + entropy.salt()))


# ---------------------------------------------------------------------------------------------- what it finds


class Careless:
    """Breaks a law of each kind."""

    name = ""
    version = "1"
    window_tokens = None

    def __init__(self) -> None:
        self.calls = 0

    def summarize(self, request: SummaryRequest) -> Draft:
        self.calls += 1
        return Draft(text=f"Call {id(self)}: approved in bucket-{request.from_seq + 900:04x}. " + "and so on " * 999)


def careless_in_trouble(trouble: Trouble) -> CallableSummarizer:
    def summarize(request: SummaryRequest) -> str:
        if trouble in (Trouble.LENGTH, Trouble.CUT_OFF):
            return "Work went"
        raise ValueError("429 Too Many Requests")

    return CallableSummarizer(summarize)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("careless")
    return run(Careless, folder, summarizer=True, deterministic=True, failing=careless_in_trouble)


@pytest.mark.parametrize(
    ("capability", "check"),
    [
        ("identity", "test_it_has_a_name_and_a_version[name]"),
        ("draft", "test_a_draft_stays_within_its_budget[60]"),
        ("determinism", "test_the_same_request_gives_the_same_text"),
        ("compaction", "test_its_draft_becomes_the_memory"),
        ("compaction", "test_its_draft_becomes_the_memory_in_an_event_loop"),
        ("error", "test_what_passes_is_worth_another_try[rate_limit]"),
        ("error", "test_what_is_not_finished_says_so[length]"),
        ("error", "test_a_wrong_setup_is_told_to_who_can_change_it"),
    ],
)
def test_what_is_broken_is_told(found: Report, capability: str, check: str) -> None:
    (law,) = [law for law in found.laws if law.name == capability]
    assert law.broken[check]
    assert not law.full
    assert check in shown(found)


def test_what_is_broken_says_what_was_found(found: Report) -> None:
    broken = {check: why for law in found.laws for check, why in law.broken.items()}
    assert re.fullmatch(r"AssertionError: \d+ tokens, budget 60", broken["test_a_draft_stays_within_its_budget[60]"])


def test_an_assertion_that_pytest_does_not_explain_is_told_as_it_stands() -> None:
    """The command runs without rewritten assertions."""
    assert reason_of(">       assert 0 < len(value)\nE       AssertionError\n\nlaws.py:7: AssertionError") == (
        "does not hold: 0 < len(value)"
    )
    assert reason_of(">       assert draft.text, 'none'\nE       AssertionError: none") == "AssertionError: none"


def test_a_report_says_what_is_kept_and_what_was_not_asked(found: Report) -> None:
    text = shown(found)
    assert "identity" in text
    assert "BROKEN" in text
    (law,) = [law for law in found.laws if law.name == "error"]
    assert "test_who_waits_can_be_cancelled: not asked: it is not awaited" in text
    assert law.checks == law.passed + len(law.broken) + len(law.not_asked)
    assert found.as_json()["full"] is False


def conformance(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "strandline.testing.conformance", *words]
    return subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, check=False)


def test_the_command_finds_what_lies_in_the_folder_and_prints_json(tmp_path: Path) -> None:
    source = "from strandline.summarizers.extractive import ExtractiveSummarizer as Mine\n"
    (tmp_path / "mine.py").write_text(source)
    done = conformance("mine:Mine", "--summarizer", "--deterministic", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    kept = {law["capability"]: law["full"] for law in told["capabilities"]}
    assert kept == {"compaction": True, "determinism": True, "draft": True, "error": False, "identity": True}
    assert [path.name for path in tmp_path.iterdir() if path.name != "__pycache__"] == ["mine.py"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("mine:Mine", "can't be found: No module named 'mine'"),
        ("json:nothing", "can't be found: module 'json' has no attribute 'nothing'"),
        ("json:__name__", "can't be called: it is a str"),
        ("nothing", "can't be found"),
        ("json:dumps --summarizer", "'json:dumps' failed: TypeError: dumps() missing 1 required positional argument"),
        ("gc:collect", "'gc:collect' failed: TypeError: "),
        ("gc:enable --summarizer", "'gc:enable' made nothing: it returned None\nhint: It is called with nothing"),
    ],
)
def test_what_is_not_there_is_refused(tmp_path: Path, name: str, told: str) -> None:
    done = conformance(*name.split(), folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
