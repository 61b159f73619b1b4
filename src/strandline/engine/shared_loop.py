"""The event loop that awaited summarizers of a program without one share, in a thread of its own.

A client of a model keeps connections, and they belong to the loop in which they were made: a new loop for each draft
would find them dead. One loop for all also lets a draft be cancelled, so that nothing goes on that nobody waits for.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from strandline.errors import TransientSummarizerError

R = TypeVar("R")

END_S: Final = 1.0  # until a loop that does not answer is taken for stuck, and left alone for good


class _SharedLoop:
    """Started when it is first asked for, anew after a fork, and in place of one that is stuck."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        self._running: asyncio.AbstractEventLoop | None = None
        self._left: list[asyncio.AbstractEventLoop] = []  # never closed: their selectors are in use elsewhere

    def get(self) -> asyncio.AbstractEventLoop:
        """Return the running loop of this process."""
        if self._pid != os.getpid():  # forked: a lock that the parent held would never be free
            self._lock, self._pid = threading.Lock(), os.getpid()
            self._leave()
        with self._lock:
            if self._running is None:
                self._running = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(self._running,), name="strandline-loop", daemon=True).start()
            return self._running

    def leave(self, stuck: asyncio.AbstractEventLoop) -> None:
        """Give up a loop that no longer answers."""
        with self._lock:
            if self._running is stuck:
                self._leave()

    def close(self) -> None:
        """End the loop with the program."""
        loop = self._running
        if loop is None or self._pid != os.getpid():
            return
        self._leave()
        loop.call_soon_threadsafe(loop.stop)

    def _leave(self) -> None:
        if self._running is not None:
            self._left.append(self._running)
            self._running = None


_shared: Final = _SharedLoop()
atexit.register(_shared.close)


def await_in_shared_loop(coroutine: Coroutine[Any, Any, R], deadline_s: float | None) -> R:
    """Await a coroutine in the shared loop while this thread waits; what is not done in time is cancelled.

    Raises:
        TransientSummarizerError: it was not done within `deadline_s`; None: no deadline.
    """
    loop = _shared.get()
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result(deadline_s)
    except TimeoutError as error:
        if future.done():  # the coroutine's own
            raise
        _cancel(future, loop)
        raise TransientSummarizerError(f"the summarizer gave no draft within {deadline_s:g} s") from error
    except BaseException:
        _cancel(future, loop)
        raise


def _cancel(future: Future[R], loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what nobody waits for any more; a loop that does not even notice is stuck."""
    if future.done():
        return
    future.cancel()
    answered = threading.Event()
    loop.call_soon_threadsafe(answered.set)
    if not answered.wait(END_S):
        _shared.leave(loop)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
