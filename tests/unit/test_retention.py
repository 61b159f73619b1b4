"""Law (C31): a tenant says how long events are kept; each workflow is by itself, and what is in force is kept."""

import sqlite3
from contextlib import closing

import pytest

import strandline
from strandline.model.event import EventKind
from strandline.rules.retention import is_over
from tests.unit.test_engine_stage import STORES, open_store, talk

DAY_S = 86_400
WHO = {"by": "dpo", "why": "policy 4"}


@pytest.fixture(params=STORES)
def db(request, tmp_path):
    with open_store(request.param, tmp_path) as opened:
        yield opened


def test_what_is_older_than_its_rule_is_erased(db):
    """By age, kind and workflow; nothing before `apply`; what states what holds is kept."""
    acme = db.tenant("acme")
    for name in ("one", "two"):
        acme.workflow(name).append([strandline.constraint("rule", "Never on Fridays."), strandline.note("x"), *talk(1)])
    acme.set_retention("notes", older_than_s=DAY_S, kinds=["note", "constraint"], workflows=["one"], **WHO)
    assert acme.retain() == []
    db._clock.sleep_s(DAY_S)
    acme.workflow("one").append(strandline.note("young"))
    assert [(found.workflow, found.due, found.erased) for found in acme.retain()] == [("one", 1, None)]
    with pytest.raises(strandline.InvalidInputError):
        acme.retain(apply=True)
    (done,) = acme.retain(apply=True, **WHO)
    assert done.erased.events == (2,)
    assert acme.retain() == []
    acme.drop_retention("notes", **WHO)
    assert acme.retention() == []
    assert acme.workflows() == ["one", "two"]
    assert db.verify().ok


def test_what_holds_in_a_fork_is_kept(db):
    """C31: a rule that is lifted here is in force there still, and stands in the log once."""
    acme = db.tenant("acme")
    here = acme.workflow("here")
    stated = here.append(strandline.constraint("rule", "Never deploy on Fridays.")).seq
    here.append(talk(2))
    here.fork(None, "there", by="ann", why="to try")
    here.append(strandline.lift_constraint("rule", "Fridays are fine."))
    later = here.append(strandline.constraint("late", "No letters.")).seq
    here.append(strandline.lift_constraint("late"))
    acme.workflow("there").append(strandline.constraint("late", "Ask first."))  # of the same number, and another event
    acme.set_retention("rules", older_than_s=0, kinds=["constraint"], workflows=["here"], by="ann", why="policy")
    (done,) = acme.retain(apply=True, by="nightly", why="policy")
    assert done.erased.events == (later,)
    assert acme.workflow("there").events(stated, stated)[0].text == "Never deploy on Fridays."
    assert db.verify().ok


def test_a_hold_on_one_workflow_stops_none_of_the_others(db):
    """A hold of the tenant covers those to come, too."""
    acme = db.tenant("acme")
    for name in ("one", "two"):
        acme.workflow(name).append([strandline.message("user", "I am Ada Quill.", actor="ada"), strandline.note("x")])
    acme.workflow("one").hold("case 7", **WHO)
    held, done = acme.erase(actor="ada", **WHO)
    assert (held.workflow, held.erased, done.workflow) == ("one", None, "two")
    assert "case 7" in held.refused
    acme.hold("all", **WHO)
    later = acme.workflow("later")
    later.append(strandline.note("x"))
    with pytest.raises(strandline.ErasureRefusedError):
        later.erase(events=[1], **WHO)
    acme.lift_hold("all", **WHO)
    assert later.erase(events=[1], **WHO).event_count == 1
    assert db.verify().ok


def test_a_damaged_workflow_stops_none_of_the_others(tmp_path):
    """I4, C31: nothing of it is erased, and what is due elsewhere goes every night all the same."""
    with open_store("sqlite", tmp_path) as db:
        acme = db.tenant("acme")
        for name in ("one", "three", "two"):
            acme.workflow(name).append(strandline.note("I am Ada Quill."))
        with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
            connection.execute("DROP TRIGGER event_is_never_changed")
            connection.execute("UPDATE event SET chain = zeroblob(32) WHERE workflow_id = 2")
        acme.set_retention("all", older_than_s=0, **WHO)
        done = acme.retain(apply=True, **WHO)
        assert [(one.workflow, one.erased is not None) for one in done] == [
            ("one", True),
            ("three", False),
            ("two", True),
        ]
        assert "event 1" in done[1].refused
        for name in ("one", "two"):
            acme.workflow(name).append(strandline.note("I am Ada Quill."))
        told = acme.erase(person="Ada Quill", **WHO)
        assert [one.erased is not None for one in told] == [True, False, True]


@pytest.mark.parametrize("wrong", [{"older_than_s": -1}, {"older_than_s": True}, {"kinds": ["talk"]}], ids=str)
def test_a_rule_that_can_not_be_is_refused(db, wrong):
    acme = db.tenant("acme")
    with pytest.raises(strandline.InvalidInputError):
        acme.set_retention("rule", **({"older_than_s": 1} | wrong), **WHO)
    with pytest.raises(strandline.InvalidInputError):
        acme.drop_retention("rule", **WHO)
    with pytest.raises(strandline.TenantScopeError):
        acme.workflow("strandline/rules")
    assert db.store.scopes() == []


def test_the_strictest_rule_counts(db):
    rules = [db.tenant("a").set_retention(str(age), older_than_s=age, **WHO) for age in (5, 9)]
    assert [is_over(rules, EventKind.NOTE, 0, at * 1_000_000) for at in (4, 5, 9)] == [False, True, True]
