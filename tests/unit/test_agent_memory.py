"""What guests of every framework share: a history is recorded once, and no summary ends a turn (I3, C14, C19)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import strandline
from strandline.integrations.agent_memory import AgentMemory
from strandline.limits import EVENTS_PAGE_MAX, RECORD_PAGE_EVENTS

Told = list[tuple[str, object]]


@pytest.fixture
def workflow() -> strandline.Workflow:
    return strandline.open(":memory:").tenant("acme").workflow("w")


def history(through: int, first: int = 1) -> list[strandline.NewEvent]:
    return [strandline.message("user", f"line {n} " + "word " * 30, key=f"m{n}") for n in range(first, through + 1)]


def counting(workflow: strandline.Workflow, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many keys were looked up, call by call."""
    asked: list[int] = []
    seqs_of = workflow.seqs_of
    monkeypatch.setattr(workflow, "seqs_of", lambda keys: asked.append(len(keys)) or seqs_of(keys))
    return asked


def test_seqs_of_knows_live_events_only(workflow: strandline.Workflow) -> None:
    """I3: a key that a rewind set free is none any more."""
    workflow.append(history(3))
    assert workflow.seqs_of(["m1", "m3", "m9", ""]) == {"m1": 1, "m3": 3}
    assert workflow.seqs_of([]) == {}
    workflow.rewind(to_revision=2, by="me", why="a wrong turn")
    assert workflow.seqs_of(["m1", "m3"]) == {"m1": 1}


def test_seqs_of_tells_a_view_of_its_own_audiences_only(workflow: strandline.Workflow) -> None:
    """I21: not even that the key is taken."""
    workflow.define_view("narrow", audiences={"release"})
    workflow.append([strandline.message("user", "a", key="a", audience="legal"), *history(1)])
    assert workflow.view("narrow").seqs_of(["a", "m1"]) == {"m1": 2}


@pytest.mark.parametrize("keys", ["m1", [str(n) for n in range(EVENTS_PAGE_MAX + 1)]])
def test_seqs_of_refuses_what_is_no_list_of_keys(workflow: strandline.Workflow, keys: list[str]) -> None:
    with pytest.raises(strandline.InvalidInputError):
        workflow.seqs_of(keys)


def test_a_history_that_is_handed_over_whole_is_recorded_once(workflow: strandline.Workflow) -> None:
    memory = AgentMemory(workflow)
    assert memory.record(history(200)).added == 200
    again = memory.record(history(203))
    assert (again.added, again.revision) == (3, 203)
    assert [event.seq for event in workflow.events(198)] == list(range(198, 204))
    assert memory.record(history(203)).added == 0
    assert memory.record([]).revision == 203


