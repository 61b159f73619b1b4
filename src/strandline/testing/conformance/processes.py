"""What the suite runs in processes of their own. They import this module anew: nothing here needs a fixture."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import NoReturn

from strandline.model.ids import Scope
from strandline.ports import Store
from strandline.testing.conformance.base import OpenStore
from strandline.testing.conformance.stage import append, populate
from strandline.testing.values import make_event

KILLED = 9


def append_one(store: Store, scope: Scope, key: str) -> None:
    """Append one event with this key: read the head, insert, write the head."""
    with store.write(scope) as tx:
        head = tx.log.head()
        event = make_event(head.revision + 1, key=key)
        tx.log.insert([event])
        tx.log.set_head(replace(head, revision=event.seq, chain=event.chain, live_events=head.live_events + 1))


def append_many(open_store: OpenStore, scope: Scope, name: str, count: int) -> int:
    """Append `count` events one by one, and return how many it were."""
    store = open_store()
    try:
        for turn in range(count):
            append_one(store, scope, f"{name}/{turn}")
    finally:
        store.close()
    return count


def die_while_writing(open_store: OpenStore, scope: Scope) -> NoReturn:
    """Commit one event, and end in the middle of the next transaction as a killed process does: without a word."""
    with open_store().write(scope) as tx:
        append(tx, 1, "acknowledged")
    with open_store().write(scope) as tx:
        populate(tx, "never committed")
        os._exit(KILLED)
