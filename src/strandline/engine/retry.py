"""Let what failed be tried again: the answer to the case of a quarantined candidate, or of a dead letter (C13, C15)."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.engine.environment import Environment
from strandline.model.candidate import CandidateState
from strandline.model.case import Case
from strandline.ports import Transaction
from strandline.rules.queueing import Wish, ask

_ENDED = (CandidateState.QUARANTINED, CandidateState.REJECTED)


def retry_in(env: Environment, tx: Transaction, case: Case) -> Mapping[str, object]:
    """Give the candidates of the same work new attempts, in whatever form they were asked for; and let the view be due
    now, where it ever was compacted in the background. Return what was done.
    """
    candidate = tx.jobs.candidate(case.subject)
    anew = []
    if candidate is not None:
        same = (candidate.view, candidate.audience_version, candidate.plan.base_generation, candidate.plan.watermark)
        anew = [
            other.candidate_id
            for other in list(tx.jobs.all_candidates())
            if other.state in _ENDED
            and (other.view, other.audience_version, other.plan.base_generation, other.plan.watermark) == same
        ]
    for candidate_id in anew:
        tx.jobs.set_candidate_state(candidate_id, CandidateState.PENDING)
    row, now = tx.due.get(case.view), env.clock.now_us()
    if row is None:
        return {"candidates": len(anew)}
    wish = Wish(
        view=row.view,
        revision=tx.log.head().revision,
        priority=row.priority,
        budget=row.budget,
        when_tokens=row.when_tokens,
        strict=row.strict,
        wanted_us=now,
    )
    tx.due.settle(ask(row, wish, now), fence=row.fence)
    return {"candidates": len(anew), "due": True}
