"""Law (I18, I20): an effect runs once. Its recorded result is given ever after, and one that may have happened is not
run again before somebody says that it did not.

Checked on both stores, with a counter of what really ran, at every point where a process can die, be cancelled, lose an
acknowledgement or meet another that asks for the same.
"""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest

import strandline
from strandline import EffectCantTell, EffectDone, EffectFailedError, EffectNeverHappened, EffectUnknownError
from strandline.engine.cases import list_cases
from strandline.engine.effect import _begin, _look
from strandline.engine.family import ledger
from strandline.engine.flow import Told
from strandline.model.case import CaseKind
from strandline.testing import SeededEntropy, VirtualClock
from tests.unit.test_engine_stage import STORES, log_of, new_workflow, open_store, talk, transaction

ARGS = {"name": "logs", "region": "eu"}


class World:
    """The other side: it counts what was done to it."""

    def __init__(self, result="bucket-7f3a"):
        self.runs, self.probes, self.result = 0, 0, result
        self.error = None

    def run(self):
        self.runs += 1
        if self.error is not None:
            raise self.error
        return self.result

    def answering(self, answer):
        def probe():
            self.probes += 1
            if isinstance(answer, BaseException):
                raise answer
            return answer

        return probe


class Dies(BaseException):
    """The process dies here."""


@pytest.fixture
def wf(db):
    wf = new_workflow(db)
    wf.append(talk(2))
    yield wf
    assert wf.verify().ok


def twin(db, wf) -> strandline.AsyncWorkflow:
    return strandline.AsyncStrandline(db).tenant("acme").workflow(wf.name)


def cases(wf, *, answered=False):
    return [case for case in list_cases(wf._env, answered) if case.kind is CaseKind.EFFECT_UNKNOWN]


def states(wf):
    return {effect.key: (effect.state.value, effect.attempt) for effect in wf.effects()}


def crash(wf, key="create", tool="create_bucket", args=ARGS, **more):
    """Leave an effect as a process leaves it that dies between intent and outcome."""
    verb = wf._effect(key, tool, args, lambda: None, None, more.get("subject"), False, None, None, "", ())
    next(verb)
    _KEPT.append(verb)  # never resumed, never closed: as if the process were gone


_KEPT = []


def in_between(monkeypatch, work):
    """Do something once, after the next effect has looked at the ledger and before it decides."""
    todo = [work]

    def look(env, asked):
        seen = _look(env, asked)
        if todo:
            todo.pop()()
        return seen

    monkeypatch.setattr("strandline.engine.effect._look", look)


# ---------------------------------------------------------------------------------------------- once


def test_an_effect_runs_once_and_its_result_is_given_ever_after(db, wf):
    """I18: the same key again, whatever is asked with it."""
    world = World()
    first = wf.effect("create", "create_bucket", ARGS, world.run, refs=["logs-bucket"], actor="agent")
    again = wf.effect("create", "create_bucket", dict(reversed(ARGS.items())), world.run)
    assert (first.kind, again.kind) == ("ran", "replayed")
    assert first.result == again.result == "bucket-7f3a"
    assert (first.call_seq, first.result_seq) == (again.call_seq, again.result_seq)
    assert world.runs == 1
    call, result = log_of(db, wf)[-2:]
    assert (call.kind, result.kind, result.call_seq) == ("tool_call", "tool_result", call.seq)
    assert (call.actor, call.basis.revision, result.envelope.is_error) == ("agent", 4, False)
    assert [hit.seq for hit in wf.recall("bucket-7f3a")] == [result.seq]
    assert [hit.seq for hit in wf.recall("logs-bucket")] == [call.seq]
    (effect,) = wf.effects()
    assert wf.effects(["no such", effect.key]) == [effect]
    assert (effect.state, effect.attempt, effect.call_seq, effect.result_seq) == ("done", 1, call.seq, result.seq)


@pytest.mark.parametrize(
    "value", ["text", "", None, True, 12, 1.5, [1, [2]], {"a": {"b": [None]}}, (1, 2), "\0", 2**70]
)
def test_any_json_value_is_a_result(wf, value):
    world = World(value)
    first = wf.effect("k", "tool", {}, world.run).result
    assert first == wf.effect("k", "tool", {}, world.run).result == json.loads(json.dumps(value))
    assert world.runs == 1


