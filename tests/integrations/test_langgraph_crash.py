"""Law (C34, I2, I18): a graph that is killed anywhere goes on, in whatever durability, and no tool runs twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import strandline

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "integrations" / "langgraph_program.py"
BUCKETS = [f"n{number}" for number in range(8)]


def run(folder: Path, durability: str, killed_in: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    command = [sys.executable, str(PROGRAM), str(folder), durability, killed_in]
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=240, env=env)


@pytest.mark.long
@pytest.mark.parametrize("killed_in", ["compaction", "tool before", "tool after", "model"])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_no_tool_runs_twice(tmp_path: Path, durability: str, killed_in: str) -> None:
    died = run(tmp_path, durability, killed_in)
    assert died.returncode == -signal.SIGKILL, died.stderr
    before = (tmp_path / "buckets").read_text().split()
    assert 4 <= len(before) < len(BUCKETS)
    done = run(tmp_path, durability, killed_in)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "buckets").read_text().split() == BUCKETS
    said, generation, verified = done.stdout.split()
    assert (said, verified) == ("DONE", "True")
    assert int(generation) >= 1
    with strandline.open(tmp_path / "memory.db") as db:
        effects = db.tenant("acme").workflow("t").effects()
        assert sorted({str(effect.state) for effect in effects}) in (["done"], ["done", "failed"])
