"""Law: a program without an event loop awaits its summarizers in one loop, so that a client's connections live on.

What is not done in time is cancelled, a loop that is stuck is replaced, and a child of a fork has a loop of its own.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from contextvars import ContextVar
from typing import Any

import pytest

from strandline.engine import shared_loop
from strandline.engine.shared_loop import await_in_shared_loop
from strandline.errors import TransientSummarizerError

SHORT_S = 0.05
VALUE: ContextVar[str] = ContextVar("value", default="none")


async def loop_of() -> tuple[asyncio.AbstractEventLoop, str]:
    return asyncio.get_running_loop(), threading.current_thread().name


def test_all_drafts_are_awaited_in_one_loop() -> None:
    (first, name), (second, _) = (await_in_shared_loop(loop_of(), None) for _ in range(2))
    assert first is second
    assert name == "strandline-loop"


def test_what_is_not_done_in_time_is_cancelled() -> None:
    ended = threading.Event()

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    with pytest.raises(TransientSummarizerError, match=r"no draft within 0\.05 s"):
        await_in_shared_loop(slow(), SHORT_S)
    assert ended.wait(5)


def test_a_timeout_of_the_summarizer_itself_passes_as_it_is() -> None:
    async def gives_up() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        await_in_shared_loop(gives_up(), 5.0)


def test_the_context_goes_along() -> None:
    async def value() -> str:
        return VALUE.get()

    token = VALUE.set("told")
    try:
        assert await_in_shared_loop(value(), None) == "told"
    finally:
        VALUE.reset(token)


def test_a_loop_that_is_stuck_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_loop, "END_S", SHORT_S)
    let_go = threading.Event()

    async def blocks() -> None:
        let_go.wait(10)

    stuck, _ = await_in_shared_loop(loop_of(), None)
    with pytest.raises(TransientSummarizerError):
        await_in_shared_loop(blocks(), SHORT_S)
    begun = time.monotonic()
    fresh, _ = await_in_shared_loop(loop_of(), 5.0)
    assert time.monotonic() - begun < 5
    assert fresh is not stuck
    let_go.set()


def test_a_loop_serves_many_threads() -> None:
    met = threading.Barrier(4)

    async def meet() -> int:
        return await asyncio.to_thread(met.wait, 10)

    got: list[int] = []
    threads = [threading.Thread(target=lambda: got.append(await_in_shared_loop(meet(), 20.0))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [0, 1, 2, 3]


PROGRAM = """
import os, sys
from strandline.engine.shared_loop import await_in_shared_loop

async def one():
    return 1

assert await_in_shared_loop(one(), 5.0) == 1
child = os.fork()
if not child:
    os._exit(0 if await_in_shared_loop(one(), 5.0) == 1 else 1)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert await_in_shared_loop(one(), 5.0) == 1
print("ended")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_of_a_fork_has_a_loop_of_its_own_and_a_program_ends_in_silence() -> None:
    environment: dict[str, Any] = {**os.environ, "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("ended\n", "", 0)
