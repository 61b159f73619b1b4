"""Law: the measures of constraints count what stands byte for byte, and call wrong what nobody has read."""

import json
from pathlib import Path

import pytest

from strandline.bench.quality import constraint_corpus, constraints
from strandline.bench.quality.constraint_corpus import DEMANDING, FORBIDDING, WISHES, digest_of, user_messages, worded

pytestmark = pytest.mark.long

SAID = ["Never push to main.", "Book a flight.", "I prefer direct flights.", "Thanks!"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Messages of users, as OpenAI's."""
    messages = [{"role": "user", "content": text} for text in SAID]
    (tmp_path / "talk.json").write_text(json.dumps(messages), encoding="utf-8")
    return tmp_path


def test_the_corpus_is_as_large_as_the_table_says():
    assert len(WISHES) == len(FORBIDDING) == len(DEMANDING) == 15
    assert len({text for number in range(15) for text in worded(number)}) == 15 * 15
    insertions = constraints.POSITIONS * constraints.FRAMINGS * constraints.HAYSTACKS * len(WISHES)
    assert insertions >= 2_250


def test_users_messages_are_read_as_an_import_reads_them(data):
    assert list(user_messages(data)) == SAID


def test_the_rows(data, monkeypatch):
    monkeypatch.setattr(constraints, "FRAMINGS", 2)
    monkeypatch.setattr(constraints, "GENERATIONS", 2)
    monkeypatch.setattr(constraints, "HAYSTACKS", 1)
    monkeypatch.setattr(constraints, "_labels", lambda: {digest_of(b"Never push to main."): "right", "00": "missed"})
    rows = {row.id: row for row in constraints.measure(data, lambda done, of: None)}
    assert rows["found"].value == 100
    assert rows["constraints_50"].value == 100
    assert rows["constraints_50"].reason.startswith("150 insertions")
    assert rows["found_real"].value == 50
    assert rows["wrong_pins"].value == 25  # nobody has read what is pinned of flights
    assert rows["pin_precision"].value == 50
    assert "1 pins that nobody has read" in rows["wrong_pins"].reason


def test_a_constraint_that_is_not_found_is_counted_as_missing(monkeypatch):
    """The measure would notice: none of these binds."""
    assert constraints._found(["Thanks for the report.", "Never push to main."], SAID) == 1


def test_every_label_is_one(monkeypatch):
    labels = constraints._labels()
    assert set(labels.values()) == {"right", "wrong", "missed"}
    assert all(len(digest) == len(digest_of(b"")) for digest in labels)


def test_other_files_are_left_alone(data):
    (data / "LICENSE.txt").write_text("Never read this.", encoding="utf-8")
    (data / constraint_corpus.INDEX).write_text("{}", encoding="utf-8")
    assert list(user_messages(data)) == SAID
