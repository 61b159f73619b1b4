"""Law (C18, C19, I7, I8): a context fits its budget, names what it leaves out, and is messages that providers accept.

Checked on both stores by generated logs and budgets, against strict checkers of each provider's rules.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.limits import CONTEXT_BUDGET_TOKENS_MIN
from strandline.model.context import PartKind
from tests.unit.test_engine_stage import (
    CHECKERS,
    WHOLE,
    bounded,
    logs,
    new_workflow,
    quiet,
    talk,
)

CALL, RESULT, SAY = strandline.tool_call, strandline.tool_result, strandline.message


@pytest.fixture
def wf(db):
    return new_workflow(db)


def check_messages(context: strandline.Context) -> None:
    for provider, check in CHECKERS.items():
        check(context.messages(provider))


# ---------------------------------------------------------------------------------------------- budgets


def test_summary_and_tail_meet_at_the_watermark(db):
    """I7: each event is spoken for once: by a segment up to the watermark, by itself behind it."""
    wf = new_workflow(db)
    for number in range(4):
        wf.append(talk(10, start=20 * number))
        wf.compact(700)
        context = wf.context(WHOLE)
        spoken = [
            seq
            for part in context.parts
            if part.kind in (PartKind.SEGMENT, PartKind.EVENT)
            for seq in range(part.from_seq, part.through_seq + 1)
        ]
        assert spoken == list(range(1, context.revision + 1))
        assert 0 < context.watermark < context.revision
        assert [part.kind for part in context.parts if part.from_seq > context.watermark] == ["event"] * (
            context.revision - context.watermark
        )


@bounded(30)
@given(log=logs(40, min_size=8), compacted=st.booleans(), budget=st.integers(CONTEXT_BUDGET_TOKENS_MIN, 900))
def test_a_context_fits_and_names_exactly_what_is_missing(db, log, compacted, budget):
    """C19: parts and omissions together are the whole; what is said fits; a call and its result stay together."""
    wf = new_workflow(db)
    wf.append(log.events)
    if compacted:
        _compact_if_it_can(wf, 500)
    whole = wf.context(WHOLE)
    assert whole.omitted == ()
    check_messages(whole)
    try:
        context, error = wf.context(budget), None
    except strandline.ContextOverflowError as overflow:
        context, error = None, overflow
    if context is None:
        never_left_out = [p.tokens for p in whole.parts if p.kind in (PartKind.SEGMENT, PartKind.ANCHORS)]
        newest = whole.parts[-1].tokens if whole.parts[-1].kind is PartKind.EVENT else 0  # the tail may be empty
        assert sum(never_left_out) + newest <= error.needed
        assert error.budget == budget < whole.tokens
        return
    assert context.tokens == sum(part.tokens for part in context.parts) <= budget
    kept, left = _marks(context.parts), _marks(context.omitted)
    assert sorted(kept + left) == sorted(_marks(whole.parts))
    assert sum(o.tokens for o in context.omitted) + context.tokens == whole.tokens
    assert (context.rung == "whole") == (not left)
    tail = {part.from_seq for part in context.parts if part.kind is PartKind.EVENT}
    for result, call in log.answers.items():
        in_time = any(c.seq == call and c.closed == result for c in log.calls)
        assert not in_time or result not in tail or call in tail
    check_messages(context)


def _compact_if_it_can(wf: strandline.Workflow, budget: int) -> None:
    try:
        wf.compact(budget)
    except strandline.ContextOverflowError:
        return


def _marks(items) -> list[tuple[str, int]]:
    """Return (kind, seq) of every event, and (kind, from) of every other part."""
    marks = []
    for item in items:
        if item.kind is PartKind.EVENT:
            marks += [("event", seq) for seq in range(item.from_seq, item.through_seq + 1)]
        else:
            marks.append((item.kind.value, item.from_seq))
    return marks


def test_the_ladder_goes_down_step_by_step(db, wf):
    """C19: whole, then without the ledger, then with a smaller window, then blocked; each named."""
    wf.append(talk(12))
    wf.compact(600, quiet)
    whole = wf.context(WHOLE)
    kinds = {part.kind: part for part in whole.parts}
    assert [whole.rung, whole.omitted] == ["whole", ()]
    without = wf.context(whole.tokens - 1)
    assert [(o.kind, o.reason) for o in without.omitted] == [("ledger", "without_ledger")]
    smaller = wf.context(whole.tokens - kinds[PartKind.LEDGER].tokens - 1)
    assert [o.reason for o in smaller.omitted] == ["without_ledger", "smaller_window"]
    assert smaller.omitted[1].from_seq == smaller.omitted[1].through_seq == smaller.watermark + 1
    head = kinds[PartKind.SEGMENT].tokens
    least = max(head + whole.parts[-1].tokens, CONTEXT_BUDGET_TOKENS_MIN)
    assert wf.context(least).parts[-1].from_seq == whole.revision
    wf.append(SAY("user", "x" * 3 * least))
    with pytest.raises(strandline.ContextOverflowError) as caught:
        wf.context(least)
    assert caught.value.budget == least
    assert caught.value.needed >= head + least


@pytest.mark.parametrize("budget", [-1, 0, 1, CONTEXT_BUDGET_TOKENS_MIN - 1])
@pytest.mark.parametrize("verb", ["context", "compact", "recover"])
def test_a_budget_below_the_least_is_refused(wf, verb, budget):
    """I22, SPEC §6: also 0, which is no way of saying "the default"."""
    wf.append(SAY("user", "hello"))
    with pytest.raises(strandline.InvalidInputError):
        getattr(wf, verb)(budget=budget)
    assert wf.lineage() == []


def test_the_whole_text_fits_the_budget_too(db):
    """C19: what stands between the parts is counted: a context whose tokens fit has a text that fits."""
    wf = new_workflow(db)
    wf.append([SAY("user", "abc") for _ in range(CONTEXT_BUDGET_TOKENS_MIN)])
    context = wf.context(CONTEXT_BUDGET_TOKENS_MIN)
    assert -(-len(context.text) // 3) <= CONTEXT_BUDGET_TOKENS_MIN


# ---------------------------------------------------------------------------------------------- messages


def test_results_are_moved_up_behind_their_calls(db, wf):
    """I8: whatever was said in between; the order of what is said stays."""
    wf.append([SAY("user", "go"), CALL("a", "fetch", {}), CALL("b", "fetch", {}), SAY("assistant", "waiting")])
    wf.append([RESULT("b", "two"), strandline.note("meanwhile"), RESULT("a", "one")])
    context = wf.context()
    check_messages(context)
    roles = [message["role"] for message in context.messages("openai")]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "user"]
    contents = [m["content"] for m in context.messages("openai") if m["role"] == "tool"]
    assert contents == ["one", "two"]


def test_a_call_without_a_result_gets_a_synthetic_one_and_a_late_result_is_text(db, wf):
    """I8: outcome unknown is said in the result's place, and the late result cites its call."""
    wf.append([SAY("user", "go"), CALL("a", "fetch", {}), SAY("user", "stop"), RESULT("a", "late-result-9")])
    context = wf.context()
    check_messages(context)
    flat = [str(message) for message in context.messages("anthropic")]
    assert "outcome unknown" in flat[2]
    assert any("late-result-9" in text and "call a" in text for text in flat)


