"""Law (C31, I1): a program that is killed within an erasure leaves all of it done, or none; a repeat does the rest."""

import subprocess
import sys
import time

import pytest

import strandline

pytestmark = pytest.mark.long

PERSON = "Zebulon Quartermain"
PROGRAM = f"""
import sys
import strandline
db = strandline.open(sys.argv[1])
print("begins", flush=True)
db.tenant("acme").workflow("w").erase(person="{PERSON}", by="dpo", why="request 12")
"""


@pytest.mark.parametrize("after_s", [0.05, 0.15, 0.3, 0.6])
def test_an_erasure_is_all_or_nothing(tmp_path, after_s):
    path = tmp_path / "store.db"
    said = [f"Step {n}: {PERSON if n % 7 == 0 else 'nobody'} looked at /srv/{n}/x.md again" for n in range(200)]
    with strandline.open(path, durability="normal") as db:
        db.tenant("acme").workflow("w").append([strandline.message("user", text) for text in said])
        db.tenant("acme").workflow("w").compact(budget=2_000)
    words = [sys.executable, "-c", PROGRAM, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as program:
        program.stdout.readline()
        time.sleep(after_s)
        program.kill()
    with strandline.open(path, durability="normal") as db:
        wf = db.tenant("acme").workflow("w")
        assert len({event.text == "[erased]" for event in wf.events() if event.seq % 7 == 1}) == 1
        assert db.verify().ok
        wf.erase(person=PERSON, by="dpo", why="request 12")
        assert PERSON not in wf.context(1_000_000).text
        assert db.verify().ok
    assert PERSON.encode() not in path.read_bytes()
