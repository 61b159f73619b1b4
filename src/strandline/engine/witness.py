"""Witness a store's heads, and compare them with what was witnessed (ADR 0071)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import Final

from strandline.codec import make_witness, read_witnesses, store_digest
from strandline.engine.environment import Environment
from strandline.engine.lineage import check_entry
from strandline.engine.reading import read_one
from strandline.errors import CorruptRecordError, InvalidInputError, NotContinuedError
from strandline.limits import WITNESS_FINDINGS_SHOWN_MAX
from strandline.model.ids import Scope
from strandline.model.lineage import WorkflowHead
from strandline.model.witness import HeadNow, NotContinued, Witness, WitnessedHead, WitnessReport
from strandline.ports import Transaction
from strandline.ports.occurrences import IncidentTold
from strandline.rules.witness import heads_to_judge, judge_head

_COUNTERS: Final = (
    "branch",
    "summary_no",
    "attempts",
    "cases",
    "effects",
    "permits",
    "approval_uses",
    "state_changes",
)
"""Of the head row: those that only grow. States, permits and cases that are neither event nor entry show in them."""


def take_witness(env: Environment, scopes: Iterable[Scope], tenant: str | None, key: bytes | None) -> Witness:
    """Return a witness of these workflows, each as one snapshot holds it.

    Raises:
        InvalidInputError: the key is too short.
        CorruptRecordError: the last event or entry of a workflow is not what was written.
    """
    heads = []
    for scope in sorted(scopes, key=lambda scope: (scope.tenant, scope.workflow)):
        here = replace(env, scope=scope)
        with here.read() as tx:
            heads.append(_head_of(tx, scope))
    store = store_digest(env.store.digest_key, tenant)
    return make_witness(heads, tenant=tenant, store=store, taken_us=env.clock.now_us(), key=key)


def _head_of(tx: Transaction, scope: Scope) -> WitnessedHead:
    head = tx.log.head()
    return WitnessedHead(
        tenant=scope.tenant,
        workflow=scope.workflow,
        revision=head.revision,
        first=_chain_at(tx, min(head.revision, 1), scope.workflow),
        chain=_chain_at(tx, head.revision, scope.workflow),
        lineage_seq=head.lineage_seq,
        lineage_chain=_lineage_chain_at(tx, head.lineage_seq, scope.workflow),
        generations=_generations(tx),
        counters=_counters(head),
    )


def _chain_at(tx: Transaction, seq: int, workflow: str) -> str:
    """Return the chain value of an event, which is checked; before the first there is none."""
    return read_one(tx, seq, workflow).chain.hex() if seq else ""


def _lineage_chain_at(tx: Transaction, lineage_seq: int, workflow: str) -> str:
    if not lineage_seq:
        return ""
    entry = next(iter(tx.lineage.read(lineage_seq - 1, 1)), None)
    if entry is None or entry.lineage_seq != lineage_seq:
        raise CorruptRecordError("the entry is missing", place=f"lineage {lineage_seq} of {workflow!r}")
    check_entry(tx, entry)
    return entry.chain.hex()


def _generations(tx: Transaction) -> dict[str, int]:
    return {view.name: view.generation for view in sorted(tx.views.all(), key=lambda view: view.name)}


def _counters(head: WorkflowHead) -> dict[str, int]:
    return {name: getattr(head, name) for name in _COUNTERS}


def check_witness(
    env: Environment, scopes: list[Scope], tenant: str | None, document: str | bytes | Witness, key: bytes | None
) -> WitnessReport:
    """Compare a store with witnesses of it: each head that they name is still there, or still led to what is there.

    It reads two events and an entry per witnessed state of a workflow, however long the log is: the chain speaks for
    the rest. `verify` proves the chain.

    Raises:
        NotContinuedError: a workflow is rolled back, forked off, replaced or missing.
        InvalidInputError: a witness is damaged, not signed with the key, or none speaks of this tenant.
        CorruptRecordError: what stands at the witnessed place is damaged.
    """
    report, wrong = _compare(env, scopes, tenant, document, key)
    if wrong:
        env.emit("incident", IncidentTold(operation="witness", place="witness", problems=len(wrong)))
        raise NotContinuedError(_told(wrong), findings=tuple(wrong))
    return report


def _compare(
    env: Environment, scopes: list[Scope], tenant: str | None, document: str | bytes | Witness, key: bytes | None
) -> tuple[WitnessReport, list[NotContinued]]:
    text = document.document if isinstance(document, Witness) else document
    if not isinstance(text, str | bytes):
        raise InvalidInputError(f"a witness is a document, text or bytes, not a {type(document).__name__}")
    witnesses = read_witnesses(text, key)
    there, spoken_of, wrong, continued = set(scopes), set[Scope](), list[NotContinued](), set[Scope]()
    for of, same in groupby(sorted(witnesses, key=_origin), key=_origin):
        same_store = of[1] == store_digest(env.store.digest_key, of[0] or None).hex()
        heads = [head for witness in same for head in witness.heads if tenant in (None, head.tenant)]
        for states in heads_to_judge(heads):
            furthest = states[0]
            scope = Scope(tenant=furthest.tenant, workflow=furthest.workflow)
            spoken_of.add(scope)
            stands = _stands(replace(env, scope=scope), states) if scope in there else [None] * len(states)
            judged = [judge_head(head, now, same_store=same_store) for head, now in zip(states, stands, strict=True)]
            finding, now = next(filter(None, judged), None), stands[0]
            if finding is not None:
                wrong.append(finding)
            elif now is not None and (now.revision, now.lineage_seq) != (furthest.revision, furthest.lineage_seq):
                continued.add(scope)
    if tenant is not None and not spoken_of:
        raise InvalidInputError(f"no witness in it speaks of tenant {tenant!r}", hint="Take the tenant's own file.")
    report = WitnessReport(
        witnesses=len(witnesses),
        workflows=len(spoken_of),
        continued=len(continued),
        unwitnessed=len(there - spoken_of),
        signed=key is not None,
    )
    return report, wrong


def _origin(witness: Witness) -> tuple[str, str]:
    return witness.tenant or "", witness.store


def _stands(env: Environment, states: list[WitnessedHead]) -> list[HeadNow | None]:
    """Return what stands at each witnessed state of a workflow now, in one snapshot."""
    with env.read() as tx:
        return [_now(tx, env.scope.workflow, head) for head in states]


def _now(tx: Transaction, workflow: str, witnessed: WitnessedHead) -> HeadNow:
    head = tx.log.head()
    reaches = head.revision >= witnessed.revision, head.lineage_seq >= witnessed.lineage_seq
    return HeadNow(
        revision=head.revision,
        first=_chain_at(tx, min(head.revision, 1), workflow),
        chain=_chain_at(tx, witnessed.revision, workflow) if reaches[0] else None,
        lineage_seq=head.lineage_seq,
        lineage_chain=_lineage_chain_at(tx, witnessed.lineage_seq, workflow) if reaches[1] else None,
        generations=_generations(tx),
        counters=_counters(head),
    )


def _told(wrong: list[NotContinued]) -> str:
    shown = [f"{one.tenant}/{one.workflow} is {one.reason}" for one in wrong[:WITNESS_FINDINGS_SHOWN_MAX]]
    more = len(wrong) - len(shown)
    return ". ".join([*shown, *([f"And {more:,} more"] if more else [])])
