"""A program: let the agent of the quickstart die at each crossing of the checkpointer, and start it again.

It forks, so that the frameworks are imported once; of each death and what came of it, it prints a line of JSON.

    python quickstart_deaths.py AGENT FOLDER
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strandline.integrations.langgraph import StrandlineSaver

CROSSINGS = ("put", "put_writes")
FIRST_S = 0.03  # how long what runs beside the crossing that dies may go on: the graph, and its other saves
DIED = 9
AGENT, FOLDER = Path(sys.argv[1]), Path(sys.argv[2])


def main() -> None:
    namespace: dict[str, Any] = {"__name__": "agent"}
    exec(compile(AGENT.read_text(encoding="utf-8"), str(AGENT), "exec"), namespace)
    run = namespace["main"]
    for death in range(1, 1 + int(said_by(run, FOLDER / "whole", None)[1])):
        for late_s in (0.0, FIRST_S):
            folder = FOLDER / f"{death}-{late_s}"
            code, _ = said_by(run, folder, (death, late_s))
            again, _ = said_by(run, folder, None)
            told = (folder / "out.txt").read_text(encoding="utf-8")
            line = {"death": death, "late_s": late_s, "codes": [code, again], "told": told}
            print(json.dumps({**line, "folder": str(folder)}), flush=True)  # noqa: T201


def said_by(run: Callable[[], None], folder: Path, death: tuple[int, float] | None) -> tuple[int, str]:
    """Run the agent in a process of its own; return its exit code and how many crossings it made."""
    folder.mkdir(exist_ok=True)
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        out = os.open("out.txt", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        crossed = count_crossings(death)
        status = 1
        try:
            run()
            Path("crossed.txt").write_text(str(crossed[0]), encoding="utf-8")
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    crossed_file = folder / "crossed.txt"
    return code, crossed_file.read_text(encoding="utf-8") if crossed_file.exists() else ""


def count_crossings(death: tuple[int, float] | None) -> list[int]:
    """Count the calls of the saver that write, and die before the one that is named."""
    crossed, lock = [0], threading.Lock()

    def wrap(name: str) -> None:
        inner = getattr(StrandlineSaver, name)

        def counted(*arguments: Any) -> Any:
            with lock:
                crossed[0] += 1
                dies = death is not None and crossed[0] == death[0]
            if dies and death is not None:
                time.sleep(death[1])
                os._exit(DIED)
            return inner(*arguments)

        setattr(StrandlineSaver, name, counted)

    for name in CROSSINGS:
        wrap(name)
    return crossed


main()
