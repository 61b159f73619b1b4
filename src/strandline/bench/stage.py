"""What the sections share: the folder, the sizes, the stores that are built once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from strandline.bench import child, corpus

Say = Callable[[str], None]
BUILDING_STEPS = 10  # lines about the progress of a corpus


@dataclass(kw_only=True)
class Stage:
    """One run of the benchmark."""

    folder: Path
    sizes: Sequence[int]
    runs: int
    say: Say
    file: Path | None = None  # the transcript; None: one is made
    reuse: bool = False
    postgres: str | None = None  # the URL of a database; None: PostgreSQL is not measured
    notes: list[str] = field(default_factory=list)  # what the reader of the report must know
    built: dict[int, dict[str, float]] = field(default_factory=dict)  # what building took, by size
    _raw: set[Path] = field(default_factory=set)
    _numbers: count[int] = field(default_factory=count)

    def corpus(self, size: int) -> Path:
        """Return the store of this size, built when it is first asked for."""
        path = self.folder / f"corpus-{size}.db"
        if size in self.built:
            return path
        if self.reuse and path.exists():
            self.say(f"{path}: taken as it is, built by an earlier run")
            self.built[size] = {}
            return path
        remove(path)
        self.say(f"building a workflow of {size:,} events")
        said = 0

        def tell(done: int, total: int) -> None:
            nonlocal said
            if done * BUILDING_STEPS // total > said:
                said = done * BUILDING_STEPS // total
                self.say(f"  {done:,} of {total:,} events")

        self.built[size] = child.run("build", path, size, tell)
        return path

    def raw_corpus(self, size: int, *, keyed: bool) -> Path:
        """Return the raw file with the same bodies."""
        path = self.folder / f"raw-{'keyed' if keyed else 'plain'}-{size}.db"
        if path not in self._raw and not (self.reuse and path.exists()):
            remove(path)
            corpus.build_raw(path, size, keyed=keyed)
        self._raw.add(path)
        return path

    def fresh(self, name: str) -> Path:
        """Return the path of a file that is not there yet."""
        path = self.folder / f"{name}-{next(self._numbers)}.db"
        remove(path)
        return path

    def near(self, size: int) -> int:
        """Return the size of this run that comes closest to a size."""
        return min(self.sizes, key=lambda own: abs(own - size))


def remove(path: Path) -> None:
    """Delete an SQLite file with what belongs to it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
