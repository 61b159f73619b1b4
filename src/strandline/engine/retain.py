"""Retention: rules of a tenant for what is kept, and how long; and the erasure of what is not (C31).

A rule is an entry of the tenant's own lineage; the newest of a name counts. What states a fact that holds, or a call
that is open, is kept as long as it does, in a fork too: to forget a rule in force is to lift it first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strandline.engine.ancestry import compose
from strandline.engine.environment import Environment, check_author
from strandline.engine.erase import erase
from strandline.engine.family import members
from strandline.engine.lineage import add_entry, own_key
from strandline.engine.reading import read_log
from strandline.engine.watching import watched
from strandline.errors import CorruptRecordError, ErasureRefusedError, InvalidInputError
from strandline.limits import RETENTION_RULES_MAX
from strandline.model.erasure import ErasureOrder, Retained, RetentionRule
from strandline.model.event import EventKind
from strandline.model.ids import TENANT_RULES, Scope, check_name, check_workflow
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.ports import Summarizer, Transaction
from strandline.rules.retention import is_over, rules_for


@watched("set_retention")
def set_rule(
    env: Environment,
    name: str,
    *,
    older_than_s: float,
    kinds: Sequence[EventKind | str],
    workflows: Sequence[str],
    by: str,
    why: str,
) -> RetentionRule:
    """Set a rule, or replace the one of its name. `env` is that of the tenant's own rules.

    Raises:
        InvalidInputError: an age that is none, a kind that is none, RETENTION_RULES_MAX rules, or nobody decides.
        TenantScopeError: a name that none can have.
    """
    check_name("rule", name)
    check_author(by, why)
    is_age = isinstance(older_than_s, int | float) and not isinstance(older_than_s, bool)
    if not is_age or not 0 <= older_than_s < float("inf"):
        raise InvalidInputError(f"an age is a number of seconds from 0, not {older_than_s!r}; nothing was written")
    try:
        chosen = tuple(EventKind(kind) for kind in kinds)
    except ValueError as error:
        known = ", ".join(sorted(EventKind))
        raise InvalidInputError(f"{error}; nothing was written", hint=f"The kinds are {known}.") from error
    said = {
        "rule": name,
        "older_than_s": float(older_than_s),
        "kinds": [kind.value for kind in chosen],
        "workflows": [check_workflow(workflow) for workflow in workflows],
    }
    with env.write() as tx:
        rules = rules_in(tx)
        if len(rules) >= RETENTION_RULES_MAX and name not in {rule.name for rule in rules}:
            raise InvalidInputError(f"{RETENTION_RULES_MAX} rules, which is the most allowed; nothing was written")
        entry = _add(env, tx, said, by=by, why=why)
    return _rule(entry)


@watched("drop_retention")
def drop_rule(env: Environment, name: str, *, by: str, why: str) -> RetentionRule:
    """Drop a rule, and return it.

    Raises:
        InvalidInputError: there is none of this name, or nobody decides; nothing was written.
    """
    check_author(by, why)
    with env.write() as tx:
        found = next((rule for rule in rules_in(tx) if rule.name == name), None)
        if found is None:
            raise InvalidInputError(f"tenant {env.scope.tenant!r} has no retention rule {name!r}; nothing was written")
        _add(env, tx, {"rule": name, "dropped": True}, by=by, why=why)
    return found


def list_rules(env: Environment) -> list[RetentionRule]:
    """Return the rules of the tenant."""
    with env.read() as tx:
        return rules_in(tx)


def rules_in(tx: Transaction) -> list[RetentionRule]:
    """Return the rules that stand in the lineage of a tenant's own rules.

    Raises:
        CorruptRecordError: an entry is no rule.
    """
    rules: dict[str, RetentionRule] = {}
    for entry in tx.lineage.of_kinds((LineageKind.RETENTION,)):
        if entry.detail.get("dropped"):
            rules.pop(str(entry.detail.get("rule")), None)
        else:
            rule = _rule(entry)
            rules[rule.name] = rule
    return list(rules.values())


def _rule(entry: LineageEntry) -> RetentionRule:
    detail = entry.detail
    try:
        return RetentionRule(
            name=str(detail["rule"]),
            older_than_s=float(str(detail["older_than_s"])),
            kinds=tuple(EventKind(kind) for kind in detail["kinds"]),  # type: ignore[attr-defined]
            workflows=tuple(detail["workflows"]),  # type: ignore[arg-type]
            by=entry.by or "",
            why=entry.why or "",
            set_us=entry.at_us,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptRecordError("it is no retention rule", place=f"lineage {entry.lineage_seq}") from error


def _add(env: Environment, tx: Transaction, detail: dict[str, object], *, by: str, why: str) -> LineageEntry:
    entry = LineageEntry(
        lineage_seq=0,
        kind=LineageKind.RETENTION,
        op_key=own_key(env, "retention"),
        revision=tx.log.head().revision,
        at_us=env.clock.now_us(),
        by=by,
        why=why,
        detail=detail,
    )
    return add_entry(tx, entry)


# ---------------------------------------------------------------------------------------------- carrying it out


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainOrder:
    """Whether what is due is erased, or only counted; and who decides."""

    apply: bool
    by: str = ""
    why: str = ""
    force: bool = False
    scan: bool = True


@watched("retain")
def retain(env: Environment, order: RetainOrder, summarizer: Summarizer) -> list[Retained]:
    """Find what the rules of a tenant have come to the end of, and erase it where that is asked for.

    Each workflow is by itself: a hold on one, a reader of it, or a damaged record, stops none of the others.
    """
    if order.apply:
        check_author(order.by, order.why)
    rules, done = list_rules(env), []
    for workflow in _workflows(env):
        here = replace(env, scope=Scope(tenant=env.scope.tenant, workflow=workflow))
        try:
            due = _due(here, rules_for(rules, workflow))
        except CorruptRecordError as error:
            done.append(Retained(workflow=workflow, due=0, refused=str(error)))
            continue
        if not due:
            continue
        found = Retained(workflow=workflow, due=len(due))
        done.append(_carry_out(here, order, due, found, summarizer) if order.apply else found)
    return done


def _carry_out(
    env: Environment, order: RetainOrder, due: list[int], found: Retained, summarizer: Summarizer
) -> Retained:
    wanted = ErasureOrder(events=tuple(due), by=order.by, why=order.why, force=order.force)
    try:
        return replace(found, erased=erase(env, wanted, summarizer, scan=order.scan))
    except (ErasureRefusedError, CorruptRecordError) as error:
        return replace(found, refused=str(error))


def _due(env: Environment, rules: Sequence[RetentionRule]) -> list[int]:
    """Return the events of a workflow's own that no rule keeps, but for those that state what holds."""
    if not rules:
        return []
    now, workflow = env.clock.now_us(), env.scope.workflow
    with env.store.read(env.scope) as raw:
        stated = _stated(raw, workflow)
        tx = compose(raw)
        head = tx.log.head()
        return [
            event.seq
            for event in read_log(tx, head.fork_seq + 1, head.revision, workflow)
            if event.body is not None and event.seq not in stated and is_over(rules, event.kind, event.at_us, now)
        ]


