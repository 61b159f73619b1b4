"""Law (C31) on PostgreSQL: the same erasure, through the same facets; its files are the server's, and it says so."""

from __future__ import annotations

import threading

import strandline
from strandline.engine import erase as engine
from strandline.testing import VirtualClock
from tests.unit.test_engine_stage import WHOLE
from tests.unit.test_erase import MARK, SAID, WHO, fill, found_in, through_facets, workflow_of


def test_no_facet_tells_it_afterwards(postgres_store_url):
    """C31, C22: also through a fork; references' keys are deleted by the role of the application."""
    with strandline.open(postgres_store_url, clock=VirtualClock()) as db:
        wf = workflow_of(db)
        seqs = fill(db, wf)
        wf.fork(None, "aside", by="ann", why="to try")
        workflow_of(db, "aside").append(strandline.message("user", f"And {SAID}"))
        erased = wf.erase(person=MARK, **WHO)
        assert erased.events == tuple(seqs)
        assert erased.forks == ("aside",)
        assert "VACUUM" in erased.scan.note
        for name in ("release", "aside"):
            assert found_in(through_facets(db, name)) == []
            assert found_in(workflow_of(db, name).context(WHOLE).text) == []
        assert db.verify().ok


def test_a_hold_that_stands_is_never_overtaken(postgres_store_url, monkeypatch):
    """C31: a tenant's hold that is set while an erasure runs waits for it, so that nothing goes once it stands."""
    with strandline.open(postgres_store_url) as db:
        acme, wf = db.tenant("acme"), workflow_of(db)
        told = wf.append(strandline.message("user", SAID)).seq
        acme.hold("before", by="counsel", why="in court")
        acme.lift_hold("before", by="counsel", why="over")
        take, stands = engine.take_away, threading.Event()

        def hold():
            with strandline.open(postgres_store_url) as other:
                other.tenant("acme").hold("now", by="counsel", why="in court")
            stands.set()

        thread = threading.Thread(target=hold)

        def take_late(*args):
            thread.start()
            assert not stands.wait(1.0)
            return take(*args)

        monkeypatch.setattr(engine, "take_away", take_late)
        assert wf.erase(events=[told], **WHO).event_count == 1
        thread.join()
        assert [one.name for one in wf.holds()] == ["now"]
