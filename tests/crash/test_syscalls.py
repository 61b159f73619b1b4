"""Law (I1, I2, I13, I18, I19): killed, or failed, at a system call by which it writes, a verb is done or not done.

Runs the command of syscalls.py, which says what is checked; and shows that it finds a library that is broken.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.tracing import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

PROGRAMME = Path(__file__).with_name("syscalls.py")


def run(*words: str) -> tuple[int, str, dict]:
    done = subprocess.run([sys.executable, str(PROGRAMME), *words], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, done.stdout, json.loads(done.stdout.splitlines()[-1])


def test_a_small_slice():
    code, told, result = run("--seed", "1", "--count", "40", "--verb", "append")
    assert (code, result["count"], result["violations"]) == (0, 40, 0), told
    assert result["detail"]["covered"] == 40


@pytest.mark.long
def test_verbs_of_many_commits():
    words = [word for verb in ("open", "compact", "effect", "guarded effect", "erase") for word in ("--verb", verb)]
    code, told, result = run("--seed", "1", "--count", "200", *words)
    assert (code, result["count"], result["violations"]) == (0, 200, 0), told
    assert {"killed, acknowledged", "killed, not acknowledged", "refused", "not noticed"} <= set(result["detail"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("sabotage", "told"),
    [
        ("split-commits", "the tables are as no commit left them"),
        ("journal-in-memory", "malformed"),
        ("ignored-errors", "after the error, it is other than undisturbed in store.db: session: context"),
        ("early-acknowledgement", "it was acknowledged, and is not there"),
        ("untyped-errors", "sqlite3.OperationalError"),
    ],
)
def test_it_finds_a_library_that_is_broken(sabotage, told):
    code, stories, result = run("--seed", "1", "--count", "100", "--verb", "append", "--sabotage", sabotage)
    assert code == 1
    assert result["violations"] > 0
    assert told in stories
    assert re.search(rf"--seed \d+ --count 1 --verb 'append' --sabotage {sabotage}$", stories, re.MULTILINE)
