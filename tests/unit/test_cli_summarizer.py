"""Law (C8, C29): a command line names what drafts: a provider's model, or a function that makes a summarizer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import strandline
from strandline.testing import Failure, ScriptedModel
from tests.unit.test_cli import Run, answer, run, store  # noqa: F401  fixtures
from tests.unit.test_engine_stage import talk

Say = Callable[..., dict[str, Any]]
ANSWER = json.dumps({"claims": [{"text": "Step 1 looks at /srv/site/1/plan.md.", "events": [1]}]})


@pytest.fixture
def log(store: Path) -> Path:  # noqa: F811
    with strandline.open(store) as db:
        db.tenant("default").workflow("a").append(talk(20))
    return store


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Any:
    with ScriptedModel(ANSWER) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{model.url}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        yield model


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("name", ["openai:llama3:8b", "anthropic:claude"])
def test_a_model_of_a_provider_drafts(answer: Say, model: ScriptedModel, name: str) -> None:  # noqa: F811
    assert answer("compact", "--budget", 500, "--summarizer", name)["outcome"] == "activated"
    assert [sent["model"] for sent in model.requests] == [name.partition(":")[2]]


def test_a_due_compaction_is_run_by_it_too(log: Path, answer: Say, model: ScriptedModel) -> None:  # noqa: F811
    with strandline.open(log) as db:
        db.tenant("default").workflow("a").compact_later(500)
    assert answer("run-due", "--summarizer", "openai:small")["results"] == {"done": 1}
    assert len(model.requests) == 1


def test_a_function_makes_it(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Say) -> None:  # noqa: F811
    (tmp_path / "memory_of_tests.py").write_text(
        "def make():\n    return summarize\n\n\ndef summarize(request):\n    return 'They talked.'\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    summarizer = ("--summarizer", "memory_of_tests:make")
    assert answer("compact", "--store", log, "--budget", 500, *summarizer)["outcome"] == "activated"
    with strandline.open(log) as db:
        summary = db.tenant("default").workflow("a").compact(500).summary
    assert summary is not None
    assert "They talked." in summary.segments[0].text


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("name", ["gpt", "openai:", ":made", "a:b:c", ""])
def test_what_is_no_name_is_a_usage_error(run: Run, name: str) -> None:  # noqa: F811
    refused = run("compact", "--summarizer", name)
    assert refused.exit_code == 2
    assert "openai:MODEL" in refused.stderr.replace("\n", " ")


@pytest.mark.usefixtures("log")
def test_what_cannot_be_made_is_an_error_with_a_hint(
    answer: Say,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    error = answer("compact", "--summarizer", "openai:gpt", code=1)["error"]
    assert error["type"] == "SummarizerSetupError"
    assert "OPENAI_API_KEY" in error["hint"]
    assert answer("compact", "--summarizer", "nowhere:made", code=1)["error"]["type"] == "InvalidInputError"


@pytest.mark.usefixtures("log")
def test_a_key_that_is_refused_ends_the_command_and_a_due_run_at_once(
    log: Path,
    answer: Say,  # noqa: F811
    model: ScriptedModel,
) -> None:
    model.script[:] = [Failure(status=401, kind="invalid_api_key", message="Incorrect API key")]
    error = answer("compact", "--budget", 500, "--summarizer", "openai:gpt", code=1)["error"]
    assert error["type"] == "SummarizerSetupError"
    assert "Incorrect API key" in error["message"]
    with strandline.open(log) as db:
        db.tenant("default").workflow("a").compact_later(500)
    ran = answer("run-due", "--summarizer", "openai:gpt", code=5)
    assert ran["results"] == {"failed": 1}
    assert len(model.requests) == 2
