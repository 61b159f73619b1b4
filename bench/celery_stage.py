"""Celery processes of tests and benches: workers and beat over one store and one broker, each to be killed at will."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

PREFIX = "STRANDLINE_CHAOS_"  # of the settings that bench/celery_app.py reads
ROOT = Path(__file__).resolve().parents[1]
READY_DEADLINE_S = 60.0
STOP_DEADLINE_S = 30.0
POLL_S = 0.02
LOG_SHOWN_CHARS = 3_000


class StageError(Exception):
    """What was waited for did not come."""


def wait_until(met: Callable[[], bool], what: str, deadline_s: float = READY_DEADLINE_S) -> float:
    """Wait for a condition and return how many seconds it took.

    Raises:
        StageError: it was not met in time.
    """
    begun = time.monotonic()
    while not met():
        if time.monotonic() - begun > deadline_s:
            raise StageError(f"{what}: not within {deadline_s:g} s")
        time.sleep(POLL_S)
    return time.monotonic() - begun


class CeleryProcess:
    """A worker or a beat, in a session of its own: killed, it takes its pool of processes along."""

    def __init__(self, words: list[str], environment: dict[str, str], log: Path, ready: str) -> None:
        self.log, self._ready = log, ready
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "celery", "--app", "bench.celery_app", *words],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def text(self) -> str:
        """What it has logged."""
        return self.log.read_text(errors="replace")

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def wait_ready(self) -> Self:
        """Wait until it works."""
        try:
            wait_until(lambda: self._ready in self.text or not self.running, f"{self.log.name} is ready")
            if not self.running:
                raise StageError(f"{self.log.name} has ended")
        except StageError as error:
            raise StageError(f"{error}\n{self.text[-LOG_SHOWN_CHARS:]}") from None
        return self

    def kill(self) -> None:
        """End it at once, with its children: none gets to do anything."""
        if self.running:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> float:
        """Ask it to end, and return how many seconds it took; kill it when it does not."""
        begun = time.monotonic()
        if self.running:
            self.process.terminate()
            try:
                self.process.wait(STOP_DEADLINE_S)
            except subprocess.TimeoutExpired:
                self.kill()
        return time.monotonic() - begun


class Stage:
    """All Celery processes over one store and one broker; `with` kills what is left of them."""

    def __init__(self, store_url: str, broker_url: str, folder: Path, **settings: object) -> None:
        self.store_url, self.broker_url, self.folder = store_url, broker_url, folder
        self.started: list[CeleryProcess] = []
        self._numbers = itertools.count(1)
        self.log, self.gate = folder / "drafts.log", folder / "gate"
        given = {
            "PARENT": os.getpid(),
            "STORE": store_url,
            "BROKER": broker_url,
            "LOG": self.log,
            "GATE": self.gate,
            **settings,
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        self.environment = {**kept, **{PREFIX + name: str(value) for name, value in given.items()}}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.started:
            process.kill()

    def worker(self, *, concurrency: int = 1, pool: str = "prefork") -> CeleryProcess:
        """Start a worker; `wait_ready` waits for it."""
        name = f"worker-{next(self._numbers)}"
        words = ["worker", "--hostname", f"{name}@stage", "--concurrency", str(concurrency), "--pool", pool]
        return self._start([*words, "--loglevel", "INFO", "--without-gossip", "--without-mingle"], name, " ready.")

    def beat(self) -> CeleryProcess:
        """Start a beat; `wait_ready` waits for it."""
        name = f"beat-{next(self._numbers)}"
        return self._start(["beat", "--loglevel", "INFO", "--pidfile", ""], name, "beat: Starting")

    def _start(self, words: list[str], name: str, ready: str) -> CeleryProcess:
        process = CeleryProcess(words, self.environment, self.folder / f"{name}.log", ready)
        self.started.append(process)
        return process

    def drafted(self) -> list[str]:
        """Return the first event of each draft that was begun, in order."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line.partition(" ")[2] for line in lines]
