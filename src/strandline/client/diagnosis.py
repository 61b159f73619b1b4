"""Look at a store from outside, without opening it for work: what `strandline doctor` prints."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

from strandline.client.opening import path_of
from strandline.errors import InvalidInputError
from strandline.model.diagnosis import Check, passed
from strandline.ports import Clock
from strandline.stores.postgres import diagnose_postgres, is_postgres_url
from strandline.stores.sqlite.diagnosis import diagnose as diagnose_file
from strandline.system import SystemClock


def diagnose(url: str | os.PathLike[str], *, deep: bool = False, clock: Clock | None = None) -> list[Check]:
    """Return what a look at a store finds, in order; nothing is migrated or changed.

    Args:
        url: a path, "sqlite:///path", or "postgresql://user@host:port/database".
        deep: read every page, however large the store is.
        clock: the source of time; None: the machine's.

    Raises:
        InvalidInputError: a URL of another kind, or a store in memory.
    """
    path = path_of(url)
    if path == ":memory:":
        raise InvalidInputError("a store in memory can't be looked at from outside; give a path")
    clock = clock or SystemClock()
    own = f"{version('strandline')} on Python {platform.python_version()}, {platform.system()}"
    if is_postgres_url(path):
        return [passed("strandline", own), *diagnose_postgres(path, clock)]
    return [passed("strandline", own), *diagnose_file(Path(path), clock.now_us(), deep=deep)]
