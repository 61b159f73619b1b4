"""Law (SPEC §6, C38): settings.json belongs to others. Our hooks go in and out, all else stays, and what is broken
is left as it is.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import strandline as sl
from strandline.integrations.claude_code import HookConfig, install, read_config, status, uninstall
from strandline.integrations.claude_code import settings as module
from strandline.integrations.claude_code.config import EVENTS, GuardRule
from strandline.integrations.claude_code.settings import with_hooks

OTHERS = {
    "model": "opus",
    "permissions": {"allow": ["Bash(ls:*)"], "größe": 1},
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "lint", "timeout": 5}]}],
        "Notification": [],
    },
}


def _settings(folder: Path) -> Path:
    return folder / ".claude" / "settings.json"


def _write(folder: Path, text: str) -> Path:
    path = _settings(folder)
    path.parent.mkdir()
    path.write_text(text)
    return path


def _guarded(folder: Path) -> None:
    (folder / ".claude").mkdir(exist_ok=True)
    rule = {"tool": "Bash", "mentions": ["git push"], "approved": ["push"]}
    (folder / ".claude" / "strandline.json").write_text(json.dumps({"guards": [rule]}))


def test_into_nothing(tmp_path: Path) -> None:
    made = install("project", tmp_path)
    assert (made.changed, made.backup) == (True, None)
    assert made.events == tuple(event for event in EVENTS if event != "PreToolUse")  # nothing is guarded yet
    value = json.loads(_settings(tmp_path).read_text())
    for event in made.events:
        (entry,) = value["hooks"][event]
        (hook,) = entry["hooks"]
        assert f"claude-code hook {event} --config {made.config}" in hook["command"]
    assert read_config(made.config).store == str(made.config.parent / "strandline.db")
    assert status("project", tmp_path).events == made.events


def test_others_stay_and_a_backup_has_what_was_there(tmp_path: Path) -> None:
    text = json.dumps(OTHERS)
    path = _write(tmp_path, text)
    _guarded(tmp_path)
    made = install("project", tmp_path)
    value = json.loads(path.read_text())
    assert {key: value[key] for key in ("model", "permissions")} == {k: OTHERS[k] for k in ("model", "permissions")}
    assert "größe" in path.read_text()
    assert value["hooks"]["Stop"][0] == OTHERS["hooks"]["Stop"][0]
    assert value["hooks"]["PreToolUse"][0] == OTHERS["hooks"]["PreToolUse"][0]
    assert value["hooks"]["PreToolUse"][1]["matcher"] == "Bash"
    assert value["hooks"]["Notification"] == []
    assert made.backup is not None
    assert made.backup.read_text() == text


def test_again_changes_nothing_and_out_gives_back_what_was_there(tmp_path: Path) -> None:
    path = _write(tmp_path, json.dumps(OTHERS))
    install("project", tmp_path)
    first = path.read_bytes()
    again = install("project", tmp_path)
    assert (again.changed, again.backup, path.read_bytes()) == (False, None, first)
    assert uninstall("project", tmp_path).changed
    assert json.loads(path.read_text()) == OTHERS
    gone = uninstall("project", tmp_path)
    assert (gone.changed, gone.events) == (False, ())


def test_a_hook_that_stands_before_another_s_stays_there(tmp_path: Path) -> None:
    path = _write(tmp_path, "{}")
    install("project", tmp_path)
    value = json.loads(path.read_text())
    value["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "say done"}]})
    path.write_text(json.dumps(value))
    assert not install("project", tmp_path).changed


def test_an_older_hook_of_ours_gives_way_also_beside_another_s_in_one_entry(tmp_path: Path) -> None:
    old = {"type": "command", "command": "/old/bin/strandline claude-code hook Stop --config x"}
    other = {"type": "command", "command": "say strandline claude-code"}
    ours = {"Stop": {"hooks": [{"type": "command", "command": "new"}]}}
    value = with_hooks({"hooks": {"Stop": [{"hooks": [old, other]}]}}, ours)
    assert value == {"hooks": {"Stop": [{"hooks": [other]}, ours["Stop"]]}}


def test_guards_name_the_tools_so_that_no_process_starts_for_others(tmp_path: Path) -> None:
    install("project", tmp_path)
    config = read_config(tmp_path / ".claude" / "strandline.json")
    rules = (GuardRule(tool="Bash", approved=("a",)), GuardRule(tool="mcp__gh__merge", once=True))
    assert HookConfig(guards=rules).matcher == "Bash|mcp__gh__merge"
    assert HookConfig(guards=(*rules, GuardRule(tool="*", once=True))).matcher == "*"
    assert config.matcher == ""


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"hooks": []}',
        '{"hooks": {"Stop": {}}}',
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": 1} x',
        "// a comment\n{}",
        "",
        "[" * 100_000,
    ],
)
def test_what_is_broken_is_refused_and_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = _write(tmp_path, text)
    for call in (install, uninstall, status):
        with pytest.raises(sl.InvalidInputError) as caught:
            call("project", tmp_path)
        assert str(path) in caught.value.message
    assert path.read_text() == text
    assert [file.name for file in path.parent.iterdir()] == ["settings.json"]


def test_a_broken_strandline_json_changes_no_settings(tmp_path: Path) -> None:
    path = _write(tmp_path, "{}")
    (tmp_path / ".claude" / "strandline.json").write_text('{"stroe": "x"}')
    with pytest.raises(sl.InvalidInputError, match="stroe"):
        install("project", tmp_path)
    assert path.read_text() == "{}"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"guards": [{"tool": "Bash"}]}, "guard 0: it needs nothing"),
        ({"guards": [{"tool": "Bash", "approved": ["x"], "mentions": [" "]}]}, "empty phrase"),
        ({"guards": [{"tool": "Bash", "approved": ["x"], "quorum": 0}]}, "guard 0: quorum"),
        ({"guards": [{"tool": "Bash", "approved": ["x"], "otherwise": "allow"}]}, "allow"),
        ({"on_failure": {"Stop": "closed"}}, "'Stop' is 'closed'"),
        ({"on_failure": {"Nope": "open"}}, "'Nope'"),
    ],
)
def test_settings_of_ours_that_can_t_be_are_refused(tmp_path: Path, value: object, said: str) -> None:
    path = tmp_path / "strandline.json"
    path.write_text(json.dumps(value))
    with pytest.raises(sl.InvalidInputError, match=said.replace("(", r"\(")):
        read_config(path)


def test_a_link_is_followed_and_the_mode_stays(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o640)
    path = _settings(tmp_path)
    path.parent.mkdir()
    path.symlink_to(real)
    made = install("project", tmp_path)
    assert path.is_symlink()
    assert made.settings == real
    if os.name == "posix":
        assert real.stat().st_mode & 0o777 == 0o640


def test_who_writes_meanwhile_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _write(tmp_path, "{}")
    settings = module.read_settings(path)
    path.write_text('{"model": "new"}')
    with pytest.raises(sl.InvalidInputError, match="changed meanwhile"):
        module.write_settings(settings, {"hooks": {}})
    assert path.read_text() == '{"model": "new"}'
    assert not [file for file in path.parent.iterdir() if file.name.startswith(".settings")]


def test_a_full_disk_leaves_it_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _write(tmp_path, "{}")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(sl.InvalidInputError, match="No space left"):
        install("project", tmp_path)
    assert path.read_text() == "{}"


@pytest.mark.parametrize(("scope", "name"), [("local", "settings.local.json"), ("user", "settings.json")])
def test_other_scopes(tmp_path: Path, scope: str, name: str) -> None:
    assert install(scope, tmp_path).settings == tmp_path / ".claude" / name  # type: ignore[arg-type]
    with pytest.raises(sl.InvalidInputError, match="no scope"):
        install("machine", tmp_path)  # type: ignore[arg-type]
