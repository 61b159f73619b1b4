"""Law (I18): after a recovery, what was done since the checkpoint is noticed when it is asked for again in other words;
ordinary polling is untouched.

Checked on both stores by a counter of what really ran, and the rule itself by generated requests.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline import EffectDone, EffectNeverHappened, EffectUnknownError, KeyedProbe
from strandline.rules.repeats import names_request, request_identity
from tests.unit.test_effect import World, cases, crash, in_between, states
from tests.unit.test_engine_stage import bounded, log_of, new_workflow, quiet, talk

ARGS = {"name": "logs", "region": "eu", "request_id": "r-1"}
OTHER_WORDS = {"region": "eu", "requestId": "r-2", "name": "logs", "Trace-ID": "t", "timestamp": 7}


@pytest.fixture
def wf(db):
    wf = new_workflow(db)
    wf.append(talk(2))
    yield wf
    assert wf.verify().ok


def checkpoint(wf):
    return wf.checkpoint({"turn": 1}, 1, basis=wf.context())


def ask(wf, world, key="second", args=OTHER_WORDS, probe=None, **more):
    return wf.effect(key, "create_bucket", args, world.run, probe, **more)


def test_the_same_request_in_other_words_is_not_run_again_after_a_recovery(db, wf):
    """The lost handle (SPEC §1): the agent asks anew, and gets the handle that it had."""
    world = World()
    checkpoint(wf)
    first = ask(wf, world, "first", ARGS)
    assert wf.recover().kind == "restore"
    world.result = "another"
    outcome = ask(wf, world)
    assert (outcome.kind, outcome.result, outcome.key, world.runs) == ("likely_repeat", "bucket-7f3a", "second", 1)
    assert outcome.effect == first.effect
    assert (outcome.call_seq, outcome.result_seq) == (first.call_seq, first.result_seq)
    call, result = log_of(db, wf)[-2:]
    assert (call.kind, result.kind, result.call_seq) == ("tool_call", "tool_result", call.seq)
    assert b"repeat_of" in result.body
    assert wf.context().open_calls == ()


def test_what_was_answered_as_a_repeat_stays_so(wf):
    """Also after another recovery, behind which the first execution lies."""
    world = World()
    checkpoint(wf)
    ask(wf, world, "first", ARGS)
    wf.recover()
    ask(wf, world)
    checkpoint(wf)
    wf.recover()
    assert ask(wf, world).kind == "likely_repeat"
    assert (world.runs, set(states(wf))) == (1, {"first"})
    with pytest.raises(strandline.IdempotencyConflictError):
        ask(wf, world, args={"name": "other"})


def test_again_runs_it_on_purpose(wf):
    world = World()
    checkpoint(wf)
    ask(wf, world, "first", ARGS)
    wf.recover()
    assert ask(wf, world, again=True).kind == "ran"
    assert ask(wf, world).kind == "replayed"
    assert world.runs == 2


@pytest.mark.parametrize("scene", ["no recovery", "before the basis", "after the recovery", "twice", "other", "failed"])
def test_what_is_no_repeat_runs(wf, scene):
    """Ordinary work is untouched: so is polling, what the state knows, and what was done since the recovery."""
    world = World()
    if scene == "before the basis":
        ask(wf, world, "first", ARGS)
    checkpoint(wf)
    if scene in ("twice", "no recovery", "other"):
        ask(wf, world, "first", {"name": "metrics"} if scene == "other" else ARGS)
    if scene == "twice":
        ask(wf, world, "poll", ARGS)
    if scene == "failed":
        world.error = strandline.EffectFailedError("no")
        with pytest.raises(strandline.EffectFailedError):
            ask(wf, world, "first", ARGS)
        world.error = None
    if scene != "no recovery":
        wf.recover()
    if scene == "after the recovery":
        ask(wf, world, "first", ARGS)
    runs = world.runs
    assert ask(wf, world).kind == "ran"
    assert world.runs == runs + 1


def test_a_subject_says_what_is_the_same_request(wf):
    world = World()
    checkpoint(wf)
    ask(wf, world, "first", ARGS, subject="logs")
    wf.recover()
    assert ask(wf, world, args={"a": "quite different"}, subject="logs").kind == "likely_repeat"
    assert ask(wf, world, "third", ARGS, subject="metrics").kind == "ran"


def test_on_a_replay_the_newest_checkpoint_before_it_counts(wf):
    world = World()
    checkpoint(wf)
    ask(wf, world, "first", ARGS)
    wf.append(talk(8, start=10))
    wf.compact(400, quiet)
    assert wf.recover().kind == "replay"
    assert ask(wf, world).kind == "likely_repeat"


def test_what_was_done_between_the_basis_and_its_checkpoint_counts(wf):
    """The state was made from the basis, and knows nothing of what came after it."""
    world = World()
    basis = wf.context()
    wf.effect("first", "create_bucket", ARGS, world.run)
    wf.checkpoint({"turn": 1}, 1, basis=basis)
    wf.recover()
    assert (ask(wf, world).kind, world.runs) == ("likely_repeat", 1)


def test_without_a_checkpoint_all_that_was_done_counts(wf):
    world = World()
    ask(wf, world, "first", ARGS)
    assert wf.recover().kind == "replay"
    assert ask(wf, world).kind == "likely_repeat"


def test_after_a_rewind_the_abandoned_effect_counts(wf):
    """I17, C22: a rewind takes no effect back."""
    world = World()
    made = checkpoint(wf)
    ask(wf, world, "first", ARGS)
    wf.rewind(made.revision, by="ann", why="wrong way")
    wf.recover()
    assert ask(wf, world).kind == "likely_repeat"
    outcome = ask(wf, world, "first", ARGS)
    assert (outcome.kind, world.runs) == ("replayed", 1)
    assert outcome.call_seq > made.revision
    assert wf.recall("bucket-7f3a")


@pytest.mark.parametrize("answered", [True, False, "late", "error"])
def test_a_call_that_only_stands_in_the_log_counts(wf, answered):
    """I18: with its result it is given; without, nobody can tell; one that failed was not executed."""
    world = World()
    checkpoint(wf)
    wf.append(strandline.tool_call("c1", "create_bucket", ARGS))
    if answered in (True, "error"):
        wf.append(strandline.tool_result("c1", "bucket-0001", is_error=answered == "error"))
    wf.recover()
    if answered == "late":
        wf.append(strandline.tool_result("c1", "bucket-0001"))
    if answered == "error":
        assert ask(wf, world).kind == "ran"
        return
    if answered:
        outcome = ask(wf, world)
        assert (outcome.kind, outcome.result, outcome.effect, world.runs) == ("likely_repeat", "bucket-0001", None, 0)
        return
    with pytest.raises(EffectUnknownError):
        ask(wf, world)
    assert (world.runs, len(cases(wf))) == (0, 1)
    assert ask(wf, world, probe=world.answering(EffectNeverHappened())).kind == "ran"


@pytest.mark.parametrize("answer", [EffectDone("found"), EffectNeverHappened(), None])
def test_a_repeat_of_what_nobody_knows_asks_the_probe(wf, answer):
    """I18: never a run before somebody says that it did not happen."""
    world = World()
    checkpoint(wf)
    crash(wf, "first", "create_bucket", ARGS)
    wf.recover()
    if answer is None:
        for _ in range(2):  # the second one meets it as unknown
            with pytest.raises(EffectUnknownError) as unknown:
                ask(wf, world)
            assert unknown.value.key == "first"
        assert world.runs == 0
        return
    outcome = ask(wf, world, probe=KeyedProbe(lambda _: world.answering(answer)()))
    if isinstance(answer, EffectDone):
        assert (outcome.kind, outcome.result, outcome.effect.key) == ("likely_repeat", "found", "first")
    assert world.runs == (0 if isinstance(answer, EffectDone) else 1)


def test_a_recovery_while_it_is_looked_for_is_noticed(wf, monkeypatch):
    world = World()
    checkpoint(wf)
    wf.effect("first", "create_bucket", ARGS, world.run)
    in_between(monkeypatch, wf.recover)
    assert (ask(wf, world).kind, world.runs) == ("likely_repeat", 1)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz", min_size=1, max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = (
    "request_id",
    "idempotencyKey",
    "Client-Token",
    "NONCE",
    "traceId",
    "correlation-id",
    "X-Request-Id",
    "timestamp",
)


@bounded(100)
@given(st.dictionaries(st.text("xyz", min_size=1, max_size=2), VALUES, max_size=4), st.sampled_from(NAMES), VALUES)
def test_fields_that_name_a_request_and_the_order_do_not_count(args, name, value):
    other = {name: value, **dict(reversed(args.items()))}
    assert request_identity("t", None, args) == request_identity("t", None, other)
    assert request_identity("t", None, args) != request_identity("u", None, args)
    assert request_identity("t", None, args) != request_identity("t", None, {**args, "content": "other"})


@pytest.mark.parametrize("name", ["id", "name", "requests", "time", "tokens", "key"])
def test_other_fields_do_count(name):
    assert not names_request(name)
