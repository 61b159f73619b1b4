"""Law (C34): a deleted thread stays deleted, whatever its runs still write, on every store; and it may begin anew.

A graph saves in the background, so a task's writes may come before the checkpoint that they stand behind.
"""

import asyncio
import threading

import pytest
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

import strandline
from strandline import StateConflictError
from strandline.engine import save_state
from strandline.integrations.langgraph import StrandlineSaver
from strandline.integrations.langgraph import early as early_module
from tests.integrations.langgraph_graphs import asking, delta, talk, thread
from tests.integrations.test_langgraph_saver import beginning, fresh, put, texts

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")

HELLO = {"messages": [("user", "hello")]}
DURABILITIES = ("sync", "async", "exit")


@pytest.fixture
def saver(store_url):
    with strandline.open(store_url) as opened:
        yield StrandlineSaver(opened.tenant("acme"))


def blocking(saver, name, *args):
    return getattr(saver, name)(*args)


def awaited(saver, name, *args):
    return asyncio.run(getattr(saver, f"a{name}")(*args))


def later(config):
    """Return the config of a checkpoint that is to come behind one."""
    return {"configurable": {**config["configurable"], "checkpoint_id": str(uuid6())}}


def pending(saver, config):
    return [(channel, value) for _, channel, value in saver.get_tuple(config).pending_writes]


class Slow(StrandlineSaver):
    """Its `put`s wait until a task has written behind the checkpoint that is to be saved."""

    wrote = threading.Event()

    def put(self, *args):
        assert self.wrote.wait(10)
        return super().put(*args)

    def put_writes(self, *args):
        super().put_writes(*args)
        self.wrote.set()


class TestALateWrite:
    @pytest.mark.parametrize("call", [blocking, awaited])
    def test_behind_a_checkpoint_that_was_never_saved(self, saver, call):
        first = put(saver, beginning(), {"n": 1})
        coming = later(first)
        call(saver, "delete_thread", "t")
        call(saver, "put_writes", coming, [("n", "late")], "task")
        states = saver.tenant.workflow("t").states
        assert (states.usage().parts, states.delete()) == (0, 0)
        with pytest.raises(StateConflictError, match="deleted"):
            put(saver, first, {"n": 2}, coming["configurable"]["checkpoint_id"])
        assert saver.get_tuple(beginning()) is None
        put(saver, beginning(), {"n": 3})
        assert states.usage().parts == 1

    def test_once_the_thread_began_anew(self, saver):
        first = put(saver, beginning(), {"n": 1})
        saver.delete_thread("t")
        put(saver, beginning(), {"n": 2})
        saver.put_writes(later(first), [("n", "late")], "task")
        assert saver.tenant.workflow("t").states.usage().parts == 1

    @pytest.mark.parametrize("durability", DURABILITIES)
    def test_of_a_run_whose_thread_is_deleted_meanwhile(self, saver, durability):
        graph = talk(saver, lambda: fresh(saver).delete_thread("t"))
        talk(saver).invoke(HELLO, thread("t"))
        with pytest.raises(StateConflictError, match="deleted"):
            graph.invoke(HELLO, thread("t"), durability=durability)
        assert list(saver.list(thread("t"))) == []
        assert saver.tenant.workflow("t").states.usage().parts == 0

    @pytest.mark.parametrize("keeps_its_own", [True, False])
    def test_of_a_subgraph(self, saver, keeps_its_own):
        """Its first checkpoint has no parent in its namespace: it comes with the one of its graph that it names."""

        class Deleting(StrandlineSaver):
            def put(self, config, *args):
                if config["configurable"]["checkpoint_ns"]:
                    saver.delete_thread("t")
                return super().put(config, *args)

        with pytest.raises(StateConflictError, match="deleted"):
            asking(Deleting(saver.tenant), keeps_its_own=keeps_its_own).invoke(HELLO, thread("t"))
        assert list(saver.list(thread("t"))) == []
        assert saver.tenant.workflow("t").states.usage().parts == 0

    @pytest.mark.parametrize("durability", DURABILITIES)
    @pytest.mark.parametrize("deletes_itself", [True, False])
    def test_of_a_subgraph_that_begins_once_its_thread_was_deleted(self, saver, durability, deletes_itself):
        """Saved in the background, the checkpoints of its graph are refused or still to come, and the run goes on."""
        deleting = saver if deletes_itself else fresh(saver)
        graph = asking(saver, keeps_its_own=False, meanwhile=lambda: deleting.delete_thread("t"))
        talk(saver).invoke(HELLO, thread("t"))
        with pytest.raises(StateConflictError, match="deleted"):
            graph.invoke(HELLO, thread("t"), durability=durability)
        assert list(saver.list(thread("t"))) == []
        assert saver.tenant.workflow("t").states.usage().parts == 0
        assert asking(saver, keeps_its_own=False).invoke(HELLO, thread("t"), durability=durability)["__interrupt__"]


