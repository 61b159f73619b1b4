"""The Celery app of tests and benches: what it works on comes from the environment.

STRANDLINE_CHAOS_STORE, …_BROKER   where the store and the broker are
STRANDLINE_CHAOS_PARENT            the process that started this one, and without which it ends
STRANDLINE_CHAOS_DRAFT_S           how long one draft takes
STRANDLINE_CHAOS_GATE              a file: while it is there, drafts wait
STRANDLINE_CHAOS_LOG               a file: each draft adds a line, as it begins
STRANDLINE_CHAOS_LEASE_S           a lease of other length than LEASE_TTL_S: nobody wants to wait for that in a test
STRANDLINE_CHAOS_SWEEP_S           as SWEEP_INTERVAL_S
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import strandline
from bench.celery_stage import PREFIX
from strandline.integrations.celery import make_app
from strandline.model.candidate import Draft
from strandline.ports import SummaryRequest
from strandline.summarizers import ExtractiveSummarizer

GATE_POLL_S = 0.01
PARENT_LOOK_S = 0.5


def setting(name: str, default: str = "") -> str:
    """Return one of the settings above."""
    return os.environ.get(PREFIX + name, default)


def leave_with(parent: int) -> None:
    """Kill this session when its parent is gone: a program that was killed stops nobody."""
    while os.getppid() == parent:
        time.sleep(PARENT_LOOK_S)
    os.killpg(os.getpgrp(), signal.SIGKILL)


class SlowSummarizer(ExtractiveSummarizer):
    """The extractive summarizer, which takes its time and can be watched."""

    def summarize(self, request: SummaryRequest) -> Draft:
        """Return the draft, when the gate is open and its time has passed."""
        if log := setting("LOG"):
            first = request.events[0].text
            with Path(log).open("ab", buffering=0) as file:
                file.write(f"{os.getpid()} {first}\n".encode())
        while (gate := setting("GATE")) and Path(gate).exists():
            time.sleep(GATE_POLL_S)
        time.sleep(float(setting("DRAFT_S", "0")))
        return super().summarize(request)


def shorten(name: str, seconds: float) -> None:
    """Give a limit another value in every module that has read it."""
    for module in [module for key, module in sys.modules.items() if key.partition(".")[0] == strandline.__name__]:
        if hasattr(module, name):
            setattr(module, name, seconds)


if lease := setting("LEASE_S"):
    shorten("LEASE_TTL_S", float(lease))
if interval := setting("SWEEP_S"):
    shorten("SWEEP_INTERVAL_S", float(interval))
app = make_app(setting("STORE"), setting("BROKER"), "bench.celery_app:SlowSummarizer")

if setting("PARENT") and os.getsid(0) == os.getpid():  # the leader of a session, as the stage starts them
    threading.Thread(target=leave_with, args=(int(setting("PARENT")),), name="parent", daemon=True).start()
