"""What a program saw, which fault modules there are, and a death by `kill -9`."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

NAMES = (
    "langgraph-orphan-result",
    "langgraph-summary-of-nothing",
    "langgraph-remove-all",
    "langgraph-two-compactors",
    "langgraph-older-checkpoint",
    "langgraph-half-deleted",
    "langgraph-late-write",
    "langgraph-two-writers",
    "langgraph-clock-behind",
    "langgraph-flipped-byte",
    "openai-agents-killed-between",
    "openai-agents-torn-row",
    "adk-late-event",
    "maf-torn-checkpoint",
    "claude-torn-summary",
)
Half = Callable[[Path], "Shown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What was seen: in words, the same in every run, and whether nothing was lost or read wrongly."""

    said: str
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault: its name on the command line, what goes wrong, who has it, and the two programs."""

    name: str
    what: str
    package: str
    stock: Half
    ours: Half

    @property
    def version(self) -> str | None:
        """Return the installed version of the package, or None."""
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return None


def fault(name: str) -> Fault:
    """Return a fault by its name; its framework is imported here."""
    module = importlib.import_module(f"bench.faults.{name.replace('-', '_')}")
    what = (module.__doc__ or "").partition("\n\n")[0].replace("\n", " ").rstrip(".")
    return Fault(name=name, what=what, package=module.PACKAGE, stock=module.stock, ours=module.ours)


def killed(program: Callable[..., None], *arguments: object) -> bool:
    """Run a program in a process of its own; tell whether it ended by `kill -9`, or else well."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([program.__module__])
    process = context.Process(target=program, args=arguments)
    process.start()
    process.join()
    if process.exitcode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"{program.__module__}.{program.__name__} ended with {process.exitcode}")
    return process.exitcode != 0


def die() -> None:
    """End this process as `kill -9` does: nothing is flushed, closed or rolled back."""
    os.kill(os.getpid(), signal.SIGKILL)


def told(call: Callable[[], object]) -> str:
    """Return what the caller is told: the name of the error, or `nothing`."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 # whatever a framework raises
        return type(error).__name__
    return "nothing"
