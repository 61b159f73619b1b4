"""The report in the terminal: plain text, 80 columns, colour only where it is a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from demo.facts import Bar, Source, Step, Story
from demo.visible import counted, visible

COLUMNS: Final = 80
BAR_CELLS: Final = 48
INDENT: Final = "    "


class Terminal:
    """Prints a story while it happens."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._errors = console or Console(highlight=False, markup=False, emoji=False, soft_wrap=True, stderr=True)

    def begin(self, source: Source) -> None:
        """Say what is about to be done."""
        size = f"{counted(source.lines, 'line')}, {counted(source.size_bytes, 'byte')}"
        self._print(Text("Strandline: the main job, on a real store", style="bold"))
        for line in textwrap.wrap(f"{visible(source.path)} ({size})", COLUMNS):
            self._print(Text(line, style="dim"))

    def step(self, step: Step) -> None:
        """Print one step."""
        time = f"{step.seconds:.2f} s"
        title = f"{step.number:>2}  {step.title}"
        line = Text(f"{title:<{COLUMNS - len(time) - 1}} ", style="bold")
        self._print(Text())
        self._print(line.append(time, style="not bold dim"))
        for bar in step.bars:
            self._print(_bar(bar, step.bars))
        for said in step.said:
            self._wrapped(INDENT, said)
        for check in step.checks:
            mark = "ok  " if check.held else "FAILED  "
            self._wrapped(INDENT, check.claim, mark=mark, style="green" if check.held else "bold red")

    def end(self, story: Story, page: Path) -> None:
        """Print the result and where the page is."""
        held = sum(check.held for check in story.checks)
        self._print(Text())
        verdict = f"{held} of {len(story.checks)} checks held, in {story.seconds:.1f} s"
        self._print(Text(verdict, style="bold green" if story.ok else "bold red"))
        self._print(Text(f"The page: {visible(page)}"))

    def nothing(self, why: str) -> None:
        """Print that there is nothing to show."""
        self._print(Text())
        self._wrapped("", why)

    def failed(self, message: str, hint: str) -> None:
        """Print an error and what to do, without a traceback, as the command line does."""
        for label, said, style in (("error:", message, "bold red"), ("hint:", hint, "bold cyan")):
            if said:
                self._errors.print(Text.assemble((label, style), " ", visible(said)), soft_wrap=True)

    def _wrapped(self, indent: str, text: str, *, mark: str = "", style: str = "") -> None:
        hang = indent + " " * (len(mark) if indent else 0)
        lines = textwrap.wrap(
            mark + visible(text), COLUMNS, initial_indent=indent, subsequent_indent=hang, break_on_hyphens=False
        )
        for number, line in enumerate(lines):
            shown = Text(line)
            if mark and number == 0:
                shown.stylize(style, len(indent), len(indent) + len(mark))
            self._print(shown)

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)


def _bar(bar: Bar, bars: Iterable[Bar]) -> Text:
    most = max(1, *(other.tokens for other in bars))
    cells = max(1, round(BAR_CELLS * bar.tokens / most)) if bar.tokens else 0
    line = Text(f"{INDENT}{bar.label:<7}{bar.tokens:>10,} ")
    return line.append("█" * cells, style="cyan").append(" tokens" if cells < BAR_CELLS else "")
