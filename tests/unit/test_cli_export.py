"""Laws of `strandline export` (C2): what is written is read back, whole or not at all, and never over something."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOG = (
    '{"kind":"tool_call","key":"k1","call_id":"c1","tool":"ls","input":{"path":"."}}\n'
    '{"kind":"tool_result","key":"k2","call_id":"c1","content":"a.py"}\n'
)


def strandline(folder: pathlib.Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    program = "import sys; from strandline.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, "-c", program, *words], cwd=folder, env=environment, capture_output=True, check=False
    )


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "log.jsonl").write_text(LOG, encoding="utf-8")
    assert strandline(tmp_path, "import", "log.jsonl").returncode == 0
    return tmp_path


def test_stdout_has_the_lines_and_nothing_else(folder: pathlib.Path) -> None:
    ran = strandline(folder, "export")
    assert ran.returncode == 0
    assert ran.stdout.decode() == LOG
    assert b"2 lines, up to event 2" in ran.stderr


def test_a_file_is_written_once_and_told_of(folder: pathlib.Path) -> None:
    ran = strandline(folder, "export", "out.jsonl", "--format", "openai", "--json")
    told = json.loads(ran.stdout)
    assert (told["lines"], told["format"], told["revision"]) == (2, "openai", 2)
    assert (folder / "out.jsonl").stat().st_size == told["size_bytes"]
    again = strandline(folder, "export", "out.jsonl")
    assert again.returncode == 2
    assert b"is there already" in again.stderr
    assert not list(folder.glob("*.part"))


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--json"], 2, b"name a file"),
        (["--format", "openai", "--abandoned"], 2, b"left behind"),
        (["nowhere/out.jsonl"], 1, b"can't be written"),
        (["--format", "xml"], 2, b"xml"),
    ],
)
def test_bad_input_writes_nothing(folder: pathlib.Path, words: list[str], code: int, said: bytes) -> None:
    before = sorted(path.name for path in folder.iterdir())
    ran = strandline(folder, "export", *words)
    assert ran.returncode == code
    assert said in ran.stdout + ran.stderr
    assert sorted(path.name for path in folder.iterdir()) == before
