"""Law (C19): what a context needs and does not hold is quoted out of the log, within limits; or the call is blocked.

1. A need that stands in summary or tail costs nothing; another one is quoted from the newest event that holds it.
2. The text fits the budget; every need stands in it; no event stands in it twice; the same call gives the same.
3. A quote is an exact stretch of its event, and nothing stands in it that does not stand there.
4. What a reader may not see is as unknown to it as what no event holds (I11, I21).
5. Retrieval makes no recovery (I16).
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline import PartKind, Rung
from strandline.engine.retrieve import dependency_text
from strandline.limits import (
    CONTEXT_BUDGET_TOKENS_MIN,
    RETRIEVAL_CONTEXT_CHARS,
    RETRIEVAL_EVENTS_MAX,
    RETRIEVAL_LOOKUPS_MAX,
    RETRIEVAL_SHARE,
)
from strandline.model.event import EventKind, SourceEvent
from strandline.model.view import ViewHead
from strandline.rules.recovery import missing_dependencies
from strandline.rules.retrieval import Source, narrowest, quote
from strandline.rules.verbatim import stands_verbatim
from tests.unit.test_engine_stage import CHECKERS, WHOLE, bounded, new_workflow, open_store, quiet, talk, transaction

SAY = strandline.message
FILLER = "the pump room was inspected again and nothing was found there "


@pytest.fixture
def wf(db):
    """A workflow whose summary holds no reference at all."""
    wf = new_workflow(db)
    wf.append([SAY("user", f"Take bucket-7f3a. {FILLER}"), *talk(30)])
    assert wf.compact(250, quiet).outcome == "activated"
    return wf


def dropped(wf) -> list[str]:
    return [entry.ref for entry in wf.manifest()]


def retrieved(context) -> list:
    return [part for part in context.parts if part.kind is PartKind.RETRIEVED]


def without_ledger(wf, need: str):
    """Read a context in which there is no room for the ledger, which carries what is declared."""
    return wf.context(wf.context(WHOLE).tokens - 1, needs=[need])


# ---------------------------------------------------------------------------------------------- what is retrieved


def test_a_need_that_the_summary_dropped_is_quoted_from_its_event(wf):
    """Law 1: whole, since there is room; with its provenance, behind the summary and before the tail."""
    assert "bucket-7f3a" in dropped(wf)
    context = wf.context(needs=["bucket-7f3a"])
    (part,) = retrieved(context)
    assert (part.from_seq, part.through_seq, context.rung, context.omitted) == (1, 1, "retrieved", ())
    assert [(e.from_char, e.to_char, e.text) for e in part.excerpts] == [(0, 80, f"Take bucket-7f3a. {FILLER}")]
    assert part.excerpts[0].text in part.text
    assert "Event 1 (message), looked up in the log" in part.text
    kinds = list(dict.fromkeys(part.kind for part in context.parts))
    assert kinds == [kind for kind in PartKind if kind in kinds]
    assert (context.needs.retrieved, context.needs.lookups, context.needs.events) == (1, 1, 1)
    assert context.tokens_by_kind[PartKind.RETRIEVED] == part.tokens
    assert sum(context.tokens_by_kind.values()) == context.tokens


def test_a_need_that_stands_there_costs_nothing(wf):
    """Law 1: the context is the one without needs."""
    wf.append([strandline.constraint("no-prod", "Never touch vault-0911."), *talk(20, start=50)])
    wf.compact(250, quiet)
    wf.append(SAY("user", "now bucket-5555"))
    needs = ["vault-0911", "bucket-5555"]
    context, plain = wf.context(needs=needs), wf.context()
    assert (context.parts, context.rung, context.tokens) == (plain.parts, plain.rung, plain.tokens)
    counts = context.needs
    assert (counts.in_summary, counts.in_tail, counts.retrieved, counts.lookups, counts.events) == (1, 1, 0, 0, 0)


def test_the_newest_event_is_the_one_that_is_quoted(db):
    """Law 1: an older one may say what is no longer so."""
    wf = new_workflow(db)
    wf.append([SAY("user", "bucket-7f3a is new"), SAY("user", "bucket-7f3a is full"), *talk(200)])
    wf.compact(250, quiet)
    (part,) = retrieved(wf.context(needs=["bucket-7f3a"]))
    assert (part.from_seq, part.excerpts[0].text) == (2, "bucket-7f3a is full")


def test_several_needs_in_one_event_are_one_quote(wf):
    """Law 2: the event is read and quoted once."""
    needs = ["/srv/site/3/plan.md", "bucket-0003"]
    context = wf.context(needs=[*needs, *needs])
    assert [part.from_seq for part in retrieved(context)] == [6, 7]
    wf.append([SAY("user", f"{' and '.join(needs)}"), *talk(30, start=100)])
    wf.compact(250, quiet)
    context = wf.context(needs=needs)
    assert len(retrieved(context)) == context.needs.events == 1
    assert (context.needs.retrieved, context.needs.lookups) == (2, 2)


@pytest.mark.parametrize("path", ["C:\\Users\\ann\\plan.md", '/srv/"quoted"/plan.md'])
def test_a_value_that_json_escapes_stands_as_it_was_meant(db, path):
    """Law 2: the values of a call's payload are quoted beside it."""
    wf = new_workflow(db)
    wf.append([strandline.tool_call("c", "read", {"path": path}, refs=[path]), strandline.tool_result("c", "ok")])
    wf.append(talk(30))
    wf.compact(250, quiet)
    (part,) = retrieved(without_ledger(wf, path))
    assert stands_verbatim(path, part.text)


