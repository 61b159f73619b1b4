"""Law (I18, I20): no effect runs on a permit whose facts changed, and none on a permit or an approval that is used up;
a revocation after the intent is too late.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import strandline
from tests.unit.test_engine_guard import REVIEW, approve, denial
from tests.unit.test_engine_stage import new_workflow


class Died(BaseException):
    """Stands for kill -9: nothing catches it."""


class Outside:
    """The other side: it counts what was done to it."""

    def __init__(self):
        self.done = []

    def publish(self, key="v1"):
        self.done.append(key)
        return {"published": key}


@pytest.fixture
def wf(db):
    wf = new_workflow(db)
    yield wf
    assert wf.verify().ok


@pytest.fixture
def outside():
    return Outside()


def publish(wf, outside, permit, key="v1", run=None, actor=""):
    return wf.effect(key, "publish", {"of": key}, run or (lambda: outside.publish(key)), permit=permit, actor=actor)


def refused(wf, outside, permit, key="v1", actor="") -> str:
    """Return why the effect was refused: nothing ran, nothing of it was written, and the refusal is one row."""
    ran, revision, begun = list(outside.done), wf.basis().revision, wf.effects()
    decided = {decision.permit_id: decision for decision in wf.permits()}
    for _ in range(2):
        with pytest.raises(strandline.ActionDeniedError) as caught:
            publish(wf, outside, permit, key, actor=actor)
    assert (outside.done, wf.basis().revision, wf.effects()) == (ran, revision, begun)
    kept = {decision.permit_id: decision for decision in wf.permits()}
    assert {number: kept[number] for number in decided} == decided
    (denial,) = [kept[number] for number in kept.keys() - decided.keys()]
    asked_for = f"permit {caught.value.permit_id}, asked for by the effect {key!r}"
    assert (denial.state, denial.reasons, denial.facts) == ("denied", (asked_for, *caught.value.reasons), ())
    return str(caught.value)


def states(wf):
    return [permit.state.value for permit in wf.permits()]


def test_an_effect_after_a_revocation_does_not_run(wf, outside):
    wf.append(approve())
    permit = wf.guard("publish", REVIEW)
    wf.append(strandline.revoke("security-review"))
    assert "was revoked [event 2]" in refused(wf, outside, permit)


def test_a_revocation_after_the_intent_is_too_late(wf, outside):
    wf.append(approve())

    def run():
        wf.append(strandline.revoke("security-review"))
        return outside.publish()

    outcome = publish(wf, outside, wf.guard("publish", REVIEW), run=run)
    assert (outcome.result, outside.done) == ({"published": "v1"}, ["v1"])
    (permit,) = wf.permits()
    assert (permit.state, permit.consumed_by, wf.effects()[0].permit_id) == ("consumed", "v1", permit.permit_id)
    denial(wf, REVIEW)


def test_a_permit_is_for_the_tool_that_it_names(wf, outside):
    permit = wf.guard("notify", [strandline.no_open_issue()])
    assert "the permit is for 'notify', not for 'publish'" in refused(wf, outside, permit)
    assert outside.done == []


def test_who_acts_is_who_the_permit_is_for(wf, outside):
    """C24: duties are separate when it is used, too."""
    wf.append(approve(granter="ana"))
    permit = wf.guard("publish", REVIEW, by="publisher")
    assert "the permit is for 'publisher' to act, not for 'ana'" in refused(wf, outside, permit, actor="ana")
    assert publish(wf, outside, permit, actor="publisher").kind == "ran"


def test_a_granter_does_not_act_on_a_permit_for_nobody_by_name(wf, outside):
    wf.append(approve(granter="ana"))
    permit = wf.guard("publish", REVIEW)
    assert "by 'ana' [event 1] is by the one who acts" in refused(wf, outside, permit, actor="ana")
    assert publish(wf, outside, permit, actor="bob").kind == "ran"
    assert [decision.by for decision in wf.permits() if decision.state == "consumed"] == [""]


def test_an_effect_that_had_a_permit_is_not_tried_again_without_one(wf, outside):
    wf.append(approve())

    def fail():
        raise strandline.EffectFailedError("refused")

    with pytest.raises(strandline.EffectFailedError):
        publish(wf, outside, wf.guard("publish", REVIEW), run=fail)
    assert "used its permit up" in refused(wf, outside, None)
    assert publish(wf, outside, wf.guard("publish", REVIEW)).effect.attempt == 2


def test_two_effects_with_one_permit(wf, outside):
    wf.append(approve())
    permit = wf.guard("publish", REVIEW)
    publish(wf, outside, permit, "v1")
    assert "was used by the effect 'v1'" in refused(wf, outside, permit, "v2")


def test_two_permits_on_one_single_use_approval(wf, outside):
    wf.append(approve(single_use=True))
    first, second = wf.guard("publish", REVIEW), wf.guard("publish", REVIEW)
    publish(wf, outside, second, "v2")
    assert "was used up by permit" in refused(wf, outside, first, "v1")
    assert outside.done == ["v2"]


def test_an_effect_that_is_done_takes_no_further_permit(wf, outside):
    """I18: its recorded result is given, also when the approval was revoked since."""
    wf.append(approve())
    first, second = wf.guard("publish", REVIEW), wf.guard("publish", REVIEW)
    publish(wf, outside, first)
    wf.append(strandline.revoke("security-review"))
    assert publish(wf, outside, second).result == {"published": "v1"}
    assert outside.done == ["v1"]
    assert sorted(states(wf)) == ["consumed", "granted"]


def test_who_dies_after_the_intent_has_used_the_permit(wf, outside):
    """I18, I20: neither the same effect nor another one runs on it."""
    wf.append(approve(single_use=True))
    permit = wf.guard("publish", REVIEW)

    def die():
        outside.publish()
        raise Died

    with pytest.raises(Died):
        publish(wf, outside, permit, run=die)
    assert states(wf) == ["consumed"]
    with pytest.raises(strandline.EffectUnknownError):
        publish(wf, outside, permit)
    assert "was used by the effect 'v1'" in refused(wf, outside, permit, "v2")
    assert outside.done == ["v1"]
    denial(wf, REVIEW)


def test_who_dies_in_the_intent_has_used_nothing(wf, outside, monkeypatch):
    """The use of the permit and the intent are one transaction."""
    wf.append(approve(single_use=True))
    permit = wf.guard("publish", REVIEW)

    def die(*_):
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr("strandline.engine.effect.put_intent", die)
        with pytest.raises(Died):
            publish(wf, outside, permit)
    assert (states(wf), wf.effects(), outside.done) == (["granted"], [], [])
    assert publish(wf, outside, permit).result == {"published": "v1"}


def test_of_many_at_once_one_runs(wf, outside):
    """I20: eight threads, each with a permit of its own, on one single-use approval."""
    wf.append(approve(single_use=True))
    permits = [wf.guard("publish", REVIEW) for _ in range(8)]
    together = threading.Barrier(len(permits))

    def attempt(number):
        together.wait()
        try:
            return publish(wf, outside, permits[number], f"v{number}").kind
        except strandline.ActionDeniedError:
            return None

    with ThreadPoolExecutor(len(permits)) as pool:
        ended = list(pool.map(attempt, range(len(permits))))
    assert (len(outside.done), ended.count(None)) == (1, 7)
    assert sorted(states(wf)) == ["consumed", *["denied"] * 7, *["granted"] * 7]
