"""A worker: threads that run what is due in the background, beside an agent or in processes of their own (C7, C15).

It may be killed at any moment, and run as often as wanted on one store: the store decides who runs what. It waits by
polling, and is woken at once by what the same process asks for.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final

from strandline.errors import InvalidInputError, StrandlineError
from strandline.limits import (
    SUMMARIZER_DEADLINE_S,
    SWEEP_ROWS,
    WORKER_ONCE_TRIES_MAX,
    WORKER_PAUSE_S,
    WORKER_POLL_S,
    WORKER_THREADS_MAX,
)
from strandline.model.due import DueKey, DueResult, DueRun
from strandline.system import SystemClock, worker_name

if TYPE_CHECKING:
    from strandline.client.background_verbs import BackgroundVerbs

Told = Callable[[DueKey | None, DueRun | BaseException], None]

_ERROR: Final = "error"
_NOTHING_DONE: Final = (DueResult.LEASED, DueResult.NOT_DUE)  # somebody else was faster


class Worker:
    """Runs what is due, of all tenants, until it is stopped. `Strandline.worker` makes one.

    It is a context manager: it starts when it is entered, and when it is left, the runs in hand are finished first.
    """

    def __init__(
        self,
        db: BackgroundVerbs,
        summarizer: object = None,
        *,
        threads: int = 1,
        name: str | None = None,
        deadline_s: float = SUMMARIZER_DEADLINE_S,
        fallback: bool = True,
        told: Told | None = None,
    ) -> None:
        if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= WORKER_THREADS_MAX:
            raise InvalidInputError(f"threads {threads!r} is no whole number of 1..{WORKER_THREADS_MAX}")
        self._db = db
        self._summarizer = summarizer
        self._threads_wanted = threads
        self._name = worker_name() if name is None else name
        self._deadline_s = deadline_s
        self._fallback = fallback
        self._told = told
        self._clock = SystemClock()  # of threads that really wait, whatever clock the store has
        self._wake = threading.Event()
        self._lock = threading.Lock()  # of what follows; who appends never waits for it
        self._stopping = self._once = False
        self._ends_s: float | None = None
        self._waiting: list[DueKey] = []  # swept, and not begun
        self._running: set[tuple[str, str, str]] = set()
        self._tried: set[DueKey] = set()
        self._passed_over: dict[tuple[str, str, str], float] = {}  # until when: what failed outside its row
        self._counts: Counter[str] = Counter()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Worker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self.join()

    @property
    def results(self) -> Mapping[str, int]:
        """How many runs ended in which `DueResult`; `error`: outside their row."""
        with self._lock:
            return dict(self._counts)

    def start(self) -> Worker:
        """Begin to run what is due, in threads of its own. Started again, it goes on.

        Raises:
            InvalidInputError: it runs already.
        """
        return self._start(once=False, for_s=None)

    def run(self, *, once: bool = False, for_s: float | None = None) -> Mapping[str, int]:
        """Run what is due and wait until that ends; return `results`.

        Args:
            once: until nothing is due now; an `error` if WORKER_ONCE_TRIES_MAX times the store did not say what is.
            for_s: seconds, after which no further run is begun.

        Raises:
            InvalidInputError: it runs already, or seconds that can't be.
        """
        if for_s is not None and (isinstance(for_s, bool) or not isinstance(for_s, int | float) or not for_s >= 0):
            raise InvalidInputError(f"for_s {for_s!r} is no number of seconds")
        self._start(once=once, for_s=for_s)
        while not self.join(WORKER_POLL_S):  # in slices, so that a signal is handled meanwhile
            continue
        return self.results

    def stop(self) -> None:
        """Begin no further run; the runs in hand go on. A signal's handler may call it while `run` waits."""
        self._stopping = True
        self._wake.set()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until all its threads have ended; tell whether they have, within the time."""
        ends_s = None if timeout_s is None else self._clock.monotonic_s() + timeout_s
        for thread in self._threads:
            thread.join(None if ends_s is None else max(0.0, ends_s - self._clock.monotonic_s()))
        ended = not any(thread.is_alive() for thread in self._threads)
        if ended:
            self._db.unwatch(self)
        return ended

    def emit(self, name: str, details: Mapping[str, object]) -> None:
        """Look for what is due at once, as the store's hook: something was asked for in this process."""
        if name == "due":
            self._wake.set()

    def _start(self, *, once: bool, for_s: float | None) -> Worker:
        if any(thread.is_alive() for thread in self._threads):
            raise InvalidInputError("the worker runs already")
        self._stopping, self._once = False, once
        self._ends_s = None if for_s is None else self._clock.monotonic_s() + for_s
        self._waiting, self._tried = [], set()
        self._db.watch(self)
        self._threads = [
            threading.Thread(target=self._work, name=f"strandline-worker-{number}", daemon=True)
            for number in range(self._threads_wanted)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def _work(self) -> None:
        failed = 0
        while not self._ended():
            try:
                key = self._next()
            except StrandlineError as error:
                self._tell(None, error)
                failed += 1
                if self._once and failed == WORKER_ONCE_TRIES_MAX:
                    with self._lock:
                        self._counts[_ERROR] += 1
                    return
                self._pause(WORKER_PAUSE_S)
                continue
            failed = 0
            if key is not None:
                self._run(key)
            elif self._once:
                return
            else:
                self._pause(WORKER_POLL_S)

    def _ended(self) -> bool:
        return self._stopping or (self._ends_s is not None and self._clock.monotonic_s() >= self._ends_s)

    def _pause(self, seconds: float) -> None:
        """Wait, not longer than until it ends; or not, where something was asked for since it last looked."""
        if self._ends_s is not None:
            seconds = min(seconds, max(0.0, self._ends_s - self._clock.monotonic_s()))
        self._wake.wait(seconds)

    def _next(self) -> DueKey | None:
        """Return what this thread runs next; None: nothing is due that no other thread runs."""
        with self._lock:
            if not self._waiting:
                self._wake.clear()  # before it looks: what is asked for from now on is not missed
                now_s = self._clock.monotonic_s()
                self._passed_over = {place: until for place, until in self._passed_over.items() if until > now_s}
                self._waiting = [key for key in self._db.sweep(SWEEP_ROWS) if self._may_run(key)]
            if not self._waiting:
                return None
            key = self._waiting.pop(0)
            self._running.add(_place(key))
            self._tried.add(key)
            return key

    def _may_run(self, key: DueKey) -> bool:
        place = _place(key)
        return place not in self._running and place not in self._passed_over and not (self._once and key in self._tried)

    def _run(self, key: DueKey) -> None:
        told: DueRun | BaseException
        try:
            told = self._db.run_due(
                key, self._summarizer, worker=self._name, deadline_s=self._deadline_s, fallback=self._fallback
            )
        except BaseException as error:  # noqa: BLE001  whatever a summarizer raises, the thread goes on
            told = error
        with self._lock:
            self._running.discard(_place(key))
            if isinstance(told, BaseException):
                self._passed_over[_place(key)] = self._clock.monotonic_s() + WORKER_PAUSE_S
            self._counts[told.result.value if isinstance(told, DueRun) else _ERROR] += 1
        if isinstance(told, BaseException) or told.result not in _NOTHING_DONE:
            self._tell(key, told)

    def _tell(self, key: DueKey | None, told: DueRun | BaseException) -> None:
        if self._told is not None:
            self._told(key, told)


def _place(key: DueKey) -> tuple[str, str, str]:
    return key.tenant, key.workflow, key.view
