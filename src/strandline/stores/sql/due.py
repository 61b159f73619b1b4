"""The due facet, and the sweep over all tenants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from strandline.codec import pack, unpack
from strandline.limits import DUE_DELAY_S_MAX, LEASE_TTL_S
from strandline.model.candidate import FailureClass
from strandline.model.due import DueCompaction, DueKey, take_turns
from strandline.model.outcome import CompactionResult
from strandline.model.triggers import Watch
from strandline.stores.sql.session import Row, Session, check_seal, seal

_COLUMNS: Final = (
    "view",
    "revision",
    "priority",
    "due_us",
    "wanted_us",
    "asked_us",
    "budget",
    "when_tokens",
    "strict",
    "runs",
    "worker",
    "lease_until_us",
    "fence",
    "outcome",
    "failure",
    "failure_text",
    "case_id",
    "watch",
)


class SqlDue:
    """`ports.DueFacet` over SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get(self, view: str) -> DueCompaction | None:
        rows = self._session.rows("due", view=view)
        return self._to_due(rows[0]) if rows else None

    def all(self) -> list[DueCompaction]:
        return [self._to_due(row) for row in self._session.rows("all_due")]

    def add(self, due: DueCompaction) -> None:
        self._session.send("add_due", **self._to_row(due))

    def settle(self, due: DueCompaction, *, fence: int) -> bool:
        return self._session.run("settle_due", **self._to_row(due), owner_fence=fence) == 1

    def open_in_tenant(self, limit: int) -> int:
        (row,) = self._session.rows("count_open_due", limit=limit)
        return int(row[0])

    def _to_row(self, due: DueCompaction) -> dict[str, object]:
        row: dict[str, object] = {name: getattr(due, name) for name in _COLUMNS}
        row["strict"] = int(due.strict)
        row["outcome"] = due.outcome.value if due.outcome else None
        row["failure"] = due.failure.value if due.failure else None
        row["watch"] = pack(due.watch) if due.watch else None
        return row | {"row_digest": seal(self._session, "due_compaction", list(row.values()))}

    def _to_due(self, row: Row) -> DueCompaction:
        check_seal(self._session, "due_compaction", row, row[0])
        values = dict(zip(_COLUMNS, row, strict=False))
        values["strict"] = bool(values["strict"])
        values["outcome"] = CompactionResult(values["outcome"]) if values["outcome"] else None
        values["failure"] = FailureClass(values["failure"]) if values["failure"] else None
        watch = values["watch"]
        values["watch"] = unpack(watch, Watch, f"due_compaction {row[0]!r}") if watch is not None else None
        return DueCompaction(**values)


def sweep(ask: Callable[..., list[Row]], now_us: int, limit: int, per_tenant: int) -> list[DueKey]:
    """As `Store.due`. A lane is a tenant's rows of one priority: the first of each is found by a step in an index.

    Args:
        ask: runs a named query in one snapshot.
        now_us, limit, per_tenant: those of `Store.due`.
    """
    if limit < 1 or per_tenant < 1:
        return []
    lanes: dict[int, list[int]] = {}  # by tenant, the one that has waited longest first: its priorities
    ahead: dict[int, list[DueKey]] = {}  # those whose time is that of a clock that jumped
    waiting = sorted(ask("due_lanes", now_us=now_us), key=lambda lane: (lane[2], lane[0]))
    for tenant_id, priority, _ in waiting:
        lanes.setdefault(tenant_id, []).append(priority)
    horizons = {
        "lease_horizon_us": now_us + int(LEASE_TTL_S * 1_000_000),
        "horizon_us": now_us + int(DUE_DELAY_S_MAX * 1_000_000),
    }
    for tenant_id, *row in ask("due_ahead", **horizons, limit=limit):
        ahead.setdefault(tenant_id, []).append(_to_key(tuple(row)))
        lanes.setdefault(tenant_id, [])
    tenants = list(lanes)[:limit]
    each = min(per_tenant, limit - len(tenants) + 1)
    queues = []
    for tenant_id in tenants:
        queue: list[DueKey] = []
        for priority in sorted(lanes[tenant_id], reverse=True):
            if len(queue) < each:
                parameters = {"tenant_id": tenant_id, "priority": priority, "now_us": now_us}
                queue += map(_to_key, ask("due_rows", **parameters, limit=each - len(queue)))
        queue += ahead.get(tenant_id, ())
        queues.append(sorted(queue, key=lambda key: (-key.priority, key.due_us))[:each])
    return take_turns(queues, limit)


def _to_key(row: Row) -> DueKey:
    tenant, workflow, view, priority, due_us = row
    return DueKey(tenant=tenant, workflow=workflow, view=view, priority=priority, due_us=due_us)
