"""Where an incident runs: its folder, its processes, the service outside, and who is told."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from strandline.drill.process import ANSWER_WITHIN_S, Child, environment
from strandline.drill.report import Check, Incident
from strandline.drill.service import Remote

_CLI: Final = "import strandline.cli; strandline.cli.main()"


class Teller(Protocol):
    """Who tells the story while it happens."""

    def begin(self, title: str, what: str) -> None:
        """Begin an incident."""
        ...

    def half(self, title: str, what: str) -> None:
        """Begin its unprotected or its protected half."""
        ...

    def scene(self, name: str, what: str) -> None:
        """Begin a scene of a half; the promises that are held in it bear its name."""
        ...

    def step(self, when: str, what: str) -> None:
        """Say what happened."""
        ...

    def corrupted(self, what: str) -> None:
        """Say what went wrong without protection."""
        ...

    def check(self, check: Check) -> None:
        """Say whether a promise was kept."""
        ...

    def so(self, what: str) -> None:
        """Say what the incident comes to."""
        ...

    def waiting(self, what: str) -> AbstractContextManager[object]:
        """Show that something takes its time."""
        ...


@dataclass(kw_only=True)
class Stage:
    """One incident while it runs."""

    folder: Path
    teller: Teller
    incident: Incident
    _children: list[Child] = field(default_factory=list)
    _remote: Remote | None = None
    _scene: str = ""

    def start(self, module: str, *arguments: object) -> Child:
        """Start a process; it is ended with the stage at the latest."""
        child = Child(module, [str(argument) for argument in arguments], self.folder)
        self._children.append(child)
        return child

    def service(self) -> Remote:
        """Return the service outside, started when it is first asked for."""
        if self._remote is None:
            self._remote = Remote(int(str(self.start("service").hear()["port"])))
        return self._remote

    def cli(self, *words: object) -> tuple[int, dict[str, object]]:
        """Run a command of Strandline with --json; return its exit code and its object."""
        command = [sys.executable, "-c", _CLI, *map(str, words), "--json"]
        done = subprocess.run(
            command, cwd=self.folder, env=environment(), capture_output=True, timeout=ANSWER_WITHIN_S, check=False
        )
        said: dict[str, object] = json.loads(done.stdout or b"{}")
        return done.returncode, said

    def step(self, when: str, what: str) -> None:
        """Tell what happened."""
        self.teller.step(when, what)

    def scene(self, name: str, what: str) -> None:
        """Begin a scene; the promises that follow bear its name."""
        self._scene = f"{name}: "
        self.teller.scene(name, what)

    def check(self, name: str, got: object, expected: object) -> None:
        """Hold a promise against what happened."""
        check = Check(name=self._scene + name, expected=expected, got=got)
        self.incident.checks.append(check)
        self.teller.check(check)

    def corrupted(self, what: str, **facts: object) -> None:
        """Write down what went wrong without protection, if it did."""
        self.incident.naive = facts
        self.teller.corrupted(what)

    def close(self) -> None:
        """End every process that still runs."""
        for child in self._children:
            child.close()


@contextmanager
def stage(folder: Path, teller: Teller, name: str) -> Iterator[Stage]:
    """Open a stage in a folder of its own."""
    place = folder / name
    place.mkdir(parents=True)
    opened = Stage(folder=place, teller=teller, incident=Incident(name=name))
    try:
        yield opened
    finally:
        opened.close()
