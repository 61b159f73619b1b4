"""settings.json of Claude Code: our hooks are put in and taken out, and all else stays as it is."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from strandline.errors import InvalidInputError
from strandline.limits import SETTINGS_BACKUPS_MAX

MARK: Final = "claude-code hook "
"""Stands in the command of each hook of ours, and by it they are known again."""

_LEFT: Final = "It was left as it is."


@dataclass(frozen=True, slots=True)
class Settings:
    """A settings.json as it was read."""

    path: Path  # where links lead
    data: bytes | None  # None: there is no such file
    value: dict[str, object]


def read_settings(path: Path) -> Settings:
    """Read a settings.json; one that is not there is empty.

    Raises:
        InvalidInputError: it can't be read, is no JSON object, or its hooks are none. Nothing was changed.
    """
    path = path.resolve()
    try:
        data = path.read_bytes() if path.exists() else None
    except OSError as error:
        raise InvalidInputError(f"{str(path)!r} can't be read: {error.strerror or error}", hint=_LEFT) from error
    if data is None:
        return Settings(path, None, {})
    try:
        value = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_distinct, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{str(path)!r} is broken: {error}", hint=_LEFT) from error
    if not isinstance(value, dict):
        raise InvalidInputError(f"{str(path)!r} holds no object", hint=_LEFT)
    _check_hooks(path, value)
    return Settings(path, data, value)


def with_hooks(value: Mapping[str, object], ours: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    """Return settings with these hooks of ours and no others of ours; those of others stay, in their order.

    Args:
        value: settings that were read.
        ours: by event, one entry of its list.
    """
    hooks: dict[str, list[object]] = {}
    for event, entries in _hooks(value).items():
        there = ours.get(event) in entries  # as it is, where it is
        kept = entries if there else _without_ours(entries)
        if kept or not entries:
            hooks[event] = kept
    for event, entry in ours.items():
        if entry not in hooks.get(event, []):
            hooks[event] = [*hooks.get(event, []), dict(entry)]
    changed = {**value, "hooks": hooks}
    if not hooks and (_hooks(value) or "hooks" not in value):
        del changed["hooks"]
    return changed


def events_of(value: Mapping[str, object]) -> list[str]:
    """Return the events that have a hook of ours."""
    return [event for event, entries in _hooks(value).items() if _without_ours(entries) != entries]


def write_settings(settings: Settings, value: Mapping[str, object]) -> Path | None:
    """Write changed settings, at once or not at all; return the backup of what was there, None where nothing was.

    Raises:
        InvalidInputError: it can't be written, or somebody else changed it since it was read. Nothing was changed.
    """
    path = settings.path
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        backup = _back_up(settings)
        _replace(settings, text.encode())
    except OSError as error:
        raise InvalidInputError(f"{str(path)!r} can't be written: {error.strerror or error}", hint=_LEFT) from error
    return backup


def _replace(settings: Settings, data: bytes) -> None:
    path = settings.path
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(path.stat().st_mode & 0o777 if settings.data is not None else 0o600)
        if (path.read_bytes() if path.exists() else None) != settings.data:
            raise InvalidInputError(f"{str(path)!r} was changed meanwhile", hint=f"{_LEFT} Try again.")
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def _back_up(settings: Settings) -> Path | None:
    if settings.data is None:
        return None
    for number in range(1, SETTINGS_BACKUPS_MAX + 1):
        backup = settings.path.with_name(f"{settings.path.name}.before-strandline-{number}")
        try:
            with backup.open("xb") as file:
                file.write(settings.data)
        except FileExistsError:
            continue
        backup.chmod(settings.path.stat().st_mode & 0o777)
        return backup
    raise InvalidInputError(
        f"{str(settings.path)!r} has {SETTINGS_BACKUPS_MAX} backups already", hint=f"{_LEFT} Delete old backups."
    )


def _hooks(value: Mapping[str, object]) -> dict[str, list[object]]:
    hooks = value.get("hooks")
    return {str(event): list(entries) for event, entries in hooks.items()} if isinstance(hooks, dict) else {}


def _without_ours(entries: list[object]) -> list[object]:
    """Return the entries of an event without our commands; an entry that held nothing else goes."""
    kept: list[object] = []
    for entry in entries:
        commands = entry.get("hooks") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(commands, list):
            kept.append(entry)
            continue
        others = [command for command in commands if not _is_ours(command)]
        if others or not commands:
            kept.append({**entry, "hooks": others} if len(others) < len(commands) else entry)
    return kept


def _is_ours(command: object) -> bool:
    said = command.get("command") if isinstance(command, dict) else None
    return isinstance(said, str) and MARK in said and "strandline" in said


def _check_hooks(path: Path, value: dict[str, object]) -> None:
    hooks = value.get("hooks", {})
    if not isinstance(hooks, dict):
        raise InvalidInputError(f"{str(path)!r}: hooks is no object", hint=_LEFT)
    for event, entries in hooks.items():
        if not isinstance(entries, list):
            raise InvalidInputError(f"{str(path)!r}: hooks.{event} is no list", hint=_LEFT)


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the field {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return value


def _no_number(text: str) -> object:
    raise ValueError(f"{text} is no number of JSON")
