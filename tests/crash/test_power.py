"""Law (I1, I2, I4, C31): a power loss leaves what was acknowledged, or what the step in progress made of it.

A slice of the images of power.py, which says what is checked of each; and what it finds where a store syncs too little.
"""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.images import moments
from tests.crash.losses import Losses
from tests.crash.power import WAL, Counts, History, Record, Trial, record
from tests.crash.tracing import Create, Mark, Sync, Truncate, Write, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

SLICE = range(1, 71)
LONG_SLICE = range(10_001, 12_001)


@pytest.fixture(scope="module")
def full(tmp_path_factory) -> History:
    return History(record("full"), tmp_path_factory.mktemp("full"))


def look(history: History, folder: Path, seeds: range) -> Counts:
    trial, losses = Trial(history, folder), Losses(history.moments)
    for seed in seeds:
        trial.look(seed, losses)
    return trial.counts


def test_no_image_is_bad(full, tmp_path):
    counts = look(full, tmp_path, SLICE)
    assert counts.stories == []
    assert len(counts.images) > len(SLICE) * 0.9
    assert counts.detail["newer than acknowledged"] > len(SLICE) * 0.2


def test_what_was_erased_does_not_come_back(full, tmp_path):
    """C31: the log that an erasure emptied, and proved empty, is empty after a power loss, too."""
    done = full.record.index(Mark("done erase"))
    trial, losses = Trial(full, tmp_path), Losses(full.moments[done : done + 4])
    for seed in range(20):
        trial.look(seed, losses)
    assert trial.counts.stories == []


def test_two_records_are_of_the_same_shape(full):
    """A seed names the same image in each."""

    def shape(operations: Record) -> list[tuple[object, ...]]:
        return [
            (type(operation), getattr(operation, "offset", 0), len(getattr(operation, "data", "")))
            for operation in operations
        ]

    assert shape(record("full")) == shape(full.record)


def test_each_verb_commits_and_the_log_is_checkpointed_and_emptied(full):
    steps = {name: list(part) for name, part in _by_step(full.record)}
    assert all(any(isinstance(op, Write) for op in part) for name, part in steps.items() if name != "close")
    assert sum(Sync("store.db") == op for op in full.record) >= 10  # each ends a checkpoint
    assert Truncate(WAL, 0) in steps["erase"]
    assert sum(Create(WAL) == op for op in full.record) == 2  # closed, and opened again


def _by_step(operations: Record):
    name = ""
    for is_mark, part in itertools.groupby(operations, lambda op: isinstance(op, Mark)):
        part = list(part)
        if is_mark:
            name = part[-1].text.partition(" ")[2]
        else:
            yield name, part


# ------------------------------------------------------------------------------------------ it finds what is wrong


def test_it_finds_the_losses_of_normal(request):
    """Acknowledged steps are gone, and nothing is damaged: what "normal" says of itself. The command tells each."""
    command = [sys.executable, "tests/crash/power.py", "--durability", "normal", "--seed", "1", "--count", "60"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=request.config.rootpath, check=False)
    lines = done.stdout.splitlines()
    told = json.loads(lines[-1])
    assert done.returncode == 1, done.stderr
    assert (told["count"], told["violations"]) == (60, told["detail"]["lost"])
    assert sum(line.startswith("seed ") for line in lines) == told["violations"] > 0
    assert "damaged" not in told["detail"]


def test_it_finds_the_damage_of_no_sync_at_all(tmp_path):
    counts = look(History(record("off"), tmp_path), tmp_path, range(1, 41))
    assert counts.detail["lost"] > 0
    assert counts.detail["damaged"] > 0


def test_it_finds_each_sync_that_is_not_there(full, tmp_path):
    """Each that comes right before a step is acknowledged is left out of a record of its own."""
    found = tried = 0
    for done, operation in enumerate(full.record):
        if isinstance(operation, Mark) and operation.text.startswith("done ") and full.record[done - 1] == Sync(WAL):
            without = [*full.record[: done - 1], Mark("no sync"), *full.record[done:]]
            trial = Trial(full, tmp_path)
            losses = Losses(moments(without, without="-shm")[done + 1 : done + 2])
            tried += 1
            found += any(trial.look(seed, losses) or trial.counts.stories for seed in range(20))
    assert tried >= 8
    assert found == tried


@pytest.mark.long
def test_no_image_of_many_is_bad(full, tmp_path):
    assert look(full, tmp_path, LONG_SLICE).stories == []
