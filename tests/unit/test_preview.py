"""Law: a preview says what the compaction after it does, and writes nothing (C16)."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import strandline
from strandline.cli.app import app
from tests.unit.test_engine_stage import bounded, new_workflow, open_store, transaction

FILL = "and more words that fill the window of this view " * 4


def filled(db: strandline.Strandline, events: int = 40) -> strandline.Workflow:
    """Return a workflow whose messages name one handle each, and some of them again later."""
    wf = new_workflow(db)
    wf.append(strandline.constraint("scope", "Touch only services/billing."))
    wf.append(
        [strandline.message("user", f"Look at srv-{1000 + n}: {FILL} srv-{1000 + n // 2}.") for n in range(events)]
    )
    return wf


def head_of(db: strandline.Strandline, wf: strandline.Workflow) -> object:
    with transaction(db, wf) as tx:
        return tx.log.head(), tx.views.all()


def test_it_says_what_the_compaction_then_does(db):
    wf = filled(db)
    seen = wf.preview(budget=900)
    done = wf.compact(budget=900)
    assert (seen.watermark, seen.tokens_before, seen.summary_tokens, seen.tail_tokens) == (
        done.watermark,
        done.tokens_before,
        done.summary_tokens,
        done.tail_tokens,
    )
    assert {(drop.ref, drop.last_seq) for drop in seen.dropped} == {(e.ref, e.last_seq) for e in wf.manifest()}
    assert [segment.text for segment in seen.summary.segments] == [segment.text for segment in done.summary.segments]
    assert (seen.events_covered, seen.reason, seen.violations) == (done.summary.event_count, "", ())


def test_a_second_preview_tells_only_what_is_dropped_anew(db):
    wf = filled(db)
    wf.compact(budget=900)
    before = {entry.ref for entry in wf.manifest()}
    wf.append([strandline.message("user", f"Now srv-{3000 + n}. {FILL}") for n in range(20)])
    seen = wf.preview(budget=900)
    done = wf.compact(budget=900)
    after = {entry.ref for entry in wf.manifest()}
    assert {drop.ref for drop in seen.dropped} >= after - before
    assert seen.events_covered == done.watermark - seen.from_watermark


def test_it_writes_nothing(db):
    wf = filled(db)
    before = head_of(db, wf)
    wf.preview(budget=900)
    wf.preview(budget=900, summarizer=lambda request: "")
    assert head_of(db, wf) == before
    assert wf.lineage() == []


@pytest.mark.parametrize(("moves", "reason"), [(1, ""), (9, "the view moved 3 times while it was previewed")])
def test_where_the_view_moves_meanwhile_it_begins_anew(db, moves, reason):
    """I4, I6: what a rewind takes off the log meanwhile is no damage."""
    wf = filled(db)
    left = [*range(39, 39 - moves, -1)]

    def rewinds(request: strandline.SummaryRequest) -> strandline.Draft:
        if left:
            wf.rewind(left.pop(0), by="dana", why="another way")
        return strandline.Draft(text=f"Work went on from event {request.from_seq}.")

    seen = wf.preview(900, rewinds)
    assert (seen.reason, seen.summary is None) == (reason, bool(reason))
    assert left == [*range(36, 39 - moves, -1)]


def test_what_stands_in_the_tail_is_not_lost(db):
    wf = filled(db, events=60)
    last = wf.events()[-1].seq
    wf.append(strandline.message("user", "Back to srv-1000."))
    seen = wf.preview(budget=600)
    drops = {drop.ref: drop for drop in seen.dropped}
    assert {drop.in_tail for drop in seen.dropped} == {False, True}, "both are to be met"
    assert all(drop.last_seq <= seen.watermark < last + 1 for drop in seen.dropped)
    assert [ref for ref, drop in drops.items() if drop.in_tail] == [
        ref for ref in drops if any(ref in event.text for event in wf.events(seen.watermark + 1))
    ]
    assert set(seen.lost) == {drop for drop in seen.dropped if not drop.in_tail}


def test_a_draft_that_would_be_refused_says_why(db):
    wf = filled(db)
    seen = wf.preview(budget=900, summarizer=lambda request: "We deployed srv-9999 with ghp_a1B2c3D4e5F6g7H8i9J0k1L2.")
    assert seen.summary is None
    assert [violation.rule for violation in seen.violations] == ["secret"]
    assert wf.cases() == []


def test_nothing_to_do_says_so(db):
    wf = new_workflow(db)
    seen = wf.preview(budget=900)
    assert (seen.summary, seen.dropped, seen.watermark) == (None, (), 0)
    assert seen.reason
    assert repr(seen) == f"Preview({seen.reason})"


def test_a_summarizer_that_fails_raises(db):
    def fails(request: strandline.SummaryRequest) -> str:
        raise TimeoutError("no answer")

    with pytest.raises(strandline.TransientSummarizerError):
        filled(db).preview(budget=900, summarizer=fails)


def test_the_async_twin_awaits_its_summarizer(tmp_path):
    async def go() -> strandline.Preview:
        async with strandline.aopen(tmp_path / "store.db") as db:
            wf = db.tenant("acme").workflow("run")
            await wf.append([strandline.message("user", f"Look at srv-{n + 1000}. {FILL}") for n in range(40)])

            async def draft(request: strandline.SummaryRequest) -> str:
                await asyncio.sleep(0)
                return "Servers were looked at."

            return await wf.preview(budget=900, summarizer=draft)

    seen = asyncio.run(go())
    assert seen.violations == ()
    assert "Servers were looked at." in seen.summary.segments[0].text


@pytest.mark.parametrize("arguments", [{"budget": 3}, {"through": "x"}, {"budget": 900, "through": 10**9}])
def test_bad_input_is_refused_as_by_compact(db, arguments):
    wf = filled(db)
    with pytest.raises(strandline.StrandlineError) as previewed:
        wf.preview(**arguments)
    with pytest.raises(strandline.StrandlineError) as compacted:
        wf.compact(**arguments)
    assert (type(previewed.value), str(previewed.value)) == (type(compacted.value), str(compacted.value))


@given(st.lists(st.integers(0, 40), min_size=5, max_size=60), st.sampled_from((400, 700, 1200)))
@bounded(25)
def test_on_any_log_it_is_what_the_compaction_does(tmp_path_factory, numbers, budget):
    with open_store("memory", tmp_path_factory.mktemp("any")) as db:
        wf = new_workflow(db)
        for number in numbers:
            wf.append(strandline.message("user", f"See host-{number}.internal and srv-{number * 7}. {FILL}"))
            if number % 9 == 0:
                seen = wf.preview(budget=budget)
                done = wf.compact(budget=budget)
                assert (seen.reason == "") == (done.outcome is strandline.CompactionResult.ACTIVATED)
                if not seen.reason:
                    changed = {drop.ref for drop in seen.dropped}
                    assert seen.tokens_after == done.tokens_after
                    assert changed <= {entry.ref for entry in wf.manifest()}


def test_the_command_line_says_it_and_writes_nothing(tmp_path):
    path = tmp_path / "store.db"
    with strandline.open(path) as db:
        wf = db.tenant("acme").workflow("run")
        wf.append([strandline.message("user", f"Look at srv-{n + 1000}. {FILL}") for n in range(40)])
    where = ["--store", str(path), "--tenant", "acme", "--workflow", "run"]
    told = CliRunner().invoke(app, ["preview", *where, "--budget", "900", "--json"])
    value = json.loads(told.stdout)
    assert told.exit_code == 0
    assert value["summary"]["segments"]
    assert 0 < value["tokens_after"] <= 900
    shown = CliRunner().invoke(app, ["preview", *where, "--budget", "900", "--drops", "1"])
    assert "would be activated" in shown.stdout
    with strandline.open(path) as db:
        assert db.tenant("acme").workflow("run").lineage() == []