def test_a_reference_that_is_only_declared_is_named_as_such(db):
    """Law 1: the event holds it, though its text does not."""
    wf = new_workflow(db)
    wf.append([strandline.note("see the bucket", refs=["bucket-7f3a"]), *talk(30)])
    wf.compact(250, quiet)
    (part,) = retrieved(without_ledger(wf, "bucket-7f3a"))
    assert part.excerpts[0].text == "[note] see the bucket\n[declared references] bucket-7f3a"


def test_a_need_that_only_the_ledger_held_is_retrieved_when_the_ledger_goes(db):
    """C19: the rung that leaves out the ledger leaves out no need."""
    wf = new_workflow(db)
    wf.append(
        [
            SAY(
                "user",
                "Take bucket-7f3a.",
            ),
            *talk(8, words=60),
        ]
    )
    wf.compact(900, quiet)
    ledger = next(part for part in wf.context(WHOLE).parts if part.kind is PartKind.LEDGER)
    assert stands_verbatim("bucket-7f3a", ledger.text)
    context = wf.context(wf.context(WHOLE).tokens - 1, needs=["bucket-7f3a"])
    assert context.rung == "without_ledger"
    assert [part.from_seq for part in retrieved(context)] == [1]


# ---------------------------------------------------------------------------------------------- the budget


def test_the_tail_gives_way_and_the_needs_stand(wf):
    """C19: the smaller window is named, and an event of the tail that it leaves out is quoted if it is needed."""
    wf.append([SAY("user", f"{'x ' * 200} needle-77 {'y ' * 200}"), *[SAY("user", FILLER) for _ in range(20)]])
    tail = wf.context(WHOLE).tokens
    context = wf.context(tail - 200, needs=["needle-77", "bucket-7f3a"])
    assert context.rung == "smaller_window"
    assert context.tokens <= tail - 200
    first, second = retrieved(context)
    assert first.from_seq == 1
    (window,) = (left for left in context.omitted if left.kind is PartKind.EVENT)
    assert second.from_seq in range(window.from_seq, window.through_seq + 1)
    rest = [left for left in context.omitted if left.kind is PartKind.RETRIEVED]
    assert [left.from_seq for left in rest] == [second.from_seq]
    assert rest[0].tokens > 0
    assert all(stands_verbatim(need, context.text) for need in ("needle-77", "bucket-7f3a"))
    assert (context.needs.retrieved, context.needs.lookups) == (2, 1)  # the tail is at hand


