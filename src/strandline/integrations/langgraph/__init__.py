"""LangGraph's guests (C34): they need the extra `langgraph`.

    saver = StrandlineSaver(db.tenant("acme"))
    graph = builder.compile(checkpointer=saver, store=StrandlineStore(db.tenant("acme")))

A name is imported when it is first asked for, so that who needs one of them need not have what the others need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from strandline.integrations.extra import needs_extra

if TYPE_CHECKING:
    from strandline.integrations.langgraph.middleware import StrandlineMiddleware
    from strandline.integrations.langgraph.node import compaction_node, tool_ledger
    from strandline.integrations.langgraph.saver import StrandlineSaver
    from strandline.integrations.langgraph.store import StrandlineStore

__all__ = ["StrandlineMiddleware", "StrandlineSaver", "StrandlineStore", "compaction_node", "tool_ledger"]

_ROOMS = {
    "StrandlineMiddleware": "middleware",
    "StrandlineSaver": "saver",
    "StrandlineStore": "store",
    "compaction_node": "node",
    "tool_ledger": "node",
}


def __getattr__(name: str) -> object:
    """Import what is asked for.

    Raises:
        InvalidInputError: a package of the extra is not installed.
    """
    room = _ROOMS.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needs_extra("the LangGraph integration", "langgraph"):
        module = importlib.import_module(f"{__name__}.{room}")
    return getattr(module, name)
