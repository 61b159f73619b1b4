"""Law (I18): of two processes that ask for the same effect one runs it; a process that is killed between intent and
outcome leaves an effect that is not run again silently.

Real processes on one file; what they did outside is counted by lines of another file.
"""

import subprocess
import sys
from pathlib import Path

import pytest

import strandline
from strandline import EffectDone, EffectNeverHappened, EffectUnknownError

pytestmark = pytest.mark.long

PROGRAM = """
import os, sys, time
import strandline

store, counter, how = sys.argv[1:]

def run():
    with open(counter, "a") as file:
        file.write("ran\\n")
    if how == "killed":
        print("running", flush=True)
        time.sleep(600)
    return "bucket-7f3a"

with strandline.open(store) as db:
    workflow = db.tenant("acme").workflow("release")
    if how == "race":
        print("ready", flush=True)
        sys.stdin.readline()
    try:
        print(workflow.effect("create", "create_bucket", {"name": "logs"}, run).kind.value, flush=True)
    except strandline.EffectUnknownError:
        print("unknown", flush=True)
"""
WAIT_S = 60


def start(store: Path, counter: Path, how: str) -> subprocess.Popen:
    words = [sys.executable, "-c", PROGRAM, str(store), str(counter), how]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def runs(counter: Path) -> int:
    return len(counter.read_text().splitlines()) if counter.exists() else 0


def test_of_two_processes_one_runs(tmp_path):
    store, counter = tmp_path / "a.db", tmp_path / "counter"
    with strandline.open(store):
        pass
    processes = [start(store, counter, "race") for _ in range(3)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = sorted(process.communicate(timeout=WAIT_S)[0].strip() for process in processes)
    assert runs(counter) == 1
    assert said.count("ran") == 1
    assert set(said) <= {"ran", "replayed", "unknown"}
    with strandline.open(store) as db:
        assert [effect.state for effect in db.tenant("acme").workflow("release").effects()] == ["done"]
        assert db.verify().ok


@pytest.mark.parametrize("answer", [None, EffectDone("bucket-1"), EffectNeverHappened()], ids=str)
def test_a_process_that_is_killed_while_its_effect_runs_leaves_it_unknown(tmp_path, answer):
    store, counter = tmp_path / "a.db", tmp_path / "counter"
    process = start(store, counter, "killed")
    assert process.stdout.readline() == "running\n"
    process.kill()
    process.communicate(timeout=WAIT_S)
    with strandline.open(store) as db:
        workflow = db.tenant("acme").workflow("release")
        assert [effect.state for effect in workflow.effects()] == ["intended"]
        again = []

        def ask(probe=None):
            return workflow.effect(
                "create", "create_bucket", {"name": "logs"}, lambda: again.append(1) or "second", probe
            )

        with pytest.raises(EffectUnknownError) as unknown:
            ask()
        assert (again, runs(counter)) == ([], 1)
        if answer is not None:
            done = isinstance(answer, EffectDone)
            assert ask(lambda: answer).result == ("bucket-1" if done else "second")
            assert len(again) == (0 if done else 1)
        else:
            assert [case.case_id for case in workflow.cases()] == [unknown.value.case_id]
        assert db.verify().ok
