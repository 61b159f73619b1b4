"""Law (I1, I2, I5, I7, I13, I14): a process may die at any instruction. A smaller number of kills, at each commit.

Runs the command of kill9.py, which says what is checked after each; 200 kills are `kill9.py --kills 200`.
"""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

KILLS = 25


def test_a_killed_program_leaves_what_was_or_what_becomes(request):
    command = [sys.executable, str(Path(__file__).with_name("kill9.py")), "--kills", str(KILLS), "--seed", "2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=request.config.rootpath, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2_000:]
    assert f"kills: {KILLS} in" in done.stdout
    assert "violations: 0\n" in done.stdout
