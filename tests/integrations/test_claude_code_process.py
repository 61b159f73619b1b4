"""Law (C38): the command that stands in settings.json, run as Claude Code runs it; and whole real sessions."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import strandline as sl
from strandline.integrations.claude_code import install
from strandline.integrations.claude_code.hook import run

SESSIONS = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
CLI = [sys.executable, "-c", "from strandline.cli import main; main()"]
USER = '{"type":"user","uuid":"u1","sessionId":"s","message":{"content":"Never push to main."}}\n'


def _run(command: list[str], data: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=data, capture_output=True, text=True, check=False, cwd=cwd, timeout=120)


def _payload(event: str, file: Path, **fields: object) -> str:
    return json.dumps({"session_id": "s", "transcript_path": str(file), "hook_event_name": event, **fields})


def test_from_install_to_uninstall(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(USER)
    made = json.loads(_run([*CLI, "claude-code", "install", "--store", "log.db", "--json"], cwd=tmp_path).stdout)
    assert made["changed"]
    settings = json.loads(Path(made["settings"]).read_text())
    command = settings["hooks"]["SessionStart"][0]["hooks"][0]["command"]
    assert shlex.split(command)[-4:] == ["hook", "SessionStart", "--config", made["config"]]
    hook = [*CLI, "claude-code", "hook", "SessionStart", "--config", made["config"]]  # whatever Python is installed
    answer = _run(hook, _payload("SessionStart", file, source="compact"))
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "Never push to main." in json.loads(answer.stdout)["hookSpecificOutput"]["additionalContext"]
    with sl.open(tmp_path / ".claude" / "log.db", create=False) as db:
        assert db.tenant("default").workflow("s").verify().ok
    status = _run([*CLI, "claude-code", "status"], cwd=tmp_path)
    assert "hooks are installed" in status.stdout
    gone = _run([*CLI, "claude-code", "uninstall", "--json"], cwd=tmp_path)
    assert json.loads(gone.stdout)["events"] == []
    assert json.loads(Path(made["settings"]).read_text()) == {}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["Stop", "--to-come"], 1), (["PreToolUse", "--to-come"], 2), (["PreToolUse", "--config", "/nowhere"], 2)],
)
def test_no_usage_error_stops_an_agent_by_chance(arguments: list[str], code: int) -> None:
    answer = _run([*CLI, "claude-code", "hook", *arguments], "{}")
    assert (answer.returncode, answer.stdout) == (code, "")
    assert answer.stderr.count("\n") == 1


def test_a_hook_loads_no_command_of_others() -> None:
    """It is waited for at each turn: neither typer nor rich is imported for it."""
    code = (
        "import sys; sys.argv[1:] = ['claude-code', 'hook', 'Stop', '--config', '/nowhere']\n"
        "from strandline.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    print(sorted({'typer', 'rich'} & set(sys.modules)))"
    )
    assert _run([sys.executable, "-c", code], "{}").stdout.strip() == "[]"


def test_broken_settings_are_an_error_of_one_line(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text("{")
    answer = _run([*CLI, "claude-code", "install"], cwd=tmp_path)
    assert (answer.returncode, path.read_text()) == (1, "{")
    assert "is broken" in answer.stderr


# ---------------------------------------------------------------------------------------------- real sessions


def _compacted() -> list[object]:
    found = [
        path
        for path in sorted(SESSIONS.glob("claude_code_*/*.jsonl"))
        if b'"isCompactSummary":true' in path.read_bytes()
    ]
    return list(found) or [pytest.param(None, marks=pytest.mark.skip("needs the real transcripts of ../shared/data"))]


def _hook(folder: Path, event: str, file: Path, **fields: object) -> str:
    out, err = io.StringIO(), io.StringIO()
    data = io.BytesIO(_payload(event, file, **fields).encode())
    assert run([event, "--config", str(folder / ".claude" / "strandline.json")], data, out, err) == 0, err.getvalue()
    return out.getvalue()


@pytest.mark.long
@pytest.mark.parametrize("session", _compacted())
def test_a_real_session_through_its_compactions(session: Path, tmp_path: Path) -> None:
    """Each compaction that really happened, as its hooks would have seen it; then the log is that of one import."""
    install("project", tmp_path)
    lines = session.read_bytes().splitlines(keepends=True)
    file = tmp_path / session.name
    done = 0
    for number, line in enumerate(lines):
        if b'"isCompactSummary":true' not in line:
            continue
        file.write_bytes(b"".join(lines[: number - 1]))  # without the boundary
        _hook(tmp_path, "Stop", file)
        _hook(tmp_path, "PreCompact", file, trigger="auto")
        put_back = _hook(tmp_path, "SessionStart", file, source="compact")
        assert len(json.loads(put_back)["hookSpecificOutput"]["additionalContext"]) < 10_000
        summary = json.loads(line)["message"]["content"]
        _hook(tmp_path, "PostCompact", file, trigger="auto", compact_summary=summary)
        done += 1
    file.write_bytes(session.read_bytes())
    _hook(tmp_path, "UserPromptSubmit", file)
    with sl.open(tmp_path / ".claude" / "strandline.db") as db, sl.open(":memory:") as other:
        workflow, whole = db.tenant("default").workflow("s"), other.tenant("default").workflow("s")
        whole.import_transcript(session)
        assert [tuple(event) for event in workflow.events()] == [tuple(event) for event in whole.events()]
        judged = [entry for entry in workflow.lineage() if entry.name == "claude-code-summary"]
        assert len(judged) == done == len(workflow.foreign_summaries())
        assert workflow.verify().ok
