"""Law (DESIGN §3): a counter has a name that says what it counts and by which factor; what a provider reports teaches
the factor, from the growth of requests alone; the upper bound is no less than any window that was seen.
"""

from __future__ import annotations

import json
import math
import pathlib
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.bench.quality import tokens
from strandline.errors import ImportFormatError, InvalidInputError
from strandline.limits import CALIBRATION_HEADROOM, CALIBRATION_WINDOW_TOKENS, CALIBRATION_WINDOWS_MAX
from strandline.summarizers.vocabulary import ENCODINGS

steps = st.lists(st.tuples(st.integers(1, 9_000), st.floats(0.5, 2.5)), min_size=1, max_size=40)


def taught(*grown: tuple[int, int]) -> strandline.Calibration:
    calibration = strandline.Calibration()
    for counted, reported in grown:
        calibration.report(counted, reported)
    return calibration


# ---------------------------------------------------------------------------------------------- counters


@given(st.text(), st.floats(0.01, 3))
def test_it_counts_as_the_other_times_the_factor(text: str, factor: float) -> None:
    counter = strandline.CalibratedCounter(factor)
    assert counter.count(text) == math.ceil(strandline.BytesPerToken().count(text) * counter.factor)
    assert factor <= counter.factor + 1e-9 < factor + 0.0101


def test_the_name_tells_the_counter_the_factor_its_kind_and_the_version() -> None:
    assert strandline.CalibratedCounter(1.0712).name == "bytes/3*1.08/calibrated-1"
    other = strandline.CalibratedCounter(1.4, strandline.BytesPerToken(2.5), upper=True)
    assert other.name == "bytes/2.5*1.40-upper/calibrated-1"


@pytest.mark.parametrize("wrong", [0, -1, 3.1, math.nan, math.inf])
def test_a_factor_that_no_text_can_have_is_refused(wrong: float) -> None:
    with pytest.raises(InvalidInputError, match="factor"):
        strandline.CalibratedCounter(wrong)


def test_a_factor_is_never_rounded_to_nothing() -> None:
    """A counter that counts 0 for whatever it is given would let anything fit."""
    assert strandline.CalibratedCounter(1e-12).count("word " * 900) > 0


def test_a_store_counts_with_it() -> None:
    with strandline.open(":memory:", counter=strandline.CalibratedCounter(1.43, upper=True)) as db:
        workflow = db.tenant("acme").workflow("w")
        workflow.append(strandline.note("n" * 298))
        context = workflow.context()
        assert context.token_counter == "bytes/3*1.43-upper/calibrated-1"
        assert context.tokens >= 143


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_vocabulary_counts_any_text(encoding: str) -> None:
    counter = strandline.VocabularyCounter(encoding)
    assert counter.name.startswith(f"{encoding}/quicktok-")
    assert counter.count("") == 0
    assert counter.count("hello world") == 2
    assert counter.count("<|endoftext|>") > 1  # a text, no command
    assert counter.count("cut \ud83d") > 0


def test_a_vocabulary_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInputError, match="o200k_base"):
        strandline.VocabularyCounter("gpt-2")
    monkeypatch.setitem(sys.modules, "quicktok", None)
    with pytest.raises(InvalidInputError) as caught:
        strandline.VocabularyCounter()
    assert "[tokens]" in caught.value.hint


# ---------------------------------------------------------------------------------------------- learning


@given(steps)
def test_the_upper_bound_is_no_less_than_any_window(grown: list[tuple[int, float]]) -> None:
    calibration = taught(*[(counted, int(counted * ratio)) for counted, ratio in grown])
    if not calibration.windows:
        return
    upper, typical = calibration.upper(), calibration.typical()
    assert upper.factor >= typical.factor
    for window in calibration.windows:
        assert window.counted >= CALIBRATION_WINDOW_TOKENS
        assert window.counted * upper.factor >= window.reported


def test_a_window_begins_at_each_step_and_ends_with_its_run() -> None:
    half = CALIBRATION_WINDOW_TOKENS // 2
    calibration = taught((half, half), (half, 2 * half), (half, half))
    assert [tuple(window) for window in calibration.windows] == [(2 * half, 3 * half), (2 * half, 3 * half)]
    calibration.interrupt()
    calibration.report(half, half)
    assert len(calibration.windows) == 2
    assert calibration.typical().factor == pytest.approx(1.5, abs=0.01)
    assert calibration.upper().factor == pytest.approx(1.5 * CALIBRATION_HEADROOM, abs=0.01)


