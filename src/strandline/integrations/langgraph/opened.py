"""A saver, or a store, with the connection that it opened: closed at the end of a `with` or an `async with`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

import strandline
from strandline import Strandline

Guest = TypeVar("Guest")


class Opened(Generic[Guest]):
    """What `from_conn_string` returns: it opens when it is entered."""

    def __init__(self, url: str, make: Callable[[Strandline], Guest]) -> None:
        self._url = url
        self._make = make
        self._db: Strandline | None = None

    def __enter__(self) -> Guest:
        self._db = strandline.open(self._url)
        return self._make(self._db)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._db is not None:
            self._db.close()

    async def __aenter__(self) -> Guest:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)
