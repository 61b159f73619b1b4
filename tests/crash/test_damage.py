"""Law (I4, C5, ADR 0071): a slice of damage.py; and the programme finds it when a check is switched off."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

import damage
from damages import KINDS

SLICE = len(KINDS)
LONG = 10 * len(KINDS)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return damage.Run(tmp_path_factory.mktemp("damage"))


def test_every_kind_of_damage_is_found_or_changes_nothing(run):
    assert [story for seed in range(SLICE) for story in run.unit(seed)] == []


@pytest.mark.long
def test_more_of_each_kind(run):
    assert [story for seed in range(SLICE, SLICE + LONG) for story in run.unit(seed)] == []


def test_without_the_witness_an_older_file_goes_unseen(run, monkeypatch):
    """The programme can fail: with the comparison of heads switched off, other content is served, and unsaid."""
    assert run.unit(1, "older_file") == []
    monkeypatch.setattr("strandline.engine.witness.judge_head", lambda *_, **__: None)
    stories = [story for seed in range(3) for story in run.unit(seed, "older_file")]
    assert any("other content, and nothing said so" in story for story in stories)


def test_without_the_search_for_strays_doubled_rows_go_unseen(run, monkeypatch):
    """The programme can fail, also by a row kind: rows of no workflow are found by that check alone."""
    monkeypatch.setattr("strandline.stores.sqlite.store.stray_queries", lambda: iter(()))
    stories = [story for seed in range(12) for story in run.unit(seed, "doubled_rows")]
    assert any("neither a read nor `verify` noticed" in story for story in stories)


def test_what_broke_is_told_to_who_reads_json_too(monkeypatch, capsys):
    """`make soak` asks with --json, and shows the stories: without one nobody knew which unit to repeat."""
    monkeypatch.setattr(damage.Run, "unit", lambda self, seed, kind=None: ["it read other content"])
    monkeypatch.setattr(sys, "argv", ["damage.py", "--seed", "7", "--count", "1", "--json"])
    assert damage.main() == 1
    story, again, _ = capsys.readouterr().out.splitlines()
    assert (story, again) == (
        "violation: it read other content",
        "  again: python tests/crash/damage.py --seed 7 --count 1",
    )
