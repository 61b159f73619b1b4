"""An agent without protection, as many are written: one JSON file with its summary, its history and its turn.

It compacts by keeping every so many lines, overwrites the file in place, and looks for what it needs in what it has.
`python -m strandline.drill.naive FILE PORT` is its process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from strandline.drill.material import BUCKET_WANTED
from strandline.drill.process import say, serve, wait_for_death
from strandline.drill.service import Remote

GOES_TO: Final = "the reports go to "


class NaiveAgent:
    """The memory is what the file says; what the file lacks is asked for again."""

    def __init__(self, file: str, port: str) -> None:
        self._file, self._remote = Path(file), Remote(int(port))
        self._bucket: str | None = None
        self.turn, self.summary, self.history = 0, list[str](), list[str]()

    def _load(self, file: Path) -> None:
        held = json.loads(file.read_text(encoding="utf-8"))
        self.turn, self.summary, self.history = held["turn"], held["summary"], held["history"]

    def _text(self) -> str:
        return json.dumps({"turn": self.turn, "summary": self.summary, "history": self.history})

    def save(self, name: str = "") -> dict[str, object]:
        """Write the file, or a checkpoint beside it."""
        Path(f"{self._file}{name}").write_text(self._text(), encoding="utf-8")
        return {"turn": self.turn}

    def save_half(self) -> None:
        """Begin to write the file, and die."""
        with self._file.open("w", encoding="utf-8") as file:
            file.write(self._text()[: len(self._text()) // 2])
            file.flush()
            say({"written": "half"})
            wait_for_death()

    def restore(self, names: Sequence[str] = ()) -> dict[str, object]:
        """Load the file; if it is damaged, the newest checkpoint, as the clock has it."""
        try:
            self._load(self._file)
        except ValueError:
            self._load(Path(f"{self._file}{max(names)}"))
        return {"lines": len(self.summary) + len(self.history), "turn": self.turn}

    def remember(self, lines: Sequence[str]) -> dict[str, object]:
        """Add lines to the history."""
        self.history += lines
        return {"lines": len(self.summary) + len(self.history)}

    def compact(self, keep: int) -> dict[str, object]:
        """Keep so many lines of all, evenly spaced, and forget the others."""
        lines = [*self.summary, *self.history]
        self.summary, self.history = [lines[i * len(lines) // keep] for i in range(keep)], []
        return {"before": len(lines), "after": keep}

    def compact_by_model(self, timeout_s: float) -> dict[str, object]:
        """Let a model summarize; when it takes too long, make do with what came."""
        came, ended = list[str](), "finished"
        try:
            for line in self._remote.summarize([*self.summary, *self.history], timeout_s=timeout_s):
                came.append(line)
        except TimeoutError:
            ended = "timed out"
        self.summary, self.history = came, []
        return {"ended": ended, "lines": len(self.summary)}

    def holds(self, texts: Sequence[str]) -> dict[str, object]:
        """Say which of the texts the memory holds."""
        memory = "\n".join([*self.summary, *self.history])
        return {text: text in memory for text in texts}

    def work(self, until: int) -> dict[str, object]:
        """Write a report a turn into the bucket; without a bucket in mind, create one."""
        while self.turn < until:
            self.turn += 1
            if self._bucket is None:
                said = [line.partition(GOES_TO)[2] for line in [*self.summary, *self.history] if GOES_TO in line]
                self._bucket = said[-1] if said else str(self._remote.create_bucket(BUCKET_WANTED)["bucket"])
                self.history.append(f"turn {self.turn}: {GOES_TO}{self._bucket}")
            name = f"report-{self.turn}.json"
            if self.turn <= 20 or self.turn % 1_000 == 0:
                self._remote.put(self._bucket, name)
            self.history.append(f"turn {self.turn}: wrote {name}, {self.turn * 37 % 901} rows")
        return {"turn": self.turn, "bucket": self._bucket}

    def publish(self, unless: str) -> dict[str, object]:
        """Publish, unless the memory speaks of an open issue."""
        if any(unless in line for line in [*self.summary, *self.history]):
            return {"published": False}
        return {"published": self._remote.publish({"release": "2.4.0"})["accepted"]}


if __name__ == "__main__":
    serve(NaiveAgent(*sys.argv[1:]))
