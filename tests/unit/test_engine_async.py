"""Law (DESIGN §3): the engine is written once: the awaiting driver gives the same outcomes as the blocking one.

And its own: a cancelled compaction lets the step in progress settle, gives its lease back, and the next one works.
"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

import strandline
from strandline.limits import ATTEMPTS_MAX
from strandline.testing import ScriptedSummarizer, VirtualClock
from tests.unit.test_engine_stage import lease_of, new_workflow, quiet, seen_of, talk, transaction

TRANSIENT = strandline.TransientSummarizerError("busy")
GIVE_UP_S = 20.0  # what takes longer hangs
STUCK_S = 4.0  # what takes longer waits for a thread that it will not get


@pytest.fixture
def wf(db):
    wf = new_workflow(db)
    wf.append(talk(10))
    yield wf
    assert lease_of(db, wf) is None


def twin(db, wf) -> strandline.AsyncWorkflow:
    return strandline.AsyncStrandline(db).tenant("acme").workflow(wf.name)


def attempts(db, wf) -> list[str]:
    with transaction(db, wf) as tx:
        return [a.state.value for c in tx.jobs.all_candidates() for a in tx.jobs.attempts(c.candidate_id)]


class AsyncScript:
    """The script, awaited."""

    def __init__(self, script):
        self._script = script
        self.name, self.version, self.window_tokens = script.name, script.version, script.window_tokens

    async def summarize(self, request):
        await asyncio.sleep(0)
        return self._script.summarize(request)


def told(outcome) -> tuple:
    """Return what two drivers must agree on."""
    return (
        outcome.outcome,
        outcome.generation,
        outcome.watermark,
        outcome.tokens_before,
        outcome.tokens_after,
        outcome.refs_seen,
        outcome.refs_dropped,
        [(a.number, a.state, a.failure, a.failure_text) for a in outcome.attempts],
        [segment.text for segment in outcome.summary.segments] if outcome.summary else None,
    )


SCRIPTS = {
    "good": ["Work went on."],
    "second try": [TRANSIENT, "", "Work went on."],
    "dead letter": [TRANSIENT] * ATTEMPTS_MAX,
    "rejected": [""] * ATTEMPTS_MAX,
    "drafted by the last resort": ["In bucket-dead99."] * ATTEMPTS_MAX,
    "timeout": [TimeoutError("slow"), "Work went on."],
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
@pytest.mark.parametrize("awaited", [True, False], ids=["awaited summarizer", "plain summarizer"])
def test_both_drivers_give_the_same_outcome(db, script, awaited):
    """DESIGN §3: with summarizers of both kinds; texts, tokens, attempts and failures are the same."""
    outcomes = []
    for driver in ("sync", "async"):
        wf = new_workflow(db)
        wf.append(talk(10))
        scripted = ScriptedSummarizer(script)

        def plain(request, scripted=scripted):
            return scripted.summarize(request)

        async def coroutine(request, scripted=scripted):
            await asyncio.sleep(0)
            return scripted.summarize(request)

        chosen = coroutine if awaited else plain
        if driver == "sync":
            outcomes.append(told(wf.compact(400, chosen)))
        else:
            outcomes.append(told(asyncio.run(twin(db, wf).compact(400, chosen))))
    assert outcomes[0] == outcomes[1]


def test_every_verb_has_its_twin(db, wf):
    """DESIGN §3: the same arguments, the same answers."""

    async def work():
        flow = twin(db, wf)
        appended = await flow.append(strandline.message("user", "see bucket-7f3a", key="k"), expected_revision=20)
        assert appended.revision == 21
        outcome = await flow.compact(400, quiet)
        context = await flow.context(needs=["bucket-7f3a"])
        made = await flow.checkpoint({"at": 1}, 1, basis=context)
        recovered = await flow.recover(["bucket-7f3a"])
        hits = await flow.recall("bucket-7f3a")
        return outcome, made, recovered, hits, await flow.manifest(), await flow.lineage(), await flow.verify()

    outcome, made, recovered, hits, manifest, lineage, report = asyncio.run(work())
    assert (outcome.generation, recovered.kind, recovered.state) == (1, "restore", {"at": 1})
    assert recovered.checkpoint_seq == made.lineage_seq
    assert [hit.seq for hit in hits] == [21]
    assert (manifest, lineage) == (wf.manifest(), wf.lineage())
    assert report.ok


def test_an_open_store_is_awaited_or_entered(tmp_path):
    """DESIGN §6: aopen is both awaitable and an async context manager."""

    async def work():
        async with strandline.aopen(tmp_path / "a.db", durability="normal") as db:
            await db.tenant("acme").workflow("w").append(strandline.note("x"))
        db = await strandline.aopen(tmp_path / "a.db", create=False)
        names = await db.tenant("acme").workflows()
        report = await db.verify()
        await db.close()
        return names, report

    names, report = asyncio.run(work())
    assert (names, report.ok, report.events) == (["w"], True, 1)


def test_a_programming_error_reaches_its_author(db, wf):
    """C14: as with the blocking driver; the lease is given back."""

    async def broken(request):
        raise KeyError("choices")

    with pytest.raises(KeyError):
        asyncio.run(twin(db, wf).compact(400, broken))
    assert attempts(db, wf) == ["failed"]
    assert lease_of(db, wf) is None


def test_a_draft_that_does_not_come_is_not_waited_for(db, wf):
    """C14: an awaited summarizer is cancelled at its deadline."""
    cancelled = []

    async def stalls(request):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    outcome = asyncio.run(twin(db, wf).compact(400, stalls, deadline_s=0.01))
    assert (outcome.outcome, len(cancelled)) == ("dead_letter", ATTEMPTS_MAX)


def test_stuck_drafts_hold_up_nothing_else(db, wf):
    """C14, I22: a plain summarizer can't be cancelled; its threads are not those that the loop's other work needs."""
    gate = threading.Event()

    def stalls(request):
        gate.wait(GIVE_UP_S)
        return "Too late."

    async def work():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
        task = asyncio.create_task(twin(db, wf).compact(400, stalls, deadline_s=0.01))
        done, _ = await asyncio.wait({task}, timeout=STUCK_S)
        gate.set()
        outcome = await task
        return bool(done), outcome

    in_time, outcome = asyncio.run(work())
    assert in_time
    assert outcome.outcome == "dead_letter"


@pytest.mark.parametrize("awaited", [True, False], ids=["awaited summarizer", "plain summarizer"])
def test_a_compaction_cancelled_while_drafting_gives_its_lease_back(db, wf, awaited):
    """DESIGN §3: the attempt is settled, nothing is visible of it, and the next compaction works at once."""
    before = seen_of(wf)
    started, gate = threading.Event(), threading.Event()

    async def coroutine(request):
        started.set()
        await asyncio.Event().wait()

    def plain(request):
        started.set()
        gate.wait(GIVE_UP_S)
        return "Too late."

    async def work():
        task = asyncio.create_task(twin(db, wf).compact(400, coroutine if awaited else plain))
        await asyncio.to_thread(started.wait, GIVE_UP_S)
        task.cancel()
        try:
            with pytest.raises(asyncio.CancelledError):
                await task
        finally:
            gate.set()
        assert lease_of(db, wf) is None
        assert attempts(db, wf) == ["failed"]
        assert seen_of(wf) == before
        return await twin(db, wf).compact(400, quiet)

    outcome = asyncio.run(work())
    assert (outcome.outcome, outcome.generation) == ("activated", 1)
    assert "fence" not in [entry.kind for entry in wf.lineage()]


class PausingStore:
    """A store whose `nth` write waits, before it commits, until it is let go on."""

    def __init__(self, store, nth: int):
        self._store = store
        self._left = nth
        self.entered, self.gate = threading.Event(), threading.Event()

    def __getattr__(self, name):
        return getattr(self._store, name)

    @contextmanager
    def write(self, scope, *, joins=True):
        with self._store.write(scope) as tx:
            yield tx
            self._left -= 1
            if self._left == 0:
                self.entered.set()
                self.gate.wait(GIVE_UP_S)


@pytest.mark.parametrize(("nth", "generation"), [(1, 0), (2, 1), (3, 1)], ids=["claim", "store", "activate"])
def test_a_cancelled_step_settles(db, wf, nth, generation):
    """DESIGN §3: the commit in progress is never left half known; what was on its way in one step is done."""
    store = PausingStore(db.store, nth)
    other = strandline.AsyncStrandline(strandline.Strandline(store, clock=VirtualClock()))

    async def work():
        task = asyncio.create_task(other.tenant("acme").workflow(wf.name).compact(400, quiet))
        await asyncio.to_thread(store.entered.wait, GIVE_UP_S)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        store.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert lease_of(db, wf) is None
    assert wf.context().generation == generation
    assert wf.verify().ok
    wf.append(talk(8, start=50))
    assert wf.compact(400, quiet).generation == generation + 1