@pytest.mark.parametrize("value", [object(), float("nan"), {1: 2}, "\ud800", {"deep": b"bytes"}, {"x": {1, 2}}])
def test_a_result_that_is_no_json_is_recorded_as_done_without_it(wf, value):
    world = World(value)
    with pytest.raises(strandline.InvalidInputError, match="ran, and its result could not be recorded"):
        wf.effect("k", "tool", {}, world.run)
    again = wf.effect("k", "tool", {}, world.run)
    assert (again.kind, again.result, world.runs) == ("replayed", None, 1)


@pytest.mark.parametrize(("tool", "args"), [("delete_bucket", ARGS), ("create_bucket", {"name": "logs"})])
def test_a_key_is_not_used_for_another_effect(db, wf, tool, args):
    world = World()
    wf.effect("create", "create_bucket", ARGS, world.run)
    with pytest.raises(strandline.IdempotencyConflictError):
        wf.effect("create", tool, args, world.run)
    assert world.runs == 1
    assert len(log_of(db, wf)) == 6


@pytest.mark.parametrize(
    "wrong",
    [
        {"key": ""},
        {"key": 7},
        {"key": "x" * 401},
        {"key": "a\0b"},
        {"tool": ""},
        {"args": {"x": object()}},
        {"args": {1: 2}},
        {"run": None},
        {"probe": 7},
        {"subject": ""},
        {"subject": "x" * 201},
        {"refs": [""]},
        {"actor": "\ud800"},
        {"basis": "now"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_bad_input_is_refused_before_anything_runs(db, wf, wrong):
    world = World()
    given = {"key": "k", "tool": "t", "args": {}, "run": world.run} | wrong
    with pytest.raises(strandline.InvalidInputError):
        wf.effect(**given)
    assert (world.runs, wf.effects(), len(log_of(db, wf))) == (0, [], 4)


def test_an_event_with_the_key_of_an_effect_is_not_taken_for_one(wf):
    wf.append(strandline.note("mine", key="effect:k:1:call"))
    world = World()
    with pytest.raises(strandline.IdempotencyConflictError):
        wf.effect("k", "t", {}, world.run)
    assert (world.runs, wf.effects()) == (0, [])


def test_a_result_is_not_lost_to_an_event_with_its_key(wf):
    """I18: what ran is recorded, also when somebody else has the key of its result."""
    wf.append(strandline.note("mine", key="effect:k:1:result"))
    world = World()
    ran = wf.effect("k", "t", {}, world.run)
    again = wf.effect("k", "t", {}, world.run)
    assert (ran.result, again.result, again.kind, world.runs) == ("bucket-7f3a", "bucket-7f3a", "replayed", 1)


# ---------------------------------------------------------------------------------------------- it did not happen


def test_what_failed_may_be_run_again_under_its_key(db, wf):
    world = World()
    world.error = EffectFailedError("quota")
    with pytest.raises(EffectFailedError, match="quota"):
        wf.effect("create", "create_bucket", ARGS, world.run)
    assert states(wf) == {"create": ("failed", 1)}
    call, result = log_of(db, wf)[-2:]
    assert (result.call_seq, result.envelope.is_error) == (call.seq, True)
    assert wf.context().open_calls == ()
    world.error = None
    assert wf.effect("create", "create_bucket", ARGS, world.run).kind == "ran"
    assert states(wf) == {"create": ("done", 2)}
    assert world.runs == 2
    assert cases(wf) == []
    with pytest.raises(strandline.IdempotencyConflictError):
        wf.effect("create", "create_bucket", {}, world.run)


def test_an_effect_inside_another_one_fails_for_itself_only(wf):
    """I18: the outer one had done something before, and must not do it again."""
    outer, inner = World(), World()
    inner.error = EffectFailedError("quota")

    def run():
        outer.run()
        return wf.effect("inner", "tag_bucket", ARGS, inner.run).result

    with pytest.raises(EffectFailedError) as caught:
        wf.effect("outer", "create_bucket", ARGS, run)
    assert caught.value.key == "inner"
    with pytest.raises(EffectUnknownError):
        wf.effect("outer", "create_bucket", ARGS, run)
    assert (outer.runs, states(wf)) == (1, {"outer": ("unknown", 1), "inner": ("failed", 1)})


def test_one_that_inner_failures_did_not_touch_says_so_itself(wf):
    def run():
        try:
            wf.effect("inner", "tag_bucket", ARGS, failing)
        except EffectFailedError as error:
            raise EffectFailedError("nothing was made") from error

    def failing():
        raise EffectFailedError("quota")

    with pytest.raises(EffectFailedError, match="nothing was made"):
        wf.effect("outer", "create_bucket", ARGS, run)
    assert states(wf) == {"outer": ("failed", 1), "inner": ("failed", 1)}


# ---------------------------------------------------------------------------------------------- unknown outcomes


@pytest.mark.parametrize("error", [ValueError("reset"), TimeoutError(), KeyboardInterrupt(), StopIteration(), Dies()])
def test_a_run_that_raises_leaves_the_outcome_unknown(db, wf, error):
    """I18: it is not run again, the same case stands, and the exception is the caller's own."""
    world = World()
    world.error = error
    wanted = RuntimeError if isinstance(error, StopIteration) else type(error)
    with pytest.raises(wanted) as raised:
        wf.effect("create", "create_bucket", ARGS, world.run)
    (case,) = cases(wf)
    assert case.case_id in "".join(raised.value.__notes__)
    assert case.subject == "create"
    assert states(wf) == {"create": ("unknown", 1)}
    wf.compact(400)  # an unknown call holds no watermark up
    for _ in range(2):
        with pytest.raises(EffectUnknownError) as unknown:
            wf.effect("create", "create_bucket", ARGS, world.run)
        assert (unknown.value.key, unknown.value.case_id) == ("create", case.case_id)
    assert len(cases(wf)) == 1
    assert world.runs == 1


def test_a_probe_is_asked_at_once_when_a_run_raises(db, wf):
    world = World()
    world.error = ValueError("reset")
    outcome = wf.effect("create", "create_bucket", ARGS, world.run, world.answering(EffectDone("bucket-9")))
    assert (outcome.kind, outcome.result, world.probes) == ("probed", "bucket-9", 1)
    assert wf.effect("create", "create_bucket", ARGS, world.run).result == "bucket-9"
    assert (world.runs, cases(wf)) == (1, [])


def test_an_interrupted_run_that_is_done_is_recorded_and_the_interrupt_goes_on(wf):
    world = World()
    world.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        wf.effect("create", "create_bucket", ARGS, world.run, world.answering(EffectDone("bucket-9")))
    assert wf.effect("create", "create_bucket", ARGS, world.run).result == "bucket-9"
    assert world.runs == 1


def test_a_run_that_raised_and_did_not_happen_may_be_run_again(wf):
    world = World()
    world.error = ValueError("reset")
    with pytest.raises(ValueError, match="reset") as raised:
        wf.effect("create", "create_bucket", ARGS, world.run, world.answering(EffectNeverHappened()))
    assert "may be asked for again" in raised.value.__notes__[0]
    assert states(wf) == {"create": ("failed", 1)}
    world.error = None
    assert wf.effect("create", "create_bucket", ARGS, world.run).kind == "ran"


CRASHED = {
    "done": (EffectDone({"id": "bucket-9"}), "probed", 0, "done"),
    "never": (EffectNeverHappened(), "ran", 1, "done"),
    "can't tell": (EffectCantTell(), None, 0, "unknown"),
    "raises": (ValueError("down"), None, 0, "unknown"),
    "no answer": ("yes", None, 0, "unknown"),
    "none": (None, None, 0, "unknown"),
}


@pytest.mark.parametrize("probe", CRASHED)
def test_after_a_crash_between_intent_and_outcome_the_probe_decides(db, wf, probe):
    """I18: only "will never happen" permits a run."""
    answer, kind, runs, state = CRASHED[probe]
    crash(wf)
    assert states(wf) == {"create": ("intended", 1)}
    world = World()
    asked = None if answer is None else world.answering(answer)
    if kind is None:
        with pytest.raises(EffectUnknownError) as unknown:
            wf.effect("create", "create_bucket", ARGS, world.run, asked)
        assert [case.case_id for case in cases(wf)] == [unknown.value.case_id]
    else:
        assert wf.effect("create", "create_bucket", ARGS, world.run, asked).kind == kind
        assert cases(wf) == []
    assert world.runs == runs
    assert states(wf)["create"][0] == state
    assert wf.context().open_calls == ()


def test_a_case_is_closed_when_a_probe_tells_the_outcome_later(wf):
    crash(wf)
    world = World()
    with pytest.raises(EffectUnknownError):
        wf.effect("create", "create_bucket", ARGS, world.run)
    wf.effect("create", "create_bucket", ARGS, world.run, world.answering(EffectDone(1)))
    assert cases(wf) == []
    assert [case.state for case in cases(wf, answered=True)] == ["answered"]


def test_a_probe_that_is_interrupted_leaves_the_outcome_unknown(wf):
    crash(wf)
    world = World()
    with pytest.raises(KeyboardInterrupt):
        wf.effect("create", "create_bucket", ARGS, world.run, world.answering(KeyboardInterrupt()))
    assert (states(wf), world.runs, len(cases(wf))) == ({"create": ("unknown", 1)}, 0, 1)


def test_an_effect_that_was_given_up_is_never_run_again(db, wf):
    crash(wf)
    from strandline.engine.effect_rows import give_up

    with wf._env.write() as tx:
        give_up(wf._env, tx, ledger(tx).effects.get("create"))
    world = World()
    with pytest.raises(EffectUnknownError, match="given up"):
        wf.effect("create", "create_bucket", ARGS, world.run, world.answering(EffectNeverHappened()))
    assert (world.runs, world.probes) == (0, 0)


def test_a_result_that_comes_after_the_outcome_was_called_unknown_is_taken(db, wf):
    """The first one was only slow: another asked meanwhile, and could not tell."""
    world = World()

    def slow():
        with pytest.raises(EffectUnknownError):
            wf.effect("create", "create_bucket", ARGS, world.run)
        return world.run()

    outcome = wf.effect("create", "create_bucket", ARGS, slow)
    assert (outcome.kind, outcome.result, world.runs) == ("ran", "bucket-7f3a", 1)
    assert log_of(db, wf)[-1].envelope.late
    assert cases(wf) == []


@pytest.mark.parametrize("told", [EffectDone("other"), EffectDone("bucket-7f3a"), EffectNeverHappened()], ids=str)
def test_a_result_is_kept_when_the_effect_was_settled_otherwise_meanwhile(db, wf, told):
    """I18: nothing is lost; a case says so when it ran twice, or was told wrongly."""
    world = World()

    def slow():
        try:
            other = wf.effect("create", "create_bucket", ARGS, lambda: "second", world.answering(told))
            assert other.result == (told.result if isinstance(told, EffectDone) else "second")
        finally:
            world.run()
        return world.result

    if told == EffectDone("bucket-7f3a"):
        assert wf.effect("create", "create_bucket", ARGS, slow).result == "bucket-7f3a"
        assert cases(wf) == []
        return
    with pytest.raises(EffectUnknownError) as raised:
        wf.effect("create", "create_bucket", ARGS, slow)
    assert [case.case_id for case in cases(wf)] == [raised.value.case_id]
    assert wf.recall("bucket-7f3a")
    expected = "other" if isinstance(told, EffectDone) else "second"
    assert wf.effect("create", "create_bucket", ARGS, world.run).result == expected


def test_an_effect_that_ran_though_it_was_said_not_to_happen_is_not_run_again(db, wf):
    world = World()

    def slow():
        with wf._env.write() as tx:
            from strandline.engine.effect_rows import prepare_told, record_told

            effect = ledger(tx).effects.get("create")
            told = EffectNeverHappened()
            record_told(wf._env, tx, effect, told, prepare_told(wf._env, effect, told))
        return world.run()

    assert wf.effect("create", "create_bucket", ARGS, slow).result == "bucket-7f3a"
    assert len(cases(wf)) == 1
    assert wf.effect("create", "create_bucket", ARGS, world.run).kind == "replayed"
    assert world.runs == 1


# ---------------------------------------------------------------------------------------------- many who ask


def test_of_two_threads_one_runs(wf):
    world = World()
    gate = threading.Barrier(8)

    def ask(_):
        gate.wait(20)
        try:
            return wf.effect("create", "create_bucket", ARGS, world.run).result
        except EffectUnknownError:
            return None

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert world.runs == 1
    assert set(answers) <= {"bucket-7f3a", None}
    assert wf.effect("create", "create_bucket", ARGS, world.run).kind == "replayed"
    assert cases(wf) == []


@contextmanager
def forked(db, wf, at):
    """A fork, as far as the ledger knows: a workflow whose parent this one is."""
    child = new_workflow(db)
    with transaction(db, child, write=True) as tx:
        tx.log.set_head(replace(tx.log.head(), parent=wf.name))
    yield child


def test_what_another_did_after_the_look_is_noticed(wf, monkeypatch):
    world = World()
    in_between(monkeypatch, lambda: wf.effect("create", "create_bucket", ARGS, world.run))
    assert wf.effect("create", "create_bucket", ARGS, world.run).kind == "replayed"
    assert world.runs == 1


def test_an_answer_about_one_attempt_settles_no_later_one(wf):
    """I18: the probe of attempt 1 takes long; meanwhile another process begins attempt 2 and dies."""
    world = World()
    crash(wf)

    def probe():
        world.probes += 1
        if world.probes > 1:
            return EffectCantTell()
        other = wf._effect("create", "create_bucket", ARGS, world.run, lambda: None, None, False, None, None, "", ())
        next(other)
        other.send(Told(value=EffectNeverHappened()))
        _KEPT.append(other)
        return EffectNeverHappened()

    with pytest.raises(EffectUnknownError):
        wf.effect("create", "create_bucket", ARGS, world.run, probe)
    assert (world.runs, states(wf)) == (0, {"create": ("unknown", 2)})


def test_a_family_of_forks_shares_one_ledger(db, wf):
    """C22: whoever of the family runs it, it is run once; the others give its result, on their own branch."""
    world = World()
    with forked(db, wf, 4) as left, forked(db, wf, 4) as right:
        first = left.effect("create", "create_bucket", ARGS, world.run)
        for other in (right, wf, left):
            outcome = other.effect("create", "create_bucket", ARGS, world.run)
            assert (outcome.kind, outcome.result) == ("replayed", "bucket-7f3a")
            assert other.recall("bucket-7f3a")
        assert world.runs == 1
        assert first.effect.workflow == left.name
        assert left.effects() == right.effects() == wf.effects()
        crash(left, "delete", "delete_bucket")
        with pytest.raises(EffectUnknownError):
            right.effect("delete", "delete_bucket", ARGS, world.run)
        outcome = wf.effect("delete", "delete_bucket", ARGS, world.run, world.answering(EffectDone("gone")))
        assert (outcome.kind, outcome.effect.workflow) == ("probed", wf.name)
        assert right.effect("delete", "delete_bucket", ARGS, world.run).result == "gone"
        assert world.runs == 1


# ---------------------------------------------------------------------------------------------- the other driver


def test_both_drivers_run_functions_of_both_kinds(db, wf):
    ran = []

    async def awaited():
        await asyncio.sleep(0)
        ran.append("awaited")
        return {"id": 1}

    async def probe():
        await asyncio.sleep(0)
        return EffectDone("found")

    async def main():
        workflow = twin(db, wf)
        world = World()
        assert (await workflow.effect("a", "t", {}, awaited)).result == {"id": 1}
        assert (await workflow.effect("b", "t", {}, world.run)).result == "bucket-7f3a"
        assert (await workflow.effect("b", "t", {}, world.run)).kind == "replayed"
        crash(wf, "c", "t", {})
        assert (await workflow.effect("c", "t", {}, world.run, probe)).result == "found"
        assert len(await workflow.effects()) == 3
        assert wf.effect("d", "t", {}, awaited).result == {"id": 1}  # blocks this loop; has one of its own

    asyncio.run(main())
    assert wf.effect("e", "t", {}, awaited).result == {"id": 1}
    crash(wf, "f", "t", {})
    assert wf.effect("f", "t", {}, awaited, probe).kind == "probed"
    assert ran == ["awaited"] * 3


@pytest.mark.parametrize("kind", ["awaited", "thread"])
def test_a_cancelled_effect_is_settled_as_unknown(db, wf, kind):
    started, let_go = threading.Event(), threading.Event()

    async def awaited():
        started.set()
        await asyncio.sleep(3_600)

    def in_thread():
        started.set()
        let_go.wait(20)

    async def main():
        task = asyncio.ensure_future(twin(db, wf).effect("a", "t", {}, awaited if kind == "awaited" else in_thread))
        await asyncio.to_thread(started.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    let_go.set()
    assert (states(wf), len(cases(wf))) == ({"a": ("unknown", 1)}, 1)
    assert wf.context().open_calls == ()


def test_what_was_cancelled_before_it_was_begun_did_not_happen(db, wf, monkeypatch):
    """The cancellation waits for the commit of the intent; then nothing runs, and nothing is in doubt."""
    world, deciding, cancelled = World(), threading.Event(), threading.Event()

    def begin(*asked):
        deciding.set()
        cancelled.wait(20)
        return _begin(*asked)

    async def main():
        task = asyncio.ensure_future(twin(db, wf).effect("create", "create_bucket", ARGS, world.run))
        await asyncio.to_thread(deciding.wait, 20)
        task.cancel()
        asyncio.get_running_loop().call_later(0.05, cancelled.set)
        with pytest.raises(asyncio.CancelledError):
            await task

    with monkeypatch.context() as patch:
        patch.setattr("strandline.engine.effect._begin", begin)
        asyncio.run(main())
    assert (world.runs, states(wf), cases(wf)) == (0, {"create": ("failed", 1)}, [])
    assert wf.effect("create", "create_bucket", ARGS, world.run).kind == "ran"


# ---------------------------------------------------------------------------------------------- lost acknowledgements


class Unsure:
    """A store that does not acknowledge the commits that a test names, or does not make them."""

    def __init__(self, store):
        self._store = store
        self.lose, self.count = {}, 0
        self.away_behind = 1_000  # writes

    def __getattr__(self, name):
        return getattr(self._store, name)

    def read(self, scope):
        if self.count >= self.away_behind:
            raise strandline.StoreUnavailableError("gone")
        return self._store.read(scope)

    @contextmanager
    def write(self, scope, *, joins=True):
        self.count += 1
        if self.count > self.away_behind:
            raise strandline.StoreUnavailableError("gone")
        how = self.lose.get(self.count)
        try:
            with self._store.write(scope) as tx:
                yield tx
                if how == "not committed":
                    raise Dies
        except Dies:
            raise strandline.OutcomeUnknownError("cut off") from None
        if how == "committed":
            raise strandline.OutcomeUnknownError("cut off")


@pytest.fixture(params=STORES)
def unsure(request, tmp_path):
    with open_store(request.param, tmp_path) as opened:
        store = Unsure(opened.store)
        db = strandline.Strandline(store, clock=VirtualClock(), entropy=SeededEntropy(7))
        wf = new_workflow(db)
        wf.append(talk(1))
        store.count = 0
        yield wf, store
        assert wf.verify().ok


@pytest.mark.parametrize("how", ["committed", "not committed"])
@pytest.mark.parametrize("lost", [(1,), (2,), (1, 2), (1, 3), (2, 3)])
def test_a_lost_acknowledgement_is_read_back(unsure, how, lost):
    """I19: of the intent, of the outcome, of both: it ran once, and its result is recorded once."""
    wf, store = unsure
    store.lose = dict.fromkeys(lost, how)
    world = World()
    outcome = wf.effect("create", "create_bucket", ARGS, world.run)
    assert (outcome.kind, outcome.result, world.runs) == ("ran", "bucket-7f3a", 1)
    assert states(wf) == {"create": ("done", 1)}
    assert len(wf.events()) == 4
    assert cases(wf) == []


@pytest.mark.parametrize("how", ["committed", "not committed"])
@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_lost_acknowledgement_of_what_a_probe_told_is_read_back(unsure, how, lost):
    wf, store = unsure
    crash(wf)
    store.count, store.lose = 0, {lost: how}
    world = World()
    outcome = wf.effect("create", "create_bucket", ARGS, world.run, world.answering(EffectDone("x")))
    assert (outcome.result, world.runs, states(wf)) == ("x", 0, {"create": ("done", 1)})


def test_a_store_that_is_gone_after_the_intent_is_not_said_to_hold_none(unsure):
    """I19: the intent stands, so "nothing was written" would be a lie; with the same key it is settled and runs."""
    wf, store = unsure
    store.lose, store.away_behind = {1: "committed"}, 1
    world = World()
    with pytest.raises(strandline.OutcomeUnknownError, match=r"the intent of the effect 'create'.* did not run: gone"):
        wf.effect("create", "create_bucket", ARGS, world.run)
    store.away_behind = 1_000
    assert (states(wf), world.runs) == ({"create": ("intended", 1)}, 0)
    outcome = wf.effect("create", "create_bucket", ARGS, world.run, world.answering(EffectNeverHappened()))
    assert (outcome.kind, world.runs, states(wf)) == ("ran", 1, {"create": ("done", 2)})


def test_a_store_that_is_gone_after_the_run_says_so_and_the_effect_counts_as_unknown(unsure):
    wf, store = unsure
    world = World()
    store.lose = dict.fromkeys(range(2, 40), "not committed")
    with pytest.raises(strandline.StoreUnavailableError) as raised:
        wf.effect("create", "create_bucket", ARGS, world.run)
    assert "counts as unknown" in raised.value.__notes__[0]
    store.lose = {}
    assert states(wf) == {"create": ("intended", 1)}
    with pytest.raises(EffectUnknownError):
        wf.effect("create", "create_bucket", ARGS, world.run)
    assert world.runs == 1


# ---------------------------------------------------------------------------------------------- permits


def test_a_permit_is_used_up_with_the_intent(wf):
    """I20: the same permit permits no second effect, and a denied one runs nothing."""
    wf.append(strandline.approval("publish", "go", granter="ann"))
    permit = wf.guard("publish", [strandline.approved("publish")], by="bob")
    world = World()
    wf.effect("p", "publish", {}, world.run, permit=permit)
    assert wf.effects()[0].permit_id == permit.permit_id
    assert wf.permits()[0].consumed_by == "p"
    with pytest.raises(strandline.ActionDeniedError):
        wf.effect("q", "publish", {}, world.run, permit=permit)
    assert (world.runs, states(wf)) == (1, {"p": ("done", 1)})


def test_a_permit_whose_approval_was_revoked_runs_nothing(db, wf):
    wf.append(strandline.approval("publish", "go", granter="ann"))
    permit = wf.guard("publish", [strandline.approved("publish")], by="bob")
    wf.append(strandline.revoke("publish", "stop"))
    world = World()
    with pytest.raises(strandline.ActionDeniedError):
        wf.effect("p", "publish", {}, world.run, permit=permit.permit_id)
    assert (world.runs, wf.effects()) == (0, [])


# ---------------------------------------------------------------------------------------------- damage


def test_a_missing_row_is_missed(db, wf):
    """I4: a row that is gone must not let an effect run again."""
    wf.effect("create", "create_bucket", ARGS, World().run)
    with transaction(db, wf, write=True) as tx:
        head = tx.log.head()
        tx.log.set_head(replace(head, effects=2))
    world = World()
    with pytest.raises(strandline.CorruptRecordError):
        wf.effect("other", "create_bucket", ARGS, world.run)
    with pytest.raises(strandline.CorruptRecordError):
        wf.effects()
    assert not wf.verify().ok
    assert world.runs == 0
    with transaction(db, wf, write=True) as tx:
        tx.log.set_head(replace(tx.log.head(), effects=1))


def test_a_row_that_was_put_back_is_noticed(db, wf):
    """I4: the row was once true, and the log knows better; a probe must not be believed over it."""
    older = []

    def run():
        older.extend(wf.effects())
        return "done"

    wf.effect("create", "create_bucket", ARGS, run)
    (newer,) = wf.effects()
    world = World()
    with transaction(db, wf, write=True) as tx:
        assert tx.effects.settle(older[0], expected=newer.state, attempt=newer.attempt)
    with pytest.raises(strandline.CorruptRecordError, match="holds the result"):
        wf.effect("create", "create_bucket", ARGS, world.run, world.answering(EffectNeverHappened()))
    assert (world.runs, wf.verify().ok) == (0, False)
    with transaction(db, wf, write=True) as tx:
        assert tx.effects.settle(newer, expected=older[0].state, attempt=newer.attempt)


def test_a_permit_that_was_put_back_is_found(db, wf):
    wf.append(strandline.approval("publish", "go", granter="ann"))
    permit = wf.guard("publish", [strandline.approved("publish")], by="bob")
    wf.effect("p", "publish", {}, World().run, permit=permit)
    (used,) = wf.permits()
    with transaction(db, wf, write=True) as tx:
        assert tx.permits.settle(permit, expected=used.state)
    (problem,) = wf.verify().problems
    assert (problem.place, "did not use up" in problem.reason) == ("effect 'p'", True)
    with transaction(db, wf, write=True) as tx:
        assert tx.permits.settle(used, expected=permit.state)