def test_thinking_is_never_rendered(db, wf):
    """C2: it is an event, and stands in the context's text, but in no message."""
    wf.append([SAY("user", "go"), strandline.thinking("secret-thought-1"), SAY("assistant", "done")])
    context = wf.context()
    assert all("secret-thought-1" not in str(context.messages(provider)) for provider in CHECKERS)
    check_messages(context)


@pytest.mark.parametrize(
    "ids", [("c", "c"), ("c", "c", "c_2"), ("c_2", "c", "c"), ("c", "c_2", "c", "c_2"), ("c", "c", "c", "c_3")]
)
def test_ids_that_recur_are_made_unique(db, ids):
    """I8: ids recur in a log, also ids that look like those made for a recurring one; a request holds none twice."""
    wf = new_workflow(db)
    for call_id in ids:
        wf.append([CALL(call_id, "fetch", {}), RESULT(call_id, f"of {call_id}")])
    check_messages(wf.context())


@pytest.mark.parametrize(
    ("call_id", "tool"),
    [
        ("functions.fetch:0", "fetch"),
        ("ruf 1/é", "fetch"),
        ("a.b", "fetch"),
        ("c", "mcp.files/read"),
        ("c", "größe"),
        ("c", "y" * 150),
    ],
)
def test_ids_and_tools_are_written_as_providers_allow(db, call_id, tool):
    """C18: a log takes any id and any tool name; messages hold the letters and lengths that providers accept."""
    wf = new_workflow(db)
    wf.append([SAY("user", "go"), CALL(call_id, tool, {}), RESULT(call_id, "done")])
    check_messages(wf.context())


