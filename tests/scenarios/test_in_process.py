"""Law (SPEC §1): the three incidents don't happen, on any store, through the door that blocks and the one that awaits.

The drill plays them with real processes on a file (`strandline drill`, and the other tests of this folder). Here each
is one coroutine that knows neither store nor door. A crash is a client that nobody uses any more: its summarizer hangs,
and its write is given up before the commit.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import strandline as sl
from strandline.drill import material
from strandline.drill.half_summary import NEEDS
from strandline.drill.material import ASKED_SEQ, COVERED_SEQ, ISSUE, LAST_SEQ
from strandline.drill.resurrected_checkpoint import COMPACTED_AT, FACTS, HOURS, hours
from strandline.model.ids import Scope
from strandline.testing import VirtualClock
from strandline.testing.conformance.stage import dump

WHOLE = 1_000_000  # tokens: a budget in which every context fits
HALF_MARK = "HALF-DRAFT-5f3c"
DEADLINE_S = 1.0  # of a summarizer that hangs
SETTLED_WITHIN_S = 60.0
WHO = {"by": "operator", "why": "the incident"}


class Blocking:
    """The door that blocks, each call in a thread, so that a scenario can await it like the other."""

    def __init__(self, workflow: sl.Workflow) -> None:
        self._workflow = workflow

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        return lambda *args, **kwargs: asyncio.to_thread(getattr(self._workflow, verb), *args, **kwargs)


class Place:
    """A store, and clients of it that come and go."""

    def __init__(self, url: str, door: str) -> None:
        self.url, self.door = url, door
        self.clock = VirtualClock()
        self.db = sl.open(url, clock=self.clock)

    def client(self, name: str) -> Any:
        """Return a workflow as a new process has it."""
        workflow = sl.Strandline(self.db.store, clock=self.clock).tenant("acme").workflow(name)
        return Blocking(workflow) if self.door == "blocking" else sl.AsyncWorkflow(workflow)

    def crash(self) -> None:
        """Lose every client, and the open store too where another process could open it."""
        if self.url != ":memory:":
            self.db.close()
            self.db = sl.open(self.url, clock=self.clock)

    def rows(self, name: str) -> str:
        """Return all that the store holds of a workflow."""
        with self.db.store.read(Scope(tenant="acme", workflow=name)) as tx:
            return repr(dump(tx))


@pytest.fixture(params=["blocking", "awaiting"])
def place(request: pytest.FixtureRequest, store_url: str):
    place = Place(store_url, request.param)
    yield place
    assert place.db.verify().ok
    place.db.close()


class Hanging:
    """A summarizer whose first call hangs half-way, until it is released: long after its deadline. The next ones wait
    until the others have appended, however slow the machine is.
    """

    name, version, window_tokens = "hanging", "1", None

    def __init__(self) -> None:
        self.hangs, self.appended = threading.Event(), threading.Event()
        self.released, self.ended = threading.Event(), threading.Event()
        self._calls = 0

    def summarize(self, request: sl.SummaryRequest) -> sl.Draft:
        self._calls += 1
        if self._calls > 1:
            self.appended.wait(SETTLED_WITHIN_S)
            return sl.Draft(text=f"Four agents went on from event {request.from_seq}.")
        self.hangs.set()
        self.released.wait(SETTLED_WITHIN_S)
        self.ended.set()
        return sl.Draft(text=f"{HALF_MARK}: {request.events[0].text[:40]}")


async def told(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, SETTLED_WITHIN_S), f"it did not happen within {SETTLED_WITHIN_S} s"


def verbatim(context: sl.Context) -> list[int]:
    return [part.from_seq for part in context.parts if part.event is not None]


# ---------------------------------------------------------------------------------------------- the lost handle


class Buckets:
    """The service outside: each request makes another bucket."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def create(self) -> dict[str, str]:
        self.made.append(f"bucket-{0x7F3A + len(self.made):04x}9c21")
        return {"bucket": self.made[-1]}


async def turns(wf: Any, first: int, last: int) -> None:
    for turn in range(first, last + 1):
        await wf.append(
            [
                sl.message("assistant", material.report_text(turn), actor="writer"),
                sl.tool_call(f"call-{turn}", "put_object", {"name": f"report-{turn}.json"}, actor="writer"),
                sl.tool_result(f"call-{turn}", f"200: report-{turn}.json is stored", actor="writer"),
            ]
        )