class TestAnEarlyWrite:
    @pytest.mark.parametrize("call", [blocking, awaited])
    def test_stands_behind_its_checkpoint_once_that_is_saved(self, saver, call):
        coming = later(beginning())
        call(saver, "put_writes", coming, [("a", 1), ("__resume__", "x")], "task")
        call(saver, "put_writes", coming, [("a", 2), ("__resume__", "y"), ("__resume__", "z")], "task")
        assert saver.get_tuple(coming) is None
        put(saver, beginning(), {}, coming["configurable"]["checkpoint_id"])
        assert sorted(pending(fresh(saver), coming)) == [("__resume__", "y"), ("a", 1)]
        call(saver, "put_writes", coming, [("b", 3)], "other task")
        assert len(pending(saver, coming)) == 3

    def test_of_a_save_that_is_repeated(self, saver, monkeypatch):
        coming = later(beginning())
        state_id = coming["configurable"]["checkpoint_id"]
        saver.put_writes(coming, [("a", 1)], "task")
        with monkeypatch.context() as broken:
            broken.setattr(type(saver.tenant.workflow("t").states), "save", _unavailable)
            with pytest.raises(strandline.StoreUnavailableError):
                put(saver, beginning(), {}, state_id)
        put(saver, beginning(), {}, state_id)
        assert pending(saver, coming) == [("a", 1)]

    def test_stands_there_or_its_checkpoint_does_not(self, saver, monkeypatch):
        """Whatever fails, a run that goes on from a checkpoint finds what its tasks have written."""
        coming = later(beginning())
        state_id = coming["configurable"]["checkpoint_id"]
        saver.put_writes(coming, [("a", 1)], "task")
        with monkeypatch.context() as broken:
            broken.setattr(save_state, "write_in", _unavailable)
            with pytest.raises(strandline.StoreUnavailableError):
                put(saver, beginning(), {}, state_id)
        assert saver.get_tuple(coming) is None
        put(saver, beginning(), {}, state_id)
        assert pending(saver, coming) == [("a", 1)]

    def test_that_fails_is_not_kept(self, saver, monkeypatch):
        coming = later(beginning())
        saver.put_writes(coming, [("a", 1)], "task")
        with monkeypatch.context() as broken:
            broken.setattr(type(saver.tenant.workflow("t").states), "write", _unavailable)
            with pytest.raises(strandline.StoreUnavailableError):
                saver.put_writes(coming, [("a", 2)], "other task")
        put(saver, beginning(), {}, coming["configurable"]["checkpoint_id"])
        assert pending(saver, coming) == [("a", 1)]

    def test_behind_what_another_saver_saved_and_deleted(self, saver):
        coming = later(beginning())
        saver.put_writes(coming, [("a", 1)], "task")
        put(fresh(saver), beginning(), {}, coming["configurable"]["checkpoint_id"])
        saver.delete_thread("t")
        with pytest.raises(StateConflictError, match="deleted"):
            saver.put_writes(coming, [("a", 2)], "task")
        assert (saver._early._waiting, saver._early._bytes) == ({}, 0)

    @pytest.mark.parametrize("early", [[("a", b"x" * 4000)], [("a", b"")] * 4])
    def test_of_which_more_bytes_come_than_may_wait_goes_to_the_store(self, saver, monkeypatch, early):
        monkeypatch.setattr(early_module, "EARLY_BYTES_MAX", 4000)
        places = [later(beginning(line=str(number))) for number in range(4)]
        for place in places:
            saver.put_writes(place, early, "task")
            assert saver._early._bytes <= 4000
            saver.put_writes(place, [("b", 1)], "other task")
        for place in places:
            named = place["configurable"]
            put(saver, beginning(line=named["checkpoint_ns"]), {}, named["checkpoint_id"])
            assert len(pending(saver, place)) == len(early) + 1
        assert (saver._early._waiting, saver._early._bytes) == ({}, 0)

    def test_of_which_more_come_than_may_wait_goes_to_the_store(self, saver, monkeypatch):
        monkeypatch.setattr(early_module, "EARLY_STATES_MAX", 1)
        waits, stands = later(beginning()), later(beginning(line="other"))
        saver.put_writes(waits, [("a", 1)], "task")
        saver.put_writes(stands, [("a", 2)], "task")
        put(saver, beginning(line="other"), {}, stands["configurable"]["checkpoint_id"])
        put(saver, beginning(), {}, waits["configurable"]["checkpoint_id"])
        assert (pending(saver, waits), pending(saver, stands)) == ([("a", 1)], [("a", 2)])

    def test_while_its_checkpoint_is_being_saved(self, saver):
        """Many at once: whether it came before or after, it stands there."""
        coming = [later(beginning()) for _ in range(8)]
        for number, config in enumerate(coming):
            config["configurable"]["checkpoint_ns"] = f"line {number}"
        together = threading.Barrier(2 * len(coming))

        def save(config):
            together.wait(10)
            named = config["configurable"]
            put(saver, beginning(line=named["checkpoint_ns"]), {"n": 1}, named["checkpoint_id"])

        def write(config):
            together.wait(10)
            saver.put_writes(config, [("a", 1)], "task")

        runs = [threading.Thread(target=what, args=(config,)) for config in coming for what in (save, write)]
        for one in runs:
            one.start()
        for one in runs:
            one.join()
        assert [pending(saver, config) for config in coming] == [[("a", 1)]] * len(coming)


