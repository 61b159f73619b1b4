"""A program under load that is killed, or whose server is: appends in several threads, and says what was acknowledged.

    python tests/crash/load.py STORE NAME THREADS

A line `KEY SEQ` for each batch when it is acknowledged. While the server is away a batch is tried again under its keys,
which is safe (I3), for at most AWAY_DEADLINE_S.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Final

import strandline

TENANT: Final = "acme"
WORKFLOW: Final = "load"
BATCHES: Final = 100_000  # of each thread; the program is killed long before
AWAY_DEADLINE_S: Final = 60.0
POLL_S: Final = 0.02


def opened(store: str) -> strandline.Strandline:
    """Open the store, again while it is away: the server may be killed before this process is there."""
    deadline = time.monotonic() + AWAY_DEADLINE_S
    while True:
        try:
            return strandline.open(store)
        except strandline.StoreUnavailableError:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_S)


def append(workflow: strandline.Workflow, key: str) -> int:
    """Append a batch of two until it is acknowledged, and return the seq of its first event."""
    batch = [
        strandline.message("user", f"{key} of vol-{len(key):04d}", key=key),
        strandline.note(key, key=f"{key}/note"),
    ]
    deadline = time.monotonic() + AWAY_DEADLINE_S
    while True:
        try:
            return workflow.append(batch).seqs[0]
        except (strandline.StoreUnavailableError, strandline.OutcomeUnknownError):
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_S)


def work(db: strandline.Strandline, name: str) -> None:
    workflow = db.tenant(TENANT).workflow(WORKFLOW)
    for number in range(BATCHES):
        key = f"{name}-{number}"
        os.write(1, f"{key} {append(workflow, key)}\n".encode())


def main(store: str, name: str, threads: str) -> None:
    with opened(store) as db:
        running = [threading.Thread(target=work, args=(db, f"{name}t{n}")) for n in range(int(threads))]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