def test_what_is_looked_up_follows_what_is_new(workflow: strandline.Workflow, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = AgentMemory(workflow)
    memory.record(history(1_000))
    asked = counting(workflow, monkeypatch)
    memory.record(history(1_001))
    assert sum(asked) <= 2 * RECORD_PAGE_EVENTS


def test_what_a_framework_put_in_the_middle_is_recorded_too(workflow: strandline.Workflow) -> None:
    memory = AgentMemory(workflow)
    memory.record(history(10))
    inserted = [*history(5), strandline.message("user", "late", key="late"), *history(10, first=6)]
    recorded = memory.record(inserted)
    assert (recorded.added, recorded.seqs["late"]) == (1, 11)


def test_an_event_without_a_key_is_refused_and_nothing_is_written(workflow: strandline.Workflow) -> None:
    with pytest.raises(strandline.InvalidInputError) as refused:
        AgentMemory(workflow).record([*history(2), strandline.message("user", "no key")])
    assert refused.value.position == 2
    assert workflow.basis().revision == 0


def test_a_stale_writer_adds_nothing(workflow: strandline.Workflow) -> None:
    memory = AgentMemory(workflow)
    memory.record(history(3))
    with pytest.raises(strandline.StaleRevisionError):
        memory.record(history(4), expected_revision=2)
    assert memory.record(history(3), expected_revision=2).added == 0
    assert workflow.basis().revision == 3


def fails(error: Exception) -> Callable[[object], str]:
    def summarize(request: object) -> str:
        raise error

    return summarize


@pytest.mark.parametrize(
    "summarizer",
    [
        fails(strandline.SummarizerSetupError("the key is wrong")),
        fails(strandline.MalformedDraftError("the model stopped at its length")),
        fails(RuntimeError("Error generating summary: 429")),
        lambda request: "",
    ],
)
def test_a_summary_that_fails_ends_no_turn(workflow: strandline.Workflow, summarizer: object) -> None:
    """C14, C19: the agent goes on with what it had; that there is no summary is told, not hidden."""
    told: Told = []
    memory = AgentMemory(
        workflow, budget=4_000, compact_at=1_000, summarizer=summarizer, told=lambda *what: told.append(what)
    )
    memory.record(history(40))
    outcome = memory.compact_if_due()
    assert (outcome is None or outcome.outcome != "activated") == bool(told)
    assert memory.context().tokens <= 4_000
    assert "line 40 " in str(memory.context().messages("openai"))


def test_the_log_says_of_which_workflow_it_speaks(
    workflow: strandline.Workflow, caplog: pytest.LogCaptureFixture
) -> None:
    """C28: and nothing of what stands in it."""
    memory = AgentMemory(workflow, budget=4_000, compact_at=1_000, summarizer=fails(ValueError("429 for line 40")))
    memory.record(history(40))
    memory.compact_if_due()
    (said,) = [record.message for record in caplog.records]
    assert f"in workflow {workflow.name!r}, view 'main': " in said
    assert "line 40" not in said


def test_who_is_told_ends_no_turn_either(workflow: strandline.Workflow, caplog: pytest.LogCaptureFixture) -> None:
    def told(what: str, how: object) -> None:
        raise RuntimeError("the pager is away")

    memory = AgentMemory(workflow, budget=4_000, compact_at=1_000, summarizer=fails(ValueError("429")), told=told)
    memory.record(history(40))
    assert memory.compact_if_due() is None
    assert "the pager is away" in caplog.text


def test_it_is_compacted_when_it_is_due_and_not_before(workflow: strandline.Workflow) -> None:
    memory = AgentMemory(workflow, budget=4_000, compact_at=2_000)
    memory.record(history(3))
    before = memory.compact_if_due()
    memory.record(history(60))
    after = memory.compact_if_due()
    assert before is not None
    assert before.outcome == "nothing_to_do"
    assert after is not None
    assert after.outcome == "activated"
    assert after.tokens_after <= memory.compact_to == 1_000


def test_a_worker_is_asked_where_there_is_one(workflow: strandline.Workflow) -> None:
    memory = AgentMemory(workflow, budget=4_000, compact_at=2_000, background=True)
    memory.record(history(60))
    assert memory.compact_if_due() is None
    assert [due.view for due in workflow.due()] == ["main"]
    assert workflow.basis().generation == 0


@pytest.mark.parametrize("wrong", [{"budget": 1}, {"budget": True}, {"compact_at": "9"}, {"compact_to": 100_000}])
def test_a_budget_that_is_none_is_refused(workflow: strandline.Workflow, wrong: dict[str, object]) -> None:
    with pytest.raises(strandline.InvalidInputError):
        AgentMemory(workflow, **wrong)  # type: ignore[arg-type]


def test_a_summarizer_that_is_none_is_the_programs_fault_and_is_raised(workflow: strandline.Workflow) -> None:
    memory = AgentMemory(workflow, budget=4_000, compact_at=1_000, summarizer=17)
    memory.record(history(40))
    with pytest.raises(strandline.InvalidInputError):
        memory.compact_if_due()


@pytest.mark.parametrize("budget", [8_000, 10_000, 16_000])
def test_no_compaction_covers_what_the_model_is_asked(workflow: strandline.Workflow, budget: int) -> None:
    """C19: a question that is larger than the tail's share stays verbatim; the model would not see it else."""
    workflow.append([strandline.message("assistant", "word " * 600, actor="agent") for _ in range(16)])
    workflow.append(strandline.message("user", "Why does it fail? " + "trace line. " * 1_200, actor="ann"))
    memory = AgentMemory(workflow, budget=budget)
    outcome = memory.compact_if_due()
    assert outcome is not None
    assert outcome.outcome == "activated"
    context = memory.context()
    assert context.tokens <= budget
    assert [part.event.seq for part in context.parts if part.event is not None][-1] == 17


def test_a_question_that_exceeds_the_budget_is_an_error_and_not_covered(workflow: strandline.Workflow) -> None:
    """C11: it is not summarized unseen."""
    told: Told = []
    workflow.append(strandline.message("user", "trace line. " * 1_200, actor="ann"))
    memory = AgentMemory(workflow, budget=1_000, told=lambda what, how: told.append((what, how)))
    assert memory.compact_if_due() is None
    assert len(told) == 1
    with pytest.raises(strandline.ContextOverflowError):
        memory.context()


def results(count: int, words: int) -> list[strandline.NewEvent]:
    texts = [f"result {n} " + "row " * words for n in range(count)]
    return [strandline.message("user", text, key=f"r{n}") for n, text in enumerate(texts)]


def test_no_compaction_covers_what_came_since_the_model_answered(workflow: strandline.Workflow) -> None:
    """C19: of several long results of one step each is shown to the model once, not the last of them alone."""
    memory = AgentMemory(workflow, budget=8_000, compact_at=4_000, compact_to=1_000)
    memory.record(history(60))
    answered = workflow.basis().revision
    memory.record(results(3, 800))
    outcome = memory.compact_if_due(unseen=answered + 1)
    assert outcome is not None
    assert (outcome.outcome, outcome.watermark) == ("activated", answered)
    shown = str(memory.context().messages("openai"))
    assert all(f"result {n} " in shown for n in range(3))


def test_what_came_since_takes_no_more_than_its_share(workflow: strandline.Workflow) -> None:
    memory = AgentMemory(workflow, budget=8_000, compact_at=4_000, compact_to=1_000)
    memory.record(history(60))
    memory.record(results(9, 800))
    outcome = memory.compact_if_due(unseen=61)
    assert outcome is not None
    assert outcome.outcome == "activated"
    assert 61 <= outcome.watermark < 69
    assert outcome.tokens_after <= 8_000
