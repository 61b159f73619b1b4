"""Law (I11, I16, I18, I19, I21): whatever dies around a case or its answer, it has happened once or not at all.

Checked by a store that fails right before or right after a commit, by threads and processes that answer at once, and by
the effects that an answer settles in the ledger.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

import strandline
from strandline.model.effect import EffectState
from strandline.testing import SeededEntropy, VirtualClock
from tests.unit.test_engine_stage import STORES, new_workflow, open_store, quiet, seen_of, talk, transaction

SAID = {"by": "ann", "why": "it still holds"}


class Dies(BaseException):
    """The process dies here."""


class DyingStore:
    """A store whose next write dies right before its commit, or right after it."""

    def __init__(self, store):
        self._store = store
        self.before = self.after = None

    def __getattr__(self, name):
        return getattr(self._store, name)

    @contextmanager
    def write(self, scope, *, joins=True):
        with self._store.write(scope) as tx:
            yield tx
            if self.before is not None:
                error, self.before = self.before, None
                raise error
        if self.after is not None:
            error, self.after = self.after, None
            raise error


@pytest.fixture(params=STORES)
def dying(request, tmp_path):
    with open_store(request.param, tmp_path) as opened:
        store = DyingStore(opened.store)
        db = strandline.Strandline(store, clock=VirtualClock(), entropy=SeededEntropy(7))
        wf = new_workflow(db)
        wf.append(talk(48))
        wf.compact(250, quiet)
        yield db, wf, store


def refused(wf, *needs, **arguments):
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        wf.recover(needs, **arguments)
    return caught.value


def test_a_death_before_the_refusal_is_committed_leaves_nothing(dying):
    """I16: neither a fence nor a case; the next recovery opens it."""
    db, wf, store = dying
    with transaction(db, wf) as tx:
        before = tx.log.head(), tx.views.all()
    store.before = Dies()
    with pytest.raises(Dies):
        wf.recover(["bucket-0001"])
    with transaction(db, wf) as tx:
        assert (tx.log.head(), tx.views.all()) == before
    assert wf.cases() == []
    opened = refused(wf, "bucket-0001").case_id
    assert [case.case_id for case in wf.cases()] == [opened]


@pytest.mark.parametrize("error", [Dies(), strandline.OutcomeUnknownError("cut off")], ids=lambda e: type(e).__name__)
def test_a_death_after_the_refusal_is_committed_leaves_its_case(dying, error):
    """I16, I19: asked again, it is found."""
    _, wf, store = dying
    store.after = error
    with pytest.raises(type(error)):
        wf.recover(["bucket-0001"])
    (case,) = wf.cases()
    assert refused(wf, "bucket-0001").case_id == case.case_id
    assert len(wf.cases()) == 1


@pytest.mark.parametrize(
    "answer", [strandline.ReplayFromExact(), strandline.AcceptDivergence("bucket-0001", "bucket-0030")]
)
def test_a_death_around_an_answer_gives_it_once_or_not_at_all(dying, answer):
    """I17, I19: pin or divergence, entry and answered case together; a lost answer is read back."""
    _, wf, store = dying
    case_id = refused(wf, "bucket-0001").case_id
    before = seen_of(wf)
    store.before = Dies()
    with pytest.raises(Dies):
        wf.reconcile(case_id, answer, **SAID)
    assert (seen_of(wf), wf.case(case_id).state) == (before, "open")
    store.after = strandline.OutcomeUnknownError("cut off")
    assert wf.reconcile(case_id, answer, **SAID).state == "answered"
    after = seen_of(wf)
    assert wf.reconcile(case_id, answer, **SAID).state == "answered"
    assert seen_of(wf) == after
    assert len(after["lineage"]) == len(before["lineage"]) + 1
    assert after["revision"] == before["revision"] + 1
    assert wf.verify().problems == ()


def test_a_controller_goes_on_after_a_lost_acknowledgement(dying):
    """I19: what was answered is not asked again."""
    _, wf, store = dying
    refused(wf, "bucket-0001")
    policy = strandline.ReplayWhenLogged()

    class LosesTheAnswer:
        name = "policy:loses"

        def decide(self, case):
            store.after = strandline.OutcomeUnknownError("cut off")
            return policy.decide(case)

    assert wf.recover(["bucket-0001"], controller=LosesTheAnswer()).kind == "replay"
    assert wf.recover(["bucket-0001"]).kind == "replay"
    assert wf.cases() == []


def test_of_threads_that_answer_at_once_one_wins(dying):
    """I11: the others are told who did."""
    _, wf, _ = dying
    case_id = refused(wf, "bucket-0001").case_id
    start, outcomes = threading.Barrier(6), []

    def answer(number):
        start.wait()
        try:
            given = [strandline.ReplayFromExact(), strandline.Abandon()][number % 2]
            outcomes.append(wf.reconcile(case_id, given, by=f"w{number}", why="race").by)
        except strandline.CaseAnsweredError as error:
            outcomes.append(error.by)

    threads = [threading.Thread(target=answer, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 6
    assert set(outcomes) == {wf.case(case_id).by}
    assert [entry.kind for entry in wf.lineage()].count("answer") == 1


PROGRAM = """
import json, sys
import strandline
path, case_id, who = sys.argv[1:]
with strandline.open(path) as db:
    wf = db.tenant("acme").workflow("shared")
    sys.stdin.readline()
    try:
        answer = strandline.ReplayFromExact() if who == "one" else strandline.Abandon()
        print(json.dumps(["won", wf.reconcile(case_id, answer, by=who, why="race").by]))
    except strandline.CaseAnsweredError as error:
        print(json.dumps(["lost", error.by]))
