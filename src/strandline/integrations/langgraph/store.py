"""A LangGraph store on saved states (C34): each item is a line, each put a version of it; nothing is overwritten."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)

from strandline import (
    CorruptRecordError,
    InvalidInputError,
    NewState,
    SavedState,
    StateConflictError,
    StateValue,
    Tenant,
)
from strandline.integrations.langgraph.address import STORE_WORKFLOW
from strandline.integrations.langgraph.opened import Opened, check_tenant
from strandline.integrations.langgraph.searching import in_namespace, matches, namespaces_of, ranked
from strandline.integrations.langgraph.values import decode, encode
from strandline.limits import STORE_PUT_ATTEMPTS_MAX

_VALUE, _MADE, _CHANGED = "value", "created_at", "updated_at"
_FIRST_VERSION = "1"


def _utc_now() -> datetime:
    return datetime.now(UTC)


class StrandlineStore(BaseStore):
    """Keeps the items of one tenant's graphs. Its methods may be called from any thread.

    An item that is put again gets a new version; one that is deleted gets one that says so. Both keep what was before.
    There are no vectors: a query ranks by words. Items don't expire.
    """

    supports_ttl = False

    def __init__(
        self,
        tenant: Tenant,
        *,
        serde: SerializerProtocol | None = None,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        """Take a tenant of an open store.

        Args:
            tenant: whose items these are; no call reaches another tenant's (I21).
            serde: how values become bytes; None: LangGraph's own.
            now: when an item was made and changed; nothing is decided by it.

        Raises:
            InvalidInputError: no tenant.
        """
        self._states = check_tenant(tenant).workflow(STORE_WORKFLOW).states
        self._serde = serde or JsonPlusSerializer()
        self._now = now

    @classmethod
    def from_conn_string(cls, url: str, *, tenant: str) -> Opened[StrandlineStore]:
        """Open a store, and close it in the end: `with` or `async with … as store`.

        Args:
            url: as of `strandline.open`.
            tenant: its name.
        """
        return Opened(url, lambda db: cls(db.tenant(tenant)))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what is asked: first all that reads, as of before, then all that writes, in one transaction: all or none.

        Of two puts to one item the last counts.

        Raises:
            InvalidInputError: an item that is to expire, a value that can't be kept, an operator that is none.
            InvalidNamespaceError: a label that can't be one (LangGraph's own).
            CorruptRecordError: what is stored is not what was put.
        """
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        new = {(op.namespace, op.key): self._encoded(op) for op in asked if isinstance(op, PutOp)}
        results = [self._read(op) for op in asked]
        self._put(new)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`; cancelled, what it puts may still be saved."""
        return await asyncio.to_thread(self.batch, ops)

    # ------------------------------------------------------------------------------------------------------- read

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            return self._item(op.namespace, op.key)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            found = namespaces_of([item.namespace for item, _ in self._items(())], op)
            return found[op.offset : op.offset + op.limit]
        return None

    def _item(self, namespace: tuple[str, ...], key: str) -> Item | None:
        state = self._states.load(line=_line(namespace, key))
        return None if state is None else self._of(namespace, key, state)

    def _of(self, namespace: tuple[str, ...], key: str, state: SavedState) -> Item | None:
        """Return an item as a version of it says; None: it says that the item was deleted."""
        held = state.values.get(_VALUE)
        if held is None:
            return None
        value, times = decode(self._serde, held), json.loads(state.meta)
        if not isinstance(value, dict) or not isinstance(times, dict):
            raise CorruptRecordError("no item of a store", place=f"item {key!r} of {namespace!r}")
        return Item(value=value, key=key, namespace=namespace, created_at=times[_MADE], updated_at=times[_CHANGED])

    def _items(self, prefix: tuple[str, ...]) -> Iterator[tuple[Item, int]]:
        """Yield the items under a namespace, each with the position of its version; what was erased is none."""
        for line in self._states.lines():
            *labels, key = json.loads(line)
            namespace = tuple(labels)
            state = self._states.load(line=line, erased=True) if in_namespace(namespace, prefix) else None
            item = None if state is None or state.erased else self._of(namespace, key, state)
            if item is not None and state is not None:
                yield item, state.position

    def _search(self, op: SearchOp) -> list[SearchItem]:
        """Return what fits: by the words of the query, then the newest first."""
        found = [(item, at) for item, at in self._items(op.namespace_prefix) if matches(item.value, op.filter or {})]
        newest_first = [item for item, _ in sorted(found, key=lambda pair: -pair[1])]
        scored = ranked(newest_first, op.query) if op.query else [(item, None) for item in newest_first]
        return [
            SearchItem(
                namespace=item.namespace,
                key=item.key,
                value=item.value,
                created_at=item.created_at,
                updated_at=item.updated_at,
                score=score,
            )
            for item, score in scored[op.offset : op.offset + op.limit]
        ]

    # ------------------------------------------------------------------------------------------------------ write

    def _encoded(self, op: PutOp) -> StateValue | None:
        if op.ttl is not None:
            raise InvalidInputError(
                "items of this store don't expire, and ttl= was given; nothing was written",
                hint="Delete the item when it is not wanted any more, or erase it (docs/retention.md).",
            )
        return None if op.value is None else encode(self._serde, dict(op.value))

    def _put(self, new: Mapping[tuple[tuple[str, ...], str], StateValue | None]) -> None:
        """Save new versions behind the newest: all or none. A put that comes between is no reason to lose either."""
        in_order = True
        for attempt in range(STORE_PUT_ATTEMPTS_MAX):
            versions = [self._version(_line(*place), value, in_order=in_order) for place, value in new.items()]
            try:
                self._states.save_all([version for version in versions if version is not None])
            except StateConflictError as error:
                if attempt + 1 == STORE_PUT_ATTEMPTS_MAX:
                    raise
                if error.reason == "deleted":  # a next number was that of a version that is gone, as others may be
                    in_order = False
            else:
                return

    def _version(self, line: str, value: StateValue | None, *, in_order: bool) -> NewState | None:
        """Return the next version of an item, by the next number or one that no version ever had; None: it is to be
        deleted, and is not there.
        """
        newest = self._states.load(line=line, erased=True)
        if value is None and (newest is None or not (newest.erased or _VALUE in newest.values)):
            return None
        now = self._now().isoformat()
        made = now if newest is None or _VALUE not in newest.values else json.loads(newest.meta)[_MADE]
        number = _FIRST_VERSION if newest is None else str(int(newest.state_id) + 1)
        return NewState(
            state_id=number if in_order else str(uuid.uuid4().int),
            values={} if value is None else {_VALUE: value},
            meta=json.dumps({_MADE: made, _CHANGED: now}).encode(),
            line=line,
            parent=None if newest is None else newest.state_id,
            seen=0 if newest is None else newest.seen,
        )


def _line(namespace: tuple[str, ...], key: str) -> str:
    return json.dumps([*namespace, key], ensure_ascii=False)
