"""Law: the page on proving is what a user does. Its files pass in an empty folder, and fail when the agent is wrong."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.testing import Fault, SummarizerFault
from strandline.testing.fault_points import WRITES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "proving.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```py\n# (\w+\.py)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))

pytestmark = pytest.mark.long


def run_pytest(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_strandline", "-p", "no:cacheprovider", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, body in FILES.items():
        (tmp_path / name).write_text(body, encoding="utf-8")
    return tmp_path


def test_the_page_has_its_files() -> None:
    assert list(FILES) == ["agent.py", "test_killed.py", "test_played.py", "test_mine.py"]


def test_what_the_page_shows_passes(folder: Path) -> None:
    done = run_pytest(folder)
    assert done.returncode == 0, done.stdout
    assert re.search(rf"\b{4 + 2 + len(SummarizerFault) + 16} passed, 8 skipped", done.stdout), done.stdout


def test_an_agent_without_keys_is_found(folder: Path) -> None:
    """The page says so: what proves something can fail."""
    agent = folder / "agent.py"
    agent.write_text(agent.read_text(encoding="utf-8").replace(', key=f"step-{number}"', ""), encoding="utf-8")
    done = run_pytest(folder, "test_killed.py", "-k", "append")
    assert done.returncode == 1
    assert "test_nothing_is_lost[append.after_commit]" in done.stdout


def test_each_kind_of_write_and_each_fault_stands_on_the_page() -> None:
    for kind, what in WRITES.items():
        assert f"| `{kind}` | {what} |" in PAGE
    for fault in Fault:
        assert f"| `{fault}` | " in PAGE
    for told in SummarizerFault:
        assert f"`{told}`" in PAGE