"""


def test_of_two_processes_that_answer_at_once_one_wins(tmp_path):
    """I11: on one file."""
    path = tmp_path / "store.db"
    with strandline.open(path) as db:
        wf = db.tenant("acme").workflow("shared")
        wf.append(talk(48))
        wf.compact(250, quiet)
        case_id = refused(wf, "bucket-0001").case_id
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(path), case_id, who],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=dict(os.environ),
            )
            for who in ("one", "two")
        ]
        for worker in workers:
            worker.stdin.write("\n")
            worker.stdin.flush()
        told = [json.loads(worker.communicate(timeout=120)[0]) for worker in workers]
        assert sorted(outcome for outcome, _ in told) == ["lost", "won"]
        assert {by for _, by in told} == {wf.case(case_id).by}
        assert wf.verify().problems == ()


def test_two_recoveries_at_once_open_one_case(dying):
    """C21: whoever comes second finds it."""
    _, wf, _ = dying
    ids = []
    threads = [threading.Thread(target=lambda: ids.append(refused(wf, "bucket-0001").case_id)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 4
    assert set(ids) == {case.case_id for case in wf.cases()}


def test_an_event_loop_has_the_same_verbs(tmp_path):
    """DESIGN §3: cases, case, reconcile, and a recovery with a controller."""

    async def main():
        async with strandline.aopen(tmp_path / "store.db") as db:
            wf = db.tenant("acme").workflow("run")
            await wf.append(talk(48))
            await wf.compact(250, quiet)
            with pytest.raises(strandline.SummaryReconciliationError) as caught:
                await wf.recover(["bucket-0001"])
            (case,) = await wf.cases()
            assert await wf.case(caught.value.case_id) == case
            assert (await wf.reconcile(case, strandline.Abandon(), **SAID)).state == "answered"
            found = await wf.recover(["bucket-0001"], controller=strandline.ReplayWhenLogged())
            assert found.kind == "replay"
            assert len(await wf.cases(include_answered=True)) == 2

    asyncio.run(main())


# ---------------------------------------------------------------------------------------------- effects


@pytest.fixture
def unknown(db):
    """A workflow with an effect of unknown outcome, its call in the log, and the case."""
    wf = new_workflow(db)

    def breaks():
        raise ConnectionError("cut off")

    with pytest.raises(ConnectionError):
        wf.effect("create-bucket", "create_bucket", {"region": "eu"}, breaks)
    (case,) = wf.cases()

    def stored():
        with transaction(db, wf) as tx:
            return tx.effects.get("create-bucket")

    return wf, case, stored


@pytest.mark.parametrize(
    ("answer", "state"),
    [(strandline.EffectNeverHappened(), EffectState.FAILED), (strandline.Abandon(), EffectState.ABANDONED)],
    ids=str,
)
def test_an_effect_that_did_not_happen_is_settled(unknown, answer, state):
    """I18: only *never happened* permits another run."""
    wf, case, stored = unknown
    wf.reconcile(case, answer, **SAID)
    assert stored().state is state


def test_an_effect_that_happened_gets_its_result_as_an_event(unknown):
    """I18: what is answered is what is replayed."""
    wf, case, stored = unknown
    wf.reconcile(case, strandline.EffectDone({"bucket": "bucket-7f3a"}), **SAID)
    result = wf.events()[-1]
    assert (result.kind, result.call_id, result.payload) == ("tool_result", "create-bucket", {"bucket": "bucket-7f3a"})
    assert (stored().state, stored().result_seq) == (EffectState.DONE, result.seq)
    with pytest.raises(strandline.CaseAnsweredError):
        wf.reconcile(case, strandline.EffectDone({"bucket": "another"}), **SAID)


def test_an_effect_takes_the_result_that_the_log_holds(unknown):
    """I17, I18: a late result is in the log already; without one nothing is written."""
    wf, case, stored = unknown
    with pytest.raises(strandline.InvalidInputError, match="no result of the call"):
        wf.reconcile(case, strandline.ReplayFromExact(), **SAID)
    wf.append(strandline.message("user", "are you there?"))
    with pytest.raises(strandline.InvalidInputError, match="no result of the call"):
        wf.reconcile(case, strandline.ReplayFromExact(), **SAID)
    wf.append(strandline.tool_result("create-bucket", "bucket-7f3a"))
    wf.append(strandline.message("user", "and on"))
    wf.reconcile(case, strandline.ReplayFromExact(), **SAID)
    assert stored().state is EffectState.DONE
    again = wf.effect("create-bucket", "create_bucket", {"region": "eu"}, lambda: pytest.fail("it ran"))
    assert again.result == "bucket-7f3a"
