"""Law (C41): the drill is one command that says in JSON what it did, and leaves nothing behind, also on Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

STRANDLINE = [sys.executable, "-c", "from strandline.cli import main; main()"]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "STRANDLINE_DEBUG", "TERM")}
    return kept | {"TMPDIR": str(tmp_path), "COLUMNS": "80"}


def run(env: dict[str, str], *args: object) -> subprocess.CompletedProcess[str]:
    command = [*STRANDLINE, "drill", *map(str, args)]
    return subprocess.run(command, env=env, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)


def processes(tmp_path: Path) -> list[str]:
    """Return the processes that work in the folder of a drill."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(tmp_path) in str((entry / "cwd").readlink()):
                found.append((entry / "cmdline").read_text())
        except OSError:
            continue
    return found


def test_one_json_object_and_nothing_left(env: dict[str, str], tmp_path: Path) -> None:
    done = run(env, "resurrected-checkpoint", "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    assert said["ok"] is True
    (incident,) = said["incidents"]
    assert (incident["name"], incident["naive"]["corrupted"]) == ("resurrected-checkpoint", True)
    assert {frozenset(check) for check in incident["checks"]} == {frozenset({"name", "expected", "got", "ok"})}
    assert list(tmp_path.iterdir()) == []
    assert processes(tmp_path) == []


def test_ctrl_c_leaves_nothing_behind(env: dict[str, str], tmp_path: Path) -> None:
    command = [*STRANDLINE, "drill", "half-summary"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while "event 175" not in process.stdout.readline():
        assert process.poll() is None
    assert processes(tmp_path)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert (process.returncode, complaint) == (130, "error: interrupted\n")
    assert list(tmp_path.iterdir()) == []
    assert processes(tmp_path) == []
