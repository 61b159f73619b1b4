"""Run LangGraph's public suite for checkpointers against ours, and print its report for each way of using it.

    python -m bench.conformance [sqlite | postgres | memory]…

SQLite and PostgreSQL (a server is started for the run), each with the methods for event loops, and with the blocking
ones behind them. It ends with 1 unless each report says that all is there and passes.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import ParamSpec, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES
from langgraph.checkpoint.conformance.report import CapabilityReport

import strandline
from strandline.integrations.langgraph import StrandlineSaver
from tools.servers import start_postgres

POSTGRES_VERSION = 18
STORES = ("sqlite", "postgres", "memory")
P = ParamSpec("P")
R = TypeVar("R")


def bridged(method: Callable[P, R]) -> Callable[P, Coroutine[None, None, R]]:
    """Return a blocking method for those who await; it blocks the event loop."""

    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return method(*args, **kwargs)

    return call


class Bridged(StrandlineSaver):
    """Answers the suite, which awaits, by the blocking methods."""

    aget_tuple = bridged(StrandlineSaver.get_tuple)
    aput = bridged(StrandlineSaver.put)
    aput_writes = bridged(StrandlineSaver.put_writes)
    adelete_thread = bridged(StrandlineSaver.delete_thread)
    adelete_for_runs = bridged(StrandlineSaver.delete_for_runs)
    acopy_thread = bridged(StrandlineSaver.copy_thread)
    aprune = bridged(StrandlineSaver.prune)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, object] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`."""
        for found in self.list(config, filter=filter, before=before, limit=limit):
            yield found


def report(name: str, url: str, saver: type[StrandlineSaver]) -> CapabilityReport:
    """Run the suite; each capability gets a tenant of its own."""
    numbers = itertools.count(1)

    @checkpointer_test(name=name)
    async def made() -> AsyncGenerator[BaseCheckpointSaver[str], None]:
        with strandline.open(url) as db:
            yield saver(db.tenant(f"{saver.__name__}-{next(numbers)}"))

    return asyncio.run(validate(made))


def is_full(found: CapabilityReport) -> bool:
    """Tell whether all capabilities are there and pass."""
    passed = {name for name, result in found.results.items() if result.detected and result.passed}
    return passed == {capability.value for capability in ALL_CAPABILITIES}


def reports(stores: Sequence[str]) -> Iterator[CapabilityReport]:
    """Run the suite on each store in both ways."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for store in stores:
            url = {"sqlite": str(folder / "conformance.db"), "memory": ":memory:"}.get(store)
            if url is None:
                server = stack.enter_context(start_postgres(POSTGRES_VERSION))
                url = server.create_database("conformance")
            yield report(f"StrandlineSaver, {store}, async", url, StrandlineSaver)
            yield report(f"StrandlineSaver, {store}, sync", url, Bridged)


def main() -> int:
    """Print the reports; return 0 if all are full."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", nargs="*", help=f"of {', '.join(STORES)}; none: sqlite and postgres")
    stores = parser.parse_args().stores or list(STORES[:2])
    if unknown := set(stores) - set(STORES):
        parser.error(f"{unknown.pop()!r} is none of {', '.join(STORES)}")
    full = []
    for found in reports(stores):
        found.print_report()
        full.append(is_full(found))
    return 0 if all(full) else 1


if __name__ == "__main__":
    sys.exit(main())
