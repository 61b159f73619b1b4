"""What a saver or a store stands on: a tenant, or a connection of its own, closed as a `with` or `async with` ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

import strandline
from strandline import InvalidInputError, Strandline, Tenant

Guest = TypeVar("Guest")


def check_tenant(tenant: object) -> Tenant:
    """Return it, if it is a tenant.

    Raises:
        InvalidInputError: it is something else, such as the store or a name.
    """
    if isinstance(tenant, Tenant):
        return tenant
    raise InvalidInputError(
        f"tenant is a Tenant, not a {type(tenant).__name__}", hint='Give `strandline.open(…).tenant("…")`.'
    )


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
