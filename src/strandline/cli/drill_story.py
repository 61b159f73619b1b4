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
_LABEL: Final = 14  # columns of the left edge with what stands there


class Story:
    """Tells the drill on stdout, while it happens."""

    def __init__(self) -> None:
        self._columns = max(COLUMNS_MIN, min(COLUMNS_MAX, shutil.get_terminal_size().columns))
        self._begun = time.monotonic()
        self._told = 0

    def begin(self, title: str, what: str) -> None:
        """Begin an incident."""
        self._told += 1
        emit_line([("" if self._told == 1 else "\n", ""), (f"{title.upper()} ".ljust(self._columns, "─"), "cyan")])
        self._say("", what)

    def half(self, title: str, what: str) -> None:
        """Begin its unprotected or its protected half."""
        emit_line([])
        emit_line([(f"  {title}", "bold"), (f": {what}", "")])

    def step(self, when: str, what: str) -> None:
        """Say what happened."""
        self._say(when, what)

    def corrupted(self, what: str) -> None:
        """Say what went wrong without protection."""
        self._say("CORRUPTED", what, "red")

    def check(self, check: Check) -> None:
        """Say whether a promise was kept."""
        if check.ok:
            self._say("ok", f"{check.name}: {_shown(check.got)}", "green")
        else:
            self._say("FAILED", f"{check.name}: {_shown(check.got)}, expected {_shown(check.expected)}", "red")

    def waiting(self, what: str) -> AbstractContextManager[object]:
        """Show that something takes its time."""
        return progress(what)

    def end(self, incidents: Sequence[Incident], kept: Path | None) -> None:
        """Say what all of it came to."""
        checks = [check for incident in incidents for check in incident.checks]
        held = sum(check.ok for check in checks)
        ok = all(incident.ok for incident in incidents)
        emit_line([])
        seconds = time.monotonic() - self._begun
        verdict = f"{held} of {count(len(checks), 'promise')} kept, in {seconds:.0f} s"
        emit_line([(verdict, "green" if ok else "red")])
        if kept is not None:
            emit_line([(f"The stores and files are in {kept}", "")])

    def _say(self, label: str, text: str, style: str = "") -> None:
        lines = textwrap.wrap(text, self._columns - _LABEL - 2, break_on_hyphens=False) or [""]
        for number, line in enumerate(lines):
            mark = f"  {label}".ljust(_LABEL + 2) if number == 0 else " " * (_LABEL + 2)
            emit_line([(mark, style or "dim"), (line, "")])


class Silent:
    """Tells nothing but that something takes its time."""

    def begin(self, title: str, what: str) -> None:
        """Say nothing."""

    def half(self, title: str, what: str) -> None:
        """Say nothing."""

    def step(self, when: str, what: str) -> None:
        """Say nothing."""

    def corrupted(self, what: str) -> None:
        """Say nothing."""

    def check(self, check: Check) -> None:
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
    return f"{value:,}" if isinstance(value, int) else str(value)
