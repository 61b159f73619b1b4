"""Where a benchmark ran: what a reader must know before a figure means anything."""

from __future__ import annotations

import os
import platform
import sqlite3
from dataclasses import dataclass
from importlib.metadata import version


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where it was measured."""

    system: str
    processor: str
    cores: int
    memory_gb: float
    python: str
    sqlite: str
    strandline: str


def this_machine() -> Machine:
    """Describe the machine that this runs on."""
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_gb=round(pages / 2**30, 1),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        sqlite=sqlite3.sqlite_version,
        strandline=version("strandline"),
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123  /proc
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")
    except OSError:
        return platform.processor() or "unknown"