@pytest.mark.parametrize(("counted", "reported"), [(10, -5), (10, 2_000), (1_000, 3_401), (-1, 0)])
def test_a_step_that_its_texts_do_not_explain_ends_the_run(counted: int, reported: int) -> None:
    calibration = taught((CALIBRATION_WINDOW_TOKENS - 1, 9_000))
    calibration.report(counted, reported)
    calibration.report(CALIBRATION_WINDOW_TOKENS - 1, 9_000)
    assert calibration.windows == ()


def test_nothing_is_told_before_something_was_learnt() -> None:
    for counter in (strandline.Calibration().typical, strandline.Calibration().upper):
        with pytest.raises(InvalidInputError, match="nothing was learnt"):
            counter()


def test_what_several_taught_comes_together() -> None:
    whole = CALIBRATION_WINDOW_TOKENS
    one, other = taught((whole, whole)), taught((whole, 2 * whole))
    one.learn(other)
    assert one.typical().factor == 1.5
    assert one.upper().factor == 2.06
    with pytest.raises(InvalidInputError, match="teaches none"):
        one.learn(strandline.Calibration(strandline.BytesPerToken(2)))


def test_memory_is_bounded() -> None:
    calibration = strandline.Calibration()
    for _ in range(CALIBRATION_WINDOWS_MAX + 5):
        calibration.report(CALIBRATION_WINDOW_TOKENS, CALIBRATION_WINDOW_TOKENS)
    assert len(calibration.windows) == CALIBRATION_WINDOWS_MAX


# ---------------------------------------------------------------------------------------------- sessions


def session(*records: dict[str, Any]) -> str:
    lines = []
    for number, record in enumerate(records):
        lines.append(json.dumps({"uuid": f"u{number}", "sessionId": "s", "timestamp": "t", **record}))
    return "\n".join(lines) + "\n"


def user(text: str, **more: object) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": text}, **more}


def answer(message_id: str, tokens: int, text: str = "ok", **more: object) -> dict[str, Any]:
    usage = {"input_tokens": 3, "cache_read_input_tokens": tokens - 3}
    message = {"id": message_id, "role": "assistant", "content": [{"type": "text", "text": text}], "usage": usage}
    return {"type": "assistant", "message": message, **more}


def test_a_session_teaches_by_the_growth_of_its_requests(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "session.jsonl"
    size = 3 * CALIBRATION_WINDOW_TOKENS
    path.write_text(
        session(
            user("the system prompt and the tools are not counted"),
            answer("m1", 50_000),
            answer("m1", 50_000, "the same answer goes on"),
            answer("m9", 9, "a sub-agent", isSidechain=True),
            user("x" * size),
            answer("m2", 50_000 + 20_000),
            {"type": "system", "subtype": "compact_boundary"},
            user("y" * size),
            answer("m3", 10_000),
            user("z" * size),
            answer("m4", 10_000 + 16_500),
        ),
        encoding="utf-8",
    )
    calibration = strandline.calibrate(path)
    assert [window.reported for window in calibration.windows] == [20_000, 16_500]
    assert all(0 <= window.counted - CALIBRATION_WINDOW_TOKENS < 20 for window in calibration.windows)


def test_what_is_no_such_session_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"kind":"note","text":"n"}\n', encoding="utf-8")
    with pytest.raises(InvalidInputError, match="jsonl files don't report"):
        strandline.calibrate(path)
    path.write_text(session(user("a")) + '{"type":"user"', encoding="utf-8")
    with pytest.raises(ImportFormatError):
        strandline.calibrate(path)


def test_each_session_is_judged_by_what_the_others_taught(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "claude_code_test"
    folder.mkdir()
    assert [row.reached for row in tokens.measure(tmp_path, lambda done, of: None)] == [None, None]
    text = "x" * 3 * CALIBRATION_WINDOW_TOKENS
    for name, grown in (("a", 17_000), ("b", 17_000), ("c", 24_000)):
        said = session(user("a"), answer("m1", 1_000), user(text), answer("m2", 1_000 + grown))
        (folder / f"{name}.jsonl").write_text(said, encoding="utf-8")
    bound, middle = tokens.measure(tmp_path, lambda done, of: None)
    assert (bound.id, middle.id) == tokens.IDS
    assert bound.value == pytest.approx(66.67, abs=0.01)  # nobody taught what c is like
    assert middle.value is not None
    assert middle.value > 1
