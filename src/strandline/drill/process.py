"""Processes that do what they are asked, a line of JSON for each request and each answer, until somebody kills them."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import strandline

ANSWER_WITHIN_S: Final = 60.0  # a process that says nothing for longer is stuck, and is ended
STDERR_SHOWN_CHARS: Final = 2_000
PACKAGE_PARENT: Final = Path(strandline.__file__).parents[1]


class DrillError(strandline.StrandlineError):
    """A process of the drill did not do what it is there for."""

    hint = "Nothing of yours is touched. Run it again; with --keep DIR its files stay for a look."


def environment() -> dict[str, str]:
    """Return the environment of a child: this package, and no settings of the user's stores."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STRANDLINE_")}
    paths = [str(PACKAGE_PARENT), *filter(None, [kept.get("PYTHONPATH")])]
    return kept | {"PYTHONPATH": os.pathsep.join(paths)}


class Child:
    """A module of the drill in a process of its own.

    It is in a session of its own, so that Ctrl-C reaches the drill alone, which ends it; and it ends when its stdin
    does, so that it never outlives the drill.
    """

    def __init__(self, module: str, arguments: Sequence[str], folder: Path) -> None:
        self.module = module
        self._complaints = folder / f"{module}.stderr"
        with self._complaints.open("ab") as complaints:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"strandline.drill.{module}", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                env=environment(),
                cwd=folder,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ask(self, do: str, **arguments: object) -> dict[str, object]:
        """Let it do something, and return its answer."""
        self.send(do, **arguments)
        return self.hear()

    def send(self, do: str, **arguments: object) -> None:
        """Let it do something, and don't wait."""
        if self._process.stdin is not None:
            self._process.stdin.write(json.dumps({"do": do, "with": arguments}).encode() + b"\n")
            self._process.stdin.flush()

    def hear(self) -> dict[str, object]:
        """Return the next thing that it says.

        Raises:
            DrillError: it ended, or said nothing within ANSWER_WITHIN_S.
        """
        watchdog = threading.Timer(ANSWER_WITHIN_S, self._process.kill)
        watchdog.start()
        try:
            line = self._process.stdout.readline() if self._process.stdout is not None else b""
        finally:
            watchdog.cancel()
        if not line:
            code = self._process.wait()
            said = self._complaints.read_text(encoding="utf-8", errors="replace")[-STDERR_SHOWN_CHARS:]
            raise DrillError(f"the process {self.module} ended with {code} before it answered: {said.strip()}")
        answer: dict[str, object] = json.loads(line)
        return answer

    def kill(self) -> str:
        """End it by SIGKILL, and return the name of the signal that it died of."""
        self._process.send_signal(signal.SIGKILL)
        code = self._process.wait()
        self._close_pipes()
        return signal.Signals(-code).name if code < 0 else f"exit {code}"

    def close(self) -> None:
        """End it, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue


def serve(actor: object) -> None:
    """Do what is asked on stdin, until it ends; what is no public method of the actor is refused by an exception."""
    for line in sys.stdin:
        asked = json.loads(line)
        say(getattr(actor, str(asked["do"]))(**asked["with"]))


def say(value: object) -> None:
    """Say something to the drill, at once."""
    os.write(1, json.dumps(value, default=_as_json).encode() + b"\n")


def _as_json(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return str(value)


def wait_for_death() -> None:
    """Wait until somebody kills this process, or the drill is gone."""
    sys.stdin.readline()
    os._exit(1)
