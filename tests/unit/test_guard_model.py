"""Law (I20): whatever was approved, revoked, resolved, expired and used, a permit is granted exactly when the facts are
there, and used exactly when they are those that it was granted on.

Checked against a model of a few lines that knows no register and no permit: random histories, each step compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.model.action import ActionNeed, NeedKind, Permit
from strandline.testing import SeededEntropy, VirtualClock
from strandline.testing.fakes import START_US
from tests.unit.test_engine_guard import consume
from tests.unit.test_engine_stage import bounded, new_workflow

pytestmark = pytest.mark.long

SUBJECTS, GRANTERS, SCOPES = ("a", "b"), ("ana", "bob", "cyd"), (None, "eu")
subjects, granters, scopes = map(st.sampled_from, (SUBJECTS, GRANTERS, SCOPES))
STEPS_MAX = 30


@dataclass
class Model:
    """What holds, by seq of the stating event; what ended last; what was used."""

    now_us: int = START_US
    approvals: dict[tuple[str, str, str | None], tuple[int, int | None, bool]] = field(default_factory=dict)
    holding: dict[tuple[str, str], int] = field(default_factory=dict)  # issues and constraints
    ended: dict[tuple[str, str], int] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)

    def counting(self, need: ActionNeed, by: str) -> dict[int, str]:
        """Return the approvals that count for a need: seq -> granter."""
        return {
            seq: granter
            for (subject, granter, scope), (seq, expires_us, single) in self.approvals.items()
            if subject == need.subject
            and scope in (None, need.scope)
            and granter not in (by, need.author)
            and granter in (need.granters or GRANTERS)
            and (expires_us is None or expires_us > self.now_us)
            and not (single and seq in self.used)
        }

    def stands(self, need: ActionNeed, by: str) -> int | None:
        """Return the event that meets a need for something else than an approval, 0 for none; None: it is not met."""
        kind = "constraint" if need.kind in (NeedKind.IN_FORCE, NeedKind.NOT_IN_FORCE) else "issue"
        if not need.subject:
            return None if any(of == "issue" for of, _ in self.holding) else 0
        here, before = self.holding.get((kind, need.subject)), self.ended.get((kind, need.subject), 0)
        if need.kind is NeedKind.IN_FORCE:
            return here
        return None if here is not None or (need.kind is NeedKind.RESOLVED and not before) else before

    def grants(self, needs: list[ActionNeed], by: str) -> bool:
        return all(
            len(set(self.counting(need, by).values())) >= need.quorum
            if need.kind is NeedKind.APPROVED
            else self.stands(need, by) is not None
            for need in needs
        )

    def still(self, permit: Permit) -> bool:
        return permit.consumed_by is None and all(
            fact.seq in self.counting(need, permit.by)
            if need.kind is NeedKind.APPROVED
            else fact.seq == self.stands(need, permit.by)
            for fact in permit.facts
            for need in (permit.needs[fact.need],)
        )


needs = st.lists(
    st.one_of(
        st.builds(
            strandline.approved,
            subjects,
            scope=scopes,
            quorum=st.integers(1, 2),
            granters=st.sampled_from([None, ("ana", "bob", "cyd")]),
            author=st.sampled_from([None, "ana"]),
        ),
        st.builds(strandline.resolved, subjects),
        st.builds(strandline.no_open_issue, st.sampled_from(["", *SUBJECTS])),
        st.builds(strandline.in_force, subjects),
        st.builds(strandline.not_in_force, subjects),
    ),
    min_size=1,
    max_size=3,
)
steps = st.one_of(
    st.tuples(st.just("approve"), subjects, granters, scopes, st.sampled_from([None, 5, 20]), st.booleans()),
    st.tuples(st.just("revoke"), subjects),
    st.tuples(st.just("toggle"), st.sampled_from(["issue", "constraint"]), subjects),
    st.tuples(st.just("wait"), st.integers(1, 9)),
    st.tuples(st.just("guard"), needs, st.sampled_from(["", "bob"])),
    st.tuples(st.just("use"), st.integers(0, STEPS_MAX)),
)


@bounded(150)
@given(st.lists(steps, min_size=5, max_size=STEPS_MAX))
def test_permits_follow_the_facts(history) -> None:
    clock, model = VirtualClock(), Model()
    permits: list[Permit] = []
    with strandline.open(":memory:", clock=clock, entropy=SeededEntropy(7)) as db:
        wf = new_workflow(db)
        for step in history:
            match step:
                case ("guard", asked, by):
                    try:
                        permits.append(wf.guard("act", asked, by=by))
                        granted = True
                    except strandline.ActionDeniedError:
                        granted = False
                    assert granted == model.grants(asked, by)
                case ("use", number) if permits:
                    use(db, wf, model, permits, number % len(permits))
                case ("wait", seconds):
                    clock.advance(seconds)
                    model.now_us = clock.now_us()
                case ("use", _):
                    pass
                case _:
                    state(wf, model, step)
        assert wf.verify().ok
        kept = {permit.permit_id: permit for permit in wf.permits()}
        assert all(kept[permit.permit_id] == permit for permit in permits)


def use(db, wf, model: Model, permits: list[Permit], number: int) -> None:
    permit = permits[number]
    try:
        permits[number] = consume(db, wf, permit, f"effect-{number}")
        used = True
    except strandline.ActionDeniedError:
        used = False
    assert used == model.still(permit)
    if used:
        model.used |= {fact.seq for fact in permit.facts if fact.single_use}


def state(wf, model: Model, step) -> None:
    """Append an event, and let the model know of it."""
    seq = wf.basis().revision + 1
    match step:
        case ("approve", subject, granter, scope, lasts_s, single):
            expires_us = None if lasts_s is None else model.now_us + lasts_s * 1_000_000
            wf.append(
                strandline.approval(subject, "", granter=granter, scope=scope, expires_us=expires_us, single_use=single)
            )
            model.approvals[subject, granter, scope] = (seq, expires_us, single)
        case ("revoke", subject):
            wf.append(strandline.revoke(subject))
            model.approvals = {key: fact for key, fact in model.approvals.items() if key[0] != subject}
        case ("toggle", kind, subject):
            begin, end = {
                "issue": (strandline.issue, strandline.resolve),
                "constraint": (strandline.constraint, strandline.lift_constraint),
            }[kind]
            if (kind, subject) in model.holding:
                wf.append(end(subject))
                del model.holding[kind, subject]
                model.ended[kind, subject] = seq
            else:
                wf.append(begin(subject, "x"))
                model.holding[kind, subject] = seq
