"""Real conversations of OpenAI's messages: import, split, compact, verify; damaged, they are refused or salvaged (C2).

They lie in the folder `shared/data` beside the checkout. Where it is absent these tests say so and are skipped.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import strandline
from strandline.model.event import NewEvent
from strandline.transcripts import open_transcript

pytestmark = pytest.mark.long

CHECKOUT = Path(__file__).resolve().parents[2]
DATA = CHECKOUT.parent / "shared" / "data"
FILES = sorted([*DATA.glob("tau_bench/*.json"), *DATA.glob("tau2_sft/*.jsonl")])
SESSIONS = sorted(DATA.glob("claude_code_*/*.jsonl"))
BUDGET = 12_000
DAMAGES = 3  # for each file

needs_data = pytest.mark.skipif(not FILES, reason=f"no conversations at {DATA}")


def conversations(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]


def stated_by_the_standard_library(path: Path) -> Iterator[tuple[str, str | None, object]]:
    """Yield what each conversation holds, read in another way: kind, call id, text or arguments."""
    for conversation in conversations(path):
        yield "note", None, None
        for message in conversation.get("messages") or conversation["traj"]:
            if message["role"] == "tool":
                yield "tool_result", message["tool_call_id"], message["content"]
                continue
            if (message.get("content") or "").strip():
                yield "message", None, message["content"]
            for call in message.get("tool_calls") or ():
                yield "tool_call", call["id"], json.loads(call["function"]["arguments"])


@needs_data
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_real_conversations_are_imported_compacted_and_verified(path: Path, tmp_path: Path) -> None:
    """C2, I3, I7–I9: each message is an event, each result has the call of its conversation, nothing comes twice."""
    with strandline.open(tmp_path / "s.db") as db:
        workflow = db.tenant("default").workflow("w")
        report = workflow.import_transcript(path)
        events = workflow.events()
        expected = list(stated_by_the_standard_library(path))
        found = [
            (e.kind.value, e.call_id, None if e.kind == "note" else e.payload if e.kind == "tool_call" else e.text)
            for e in events
        ]
        assert found == expected
        assert report.events_imported == len(expected)
        calls = {event.seq: event.call_id for event in events if event.kind == "tool_call"}
        answers = [event for event in events if event.kind == "tool_result"]
        assert all(event.call_seq is not None and calls[event.call_seq] == event.call_id for event in answers)
        assert len({event.call_seq for event in answers}) == len(answers)
        assert not any(event.late for event in answers)
        assert workflow.import_transcript(path).events_known == len(expected)
        outcome = workflow.compact(BUDGET)
        assert outcome.outcome == "activated"
        assert outcome.refs_unaccounted == 0
        assert outcome.tokens_after <= BUDGET
        assert db.verify().problems == ()


@needs_data
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_real_conversations_are_split(path: Path) -> None:
    with strandline.open(":memory:") as db:
        reports = db.tenant("default").import_conversations(path, "split")
        assert len(reports) == len(conversations(path))
        assert sum(report.events_imported for report in reports) == len(list(stated_by_the_standard_library(path)))


def _cut(data: bytearray, at: int) -> None:
    del data[at:]


def _nul(data: bytearray, at: int) -> None:
    data[at : at + 500] = bytes(len(data[at : at + 500]))


def _no_utf8(data: bytearray, at: int) -> None:
    data[at] = 0xFF


def _quote(data: bytearray, at: int) -> None:
    data[at] ^= 0x22 if data[at] != 0x22 else 0x03


def _twice(data: bytearray, at: int) -> None:
    data[at:at] = data[max(0, at - 700) : at]


@needs_data
@pytest.mark.parametrize("damage", [_cut, _nul, _no_utf8, _quote, _twice])
@pytest.mark.parametrize("path", [*FILES, *SESSIONS[:1]], ids=[path.stem for path in [*FILES, *SESSIONS[:1]]])
def test_a_damaged_file_is_refused_with_a_place_and_salvaged_without_invention(
    path: Path, damage: Callable[[bytearray, int], None], tmp_path: Path
) -> None:
    """Refused within the file, or read whole; a salvage gives only events that were there, in their order."""
    original = path.read_bytes()
    whole = _bodies(path)
    chance = random.Random(f"{path.name} {damage.__name__}")
    damaged = tmp_path / path.name
    for _ in range(DAMAGES):
        data = bytearray(original)
        damage(data, chance.randrange(len(data)))
        damaged.write_bytes(data)
        refused = _refusal(damaged)
        if refused is not None:
            assert 0 <= refused.byte <= len(data)
            assert refused.line == data[: refused.byte].count(b"\n") + 1
        kept = _bodies(damaged, salvage=True)
        if damage in (_cut, _nul, _no_utf8):
            rest = iter(whole)
            assert all(any(body == other for other in rest) for body in kept if isinstance(body, bytes))
        if damage in (_nul, _no_utf8):
            assert refused is not None
        if damage is _no_utf8:  # brackets and quotes are intact: no more than the record is lost
            assert len(kept) > len(whole) * 0.9


def _refusal(path: Path) -> strandline.ImportFormatError | None:
    try:
        _bodies(path)
    except strandline.ImportFormatError as error:
        return error
    return None


def _bodies(path: Path, *, salvage: bool = False) -> list[object]:
    transcript = open_transcript(path, digest=lambda data: str(hash(data)), salvage=salvage)
    return [item.body for item in transcript.items() if isinstance(item, NewEvent)]
