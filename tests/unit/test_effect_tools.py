"""Law (C23): a decorated function and a toolset are effects: once per key, in threads and in event loops alike; and the
answer to a case is the outcome of its effect (C21).
"""

import asyncio

import pytest

import strandline
from strandline import Abandon, EffectDone, EffectNeverHappened, EffectUnknownError, ReplayFromExact
from tests.unit.test_effect import ARGS, World, cases, crash, states, twin
from tests.unit.test_engine_stage import log_of, new_workflow, talk


@pytest.fixture
def wf(db):
    wf = new_workflow(db)
    wf.append(talk(2))
    yield wf
    assert wf.verify().ok


# ---------------------------------------------------------------------------------------------- the decorator


def test_a_decorated_function_runs_once_for_each_set_of_arguments(wf):
    ran = []

    @wf.as_effect()
    def create_bucket(name, region="eu", *tags, owner=None, **more):
        """Make one."""
        ran.append((name, region, tags, owner, more))
        return {"handle": f"bucket-{len(ran)}"}

    assert create_bucket("logs") == create_bucket(name="logs", region="eu") == {"handle": "bucket-1"}
    assert create_bucket("logs", "us", "a", "b", owner="ann", cost=3) == {"handle": "bucket-2"}
    assert create_bucket("logs", "us", "a", "b", owner="ann", cost=3) == {"handle": "bucket-2"}
    assert ran == [("logs", "eu", (), None, {}), ("logs", "us", ("a", "b"), "ann", {"cost": 3})]
    assert create_bucket.__doc__ == "Make one."
    with pytest.raises(TypeError):
        create_bucket()
    with pytest.raises(strandline.InvalidInputError):
        create_bucket(object())
    assert {effect.tool for effect in wf.effects()} == {"create_bucket"}


def test_key_subject_and_probe_get_the_arguments_by_name(wf):
    asked = []

    @wf.as_effect(
        "send", key=lambda a: a["to"], subject=lambda a: a["to"], probe=lambda a: asked.append(a) or EffectDone(1)
    )
    def mail(to, text="hi"):
        raise TimeoutError

    assert mail("ann") == mail("ann") == 1
    assert asked == [{"to": "ann", "text": "hi"}]
    (effect,) = wf.effects()
    assert (effect.key, effect.tool, effect.subject) == ("ann", "send", "ann")
    with pytest.raises(strandline.IdempotencyConflictError):
        mail("ann", "other")


def test_a_decorator_that_was_not_called_says_so(wf):
    with pytest.raises(strandline.InvalidInputError, match="as_effect"):
        wf.as_effect(print)
    with pytest.raises(strandline.InvalidInputError, match="key"):
        wf.as_effect(key="k")


def test_coroutine_functions_stay_what_they_are_and_others_become_awaited(db, wf):
    ran = []

    async def awaited(name):
        await asyncio.sleep(0)
        ran.append(name)
        return name.upper()

    def plain(name):
        ran.append(name)
        return name.upper()

    async def main():
        assert await wf.as_effect("a")(awaited)("x") == "X"
        decorate = twin(db, wf).as_effect
        assert await decorate("a")(awaited)("x") == "X"
        assert await decorate("b")(plain)("y") == await decorate("b")(plain)("y") == "Y"

    asyncio.run(main())
    assert ran == ["x", "y"]


# ---------------------------------------------------------------------------------------------- the toolset


def make_tools(wf, world, **more):
    def create_bucket(name):
        return world.run()

    async def get_status(handle):
        await asyncio.sleep(0)
        world.probes += 1
        if handle == "gone":
            raise KeyError(handle)
        return world.probes

    tools = {"create_bucket": create_bucket, "get_status": get_status}
    return wf.toolset(tools, reads={"get_status"}, **more)


def test_a_toolset_is_called_by_the_call_ids_of_the_provider(db, wf):
    world = World()
    tools = make_tools(wf, world)
    assert tools.call("toolu_1", "create_bucket", {"name": "logs"}) == "bucket-7f3a"
    assert tools.call("toolu_1", "create_bucket", {"name": "logs"}) == "bucket-7f3a"
    assert [tools.call("toolu_2", "get_status", {"handle": "b"}) for _ in range(2)] == [1, 2]
    assert world.runs == 1
    assert [event.envelope.call_id for event in log_of(db, wf)[-6:]] == ["toolu_1"] * 2 + ["toolu_2"] * 4
    assert set(states(wf)) == {"toolu_1"}
    ids = [
        block["id"] for m in wf.context().messages("anthropic") for block in m["content"] if block["type"] == "tool_use"
    ]
    assert ids[0] == "toolu_1"
    with pytest.raises(KeyError):
        tools.call("toolu_3", "get_status", {"handle": "gone"})
    assert log_of(db, wf)[-1].envelope.is_error
    assert wf.context().open_calls == ()


