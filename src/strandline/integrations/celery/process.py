"""What the tasks of one process share: its open store and its summarizer, made after the fork."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field

import strandline
from strandline.summarizers.named import summarizer_factory


@dataclass(slots=True)
class Door:
    """The store and the summarizer of this process, opened when they are first asked for.

    A pool of processes forks: what the parent had open is not the child's to use or to close.
    """

    db_url: str
    summarizer: str | None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pid: int = 0
    _db: strandline.Strandline | None = None
    _made: object = None

    def open(self) -> tuple[strandline.Strandline, object]:
        """Return the open store and the summarizer of this process.

        Raises:
            StoreUnavailableError: it can't be opened now; the next task tries again.
            InvalidInputError: the summarizer can't be made.
        """
        if self._pid != os.getpid():  # forked: a lock that the parent held would never be free
            self._lock, self._pid, self._db = threading.Lock(), os.getpid(), None
        with self._lock:
            if self._db is None:
                made = summarizer_factory(self.summarizer)() if self.summarizer is not None else None
                self._db, self._made = strandline.open(self.db_url), made
            return self._db, self._made

    def close(self) -> None:
        """Close what this process opened; calling it again does nothing."""
        if self._pid == os.getpid() and self._db is not None:
            self._db.close()
            self._db = None
