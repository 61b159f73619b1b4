"""Law (SPEC §1, I5–I8, I20, I21): the half summary, with a publisher that reads through a view of its own.

Four agents; what the reviewer finds is for `security`. The publisher's summary covers 150; a compaction hangs and is
cut off with half a text; 176–180 commit meanwhile. The publisher reads its summary through 150 and what it may read of
151–180, never the half; it is denied while the issue is open, and is not told of it; nothing is lost.
"""

from pathlib import Path

import pytest

import strandline
from strandline.testing import ScriptedSummarizer, SeededEntropy, VirtualClock
from strandline.testing.protocol import conforms

AGENTS = (("requirements", "all"), ("tests", "release"), ("security", "security"), ("publisher", "release"))
SECRET = "vault-4411"
HALF = "HALF-OF-A-SUMMARY"
BUDGET = 6_000


@pytest.fixture(params=["sqlite", "memory"])
def wf(request: pytest.FixtureRequest, tmp_path: Path):
    url = ":memory:" if request.param == "memory" else tmp_path / "store.db"
    with strandline.open(url, clock=VirtualClock(), entropy=SeededEntropy(7)) as db:
        wf = db.tenant("acme").workflow("release-42")
        wf.define_view("publisher", audiences={"release"}, budget=BUDGET)
        yield wf
        assert wf.verify().problems == ()
        assert conforms(wf) is None


def talk(first: int, last: int) -> list[strandline.NewEvent]:
    events = []
    for seq in range(first, last + 1):
        actor, audience = AGENTS[seq % 4]
        hidden = f" {SECRET}-{seq}" if audience == "security" else ""
        text = f"{actor} at {seq}: step-{seq:04d} is done.{hidden} " + "More of what it said. " * 12
        events.append(strandline.message("assistant", text, actor=actor, audience=audience, key=f"e-{seq}"))
    return events


def test_the_half_summary_reaches_no_view(wf: strandline.Workflow) -> None:
    pub = wf.view("publisher")
    wf.append(talk(1, 150))
    pub.compact(through=150)
    wf.append([*talk(151, 174), strandline.issue("oauth-scope", f"{SECRET} can write.", audience="security")])

    def hangs(request: strandline.SummaryRequest) -> strandline.Draft:
        assert SECRET not in repr(request)
        wf.append(talk(176, 180))
        meanwhile = pub.context()
        assert (meanwhile.watermark, meanwhile.revision) == (150, 180)
        assert HALF not in meanwhile.text
        raise strandline.TransientSummarizerError(f"{HALF} … it timed out after 4 s")

    gone = strandline.TransientSummarizerError("it timed out after 4 s")
    outcome = pub.compact(through=174, summarizer=ScriptedSummarizer([hangs, gone, gone]))
    assert (outcome.outcome, outcome.watermark) == ("dead_letter", 150)

    context = pub.context()
    readable = [event.seq for event in wf.events(151) if event.actor != "security" and event.seq != 175]
    assert (context.watermark, [part.from_seq for part in context.parts if part.event is not None]) == (150, readable)
    assert HALF not in repr(context)
    assert SECRET not in repr(context)

    with pytest.raises(strandline.ActionDeniedError) as denied:
        pub.guard("publish", [strandline.no_open_issue()])
    assert "oauth" not in repr(vars(denied.value))
    assert SECRET not in repr(vars(denied.value))
    again = pub.compact(through=180)
    assert (again.outcome, again.watermark, again.refs_unaccounted) == ("activated", 180, 0)
    assert SECRET not in repr(again)

    wf.append(strandline.resolve("oauth-scope", audience="security"))
    permit = pub.guard("publish", [strandline.resolved("oauth-scope")])
    assert pub.effect("publish-42", "publish", {}, lambda: "out", permit=permit).result == "out"
    assert [event.seq for event in wf.events(1, 180)] == list(range(1, 181))
