"""Law (C27): what a store says of itself is what happened to it, after a restart too, and it costs what was compacted,
not what was appended. The facets are judged by the conformance suite; here the engine writes.
"""

import asyncio
import sqlite3

import pytest

import strandline
from strandline.limits import ATTEMPTS_MAX
from strandline.model.figures import MICROSECONDS, fold_figures
from strandline.stores.sql.figures import figures_of
from strandline.stores.sql.queries import load_queries
from strandline.testing import ScriptedSummarizer, VirtualClock
from tests.unit.test_engine_stage import STORES, new_workflow, open_store, quiet, talk

BUSY = strandline.TransientSummarizerError("busy")


@pytest.fixture(params=STORES)
def db(request, tmp_path):
    with open_store(request.param, tmp_path) as db:
        yield db


@pytest.fixture
def wf(db):
    return new_workflow(db)


def test_figures_are_what_happened(db, wf):
    """Retries per candidate, failures by class, an open case and its age, tokens before and after."""
    wf.append(talk(20))
    first = wf.compact(400, ScriptedSummarizer([BUSY, BUSY, "Work went on."]))
    wf.append(talk(10, start=50))
    assert (
        wf.compact(500, ScriptedSummarizer(["In bucket-dead99."] * ATTEMPTS_MAX), fallback=False).outcome
        == "quarantined"
    )
    wf.recover()
    found = db.tenant("acme").figures()
    assert found.attempts == {"failed": 3, "activated": 1, "quarantined": 2}
    assert found.failures == {"transient": 2, "semantic": 3}
    assert (found.candidates, found.retries, found.attempts_started) == (3, 3, 6)
    assert (found.events, found.summaries, found.summary_tokens) == (60, 1, first.summary_tokens)
    assert (found.depth_max, found.manifest_refs) == (first.depth, first.refs_dropped)
    assert found.lineage == {"compaction": 1, "replay": 1}
    assert found.cases_open == {"quarantined": 1}
    assert found.leases == {}
    assert 0 < found.segment_tokens < found.source_tokens
    assert db.figures().of("acme") == found
    assert db.figures().of("nobody").attempts_started == 0


def test_ages_follow_the_clock(tmp_path):
    clock = VirtualClock()
    with open_store("memory", tmp_path, clock=clock) as db:
        wf = new_workflow(db)
        wf.append(talk(10))
        wf.compact(400, ScriptedSummarizer(["In bucket-dead99."] * ATTEMPTS_MAX), fallback=False)
        clock.sleep_s(90)
        assert db.tenant("acme").figures().cases_age_s == {"quarantined": 90}
        clock.jump_to(clock.now_us() - 3_600 * MICROSECONDS)  # somebody set it back
        assert db.tenant("acme").figures().cases_age_s == {"quarantined": 0}


def test_what_runs_is_seen_from_outside(db, wf):
    """A compaction that hangs, as another process sees it: an attempt that runs, and its lease."""
    wf.append(talk(10))
    seen = []

    def look(request):
        seen.append(db.tenant("acme").figures())
        return quiet(request)

    wf.compact(400, look)
    assert (seen[0].attempts, seen[0].leases) == ({"running": 1}, {"live": 1})
    after = db.tenant("acme").figures()
    assert (after.attempts, after.leases, after.running_age_s) == ({"activated": 1}, {}, 0)


def test_a_late_attempt_is_stale(db, wf):
    """I6: fenced by another while it drafted."""
    wf.append(talk(10))

    def overtaken(request):
        wf.compact(400, quiet)
        return "Work went on."

    wf.compact(400, overtaken)
    assert db.tenant("acme").figures().stale == 1


def test_a_regression_is_a_case_and_a_revert(db, wf):
    wf.append(talk(10))
    wf.compact(400, quiet)
    wf.revert(0, by="me", why="it is wrong")
    found = db.tenant("acme").figures()
    assert (found.cases_opened, found.lineage) == ({"regression": 1}, {"compaction": 1, "revert": 1})
    assert found.summaries == 0


def test_events_of_a_fork_count_once(db, wf):
    wf.append(talk(10))
    wf.fork(None, f"{wf.name}-fork", by="me", why="")
    db.tenant("acme").workflow(f"{wf.name}-fork").append(talk(1, start=40))
    found = db.tenant("acme").figures()
    assert (found.workflows, found.events) == (2, 22)


def test_where_the_rules_of_a_tenant_stand_is_none_of_its_workflows(db, wf):
    wf.append(talk(3))
    tenant = db.tenant("acme")
    before = (tenant.figures().workflows, db.verify().workflows)
    tenant.set_retention("talk", older_than_s=60, by="dpo", why="policy 4")
    tenant.hold("case 7", by="counsel", why="in court")
    assert (tenant.figures().workflows, db.verify().workflows) == before == (1, 1)


def test_an_event_loop_gets_the_same(db, wf):
    wf.append(talk(2))

    async def run():
        twin = strandline.AsyncStrandline(db)
        return await twin.figures(), await twin.tenant("acme").figures()

    store, tenant = asyncio.run(run())
    assert (store.of("acme"), tenant) == (db.figures().of("acme"), db.tenant("acme").figures())


def test_a_closed_store_says_so(db):
    db.close()
    with pytest.raises(strandline.StoreUnavailableError):
        db.figures()


def test_figures_read_no_event_and_no_draft(tmp_path):
    """They stay flat while logs grow: counts of attempts and of lineage come out of indexes alone."""
    with open_store("sqlite", tmp_path) as db:
        new_workflow(db).append(talk(1))
    with sqlite3.connect(tmp_path / "store.db") as connection:
        statement = "EXPLAIN QUERY PLAN " + load_queries()["figures"].text
        plan = [row[3] for row in connection.execute(statement, figures_of(1, 0))]
    connection.close()
    scanned = [
        step for step in plan if step.startswith("SCAN") and step not in ("SCAN CONSTANT ROW", "SCAN m", "SCAN f")
    ]
    assert not scanned  # m and f are rows of the statement itself
    assert not [step for step in plan if " event" in step]
    covered = {step.split()[1] for step in plan if "COVERING INDEX" in step}
    assert covered >= {"attempt", "a", "lineage", "case_file"}


def test_rows_fold_by_tenant():
    rows = [("b", "workflows", "", 2), ("a", "attempts", "failed", 3), ("a", "running_since", "", 5 * MICROSECONDS)]
    found = fold_figures(rows, 8 * MICROSECONDS)
    assert [figures.tenant for figures in found.tenants] == ["a", "b"]
    assert (found.of("a").attempts_started, found.of("a").running_age_s, found.of("b").workflows) == (3, 3, 2)
