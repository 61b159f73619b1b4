"""Install the hooks for a project or for a user, take them out again, and tell what is there."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from strandline.errors import InvalidInputError
from strandline.integrations.claude_code.config import EVENTS, HookConfig, read_config
from strandline.integrations.claude_code.settings import MARK, events_of, read_settings, with_hooks, write_settings
from strandline.limits import HOOK_TIMEOUT_S

Scope = Literal["project", "local", "user"]
SCOPES: Final[tuple[Scope, ...]] = ("project", "local", "user")

_CONFIG_NAME: Final = "strandline.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What is there for one scope, and what a call changed."""

    settings: Path
    config: Path
    events: tuple[str, ...]  # that have a hook of ours
    changed: bool = False
    backup: Path | None = None


def install(scope: Scope, folder: Path, defaults: HookConfig | None = None) -> Installed:
    """Put our hooks into a settings.json, those of others left as they are; doing it again changes nothing.

    A strandline.json is written where there is none. Run it again after its guards changed: settings.json names the
    tools that are guarded, so that no process is started for others.

    Args:
        scope: `project` (shared by who works on it), `local` (own, of this project), or `user`.
        folder: of the project; for `user` the home folder.
        defaults: what is written into a new strandline.json.

    Raises:
        InvalidInputError: settings.json or strandline.json is broken or can't be written. Neither was changed.
    """
    settings_path, config_path = _places(scope, folder)
    settings = read_settings(settings_path)
    new = defaults or HookConfig()
    config = read_config(config_path) if config_path.exists() else new
    ours = {event: entry for event in EVENTS if (entry := _entry(event, config, config_path))}
    value = with_hooks(settings.value, ours)
    if not config_path.exists():
        _write_config(config_path, new)
    changed = value != settings.value
    backup = write_settings(settings, value) if changed else None
    return Installed(settings=settings.path, config=config_path, events=tuple(ours), changed=changed, backup=backup)


def uninstall(scope: Scope, folder: Path) -> Installed:
    """Take our hooks out of a settings.json; strandline.json and the log stay.

    Raises:
        InvalidInputError: settings.json is broken or can't be written. It was not changed.
    """
    settings_path, config_path = _places(scope, folder)
    settings = read_settings(settings_path)
    value = with_hooks(settings.value, {})
    changed = bool(events_of(settings.value))
    backup = write_settings(settings, value) if changed else None
    return Installed(settings=settings.path, config=config_path, events=(), changed=changed, backup=backup)


def status(scope: Scope, folder: Path) -> Installed:
    """Return what is installed.

    Raises:
        InvalidInputError: settings.json is broken.
    """
    settings_path, config_path = _places(scope, folder)
    settings = read_settings(settings_path)
    return Installed(settings=settings.path, config=config_path, events=tuple(events_of(settings.value)))


def _places(scope: Scope, folder: Path) -> tuple[Path, Path]:
    if scope not in SCOPES:
        raise InvalidInputError(f"no scope {scope!r}; there are {', '.join(SCOPES)}")
    claude = folder.resolve() / ".claude"
    return claude / ("settings.local.json" if scope == "local" else "settings.json"), claude / _CONFIG_NAME


def _entry(event: str, config: HookConfig, config_path: Path) -> Mapping[str, object] | None:
    if event == "PreToolUse" and not config.matcher:
        return None
    command = shlex.join([*_program(), *MARK.split(), event, "--config", str(config_path)])
    entry: dict[str, object] = {"matcher": config.matcher} if event == "PreToolUse" else {}
    entry["hooks"] = [{"type": "command", "command": command, "timeout": HOOK_TIMEOUT_S[event]}]
    return entry


def _program() -> list[str]:
    """Return how this Strandline is called: the script beside its Python, so that no PATH decides."""
    script = Path(sys.executable).with_name("strandline")
    return [str(script)] if script.exists() else [sys.executable, "-m", "strandline"]


def _write_config(path: Path, config: HookConfig) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n")
    except OSError as error:
        raise InvalidInputError(f"{str(path)!r} can't be written: {error.strerror or error}") from error
