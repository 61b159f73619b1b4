"""Law (C31) on PostgreSQL: the same erasure, through the same facets; its files are the server's, and it says so."""

from __future__ import annotations

import strandline
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
