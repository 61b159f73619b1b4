"""LangGraph's guests (C34): they need the extra `langgraph`.

A name is imported when it is first asked for, so that who needs one of them need not have what the others need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from strandline.integrations.langgraph.extra import needs_extra

if TYPE_CHECKING:
    from strandline.integrations.langgraph.middleware import StrandlineMiddleware

__all__ = ["StrandlineMiddleware"]

_ROOMS = {"StrandlineMiddleware": "middleware"}


def __getattr__(name: str) -> object:
    """Import what is asked for.

    Raises:
        InvalidInputError: a package of the extra is not installed.
    """
    room = _ROOMS.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needs_extra():
        module = importlib.import_module(f"{__name__}.{room}")
    return getattr(module, name)
