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


def newest_heads(heads: Iterable[WitnessedHead]) -> list[WitnessedHead]:
    """Return the heads that speak for all of them: one that a later state of the same history follows is left out.

    The order in which they come does not matter: two who keep witnesses in one file may overtake each other.
    """
    kept: dict[str, list[WitnessedHead]] = {}
    for head in heads:
        others = kept.setdefault(head.name, [])
        if not any(_follows(head, other) for other in others):
            kept[head.name] = [other for other in others if not _follows(other, head)] + [head]
    return [head for same in kept.values() for head in same]


def _follows(earlier: WitnessedHead, later: WitnessedHead) -> bool:
    """Tell whether one head may be a later state of the other, as far as two heads can say."""
    if _less(_numbers(earlier), _numbers(later)) or (earlier.first and earlier.first != later.first):
        return False
    same_log = earlier.revision < later.revision or earlier.chain == later.chain
    return same_log and (earlier.lineage_seq < later.lineage_seq or earlier.lineage_chain == later.lineage_chain)
