"""Do Strandline's main job on a transcript, for real, and show what happened: `python -m demo.main_job`."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import strandline
from demo.choices import BUNDLED, look_at
from demo.page import write_page
from demo.run import PAGE, work_files
from demo.story import tell
from demo.terminal import Terminal
from demo.visible import visible

OUT: Final = Path("build") / "run"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return 0 if every claim held, 1 if one did not or the file is no good, 2 for a wrong call."""
    parser = argparse.ArgumentParser(prog="python -m demo.main_job", description=__doc__)
    parser.add_argument("--file", type=Path, default=BUNDLED, help="a transcript; by default the bundled one")
    parser.add_argument("--out", type=Path, default=OUT, help=f"where the store and the page go; by default {OUT}")
    given = parser.parse_args(arguments)
    path, out = _short(given.file), given.out
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that can't show a bar shows a question mark
    terminal = Terminal()
    try:
        out.mkdir(parents=True, exist_ok=True)
        if path.resolve() in {file.resolve() for file in work_files(out)}:
            parser.error(f"{visible(path)} is a file that a run of the demo makes itself: copy it elsewhere first")
        page = out / PAGE
        page.unlink(missing_ok=True)  # an old page must never look like that of this run
        terminal.begin(look_at(path))
        story = tell(path, out, terminal.step)
        if not story.events:
            terminal.nothing("the file holds no event; nothing to show")
            return 0
        write_page(story, page)
    except strandline.StrandlineError as error:
        terminal.failed(error.message, error.hint)
        return 1
    except OSError as error:
        terminal.failed(
            str(error), f"See that {visible(out)} is a folder with room that can be written; or name another by --out."
        )
        return 1
    terminal.end(story, page)
    return 0 if story.ok else 1


def _short(path: Path) -> Path:
    """Return the path as seen from here, when it lies below."""
    here = Path.cwd()
    absolute = path.absolute()
    return absolute.relative_to(here) if absolute.is_relative_to(here) else path


if __name__ == "__main__":
    sys.exit(main())
