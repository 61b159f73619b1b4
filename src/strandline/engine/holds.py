"""Legal holds: what is under one is not erased, whoever asks (C31).

A hold is an entry of the lineage, and so is its end: they can't be changed, and none can be missing. A tenant's own
holds stand in the lineage of a workflow of its own, which holds no event.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from strandline.engine.environment import Environment, check_author
from strandline.engine.lineage import add_entry, own_key
from strandline.engine.watching import watched
from strandline.errors import CorruptRecordError, InvalidInputError, TenantScopeError
from strandline.limits import HOLDS_MAX
from strandline.model.erasure import Hold
from strandline.model.ids import TENANT_RULES, check_name
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.ports import Transaction

_KINDS: Final = (LineageKind.HOLD, LineageKind.RELEASE)


@watched("hold")
def set_hold(env: Environment, name: str, *, by: str, why: str) -> Hold:
    """Set a hold on the workflow, or on the tenant, if `env` is that of its rules.

    Raises:
        TenantScopeError: no hold can have this name, or the workflow is not there.
        InvalidInputError: one of this name stands, there are HOLDS_MAX, or nobody decides; nothing was written.
    """
    check_name("hold", name)
    check_author(by, why)
    with env.write() as tx:
        head = tx.log.head()
        if not head.revision and env.scope.workflow != TENANT_RULES:
            raise TenantScopeError(f"{env.scope} holds no event; nothing was written", hint="Check its name.")
        standing = {hold.name for hold in standing_in(tx, env.scope.workflow)}
        if name in standing:
            raise InvalidInputError(f"the hold {name!r} stands already in {env.scope}; nothing was written")
        if len(standing) >= HOLDS_MAX:
            raise InvalidInputError(f"{HOLDS_MAX} holds stand in {env.scope}, which is the most allowed")
        entry = _add(env, tx, LineageKind.HOLD, name, by=by, why=why)
    return _hold(entry, env.scope.workflow)


@watched("release")
def lift_hold(env: Environment, name: str, *, by: str, why: str) -> Hold:
    """Lift a hold, and return it as it stood.

    Raises:
        InvalidInputError: none of this name stands here, or nobody decides; nothing was written.
    """
    check_author(by, why)
    with env.write() as tx:
        found = next((hold for hold in standing_in(tx, env.scope.workflow) if hold.name == name), None)
        if found is None:
            raise InvalidInputError(f"no hold {name!r} stands in {env.scope}; nothing was written")
        _add(env, tx, LineageKind.RELEASE, name, by=by, why=why)
    return found


@watched("holds")
def list_holds(env: Environment) -> list[Hold]:
    """Return the holds that cover the workflow: its tenant's, then its own, the oldest first."""
    with env.store.read(env.scope) as tx:
        return list(covering(tx, env.scope.workflow))


def covering(tx: Transaction, workflow: str) -> Iterator[Hold]:
    """Yield the holds that cover a workflow of the family of `tx`; where it writes, none is set until it has ended."""
    yield from standing_in(tx.relative(TENANT_RULES, locked=True), TENANT_RULES)
    if workflow != TENANT_RULES:
        yield from standing_in(tx.relative(workflow), workflow)


def standing_in(tx: Transaction, workflow: str) -> list[Hold]:
    """Return the holds that stand in the lineage of one workflow.

    Raises:
        CorruptRecordError: an entry does not say which hold it is about.
    """
    standing: dict[str, Hold] = {}
    for entry in tx.lineage.of_kinds(_KINDS):
        hold = _hold(entry, workflow)
        if entry.kind is LineageKind.HOLD:
            standing[hold.name] = hold
        else:
            standing.pop(hold.name, None)
    return list(standing.values())


def _hold(entry: LineageEntry, workflow: str) -> Hold:
    name = entry.detail.get("hold")
    if not isinstance(name, str):
        raise CorruptRecordError("it does not say which hold it is about", place=f"lineage {entry.lineage_seq}")
    return Hold(
        name=name,
        workflow=None if workflow == TENANT_RULES else workflow,
        by=entry.by or "",
        why=entry.why or "",
        set_us=entry.at_us,
    )


def _add(env: Environment, tx: Transaction, kind: LineageKind, name: str, *, by: str, why: str) -> LineageEntry:
    entry = LineageEntry(
        lineage_seq=0,
        kind=kind,
        op_key=own_key(env, kind),
        revision=tx.log.head().revision,
        at_us=env.clock.now_us(),
        by=by,
        why=why,
        detail={"hold": name},
    )
    return add_entry(tx, entry)


def of_tenant(env: Environment) -> Environment:
    """Return the environment of the tenant's own rules."""
    return replace(env, scope=replace(env.scope, workflow=TENANT_RULES))