async def lost_handle(place: Place) -> None:
    service, wf = Buckets(), place.client("reports")
    await wf.append(sl.message("user", "Write a report a turn into one bucket.", actor="lead"))
    made = await wf.effect("reports-bucket", "create_bucket", material.BUCKET_WANTED, service.create, subject="reports")
    handle = made.result["bucket"]
    await turns(wf, 2, 8)
    assert (await wf.compact(700)).outcome == "activated"
    assert handle not in (await wf.context()).text
    assert {entry.ref: entry.last_seq for entry in await wf.manifest()}[handle] == 3
    await wf.checkpoint({"next": 9}, 8, basis=await wf.basis())
    archive = await wf.effect("archive", "create_bucket", material.ARCHIVE_WANTED, service.create, subject="archive")
    await turns(wf, 9, 11)
    revision = (await wf.basis()).revision

    place.crash()
    wf = place.client("reports")
    with pytest.raises(sl.SummaryReconciliationError) as refused:
        await wf.recover([handle], budget=WHOLE)
    error = refused.value
    assert (error.missing_ref, error.summary_generation, error.checkpoint_turn) == (handle, 1, 8)
    assert (error.last_known.seq, error.last_known.generation_dropped) == (3, 1)
    assert ((await wf.basis()).revision, len(service.made)) == (revision, 2)
    with pytest.raises(sl.UnreconciledSummaryError) as blocked:
        await wf.compact(700)
    assert blocked.value.case_id == error.case_id

    await wf.reconcile(error.case_id, sl.ReplayFromExact(), **WHO)
    found = await wf.recover([handle], budget=WHOLE)
    assert (found.kind, found.turn, found.state) == ("restore", 8, {"next": 9})
    assert handle in found.context.text
    since = [part.from_seq for part in found.context.parts if part.since_checkpoint]
    assert set(range(revision - 8, revision + 1)) <= set(since), "the three turns that the agent has forgotten"
    again = await wf.effect("old-reports", "create_bucket", material.ARCHIVE_AGAIN, service.create, subject="archive")
    assert (again.kind, again.result, len(service.made)) == ("likely_repeat", archive.result, 2)
    await half_written(place, handle)


async def half_written(place: Place, handle: str) -> None:
    """The second form: somebody's checkpoint is written while a summary is half-written."""
    hanging, wf = Hanging(), place.client("reports")
    compacting = asyncio.ensure_future(place.client("reports").compact(700, hanging, deadline_s=SETTLED_WITHIN_S))
    await told(hanging.hangs)
    own = await wf.checkpoint({"next": 13}, 12, basis=await wf.basis())
    torn = json.dumps({"summary": f"{HALF_MARK} …", "turn": 12}).encode()
    digest = f"sha256:{hashlib.sha256(torn).hexdigest()}"
    assert (await wf.register_checkpoint("planner.json", digest, 12, basis=await wf.basis(), name="planner")).in_flight
    with pytest.raises(sl.CompactionLineageError) as refused:
        await wf.recover(name="planner", load=lambda _: torn, budget=WHOLE)
    assert refused.value.case_id
    found = await wf.recover(budget=WHOLE)
    assert (found.kind, found.checkpoint_seq) == ("restore", own.lineage_seq)
    hanging.released.set()
    late = await compacting
    assert late.outcome != "activated", "recovery has fenced it"
    assert HALF_MARK not in (await wf.context(WHOLE)).text
    assert (await wf.compact(700)).outcome == "activated"
    assert handle in (await wf.context()).text, "the answer has pinned it"


# ---------------------------------------------------------------------------------------------- the half summary


async def half_summary(place: Place) -> None:
    await asyncio.gather(timed_out(place, "strict", strict=True), timed_out(place, "default", strict=False))


async def timed_out(place: Place, name: str, *, strict: bool) -> None:
    hanging, wf = Hanging(), place.client(name)
    await wf.append(material.review_events(1, COVERED_SEQ))
    assert (await wf.compact(6_000, through=COVERED_SEQ)).watermark == COVERED_SEQ
    await wf.append(material.review_events(COVERED_SEQ + 1, ASKED_SEQ))
    compacting = asyncio.ensure_future(
        place.client(name).compact(6_000, hanging, strict, through=ASKED_SEQ, deadline_s=DEADLINE_S)
    )
    await told(hanging.hangs)
    await wf.append(material.review_events(ASKED_SEQ + 1, LAST_SEQ))
    hanging.appended.set()
    context = await wf.context(WHOLE)
    if not compacting.done():
        assert (context.watermark, verbatim(context)) == (COVERED_SEQ, list(range(COVERED_SEQ + 1, LAST_SEQ + 1)))
    assert HALF_MARK not in context.text
    with pytest.raises(sl.ActionDeniedError):
        await wf.guard("publish", NEEDS, by="publisher")
    done = await compacting
    assert done.attempts[0].failure_text == "the summarizer gave no draft within 1 s"
    if strict:
        assert done.outcome == "conflict"
        assert (await wf.context(WHOLE)).watermark == COVERED_SEQ
        done = await wf.compact(6_000, hanging, strict, through=LAST_SEQ)
    context = await wf.context(WHOLE)
    assert done.outcome == "activated"
    assert context.watermark == done.watermark == (LAST_SEQ if strict else ASKED_SEQ)
    assert verbatim(context) == ([] if strict else list(range(ASKED_SEQ + 1, LAST_SEQ + 1)))
    assert ISSUE in context.text

    before = (await wf.basis(), place.rows(name))
    hanging.released.set()
    await told(hanging.ended)
    assert (await wf.basis(), place.rows(name)) == before, "what comes late leaves no trace"
    assert HALF_MARK not in before[1]
    assert [event.text for event in await wf.events(1, LAST_SEQ)] == material.review_texts()
    await publish(wf)


