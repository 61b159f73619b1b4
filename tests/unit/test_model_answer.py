"""Law: only the JSON that was asked for, with claims that cite events that were shown, becomes a draft (C8, C14).

The draft stays within its budget, each of its claims stands in its text, and a strict one keeps what it can quote only.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import MalformedDraftError
from strandline.model.candidate import Draft
from strandline.ports import SummaryRequest
from strandline.rules.reference_rules import BUILT_IN
from strandline.summarizers.answer import read_answer
from strandline.summarizers.prompt import answer_schema
from tests.unit.test_model_prompt import COUNTER, event, request

EVENTS = [event(seq, f"Step {seq} of the build went into bucket-{seq:04x}, as asked.") for seq in range(10, 20)]
REQUEST = request(*EVENTS, budget=200)


def answer(*claims: dict[str, Any], **more: Any) -> str:
    return json.dumps({"claims": list(claims), **more})


def claim(text: str = "The build goes on.", *events: int, **more: Any) -> dict[str, Any]:
    return {"text": text, "events": list(events) or [10], **more}


def read(text: str, asked: SummaryRequest = REQUEST, *, strict: bool = False) -> Draft:
    return read_answer(text, asked, strict=strict, model="m")


def test_a_draft_has_a_line_a_claim_with_the_events_that_it_cites() -> None:
    draft = read(answer(claim("Built\n bucket-000a.", 10), claim("More was built.", 19, 12, 14, 13, 12, 17, 18)))
    assert draft.text == "- Built bucket-000a. [10]\n- More was built. [12-14, 17-19]"
    assert (draft.finish, draft.model) == ("stop", "m")
    assert [(each.text, each.seqs) for each in draft.claims] == [
        ("Built bucket-000a.", (10,)),
        ("More was built.", (12, 13, 14, 17, 18, 19)),
    ]
    assert all(each.text in draft.text for each in draft.claims)


def test_what_is_cited_is_no_reference() -> None:
    draft = read(answer(claim("Built.", 10, 11, 12), claim("Built.", 15, 18)))
    assert list(BUILT_IN.of_text(draft.text)) == []


def test_a_fence_around_all_of_it_is_taken_off() -> None:
    assert read(f"```json\n{answer(claim())}\n```").text == "- The build goes on. [10]"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("TODO", "placeholder"),
        ("I don't see any events to summarize.", "nothing_to_summarize"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        ('{"error": {"message": "overloaded"}}', "error_text"),
        ("Error: 502 Bad Gateway", "error_text"),
        ("The agent built a bucket.", "not the JSON"),
        (answer(claim())[:-9], "truncated"),
        (f"Here it is: {answer(claim())}", "not the JSON"),
        (f"{answer(claim())} I hope this helps.", "not the JSON"),
        ('["a claim"]', "not the JSON"),
        (answer({"text": "No events."}), "events"),
        (answer(claim(extra=1)), "extra"),
        (answer(claim(), note="hi"), "note"),
        (answer({"text": 5, "events": [10]}), "text"),
        (answer({"text": "Built.", "events": ["10"]}), "events"),
        (answer({"text": "Built.", "events": [10.5]}), "events"),
        (answer({"text": "Built.", "events": [True]}), "events"),
        ('{"claims": [{"text": "half \\ud83d", "events": [10]}]}', "not the JSON"),
        ('{"claims": [{"text": "half \ud83d", "events": [10]}]}', "not the JSON"),
        (answer(), "no claim"),
        (answer(claim(" \n")), "claim 1 says nothing"),
        (answer({"text": "Built.", "events": []}), "cites no event"),
        (answer(claim(), claim("Built.", 10, 99, 3)), "claim 2 cites events that were not shown: 99, 3"),
        (answer(claim("Built.", -1)), "not shown"),
        (answer(claim("I don't see any events to summarize.")), "nothing_to_summarize"),
        (answer(claim("TODO")), "placeholder"),
        (answer(claim("I'm sorry, I can't assist with that request.")), "refusal"),
        (answer(claim("word " * 500)), "fits 200 tokens"),
    ],
)
def test_what_is_no_answer_is_malformed_and_says_why(text: str, said: str) -> None:
    with pytest.raises(MalformedDraftError) as caught:
        read(text)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_claim_that_does_not_fit_is_left_out_and_the_rest_stays_in_order() -> None:
    draft = read(answer(claim("First."), claim("word " * 500), claim("Last.", 11)))
    assert draft.text == "- First. [10]\n- Last. [11]"
    assert [each.text for each in draft.claims] == ["First.", "Last."]


def test_a_strict_answer_keeps_the_claims_that_quote_their_events() -> None:
    claims = [
        claim("Quoted.", 10, quote="went into  bucket-000a"),
        claim("Of another event.", 10, quote="went into bucket-000b"),
        claim("Too short.", 10, quote="Step"),
        claim("Nothing.", 10, quote=""),
        claim("Of the second.", 10, 11, quote="Step 11 of the build"),
    ]
    assert [each.text for each in read(answer(*claims), strict=True).claims] == ["Quoted.", "Of the second."]
    assert len(read(answer(*claims)).claims) == 5
    with pytest.raises(MalformedDraftError, match="no claim quotes"):
        read(answer(claims[1]), strict=True)


def test_a_short_event_is_quoted_whole() -> None:
    asked = request(event(10, "Yes."), event(11, "Yes, but later."))
    assert read(answer(claim("Agreed.", 10, quote="Yes.")), asked, strict=True).claims
    with pytest.raises(MalformedDraftError, match="no claim quotes"):
        read(answer(claim("Agreed.", 11, quote="Yes,")), asked, strict=True)


def test_what_an_older_summary_tells_may_be_cited_by_its_events_and_is_not_quoted() -> None:
    asked = request(*EVENTS, budget=200, from_seq=3, prior=["- It began. [3-9]"])
    assert read(answer(claim("It began.", 4)), asked, strict=True).claims[0].seqs == (4,)
    with pytest.raises(MalformedDraftError, match="not shown: 2"):
        read(answer(claim("It began.", 2)), asked)


def test_the_schema_and_the_reader_agree() -> None:
    for strict in (False, True):
        schema: Any = answer_schema(strict)
        one = {
            name: {"string": "Step 10 of the build", "array": [10]}[form["type"]]
            for name, form in schema["properties"]["claims"]["items"]["properties"].items()
        }
        assert read(answer(one), strict=strict).claims


@given(st.text(max_size=300))
def test_no_text_but_the_form_becomes_a_draft(text: str) -> None:
    with pytest.raises(MalformedDraftError):
        read(text)


@given(
    st.lists(
        st.tuples(st.text(min_size=1, max_size=80), st.lists(st.sampled_from(range(10, 20)), min_size=1)), min_size=1
    ),
    st.integers(1, 120),
)
def test_a_draft_stays_within_its_budget(claims: list[tuple[str, list[int]]], budget: int) -> None:
    try:
        draft = read(answer(*(claim(text, *events) for text, events in claims)), request(*EVENTS, budget=budget))
    except MalformedDraftError:
        return
    assert COUNTER.count(draft.text) <= budget
    assert len(draft.text.splitlines()) == len(draft.claims)
