"""The commands of the help in sections, by what one comes for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol

SECTIONS: Final = {
    "Write": ("append", "import", "effects", "guard", "permits"),
    "Read": ("context", "events", "recall", "search", "constraints", "states", "export", "refs", "view"),
    "Compact": ("compact", "preview", "manifest", "check", "compare"),
    "In the background": ("worker", "compact-when", "due", "run-due"),
    "Recover": (
        "checkpoint",
        "recover",
        "cases",
        "reconcile",
        "revert",
        "report-regression",
        "rewind",
        "fork",
        "lineage",
    ),
    "Keep and erase": ("erase", "retain", "retention", "hold", "reader"),
    "Operate": ("verify", "witness", "doctor", "metrics", "backup", "copy", "migrate"),
    "Connect": ("mcp", "claude-code"),
    "Try out": ("drill", "bench"),
}
OTHERS: Final = "Others"


class Formatter(Protocol):
    """What writes the help; typer brings one of its own, under a private name."""

    width: int

    def section(self, name: str) -> AbstractContextManager[None]:
        """Begin a section, with its heading."""

    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None:
        """Write names and what they mean, in two columns."""


def in_sections(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the names by section; those of none come last, and a section without any is left out."""
    left = dict.fromkeys(names)
    found = {title: [name for name in named if name in left] for title, named in SECTIONS.items()}
    for listed in found.values():
        for name in listed:
            del left[name]
    return {title: listed for title, listed in (found | {OTHERS: list(left)}).items() if listed}
