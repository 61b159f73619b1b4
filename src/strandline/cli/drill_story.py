"""How the drill is told in a terminal: what happens, step by step, and whether each promise was kept."""

from __future__ import annotations

import shutil
import textwrap
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strandline.cli.output import count, emit_line
from strandline.cli.progress import progress

if TYPE_CHECKING:
    from strandline.drill.report import Check, Incident

COLUMNS_MIN: Final = 60
COLUMNS_MAX: Final = 100
_EDGE: Final = 16  # columns of the left edge, where labels stand


class Story:
    """Tells the drill on stdout, while it happens."""

    def __init__(self) -> None:
        self._columns = max(COLUMNS_MIN, min(COLUMNS_MAX, shutil.get_terminal_size().columns))
        self._begun = time.monotonic()
        self._told = 0
        self._scene = ""

    def begin(self, title: str, what: str) -> None:
        """Begin an incident."""
        self._told += 1
        self._scene = ""
        if self._told > 1:
            emit_line([])
        emit_line([(f"{title.upper()} ".ljust(self._columns, "─"), "cyan")])
        for line in self._wrapped(what, self._columns):
            emit_line([(line, "")])

    def half(self, title: str, what: str) -> None:
        """Begin its unprotected or its protected half."""
        self._scene = ""
        emit_line([])
        emit_line([(f"  {title}", "bold"), (f" · {what}", "dim")])

    def scene(self, name: str, what: str) -> None:
        """Begin a scene."""
        self._scene = f"{name}: "
        emit_line([])
        emit_line([(f"  {name}", "bold"), (f" · {what}", "dim")])

    def step(self, when: str, what: str) -> None:
        """Say what happened."""
        self._say(when, what)

    def corrupted(self, what: str) -> None:
        """Say what went wrong without protection."""
        self._say("CORRUPTED", what, "red")

    def check(self, check: Check) -> None:
        """Say whether a promise was kept."""
        name = f"{check.name.removeprefix(self._scene)}: "
        if check.ok:
            self._say("ok", name + _shown(check.got), "green", dim_chars=len(name))
        else:
            self._say("FAILED", f"{name}{_shown(check.got)}, expected {_shown(check.expected)}", "red")

    def so(self, what: str) -> None:
        """Say what the incident comes to."""
        emit_line([])
        self._say("so:", what, "bold")

    def waiting(self, what: str) -> AbstractContextManager[object]:
        """Show that something takes its time."""
        return progress(what)

    def end(self, incidents: Sequence[Incident], kept: Path | None) -> None:
        """Say what all of it came to."""
        emit_line([])
        emit_line([("─" * self._columns, "cyan")])
        width = max(len(incident.name) for incident in incidents)
        for incident in incidents:
            harm = ("corrupted", "red") if incident.naive.get("corrupted") is True else ("unharmed", "yellow")
            held, asked = sum(check.ok for check in incident.checks), len(incident.checks)
            kept_all = (f"{held} of {count(asked, 'promise')} kept", "green" if held == asked else "red")
            emit_line([(f"  {incident.name.ljust(width)}   without: ", ""), harm, ("   with: ", ""), kept_all])
        emit_line([(f"  in {time.monotonic() - self._begun:.0f} s", "dim")])
        if kept is not None:
            emit_line([(f"  the stores and files are in {kept}", "")])

    def _say(self, label: str, text: str, style: str = "cyan", *, dim_chars: int = 0) -> None:
        """Print a text behind its label; so many characters of it are no news, and dim."""
        mark = f"  {label}".ljust(_EDGE)
        for line in self._wrapped(text, self._columns - _EDGE):
            dim = max(0, min(dim_chars, len(line)))
            emit_line([(mark, style), (line[:dim], "dim"), (line[dim:], "")])
            mark, dim_chars = " " * _EDGE, dim_chars - len(line) - 1

    def _wrapped(self, text: str, columns: int) -> list[str]:
        return textwrap.wrap(text, columns, break_on_hyphens=False)


class Silent:
    """Tells nothing but that something takes its time."""

    def begin(self, title: str, what: str) -> None:
        """Say nothing."""

    def half(self, title: str, what: str) -> None:
        """Say nothing."""

    def scene(self, name: str, what: str) -> None:
        """Say nothing."""

    def step(self, when: str, what: str) -> None:
        """Say nothing."""

    def corrupted(self, what: str) -> None:
        """Say nothing."""

    def check(self, check: Check) -> None:
        """Say nothing."""

    def so(self, what: str) -> None:
        """Say nothing."""

    def waiting(self, what: str) -> AbstractContextManager[object]:
        """Show that something takes its time."""
        return progress(what)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, list):
        return ", ".join(map(_shown, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_shown(item)}" for name, item in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)
