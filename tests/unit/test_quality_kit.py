"""Law: the kit's conversations go through the product's own verbs; without the kit there is no figure, and a reason.

The kit itself is not installed where these tests run: what it would hand over and take back is played.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from strandline.bench.quality import kit
from strandline.bench.quality.table import TABLE


@dataclass(frozen=True)
class Said:
    text: str
    role: str = "user"


@dataclass(frozen=True)
class Planted:
    id: str
    content: str
    required_tokens: tuple[str, ...]
    superseded_tokens: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    text: str
    compactor_name: str
    round_num: int


OLD = "FACT: The port of staging is 8080."
NEW = "FACT: The staging port is 9090."
FACT = Planted("port", NEW, ("9090",), ("8080",))
TURNS = [Said("Hello there, this goes on for a while.") for _ in range(20)]


@pytest.mark.parametrize("subjects", [{}, {OLD: "port", NEW: "port"}])
def test_a_conversation_is_compacted_once_and_its_context_comes_back_unchanged(subjects: dict[str, str]) -> None:
    compactor = kit.Compactor(Answer, kit.WIDE_SHARES, subjects)
    turns = [Said(OLD), *TURNS, Said(NEW), Said("Noted.", "assistant")]
    first = compactor.compact(turns, 1, 200)
    assert isinstance(first, Answer)
    assert "9090" in first.text
    assert "8080" not in first.text
    assert len(first.text) <= 200
    second = compactor.compact([Said(first.text, "system")], 2, 200)
    assert second == Answer(first.text, "strandline", 2)
    compactor.close()


def test_a_fact_has_one_key_before_and_after_an_update() -> None:
    assert kit._keys([Said(OLD), *TURNS, Said(NEW)], [FACT]) == {OLD: "port", NEW: "port"}


def test_without_the_kit_each_row_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kit, "PACKAGE", "a_package_that_is_not_there")
    rows = list(kit.measure(tmp_path, lambda *_: None))
    assert tuple(row.id for row in rows) == next(entry.ids for entry in TABLE if entry.measure is kit.measure)
    assert {(row.value, row.reached) for row in rows} == {(None, None)}
    assert all("make bench-quality" in row.reason for row in rows)
