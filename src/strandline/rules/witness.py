"""Is what stands in a store the same as what was witnessed, or a continuation of it? (ADR 0071)

A chain value speaks for everything before it, so that one comparison at the witnessed number answers for a whole log,
however long it has become since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from strandline.model.witness import HeadNow, NotContinued, WitnessedHead, WitnessFinding


def judge_head(witnessed: WitnessedHead, now: HeadNow | None, *, same_store: bool) -> NotContinued | None:
    """Return what became of a witnessed workflow; None: it is the same, or continued."""
    found = _find(witnessed, now, same_store=same_store)
    if found is None:
        return None
    finding, reason = found
    return NotContinued(
        tenant=witnessed.tenant,
        workflow=witnessed.workflow,
        finding=finding,
        witnessed_revision=witnessed.revision,
        witnessed_lineage_seq=witnessed.lineage_seq,
        revision=None if now is None else now.revision,
        lineage_seq=None if now is None else now.lineage_seq,
        reason=f"{finding.value.replace('_', ' ')}: {reason}; {_stood(witnessed, now)}",
    )


def _find(witnessed: WitnessedHead, now: HeadNow | None, *, same_store: bool) -> tuple[WitnessFinding, str] | None:
    if not same_store:
        return WitnessFinding.REPLACED, "this is another store than the witnessed one"
    if now is None:
        return WitnessFinding.MISSING, "no such workflow is there"
    if witnessed.first and now.first and witnessed.first != now.first:
        return WitnessFinding.REPLACED, "its first event is another one"
    if now.chain is not None and now.chain != witnessed.chain:
        return WitnessFinding.FORKED, f"event {witnessed.revision} and what led to it are not those of the witness"
    if now.lineage_chain is not None and now.lineage_chain != witnessed.lineage_chain:
        return WitnessFinding.FORKED, f"lineage {witnessed.lineage_seq} and what led to it are not those of the witness"
    less = _less(_numbers(witnessed), _numbers(now))
    if less:
        return WitnessFinding.ROLLED_BACK, ", ".join(less)
    return None


def _numbers(head: WitnessedHead | HeadNow) -> dict[str, int]:
    """Return what never becomes less."""
    generations = {f"generation of view {view!r}": number for view, number in head.generations.items()}
    return {"revision": head.revision, "lineage_seq": head.lineage_seq, **generations, **head.counters}


def _less(before: Mapping[str, int], now: Mapping[str, int]) -> list[str]:
    after = {name: now.get(name, 0) for name in before}
    return [f"{name} was {number}, is {after[name]}" for name, number in before.items() if after[name] < number]


def _stood(witnessed: WitnessedHead, now: HeadNow | None) -> str:
    there = "nothing" if now is None else f"revision {now.revision}, lineage_seq {now.lineage_seq}"
    return f"witnessed: revision {witnessed.revision}, lineage_seq {witnessed.lineage_seq}; there now: {there}"


def heads_to_judge(heads: Iterable[WitnessedHead]) -> list[list[WitnessedHead]]:
    """Return what was witnessed of each workflow, each state once, the one that got furthest first.

    No state speaks for an earlier one: it may have been witnessed after an older copy was put back, without a check.
    Their order in the file does not matter: two who keep witnesses in one file may overtake each other.
    """
    kept: dict[str, dict[tuple[object, ...], WitnessedHead]] = {}
    for head in heads:
        chains = (head.first, head.chain, head.lineage_chain)
        kept.setdefault(head.name, {})[*chains, *sorted(_numbers(head).items())] = head
    return [
        sorted(same.values(), key=lambda head: (head.revision, head.lineage_seq), reverse=True)
        for same in kept.values()
    ]