def test_of_a_large_event_only_the_surroundings_are_quoted(db):
    """Law 3: exact, with the place of what is left out; wider where there is room, and never beyond its share."""
    wf = new_workflow(db)
    large = f"{'left ' * 9_000}needle-77{' right' * 9_000}"
    wf.append([SAY("user", large), *talk(30)])
    wf.compact(250, quiet)
    sizes = []
    for budget in (600, 1_200, 8_000, 80_000):
        context = wf.context(budget, needs=["needle-77"])
        (part,) = retrieved(context)
        (excerpt,) = part.excerpts
        assert large[excerpt.from_char : excerpt.to_char] == excerpt.text
        assert stands_verbatim("needle-77", excerpt.text)
        assert part.tokens <= budget * RETRIEVAL_SHARE
        sizes.append(len(excerpt.text))
        if len(excerpt.text) < len(large):
            assert f"[characters 0 to {excerpt.from_char} left out]" in part.text
            assert f"[characters {excerpt.to_char} to {len(large)} left out]" in part.text
            assert [left.kind for left in context.omitted if left.from_seq == 1] == ["retrieved"]
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == len(large)
    assert sizes[0] <= 2 * RETRIEVAL_CONTEXT_CHARS[-1] + len("needle-77")


def test_needs_that_do_not_fit_block_the_call(wf):
    """C19: an error, not a cut; it says what each takes, and what it says is enough."""
    needs = dropped(wf)[:12]
    for budget in (CONTEXT_BUDGET_TOKENS_MIN, 200, 400):
        with pytest.raises(strandline.ContextOverflowError) as caught:
            wf.context(budget, needs=needs)
        error = caught.value
        assert set(error.needs) == set(needs)
        assert all(tokens > 0 for tokens in error.needs.values())
        assert wf.context(error.needed, needs=needs).tokens <= error.needed
    wf.append(strandline.constraint("no-prod", "Never. " * 200))
    with pytest.raises(strandline.ContextOverflowError, match="mandatory facts and the newest event exceed") as caught:
        wf.context(200, needs=["no-prod"])
    assert caught.value.needs == {}


def test_there_is_a_limit_to_lookups_and_to_events(db):
    """I22: beyond them the call is blocked, and the error says which limit."""
    wf = new_workflow(db)
    refs = [f"bucket-{number:04x}" for number in range(RETRIEVAL_LOOKUPS_MAX + 1)]
    wf.append([*[SAY("user", f"take {ref}") for ref in refs], *talk(40, start=7_000)])
    wf.compact(400, quiet)
    refs = [ref for ref in refs if ref in set(dropped(wf))]
    assert len(refs) > RETRIEVAL_EVENTS_MAX
    wf.context(needs=refs[:RETRIEVAL_EVENTS_MAX])
    with pytest.raises(strandline.ContextOverflowError, match=f"more than {RETRIEVAL_EVENTS_MAX} events") as caught:
        wf.context(needs=refs[: RETRIEVAL_EVENTS_MAX + 1])
    assert len(caught.value.needs) == RETRIEVAL_EVENTS_MAX
    many = [f"disk-{number:04x}" for number in range(RETRIEVAL_LOOKUPS_MAX + 1)]
    wf.append([SAY("user", " ".join(many)), *talk(40, start=8_000)])
    wf.compact(400, quiet)
    gone = set(dropped(wf))
    assert gone >= set(many)
    assert wf.context(needs=many[:-1]).needs.lookups == RETRIEVAL_LOOKUPS_MAX
    with pytest.raises(strandline.ContextOverflowError, match=f"more than {RETRIEVAL_LOOKUPS_MAX} would"):
        wf.context(needs=many)


