"""Law (I1, I2, I4): a process that saves states dies at any instruction: every state that was acknowledged is whole, at
most the next one is there too, and `verify` finds nothing.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import strandline

pytestmark = pytest.mark.long

KILLS, SEED, WAIT_S = 12, 4, 60.0
PROGRAM = """
import sys, strandline
from strandline import Part, StateValue, StateWrite
with strandline.open(sys.argv[1]) as db:
    states = db.tenant("acme").workflow("thread").states
    newest = states.load()
    number = 0 if newest is None else int(newest.state_id) + 1
    while True:
        part = Part(kind="text", data=b"message %d " % number * 20)
        value = StateValue((part,), many=True, after=number)
        write = StateWrite(task="t", index=0, channel="c", value=StateValue((part,)))
        states.write(str(number), [write])
        states.save(str(number), {"messages": value}, parent=str(number - 1) if number else None, seen=number)
        print(number, flush=True)
        number += 1
"""


def test_a_killed_process_loses_no_state_that_it_was_told_of(tmp_path: Path) -> None:
    path, chance, acknowledged = tmp_path / "store.db", random.Random(SEED), -1
    for _ in range(KILLS):
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            for _ in range(chance.randint(1, 40)):
                acknowledged = int(process.stdout.readline())
        finally:
            process.send_signal(signal.SIGKILL)
            rest = process.stdout.read().split()
            process.stdout.close()
            process.wait(WAIT_S)
        acknowledged = int(rest[-1]) if rest else acknowledged
        with strandline.open(path) as db:
            states = db.tenant("acme").workflow("thread").states
            newest = states.load()
            assert newest is not None
            assert int(newest.state_id) in (acknowledged, acknowledged + 1)
            texts = [part.data for part in newest.values["messages"].parts]
            assert texts == [b"message %d " % number * 20 for number in range(int(newest.state_id) + 1)]
            assert len(newest.writes) == 1
            assert db.verify().ok
            acknowledged = int(newest.state_id)