CONTENTS = [
    "",
    " ",
    None,
    True,
    1.5,
    {"a": 1},
    [],
    [1, 2],
    [{"a": 1}],
    [None],
    [{"type": "text", "text": ""}],
    [{"type": "text", "text": "x"}, {"type": "row", "id": 1}],
    [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "z", "name": "n", "input": {}}],
    [{"type": "text"}],
]


@pytest.mark.parametrize("content", CONTENTS, ids=repr)
def test_a_result_of_any_json_is_written_as_providers_allow(db, content):
    """C18: `tool_result` takes any JSON value as its content."""
    wf = new_workflow(db)
    wf.append([SAY("user", "go"), CALL("c", "fetch", {}), RESULT("c", content)])
    check_messages(wf.context())


@pytest.mark.parametrize("arguments", ["", "x", None, 3, [], [1], {}, {"type": "text"}], ids=repr)
def test_a_call_of_any_json_is_written_as_providers_allow(db, arguments):
    """C18: `tool_call` takes any JSON value as its input."""
    wf = new_workflow(db)
    wf.append([CALL("c", "fetch", arguments), RESULT("c", "done")])
    check_messages(wf.context())


@pytest.mark.parametrize(
    "event",
    [
        strandline.constraint("s", ""),
        strandline.issue("s", ""),
        strandline.artifact("s", "handle-1"),
        strandline.approval("s", "", granter="ann"),
        strandline.revoke("s"),
        strandline.pin("ref-1"),
        strandline.thinking("hm"),
    ],
    ids=lambda event: event.kind.value,
)
def test_an_event_alone_is_written_as_providers_allow(db, event):
    """C18: each kind, with as little text as it may have."""
    wf = new_workflow(db)
    wf.append([strandline.note("x", refs=["ref-1"]), event])
    check_messages(wf.context())


def test_an_erased_call_is_asked_with_nothing(db):
    """C18, C31: its arguments are gone, and no provider takes `null` for them."""
    wf = new_workflow(db)
    wf.append([strandline.tool_call("c1", "look_up", {"name": "Ada"}), strandline.tool_result("c1", "found")])
    wf.erase(events=[1], by="dpo", why="request 14")
    context = wf.context()
    check_messages(context)
    (asked,) = [m["tool_calls"][0]["function"] for m in context.messages("openai") if m.get("tool_calls")]
    (used,) = [block for m in context.messages("anthropic") for block in m["content"] if block["type"] == "tool_use"]
    assert (asked["arguments"], used["input"]) == ("{}", {})


def test_messages_for_an_unknown_provider_are_refused(wf):
    """SPEC §6: the error names those that there are."""
    with pytest.raises(strandline.InvalidInputError, match="anthropic, openai"):
        wf.context().messages("gpt")


# ---------------------------------------------------------------------------------------------- needs


def test_a_need_that_no_event_holds_fails_closed(db, wf):
    """I16, I11: it has no last sighting. What an event holds is retrieved (test_retrieval.py)."""
    wf.append([SAY("user", "take bucket-7f3a"), *talk(40)])
    wf.compact(250, quiet)
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        wf.context(needs=["never-seen-1"])
    error = caught.value
    assert (error.missing_ref, error.missing_refs) == ("never-seen-1", ("never-seen-1",))
    assert (error.reason, error.last_known) == ("dependency_not_verbatim", None)
    assert error.summary_generation == wf.context().generation


def test_half_a_reference_does_not_meet_a_need(db, wf):
    """DESIGN §4: matching is on token boundaries."""
    wf.append(SAY("user", "pay $5000 for bucket-7f3ab"))
    wf.context(needs=["$5000", "bucket-7f3ab"])
    for need in ("$500", "bucket-7f3a"):
        with pytest.raises(strandline.SummaryReconciliationError):
            wf.context(needs=[need])


@pytest.mark.parametrize("path", ["C:\\Users\\ann\\plan.md", '/srv/"quoted"/plan.md', "naïve/plan.md"])
def test_a_need_in_the_arguments_of_a_call_is_met_as_it_was_meant(db, path):
    """I16: the value stands in the tail's event, also where JSON writes it with a backslash."""
    wf = new_workflow(db)
    wf.append([CALL("c", "read", {"path": path}, refs=[path]), RESULT("c", {"read": path})])
    assert wf.context(needs=[path]).revision == 2


@pytest.mark.parametrize("needs", ["bucket-1", [""], [1], ["x"] * 1_001])
def test_needs_that_can_not_be_looked_for_are_refused(wf, needs):
    """SPEC §6: a text is no list, a reference is not empty, there is a bound."""
    with pytest.raises(strandline.InvalidInputError):
        wf.context(needs=needs)