def test_a_toolset_is_awaited_in_an_event_loop(db, wf):
    world = World()

    async def main():
        tools = make_tools(twin(db, wf), world, probes={"create_bucket": lambda args: EffectDone(args["name"])})
        assert await tools.acall("1", "create_bucket", {"name": "logs"}) == "bucket-7f3a"
        assert await tools.acall("1", "create_bucket", {"name": "logs"}) == "bucket-7f3a"
        assert await tools.acall("2", "get_status", {"handle": "b"}) == 1
        world.error = TimeoutError()
        assert await tools.acall("3", "create_bucket", {"name": "found"}) == "found"

    asyncio.run(main())
    assert world.runs == 2


@pytest.mark.parametrize(
    "call",
    [("1", "nothing", {}), ("1", "create_bucket", ["logs"]), ("1", "create_bucket", {1: 2}), ("", "create_bucket", {})],
)
def test_a_toolset_refuses_bad_calls_before_anything_runs(db, wf, call):
    world = World()
    with pytest.raises(strandline.InvalidInputError):
        make_tools(wf, world).call(*call)
    assert (world.runs, len(log_of(db, wf))) == (0, 4)


@pytest.mark.parametrize("args", [{}, {"nmae": "logs"}, {"name": "logs", "colour": "red"}])
def test_arguments_that_a_model_invented_leave_no_effect_in_doubt(wf, args):
    """Nothing happened, and we know it: no case."""

    def create_bucket(name, region="eu"):
        raise AssertionError

    tools = wf.toolset({"create_bucket": create_bucket})
    with pytest.raises(strandline.InvalidInputError, match="don't fit the tool 'create_bucket'"):
        tools.call("toolu_1", "create_bucket", args)
    assert (wf.effects(), cases(wf)) == ([], [])


@pytest.mark.parametrize(
    "wrong", [{"probes": {"x": print}}, {"subjects": {"x": print}}, {"reads": {"x"}}, {"reads": "x"}]
)
def test_a_toolset_names_no_other_tools(wf, wrong):
    with pytest.raises(strandline.InvalidInputError, match="'x'"):
        wf.toolset({"t": print}, **wrong)
    with pytest.raises(strandline.InvalidInputError, match="can't be called"):
        wf.toolset({"t": 7})


# ---------------------------------------------------------------------------------------------- answers to cases


@pytest.fixture
def case(wf):
    crash(wf)
    with pytest.raises(EffectUnknownError) as unknown:
        wf.effect("create", "create_bucket", ARGS, World().run)
    return unknown.value.case_id


@pytest.mark.parametrize("answer", [EffectDone({"id": 7}), EffectNeverHappened(), Abandon()], ids=str)
def test_the_answer_to_a_case_is_the_outcome_of_its_effect(wf, case, answer):
    world = World()
    wf.reconcile(case, answer, by="ann", why="asked the other side")
    assert cases(wf) == []
    if isinstance(answer, Abandon):
        with pytest.raises(EffectUnknownError, match="given up"):
            wf.effect("create", "create_bucket", ARGS, world.run)
        assert states(wf) == {"create": ("abandoned", 1)}
        return
    outcome = wf.effect("create", "create_bucket", ARGS, world.run)
    done = isinstance(answer, EffectDone)
    assert (outcome.kind, outcome.result) == (("replayed", {"id": 7}) if done else ("ran", "bucket-7f3a"))
    assert states(wf) == {"create": ("done", 1 if done else 2)}


def test_an_effect_takes_the_result_that_the_log_holds(wf, case):
    with pytest.raises(strandline.InvalidInputError, match="holds no result"):
        wf.reconcile(case, ReplayFromExact(), by="ann", why="it is there")
    wf.append(strandline.tool_result("create", {"id": 9}))
    wf.reconcile(case, ReplayFromExact(), by="ann", why="it is there")
    assert wf.effect("create", "create_bucket", ARGS, World().run).result == {"id": 9}


def test_a_case_of_an_effect_whose_outcome_is_known_can_be_closed(wf):
    world = World()

    def slow():
        wf.effect("create", "create_bucket", ARGS, lambda: 1, world.answering(EffectDone("other")))
        return world.run()

    with pytest.raises(EffectUnknownError) as otherwise:
        wf.effect("create", "create_bucket", ARGS, slow)
    with pytest.raises(strandline.InvalidInputError, match="not unknown"):
        wf.reconcile(otherwise.value.case_id, EffectDone("x"), by="ann", why="looked")
    wf.reconcile(otherwise.value.case_id, Abandon(), by="ann", why="one of them was deleted")
    assert cases(wf) == []
    assert wf.effect("create", "create_bucket", ARGS, world.run).result == "other"