@bounded(40)
@given(
    budget=st.integers(CONTEXT_BUDGET_TOKENS_MIN, 1_500),
    picks=st.lists(st.integers(0, 10_000), max_size=12),
    lengths=st.lists(st.integers(0, 1_500), min_size=4, max_size=20),
    compacted=st.booleans(),
)
def test_a_context_with_needs_keeps_every_law(db, budget, picks, lengths, compacted):
    """Law 2, for logs, needs and budgets of all sizes; and what an overflow says is needed is enough."""
    wf = new_workflow(db)
    for number, length in enumerate(lengths):
        text = f"{'a ' * (length // 3)}asset-{number:02x}77{' b' * (length // 2)} unit-{number:02x}9"
        wf.append(strandline.note(text, refs=[f"ticket {number}"] if length % 2 else ()))
        wf.append([strandline.tool_call(f"c{number}", "t", {"n": number}), strandline.tool_result(f"c{number}", "ok")])
    if compacted:
        with suppress(strandline.ContextOverflowError):
            wf.compact(400, quiet)
    held = [f"asset-{n:02x}77" for n in range(len(lengths))] + [f"unit-{n:02x}9" for n in range(len(lengths))]
    needs = [held[pick % len(held)] for pick in picks]
    try:
        context = wf.context(budget, needs)
    except strandline.ContextOverflowError as overflow:
        budget = overflow.needed
        context = wf.context(budget, needs)
    assert -(-len(context.text.encode()) // 3) <= context.tokens <= budget
    quoted = [excerpt.text for part in retrieved(context) for excerpt in part.excerpts]
    assert not missing_dependencies(needs, dependency_text(context.parts), *quoted)
    assert context == wf.context(budget, needs)
    counts = context.needs
    assert counts.in_summary + counts.in_tail + counts.retrieved == len(set(needs))
    assert counts.retrieved >= counts.events == len(retrieved(context))
    seqs = [part.from_seq for part in context.parts if part.kind in (PartKind.RETRIEVED, PartKind.EVENT)]
    assert len(set(seqs)) == len(seqs)
    assert [part.from_seq for part in retrieved(context)] == sorted(part.from_seq for part in retrieved(context))
    assert sum(part.tokens for part in retrieved(context)) <= budget * RETRIEVAL_SHARE
    assert (context.rung is Rung.WHOLE) == (not context.omitted and not retrieved(context))
    for provider, check in CHECKERS.items():
        check(context.messages(provider))


# ---------------------------------------------------------------------------------------------- quotes

TOKENS = st.sampled_from(
    ["$500", "$5000", "/a/b", "/a/b/c", "x-1", "x", "1,5", "né", "(", '"', " ", "\n", ".", "-", "%"]
)
TEXTS = st.lists(TOKENS, min_size=1, max_size=16).map(lambda tokens: "".join(tokens) * 12)


@bounded(200)
@given(before=TEXTS, after=TEXTS, ref=st.sampled_from(["needle-77", "/n/7", "$77", "need le"]), wide=st.integers(0, 40))
def test_a_quote_forges_no_reference(before, after, ref, wide):
    """Law 3: `$500` never comes of a cut through `$5000`."""
    text = f"{before} {ref} {after}"
    event = SourceEvent(seq=3, kind=EventKind.MESSAGE, role=None, actor="", text=text, tokens=0)
    part = quote(Source(event=event, text=text, refs=(ref,)), wide, len)
    assert any(stands_verbatim(ref, excerpt.text) for excerpt in part.excerpts)
    for excerpt in part.excerpts:
        assert text[excerpt.from_char : excerpt.to_char] == excerpt.text
        for token in ("$500", "/a/b", "x-1", "x", "1", "5", "b", "né", "/a", "0"):
            assert not stands_verbatim(token, excerpt.text) or stands_verbatim(token, text)


def test_a_long_run_is_cut_at_the_reference_itself():
    """Law 3: a blob without any end of a token is not quoted to its end."""
    text = f"{'A/' * 40_000}. needle-77 .{'/B' * 40_000}"
    event = SourceEvent(seq=3, kind=EventKind.MESSAGE, role=None, actor="", text=text, tokens=0)
    (part,) = narrowest([Source(event=event, text=text, refs=("needle-77",))], len)
    assert "needle-77" in part.excerpts[0].text
    assert len(part.text) < 2_000


# ---------------------------------------------------------------------------------------------- who may see what


def test_what_a_view_may_not_see_is_unknown_to_it(db):
    """I21, I11: word for word the same error; and an event that it may see is found behind many others."""
    wf = new_workflow(db)
    hidden = [strandline.note(f"secret-4411 again {number} door-77", audience="staff") for number in range(40)]
    wf.append([strandline.note("door-77 is open", audience="release"), *hidden, *talk(5)])
    with transaction(db, wf, write=True) as tx:
        tx.views.put(ViewHead(view_id=1, name="main"))
        tx.views.put(ViewHead(view_id=2, name="narrow", audiences=frozenset({"release"})))
    narrow = strandline.Workflow(wf._env, "narrow")
    errors = []
    for need in ("secret-4411", "secret-4412"):
        with pytest.raises(strandline.SummaryReconciliationError) as caught:
            narrow.context(needs=[need])
        assert caught.value.last_known is None
        errors.append(str(caught.value).replace(need, "…"))
    assert errors[0] == errors[1]
    small = [*(part.tokens for part in narrow.context().parts)][-1] + 120
    context = narrow.context(small, needs=["door-77"])
    assert [part.from_seq for part in retrieved(context)] == [1]
    assert "staff" not in context.text
    assert [hit.seq for hit in narrow.recall("door-77", limit=1)] == [1]
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        narrow.recover(needs=["secret-4411"])
    assert caught.value.last_known is None


def test_a_need_that_no_event_holds_is_refused(wf):
    """I11, I16: also beside needs that can be met; the error names those that can't."""
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        wf.context(needs=["bucket-7f3a", "never-seen-1", "never-seen-2"])
    error = caught.value
    assert (error.missing_refs, error.last_known) == (("never-seen-1", "never-seen-2"), None)
    assert error.reason == "dependency_not_verbatim"


# ---------------------------------------------------------------------------------------------- what it does not do


def test_retrieval_makes_no_recovery(wf):
    """I16: what can be looked up is reconstructible; recovery asks for what is there, and fails closed."""
    context = wf.context(needs=["bucket-7f3a"])
    assert stands_verbatim("bucket-7f3a", context.text)
    assert not stands_verbatim("bucket-7f3a", context.dependency_text)
    wf.checkpoint({"step": 1}, 1, basis=context)
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        wf.recover(needs=["bucket-7f3a"])
    assert (caught.value.missing_ref, caught.value.last_known.seq) == ("bucket-7f3a", 1)


def test_messages_hold_quotes_as_text_of_the_user(db):
    """C18, I8: never as a call or a result; and not in one text with the anchors."""
    wf = new_workflow(db)
    wf.append([SAY("user", "go"), strandline.tool_call("c", "make", {}), strandline.tool_result("c", "made vm-4471")])
    wf.append([strandline.constraint("no-prod", "Never."), *talk(200)])
    wf.compact(250, quiet)
    context = wf.context(needs=["vm-4471"])
    assert [part.from_seq for part in retrieved(context)] == [3]
    openai = context.messages("openai")
    holding = [message for message in openai if "vm-4471" in str(message["content"])]
    assert [message["role"] for message in holding] == ["user"]
    assert "Never." not in str(holding)
    assert all(message["role"] != "tool" for message in openai)
    anthropic = context.messages("anthropic")
    blocks = [block for block in anthropic[0]["content"] if "vm-4471" in block["text"]]
    assert [block["type"] for block in blocks] == ["text"]
    assert "Never." not in blocks[0]["text"]


def test_hooks_are_told_the_rung_and_what_it_cost(tmp_path):
    """C19: each rung is counted, the last one too."""

    class Hook:
        def __init__(self):
            self.told = []

        def emit(self, name, details):
            if name == "context":
                self.told.append(dict(details))

    hook = Hook()
    with open_store("sqlite", tmp_path, hooks=[hook]) as db:
        wf = new_workflow(db)
        wf.append([SAY("user", "Take bucket-7f3a."), *talk(30)])
        wf.compact(250, quiet)
        context = wf.context(needs=["bucket-7f3a"])
        for needs in (["never-seen-1"], dropped(wf)):
            with pytest.raises(strandline.StrandlineError):
                wf.context(300, needs=needs)
    met, unknown, blocked = hook.told
    assert (met["rung"], met["tokens"], met["tokens_omitted"]) == ("retrieved", context.tokens, 0)
    assert met["needs"] == {"in_summary": 0, "in_tail": 0, "retrieved": 1, "lookups": 1, "events": 1}
    assert met["tokens_by_kind"]["retrieved"] == context.tokens_by_kind[PartKind.RETRIEVED]
    assert [told["rung"] for told in (unknown, blocked)] == ["blocked", "blocked"]
    assert [told["error"] for told in (unknown, blocked)] == ["SummaryReconciliationError", "ContextOverflowError"]
