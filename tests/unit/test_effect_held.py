"""Law (I18): what may have happened is not run under another key either, before a probe or a person tells, whether or
not there was a recovery. What is at work, was done, or is asked for on purpose is not held.

Checked on both stores by a counter of what really ran.
"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import strandline
from strandline import Abandon, EffectCantTell, EffectDone, EffectNeverHappened, EffectUnknownError, KeyedProbe
from tests.unit.test_effect import ARGS, World, cases, crash, in_between, states, twin
from tests.unit.test_engine_stage import log_of, new_workflow, talk

TOLD = (EffectDone("found"), EffectNeverHappened())


@pytest.fixture
def wf(db):
    wf = new_workflow(db)
    wf.append(talk(2))
    yield wf
    assert wf.verify().ok


def ask(wf, world, key, args=ARGS, probe=None, **more):
    return wf.effect(key, "create_bucket", args, world.run, probe, **more)


def time_out(wf, world, key="c1"):
    """An effect whose answer was lost."""
    world.error = TimeoutError()
    with pytest.raises(TimeoutError):
        ask(wf, world, key)
    world.error = None


def test_the_same_request_under_new_keys_is_not_run_while_nobody_knows(wf):
    """The model asks again, and once more: no crash, no recovery."""
    world = World()
    time_out(wf, world)
    (case,) = cases(wf)
    for key in ("c2", "c3", "c2"):
        with pytest.raises(EffectUnknownError, match=f"{key!r} asks for the same") as unknown:
            ask(wf, world, key, {"region": "eu", "name": "logs", "request_id": key})
        assert (unknown.value.key, unknown.value.case_id) == ("c1", case.case_id)
    assert (world.runs, states(wf), len(cases(wf))) == (1, {"c1": ("unknown", 1)}, 1)
    assert wf.context().open_calls == ()


@pytest.mark.parametrize("answer", [*TOLD, EffectCantTell()], ids=str)
def test_the_probe_of_who_asks_tells(wf, answer):
    world = World()
    time_out(wf, world)
    if answer == EffectCantTell():
        with pytest.raises(EffectUnknownError):
            ask(wf, world, "c2", probe=world.answering(answer))
        assert world.runs == 1
        return
    outcome = ask(wf, world, "c2", probe=KeyedProbe(lambda key: told(world, answer, key)))
    assert (cases(wf), world.probes) == ([], 1)
    if isinstance(answer, EffectDone):
        assert (outcome.kind, outcome.result, outcome.key, outcome.effect.key) == ("likely_repeat", "found", "c2", "c1")
        assert (world.runs, states(wf)) == (1, {"c1": ("done", 1)})
        assert ask(wf, world, "c2").kind == "likely_repeat"
        assert ask(wf, world, "c3").kind == "ran"  # it is known now: what is asked for next is another one
        return
    assert (outcome.kind, world.runs) == ("ran", 2)
    assert states(wf) == {"c1": ("failed", 1), "c2": ("done", 1)}


def told(world, answer, key):
    assert key == "c1", "it is told which one is in doubt"
    return world.answering(answer)()


def test_a_probe_that_looked_for_its_own_key_gives_no_leave(wf):
    """What was asked for under the new key never happened: that says nothing of the old one, which did."""
    world = World()
    time_out(wf, world)
    happened = {"c1"}
    for _ in range(2):
        with pytest.raises(EffectUnknownError, match="was not told this key") as unknown:
            ask(wf, world, "c2", probe=lambda: EffectDone("it") if "c2" in happened else EffectNeverHappened())
        assert unknown.value.key == "c1"
    assert (world.runs, states(wf)) == (1, {"c1": ("unknown", 1)})
    keyed = KeyedProbe(lambda key: EffectDone("it") if key in happened else EffectNeverHappened())
    assert ask(wf, world, "c2", probe=keyed).kind == "likely_repeat"
    assert world.runs == 1


@pytest.mark.parametrize("answer", [*TOLD, Abandon()], ids=str)
def test_the_answer_to_the_case_holds_for_who_was_held(wf, answer):
    """Who was refused, and asks again after a person told that it was done, gets its result."""
    world = World()
    time_out(wf, world)
    with pytest.raises(EffectUnknownError):
        ask(wf, world, "c2")
    (case,) = cases(wf)
    wf.reconcile(case, answer, by="ann", why="looked")
    for _ in range(2):
        outcome = ask(wf, world, "c2")
        if isinstance(answer, EffectDone):
            assert (outcome.kind, outcome.result, outcome.effect.key, world.runs) == ("likely_repeat", "found", "c1", 1)
        else:
            assert world.runs == 2


def test_a_result_that_comes_late_is_given_to_who_was_held(wf):
    """The first was only slow, and another key asked twice meanwhile."""
    world = World()

    def slow():
        with pytest.raises(TimeoutError):
            raise TimeoutError
        with pytest.raises(EffectUnknownError):
            ask(wf, world, "c1")  # whoever asks for the same key makes it unknown
        with pytest.raises(EffectUnknownError):
            ask(wf, world, "c2")
        return world.run()

    assert wf.effect("c1", "create_bucket", ARGS, slow).kind == "ran"
    assert (ask(wf, world, "c2").kind, world.runs, cases(wf)) == ("likely_repeat", 1, [])


def test_an_outcome_that_is_told_while_it_is_looked_for_is_noticed(wf):
    world = World()
    time_out(wf, world)

    def probe():
        (case,) = cases(wf)
        wf.reconcile(case, EffectDone("told"), by="ann", why="looked")
        return EffectNeverHappened()

    outcome = ask(wf, world, "c2", probe=probe)
    assert (outcome.kind, outcome.result, world.runs) == ("likely_repeat", "told", 1)


def test_an_effect_that_becomes_doubtful_after_the_look_is_noticed(wf, monkeypatch):
    world, other = World(), World()
    in_between(monkeypatch, lambda: time_out(wf, other))
    with pytest.raises(EffectUnknownError) as unknown:
        ask(wf, world, "c2")
    assert (unknown.value.key, world.runs, other.runs) == ("c1", 0, 1)


def test_an_attempt_that_failed_is_not_tried_again_while_the_same_request_is_in_doubt(wf):
    world = World()
    world.error = strandline.EffectFailedError("quota")
    with pytest.raises(strandline.EffectFailedError):
        ask(wf, world, "c2")
    time_out(wf, world)
    with pytest.raises(EffectUnknownError) as unknown:
        ask(wf, world, "c2")
    assert (unknown.value.key, world.runs) == ("c1", 2)
    outcome = ask(wf, world, "c2", probe=world.answering(EffectDone("found")))
    assert (outcome.kind, outcome.result, world.runs) == ("likely_repeat", "found", 2)
    assert states(wf) == {"c2": ("failed", 1), "c1": ("done", 1)}
    assert ask(wf, world, "c2").kind == "likely_repeat"


def test_all_that_are_in_doubt_must_be_told(wf):
    world = World()
    time_out(wf, world)
    world.error = TimeoutError()
    with pytest.raises(TimeoutError):
        ask(wf, world, "c2", again=True)
    world.error = None
    answers = [EffectNeverHappened(), EffectCantTell()]
    with pytest.raises(EffectUnknownError):
        ask(wf, world, "c3", probe=KeyedProbe(lambda _: answers.pop(0)))
    assert sorted(states(wf).values()) == [("failed", 1), ("unknown", 1)]
    assert ask(wf, world, "c3", probe=lambda: EffectDone("found")).kind == "likely_repeat"
    assert world.runs == 2


def test_however_many_were_done_since_one_in_doubt_is_seen(wf, monkeypatch):
    monkeypatch.setattr("strandline.engine.effect_held.EFFECTS_ALIKE_MAX", 2)
    world = World()
    time_out(wf, world)
    for number in range(4):
        assert ask(wf, world, f"poll-{number}", again=True).kind == "ran"
    with pytest.raises(EffectUnknownError):
        ask(wf, world, "c2")


@pytest.mark.parametrize("scene", ["again", "other arguments", "other tool", "other subject", "a read"])
def test_what_is_not_held_runs(wf, scene):
    world = World()
    time_out(wf, world)
    if scene == "again":
        assert ask(wf, world, "c2", again=True).kind == "ran"
    elif scene == "other arguments":
        assert ask(wf, world, "c2", {"name": "metrics"}).kind == "ran"
    elif scene == "other tool":
        assert wf.effect("c2", "delete_bucket", ARGS, world.run).kind == "ran"
    elif scene == "other subject":
        assert ask(wf, world, "c2", subject="logs").kind == "ran"
    else:
        wf.toolset({"create_bucket": lambda **_: world.run()}, reads={"create_bucket"}).call(
            "c2", "create_bucket", ARGS
        )
    assert world.runs == 2


@pytest.mark.parametrize("recovered", [True, False])
def test_an_intent_that_a_recovery_left_behind_is_in_doubt(wf, recovered):
    """Before a recovery nobody can tell an effect at work from one of a process that died, and parallel calls run."""
    world = World()
    ask(wf, world, "poll-1")
    ask(wf, world, "poll-2")
    crash(wf, "c1")
    if recovered:
        wf.recover()
        with pytest.raises(EffectUnknownError) as unknown:
            ask(wf, world, "c2")
        assert (unknown.value.key, world.runs) == ("c1", 2)
    else:
        assert ask(wf, world, "c2").kind == "ran"
        assert states(wf)["c1"] == ("intended", 1)


def test_calls_that_are_made_at_once_with_equal_arguments_all_run(wf):
    """Eight threads, eight keys, one request: none is in doubt because another is at work."""
    world, gate = World(), threading.Barrier(8)

    def one(number):
        gate.wait(20)
        return ask(wf, world, f"c{number}", probe=world.answering(EffectNeverHappened())).kind

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(one, range(8))) == {"ran"}
    assert (world.probes, cases(wf), len(wf.effects())) == (0, [], 8)


def test_of_many_threads_none_runs_what_is_in_doubt(wf):
    world, gate = World(), threading.Barrier(8)
    time_out(wf, world)

    def one(number):
        gate.wait(20)
        with pytest.raises(EffectUnknownError) as unknown:
            ask(wf, world, f"d{number}")
        return unknown.value.key

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(one, range(8))) == {"c1"}
    assert (world.runs, len(cases(wf))) == (1, 1)


def test_a_family_of_forks_holds_what_one_of_them_left_in_doubt(db, wf):
    fork = db.tenant("acme").workflow(f"{wf.name}-fork")
    wf.fork(wf.basis().revision, fork.name, by="ann", why="another way")
    world = World()
    time_out(fork, world)
    with pytest.raises(EffectUnknownError) as unknown:
        ask(wf, world, "c2")
    assert (unknown.value.key, world.runs, len(cases(wf))) == ("c1", 1, 1)
    (case,) = cases(fork)
    fork.reconcile(case, EffectDone("found"), by="ann", why="looked")
    assert (ask(wf, world, "c2").kind, world.runs) == ("likely_repeat", 1)
    assert fork.verify().ok


def test_a_rewind_gives_no_leave(wf):
    revision, world = wf.basis().revision, World()
    time_out(wf, world)
    with pytest.raises(EffectUnknownError):
        ask(wf, world, "c2")
    wf.rewind(revision, by="ann", why="wrong way")
    with pytest.raises(EffectUnknownError):
        ask(wf, world, "c3")
    (case,) = cases(wf)
    wf.reconcile(case, EffectDone("found"), by="ann", why="looked")
    assert [ask(wf, world, key).kind for key in ("c2", "c3")] == ["likely_repeat", "likely_repeat"]
    assert world.runs == 1


def test_toolsets_and_decorated_functions_hold_and_may_ask_again(db, wf):
    world = World()
    world.error = TimeoutError()

    def pay(to):
        return world.run()

    tools = wf.toolset({"pay": pay})
    with pytest.raises(TimeoutError):
        tools.call("c1", "pay", {"to": "ann"})
    world.error = None
    for call in (
        lambda: tools.call("c2", "pay", {"to": "ann"}),
        lambda: asyncio.run(twin(db, wf).toolset({"pay": pay}).acall("c3", "pay", {"to": "ann"})),
        lambda: wf.as_effect()(pay)("ann"),
    ):
        with pytest.raises(EffectUnknownError) as unknown:
            call()
        assert (unknown.value.key, world.runs) == ("c1", 1)
    assert tools.call("c2", "pay", {"to": "ann"}, again=True) == "bucket-7f3a"
    acall = twin(db, wf).toolset({"pay": pay}).acall
    assert asyncio.run(acall("c3", "pay", {"to": "ann"}, again=True)) == "bucket-7f3a"
    assert wf.as_effect(again=True)(pay)("ann") == "bucket-7f3a"
    assert world.runs == 4


def test_the_log_says_that_it_was_held(db, wf):
    world = World()
    time_out(wf, world)
    before = len(log_of(db, wf))
    for _ in range(2):
        with pytest.raises(EffectUnknownError):
            ask(wf, world, "c2", actor="builder")
    (event,) = [source for source in wf.events(before + 1) if source.kind == "note"]
    assert (event.actor, "'c1'" in event.text, len(log_of(db, wf))) == ("builder", True, before + 1)