class TestAThreadThatBeginsAnew:
    @pytest.mark.parametrize("durability", DURABILITIES)
    def test_goes_on_as_a_new_one(self, saver, durability):
        told = []
        for one in (InMemorySaver(), saver):
            talk(one).invoke(HELLO, thread("t"))
            delta(one).invoke({"log": ["u"]}, thread("d"), durability=durability)
            one.delete_thread("t")
            one.delete_thread("d")
            graph, answers = talk(one), []
            asked = (Command(update=HELLO, goto="answer"), HELLO)
            answers += [texts(graph.invoke(one_turn, thread("t"), durability=durability)) for one_turn in asked]
            noting = delta(one)
            answers += [noting.invoke({"log": [f"u{n}"]}, thread("d"), durability=durability) for n in range(3)]
            answers.append(noting.get_state(thread("d")).values)
            answers.append([state.metadata["step"] for state in graph.get_state_history(thread("t"))])
            told.append(answers)
        assert told[0] == told[1]

    def test_whose_first_write_comes_before_its_checkpoint(self, saver):
        put(saver, beginning(), {"n": 1})
        saver.delete_thread("t")
        slow = Slow(saver.tenant)
        slow.wrote.clear()
        assert len(talk(slow).invoke(HELLO, thread("t"), durability="async")["messages"]) == 2
        assert len(talk(fresh(saver)).get_state(thread("t")).values["messages"]) == 2


def _unavailable(*_args, **_named):
    raise strandline.StoreUnavailableError("no answer")