async def publish(wf: Any) -> None:
    """The publisher acts on events, and once."""
    published: list[str] = []
    await wf.append(sl.resolve(ISSUE, "The token may read only.", actor="test-generator"))
    await wf.append(sl.approval("security-review", "Release 2.4.0", granter="security-reviewer"))
    permit = await wf.guard("publish", NEEDS, by="publisher")
    args = {"release": "2.4.0"}
    kinds = [
        (await wf.effect("publish-2.4.0", "publish", args, lambda: published.append("2.4.0"), permit=permit)).kind
        for _ in range(2)
    ]
    assert (kinds, published) == (["ran", "replayed"], ["2.4.0"])


# ---------------------------------------------------------------------------------------- the resurrected checkpoint


class DiedError(Exception):
    """The process is gone."""


async def resurrected_checkpoint(place: Place) -> None:
    wf = place.client("refactoring")
    for turn, (at, first, last) in enumerate(hours(), start=1):
        place.clock.jump_to(int(at.timestamp()) * 1_000_000)
        await wf.append(material.working_events(first, last))
        await wf.checkpoint({"step": last}, turn, basis=await wf.basis())
    place.clock.jump_to(int(COMPACTED_AT.timestamp()) * 1_000_000)  # an hour back
    done = await wf.compact(12_000)
    assert (done.tokens_before, done.refs_unaccounted) == (material.WORKING_SET_TOKENS, 0)
    compacted = await wf.context(12_000)
    entries = await wf.lineage()
    assert max(entries, key=lambda entry: entry.at_us).kind == "checkpoint", "so says the clock"
    assert entries[-1].kind == "compaction"

    later = material.working_events(material.WORKING_SET_LINES, material.WORKING_SET_LINES + 39)
    revision = (await wf.basis()).revision
    with pytest.raises(DiedError):
        die_while_writing(place, later)
    place.crash()
    wf = place.client("refactoring")
    assert (await wf.basis()).revision == revision
    found = await wf.recover(budget=12_000, prior_state=True)
    assert (found.kind, found.state, found.prior_state.turn) == ("replay", None, HOURS)
    assert (await wf.context(12_000)).text == found.context.text == compacted.text

    await wf.append(later)
    again = await wf.compact(12_000)
    assert (again.outcome, again.refs_unaccounted) == ("activated", 0)
    text = (await wf.context(12_000)).text
    for fact in FACTS:
        assert (fact in compacted.text, fact in text) == (True, True), f"{fact} changed sides"
    assert [hit.seq for hit in await wf.recall(material.COMMIT)] == [material.COMMIT_LINE + 1]

    newer = await wf.checkpoint({"step": 2_039}, HOURS + 1, basis=await wf.basis())
    place.crash()
    wf = place.client("refactoring")
    found = await wf.recover(budget=12_000)
    assert (found.kind, found.state, found.checkpoint_seq) == ("restore", {"step": 2_039}, newer.lineage_seq)
    seqs = [entry.lineage_seq for entry in await wf.lineage()]
    assert seqs == list(range(1, len(seqs) + 1))


def die_while_writing(place: Place, events: list[sl.NewEvent]) -> None:
    """Append, and be gone between the last statement and the commit."""
    store = place.db.store

    class Dying:
        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        def write(self, scope: Scope, *, joins: bool = True) -> Any:
            return dying(store.write(scope, joins=joins))

    sl.Strandline(Dying(), clock=place.clock).tenant("acme").workflow("refactoring").append(events)


class dying:  # noqa: N801
    """A transaction whose end is the process's end."""

    def __init__(self, transaction: Any) -> None:
        self._transaction = transaction

    def __enter__(self) -> Any:
        return self._transaction.__enter__()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        died = error or DiedError()
        self._transaction.__exit__(type(died), died, died.__traceback__)
        raise died


@pytest.mark.parametrize(
    "incident", [lost_handle, half_summary, resurrected_checkpoint], ids=lambda each: each.__name__
)
def test_the_incident_does_not_happen(incident: Callable[[Place], Any], place: Place) -> None:
    asyncio.run(incident(place))
