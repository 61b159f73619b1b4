"""What every part of the suite stands on: the store under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, Final

import pytest

from strandline.errors import StrandlineError
from strandline.ports import KeyTakenError, Store

OpenStore = Callable[[], Store]
REFUSALS: Final = (StrandlineError, KeyTakenError)


class StoreLaws:
    """Opens the store of a test, and closes it behind the test."""

    durable: ClassVar[bool] = False

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Give the callable that opens the store; a subclass overrides it."""
        raise NotImplementedError("override the fixture open_store: it gives a callable that opens your store")

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Iterator[Store]:
        """Open one store."""
        store = open_store()
        yield store
        store.close()