def _stated(tx: Transaction, workflow: str) -> set[int]:
    """Return the events of a workflow that state what holds, in it or in a fork: what it lifted may hold there."""
    shared: dict[str, int] = {}  # the last event that a workflow has in common with this one
    stated: set[int] = set()
    for name in reversed(members(tx, workflow)):  # each behind its parent
        there = tx.relative(name)
        head = there.log.head()
        if name == workflow:
            shared[name] = head.revision
        elif head.parent in shared:
            shared[name] = min(shared[head.parent], head.fork_seq)
        else:
            continue
        seqs = (fact.source_seq for fact in there.register.as_of(head.revision))
        stated.update(seq for seq in seqs if seq <= shared[name])
    return stated


def _workflows(env: Environment) -> list[str]:
    return [s.workflow for s in env.store.scopes(env.scope.tenant) if s.workflow != TENANT_RULES]


@watched("erase_tenant")
def erase_everywhere(
    env: Environment, order: ErasureOrder, workflows: Sequence[str], summarizer: Summarizer, *, scan: bool
) -> list[Retained]:
    """Erase the same in several workflows of a tenant, or in all of them; each is by itself.

    Raises:
        InvalidInputError: nothing is named, numbers of events, or nobody decides.
    """
    if order.events:
        raise InvalidInputError("events have numbers within one workflow: erase them there; nothing was erased")
    done = []
    for workflow in workflows or _workflows(env):
        here = replace(env, scope=Scope(tenant=env.scope.tenant, workflow=check_workflow(workflow)))
        try:
            erased = erase(here, order, summarizer, scan=scan)
        except (ErasureRefusedError, CorruptRecordError) as error:
            done.append(Retained(workflow=workflow, due=0, refused=str(error)))
            continue
        if erased.event_count or erased.left_in:  # also where no event holds it: saved states may, and must be named
            done.append(Retained(workflow=workflow, due=erased.event_count, erased=erased))
    return done
