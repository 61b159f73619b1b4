"""Law: the extractive draft quotes verbatim, in log order, within the budget of any counter, the same bytes everywhere.

What anchors carry is not quoted again, and older summaries stay represented.

Checked over generated logs, hostile texts, and in fresh processes with other hash seeds.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strandline
from strandline.limits import EXTRACTIVE_WINDOW_TOKENS
from strandline.model.event import EventKind, Role, SourceEvent
from strandline.model.register import FactKey, FactKind, FactState
from strandline.model.summary import Anchor
from strandline.ports import Summarizer, SummaryRequest
from strandline.rules.references import extract
from strandline.rules.validation import invented_refs, validate
from strandline.summarizers import BytesPerToken, CallableCounter, ExtractiveSummarizer
from strandline.summarizers.spans import cut

LINE = re.compile(r"\[(?:\d+→)?(\d+)\] (?:[^\s/\[\]]*/([a-z_]+): )?(.+)")
COUNTERS = [
    BytesPerToken(),
    BytesPerToken(1),
    CallableCounter(lambda text: len(text.split()), "words"),
    CallableCounter(lambda text: len(text) ** 2 // 100, "a whole counts more than its parts"),
    CallableCounter(lambda text: 7 + len(text) // 4, "each text costs extra"),
]


def event(seq: int, text: str, kind: EventKind = EventKind.MESSAGE, **fields: object) -> SourceEvent:
    role = Role.USER if kind is EventKind.MESSAGE else None
    made = SourceEvent(seq=seq, kind=kind, role=role, actor="", text=text, tokens=1, extracted=tuple(extract(text)))
    return made._replace(**fields)


def say(seq: int, text: str) -> SourceEvent:
    return event(seq, text, role=Role.ASSISTANT)


def request(events: Sequence[SourceEvent], budget_tokens: int = 1_000, **fields: object) -> SummaryRequest:
    made = SummaryRequest(
        from_seq=1,
        through_seq=events[-1].seq if events else 1,
        budget_tokens=budget_tokens,
        events=events,
        counter=BytesPerToken(),
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def draft(events: Sequence[SourceEvent], budget_tokens: int = 1_000, **fields: object) -> str:
    made = ExtractiveSummarizer().summarize(request(events, budget_tokens, **fields))
    assert made.finish == "stop"
    return made.text


def fragments(line: str) -> list[str]:
    return [part for part in (part.strip() for part in line.split("…")) if part]


# ---------------------------------------------------------------------------------------------- generated logs

PHRASES = st.sampled_from(
    [
        "We decided to keep bucket-7f3a because the other one is slow.",
        "ok, thanks!",
        "Deploy v1.4.2 of api/gateway to prod by 2026-03-01",
        "Let me look at src/app/main.py.",
        "Error: timeout after 30 seconds in job-81",
        "Never touch /srv/data again. It holds 24,000 tokens and costs $500 a day. Ask first.",
        "…",
        "```",
        "x = compute(y);",
        "日本語の文です。次の文です。",
        "| a | b |",
        "word " * 150,
        "n" * 700,
    ]
)
TEXTS = st.lists(st.one_of(PHRASES, st.text(st.characters(), max_size=60)), max_size=8).map("\n".join)
KINDS = st.sampled_from(sorted(EventKind))
PAYLOADS = st.dictionaries(
    st.text(max_size=9),
    st.one_of(TEXTS, st.integers(), st.floats(), st.booleans(), st.none(), st.lists(TEXTS)),
    max_size=5,
)
NAMES = st.one_of(st.sampled_from(["", "agent", "security reviewer", "a/b: [9]", "\ud800\n"]), st.text(max_size=5))


@st.composite
def logs(draw: st.DrawFn) -> list[SourceEvent]:
    events = []
    for seq in range(1, draw(st.integers(0, 12)) + 1):
        kind, text = draw(KINDS), draw(TEXTS)
        role = draw(st.sampled_from([Role.USER, Role.ASSISTANT, Role.SYSTEM])) if kind is EventKind.MESSAGE else None
        tool = draw(NAMES) if kind in (EventKind.TOOL_CALL, EventKind.TOOL_RESULT) else None
        payload = draw(PAYLOADS) if kind is EventKind.TOOL_CALL else None
        error = kind is EventKind.TOOL_RESULT and draw(st.booleans())
        events.append(event(seq, text, kind, role=role, actor=draw(NAMES), tool=tool, payload=payload, is_error=error))
    return events


@settings(deadline=None, max_examples=150)
@given(logs(), st.integers(-3, 900), st.sampled_from(COUNTERS), st.lists(TEXTS, max_size=2))
def test_the_budget_is_never_exceeded(
    events: list[SourceEvent], budget: int, counter: CallableCounter, prior: list[str]
) -> None:
    text = draft(events, budget, counter=counter, prior=prior)
    assert counter.count(text) <= budget or text == ""
    text.encode()  # no lone surrogate
    assert "\x00" not in text


@settings(deadline=None, max_examples=150)
@given(logs(), st.integers(20, 2_000))
def test_each_line_names_an_event_and_quotes_it_verbatim_in_log_order(events: list[SourceEvent], budget: int) -> None:
    text = draft(events, budget)
    if not LINE.match(text):
        assert text in {"", f"({len(events)} events, nothing quoted)", f"({len(events)} events)"}
        return
    last = 0
    kind = None
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        assert match, line
        source = events[int(match[1]) - 1]
        assert source.seq > last
        last = source.seq
        kind = match[2] or kind
        assert kind == source.kind
        payload = source.payload if isinstance(source.payload, dict) else {}
        leaves = [source.text, *(str(value) for value in payload.values())]
        for part in fragments(match[3]):
            assert any(part in leaf or re.sub(r"\A[a-z]+: ", "", part) in leaf for leaf in leaves), part


@settings(deadline=None, max_examples=150)
@given(logs(), st.integers(20, 2_000))
def test_it_holds_no_reference_that_the_log_does_not(events: list[SourceEvent], budget: int) -> None:
    payloads = [str(v) for e in events if isinstance(e.payload, dict) for v in e.payload.values()]
    texts = [*(e.text for e in events), *payloads]
    assert invented_refs(draft(events, budget), set(), texts) == []


def test_it_passes_validation_as_a_summary() -> None:
    events = [
        event(1, "Please publish release-42 once the security review has approved it."),
        say(2, "The review of release-42 was approved by Ada. I published it."),
        event(3, "done", EventKind.TOOL_RESULT, tool="publish"),
    ]
    made = ExtractiveSummarizer().summarize(request(events))
    tokens = BytesPerToken().count(made.text)
    verdict = validate(made, budget_tokens=1_000, tokens=tokens, events=events, prior=(), unknown_refs=(), facts=())
    assert verdict.ok, verdict


# ---------------------------------------------------------------------------------------------- the same bytes

PROGRAM = """
import hashlib, sys
sys.path.insert(0, {tests!r})
from test_extractive import long_log, request
from strandline.summarizers import ExtractiveSummarizer
text = ExtractiveSummarizer().summarize(request(long_log(), 700, prior=["# Old\\n- job-1 failed\\n- ok"])).text
print(hashlib.sha256(text.encode()).hexdigest())
"""


def long_log() -> list[SourceEvent]:
    kinds = [EventKind.MESSAGE, EventKind.TOOL_CALL, EventKind.TOOL_RESULT, EventKind.DECISION, EventKind.THINKING]
    return [
        event(
            seq,
            f"Step {seq % 17} of job-{seq % 23} failed because disk-{seq % 5} is full.\nNext: look at run-{seq % 31}.",
            kinds[seq % 5],
            payload={"path": f"/srv/{seq % 7}", "note": f"for job-{seq % 23}"} if seq % 5 == 1 else None,
        )
        for seq in range(10, 400)
    ]


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_other_processes_and_hash_seeds_give_the_same_bytes(seed: str) -> None:
    made = ExtractiveSummarizer().summarize(request(long_log(), 700, prior=["# Old\n- job-1 failed\n- ok"])).text
    source = Path(strandline.__file__).parents[1]
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(source)}
    program = PROGRAM.format(tests=str(Path(__file__).parent))
    told = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == hashlib.sha256(made.encode()).hexdigest()


def test_it_is_a_summarizer_without_a_window() -> None:
    summarizer = ExtractiveSummarizer()
    assert isinstance(summarizer, Summarizer)
    assert (summarizer.name, summarizer.version, summarizer.window_tokens) == (
        "extractive",
        "2",
        EXTRACTIVE_WINDOW_TOKENS,
    )


# ---------------------------------------------------------------------------------------------- what is worth a quote


def test_what_the_user_said_comes_first() -> None:
    chatter = [say(seq, f"The module number {seq} has another function that reads a file.") for seq in range(2, 60)]
    text = draft([event(1, "Port the parser to Rust, and keep the old flags."), *chatter], 60)
    assert "[1] user/message: Port the parser to Rust, and keep the old flags." in text


def test_decisions_failures_and_final_statements_before_looking_around() -> None:
    events = [
        event(1, "Make the tests pass."),
        *(event(seq, f"line {seq}\nof a file", EventKind.TOOL_RESULT, tool="read") for seq in range(2, 40)),
        event(40, "Use SQLite, because it needs no server.", EventKind.DECISION),
        event(41, "Tried to patch the driver: it has no hook.", EventKind.FAILED_ATTEMPT),
        event(42, "setup\nValueError: bad flag -x\nmore", EventKind.TOOL_RESULT, is_error=True, tool="run"),
        say(43, "All 12 tests pass now; the flag was renamed."),
    ]
    text = draft(events, 110)
    for wanted in ("Make the tests", "Use SQLite", "has no hook", "ValueError: bad flag -x", "All 12 tests pass"):
        assert wanted in text
    assert "of a file" not in text


def test_a_call_is_one_line_with_its_tool_and_its_short_arguments() -> None:
    payload = {
        "content": "line one\n" + "x " * 500,
        "path": "/srv/a.txt",
        "mode": 420,
        "user_id": "mia-3668",
        "ok": True,
    }
    call = event(1, "{…}", EventKind.TOOL_CALL, tool="write_file", actor="coder", payload=payload)
    call = call._replace(text='{"mode": 420}')
    assert draft([call]) == "[1] coder(write_file)/tool_call: path: /srv/a.txt … mode: 420 … mia-3668 … line one …"


def test_of_a_huge_result_the_lines_that_say_how_it_went() -> None:
    lines = [f"row {n} of the listing" for n in range(50_000)]
    lines[31_000] = "E   AssertionError: expected 5, got 7"
    lines[40_000] = "bucket-7f3a  eu-west"
    events = [
        event(1, "\n".join(lines), EventKind.TOOL_RESULT, tool="pytest", extracted=("bucket-7f3a", "unused-1")),
        say(2, "I'll take bucket-7f3a."),
    ]
    text = draft(events, 200)
    assert "AssertionError: expected 5, got 7" in text
    assert "bucket-7f3a  eu-west" in text
    assert text.count("row ") <= 4


def test_repeats_and_acknowledgements_are_skipped() -> None:
    events = [
        event(seq, text) for seq, text in enumerate(["Keep it small.", "ok, thanks!", "Keep it small.", "yes"], 1)
    ]
    assert draft(events) == "[3] user/message: Keep it small."


def test_a_voice_is_named_once_for_a_run_of_lines() -> None:
    events = [
        event(1, "Keep it small."),
        event(2, "Use 4 workers."),
        say(3, "It has 4 now."),
        event(4, "Stop at 9:30."),
    ]
    assert draft(events).splitlines() == [
        "[1] user/message: Keep it small.",
        "[2] Use 4 workers.",
        "[3] assistant/message: It has 4 now.",
        "[4] user/message: Stop at 9:30.",
    ]


def test_small_budgets_leave_out_headings_and_sentences_that_lean_on_another() -> None:
    events = [
        event(1, "FACT: The code of the door is ABC-1234. Use it in every mail to the front desk and to the guests."),
        event(2, "RULE: Never open the door before 7:30."),
    ]
    assert draft(events, 34) == (
        "[1] user/message: The code of the door is ABC-1234. …\n[2] Never open the door before 7:30."
    )
    assert "[1] user/message: FACT: The code of the door is ABC-1234. Use it in" in draft(events, 200)


def test_what_a_user_states_outlives_what_a_user_says_again_and_again() -> None:
    events = [event(1, "Start."), event(2, "FACT: The staging host is h-17.")]
    events += [event(seq, "The load tests of the importer go on.") for seq in range(3, 30)]
    assert draft(events, 25) == "[1] user/message: Start.\n[2] FACT: The staging host is h-17."


def test_what_anchors_carry_is_not_quoted_again() -> None:
    events = [
        event(1, "Never deploy on Fridays.\nUse the blue cluster."),
        event(2, "Never deploy to eu.", EventKind.CONSTRAINT),
        event(3, "granted", EventKind.APPROVAL),
        event(4, "OAuth scope is too wide", EventKind.ISSUE),
        event(5, "bucket-7f3a", EventKind.ARTIFACT),
        event(6, "bucket-7f3a", EventKind.PIN),
    ]
    anchor = Anchor(
        key=FactKey(kind=FactKind.CONSTRAINT, subject="fridays"),
        state=FactState.STANDING,
        seq=1,
        text="Never deploy on Fridays.",
    )
    assert draft(events, anchors=[anchor]) == "[1] user/message: … Use the blue cluster."


def test_a_cut_is_marked_and_parts_no_number_from_its_unit() -> None:
    text = "alpha " * 64 + "beta 24,000 tokens of budget " + "omega " * 60
    line = draft([event(1, text)], 2_000)
    assert line.endswith("beta …")
    assert draft([event(1, "n" * 5_000)]) == "(1 events, nothing quoted)"


@given(st.text(alphabet="ab1 .\n", max_size=300), st.integers(0, 60))
def test_cuts_lie_between_words(text: str, limit: int) -> None:
    end = cut(text, 0, len(text), limit)
    assert end <= max(limit, 0) or end == len(text) <= limit
    if 0 < end < len(text):
        assert not text[end - 1].isspace()
        assert text[end].isspace()
        assert not text[:end].split()[-1].isdigit()


def test_a_declared_reference_with_spaces_is_not_parted() -> None:
    name = "Quarterly Report Final Draft"
    text = "see " * 97 + name + " and more " * 50
    line = draft([event(1, text, declared=(name,))], 2_000)
    assert name in line or "Quarterly" not in line


# ---------------------------------------------------------------------------------------------- older summaries


def test_older_summaries_come_first_and_lose_their_least_valuable_lines() -> None:
    older = [
        "\n".join(
            ["[1] user/message: Port the parser.", *(f"[{n}] read/tool_result: row {n} …" for n in range(2, 200))]
        ),
        "## Notes\nThe build is broken: libfoo.so is missing.\n" + "Some other remark.\n" * 80,
    ]
    events = [event(seq, f"Then look at item {seq}, please.") for seq in range(400, 500)]
    text = draft(events, 300, prior=older)
    lines = text.splitlines()
    assert lines[0] == "[1] user/message: Port the parser."
    assert "The build is broken: libfoo.so is missing." in lines
    assert [line for line in lines if "Then look at" in line] == lines[-len([x for x in lines if "Then look" in x]) :]
    assert "Then look at item" in text


def test_older_summaries_alone_get_the_whole_budget() -> None:
    older = "[1] user/message: Wish number 1.\n" + "\n".join(f"[{n}] Wish number {n}." for n in range(2, 9))
    assert draft([], 1_000, prior=[older]) == older


# ---------------------------------------------------------------------------------------------- hostile input


def test_a_budget_too_small_for_a_line_is_told_or_left_empty() -> None:
    events = [event(seq, "A wish that needs some room.") for seq in range(1, 13)]
    assert draft(events, 9) == "(12 events, nothing quoted)"
    assert draft(events, 4) == "(12 events)"
    assert draft(events, 1) == draft(events, 0) == draft(events, -1) == ""


@pytest.mark.parametrize("kind", [EventKind.MESSAGE, EventKind.TOOL_RESULT, EventKind.THINKING])
@pytest.mark.parametrize(
    "text",
    [
        "",
        " " * 1_000_000,
        "\n" * 1_000_000,
        "a" * 1_000_000,
        "a. " * 350_000,
        "1 " * 500_000,
        "error: y\n" * 120_000,
        "rror:" * 200_000,
        "\ud800 " * 300_000,
        "é 日本。" * 200_000,
        "```\n" * 250_000,
        "\x00\x1b[31m " * 100_000,
    ],
    ids=lambda text: repr(text[:8]),
)
def test_hostile_texts_are_handled_in_linear_time(kind: EventKind, text: str) -> None:
    started = time.process_time()
    made = draft([event(1, text, kind, extracted=())], 2_000)
    assert time.process_time() - started < 1.0
    made.encode()


def test_a_hundred_thousand_tiny_events() -> None:
    events = [
        SourceEvent(seq=n, kind=EventKind.MESSAGE, role=Role.USER, actor="", text=f"wish {n}", tokens=1)
        for n in range(1, 100_001)
    ]
    started = time.process_time()
    text = draft(events, 2_000)
    assert time.process_time() - started < 20.0
    assert 1_900 < BytesPerToken().count(text) <= 2_000


COUNTED: list[str] = []


def counted(text: str) -> int:
    COUNTED.append(text)
    return len(text)


def test_a_slow_counter_is_asked_for_what_may_stand_in_the_draft_only() -> None:
    COUNTED.clear()
    count: Callable[[str], int] = counted
    draft([event(n, f"wish number {n} of many") for n in range(1, 5_000)], 2_000, counter=CallableCounter(count, "n"))
    assert len(COUNTED) < 500
