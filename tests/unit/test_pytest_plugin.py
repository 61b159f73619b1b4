"""Law (C40): the plugin gives its fixtures to those who ask, and does nothing for anybody else.

Each test is a run of pytest of its own, as a user has it: in a folder with warnings as errors, and with the plugin.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEFT = """
kept = []

def waits(block):
    block.__enter__()
    return block

def test_it(strandline_faults, scripted_summarizer):
"""
INI = "[pytest]\nfilterwarnings = error\naddopts = --strict-markers --strict-config\n"


def run_pytest(folder: Path, source: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text(INI)
    (folder / "test_mine.py").write_text(source)
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_strandline", "-p", "no:cacheprovider", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_pytest_finds_it_where_strandline_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["entry-points"]["pytest11"] == {"strandline": "pytest_strandline"}
    assert "src/pytest_strandline.py" in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def test_who_does_not_use_it_does_not_load_the_library(tmp_path: Path) -> None:
    source = "import sys\n\ndef test_it():\n    assert 'strandline' not in sys.modules\n"
    done = run_pytest(tmp_path, source)
    assert done.returncode == 0, done.stdout


def test_the_fixtures_work_together(tmp_path: Path) -> None:
    source = """
import strandline

def test_it(strandline_store, strandline_clock, strandline_faults, scripted_summarizer):
    db = strandline.Strandline(strandline_store, clock=strandline_clock)
    wf = db.tenant("acme").workflow("w")
    wf.append([strandline.message("assistant", f"Step {n} went well. " + "x " * 60) for n in range(12)])
    with strandline_faults.crash_at("activate.before_commit"):
        wf.compact(400, scripted_summarizer("Work went on."))
    strandline_clock.advance(3600)
    db = strandline.Strandline(strandline_store.restarted(), clock=strandline_clock)
    wf = db.tenant("acme").workflow("w")
    assert wf.compact(400, scripted_summarizer()).outcome == "activated"
    assert db.verify().ok
"""
    done = run_pytest(tmp_path, source)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("scripted_summarizer('a step')", "steps of a script that no call took: scripted"),
        ("waits(strandline_faults.crash_at('append.after_commit'))", "a fault is still open: append.after_commit"),
        (
            "waits(strandline_faults.crash_at('append.after'))",
            "no fault point 'append.after'; near it are append.",
        ),
    ],
)
def test_what_is_left_over_fails_the_test(tmp_path: Path, body: str, told: str) -> None:
    done = run_pytest(
        tmp_path,
        LEFT + f"    kept.append({body})\n",
    )
    assert done.returncode == 1
    assert told in done.stdout
