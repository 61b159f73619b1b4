"""Law (C34, I3, I4, I14, I21): a LangGraph thread on saved states loses no writer's turn without an error, is never
overwritten, never comes back once deleted, and is never read otherwise than it was written.

The same graphs run on LangGraph's in-memory saver where the answer has to be the same.
"""

import asyncio
import sqlite3
import threading
import uuid
from contextlib import closing

import numpy as np
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

import strandline
from strandline import CorruptRecordError, InvalidInputError, StateConflictError, StateErasedError
from strandline.integrations.langgraph import StrandlineSaver, StrandlineStore
from strandline.stores.sql.states import SqlStates
from tests.integrations.langgraph_graphs import asking, delta, talk, thread

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")

HELLO = {"messages": [("user", "hello")]}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agent.db"


@pytest.fixture
def db(path):
    with strandline.open(path) as opened:
        yield opened


@pytest.fixture
def saver(db):
    return StrandlineSaver(db.tenant("acme"))


def fresh(saver):
    """Return a saver of the same tenant that remembers nothing."""
    return StrandlineSaver(saver.tenant, restore=saver.restore)


def put(saver, config, values=None, state_id=None, metadata=None):
    """Save a checkpoint by hand."""
    checkpoint = empty_checkpoint()
    checkpoint["id"] = state_id or str(uuid6())
    checkpoint["channel_values"] = dict(values or {})
    version = uuid.uuid4().hex
    checkpoint["channel_versions"] = dict.fromkeys(checkpoint["channel_values"], version)
    return saver.put(config, checkpoint, metadata or {"source": "loop", "step": 0}, {})


def beginning(name="t", line=""):
    return {"configurable": {"thread_id": name, "checkpoint_ns": line}}


def says_otherwise(messages, at):
    messages[at].content[0]["text"] = "changed"


def is_renamed(messages, at):
    messages[at].name = None


def has_one_more_mark(messages, at):
    messages[at].additional_kwargs["mark"] = 1


def has_a_field_of_its_own(messages, at):
    messages[at].own = [1]


def is_of_another_kind(messages, at):
    messages[at] = HumanMessage(messages[at].content, id=messages[at].id, name="n")


def is_gone(messages, at):
    del messages[at]


CHANGES = [says_otherwise, is_renamed, has_one_more_mark, has_a_field_of_its_own, is_of_another_kind, is_gone]


def texts(state):
    return [message.content for message in state["messages"]]


class TestTheSameAnswers:
    @pytest.mark.parametrize("durability", ["sync", "async", "exit"])
    def test_turns_of_a_graph(self, saver, durability):
        told = []
        for one in (InMemorySaver(), saver):
            graph = talk(one)
            for _ in range(4):
                answer = graph.invoke(HELLO, thread("t"), durability=durability)
            steps = [(state.metadata["step"], state.next) for state in graph.get_state_history(thread("t"))]
            told.append((texts(answer), steps))
        assert told[0] == told[1]

    @pytest.mark.parametrize("keeps_its_own", [True, False])
    def test_interrupts_subgraphs_and_replays(self, saver, keeps_its_own):
        told = []
        for one in (InMemorySaver(), saver):
            graph, answers = asking(one, keeps_its_own=keeps_its_own), []
            for number in range(2):
                graph.invoke(HELLO, thread("t"))
                answers.append(texts(graph.invoke(Command(resume=f"a{number}"), thread("t"))))
            history = list(graph.get_state_history(thread("t")))
            for state in (next(s for s in history if s.next == ("inner",)), [s for s in history if s.next][-1]):
                answers.append(texts(graph.invoke(None, state.config)))
                answers.append(texts(graph.invoke(Command(resume="again"), thread("t"))))
            told.append(answers)
        assert told[0] == told[1]

    def test_a_subgraphs_checkpoint_comes_with_the_one_that_it_names(self, saver):
        """Saved in the background, a graph's checkpoint may stand behind that of its subgraph."""
        first = put(saver, beginning(), state_id="1")
        inner = {"source": "loop", "step": 0, "parents": {"": "2"}}
        put(saver, beginning(line="inner"), state_id="i", metadata=inner)
        second = put(saver, first, state_id="2")
        put(saver, second, state_id="3")

        def before(state_id):
            bound = {"configurable": {"checkpoint_id": state_id}}
            return [one.checkpoint["id"] for one in saver.list(beginning(line="inner"), before=bound)]

        assert (before("2"), before("3")) == ([], ["i"])

    def test_delta_channels(self, saver):
        told = []
        for one in (InMemorySaver(), saver):
            graph = delta(one)
            answers = [
                graph.invoke({"log": [f"u{n}"]}, thread("t"), durability=("sync", "async", "exit")[n % 3])["log"]
                for n in range(9)
            ]
            history = list(graph.get_state_history(thread("t")))
            answers += [state.values["log"] for state in history]
            answers.append(graph.invoke({"log": ["branch"]}, history[5].config)["log"])
            told.append(answers)
        assert told[0] == told[1]
        assert delta(fresh(saver)).get_state(thread("t")).values["log"] == told[0][-1]

    def test_delta_channels_of_branches(self, saver):
        """States of the other branch stand between a state and the one that it was made from."""
        told = []
        for one in (InMemorySaver(), saver):
            graph, answers = delta(one), []
            branches = [graph.invoke({"log": ["begin"]}, thread("t")) and graph.get_state(thread("t")).config] * 2
            for number in range(12):
                at = number % 2
                answers.append(graph.invoke({"log": [f"u{number}"]}, branches[at])["log"])
                branches[at] = graph.get_state(thread("t")).config
            told.append(answers)
        assert told[0] == told[1]

    def test_for_an_event_loop(self, saver):
        async def turns():
            graph = talk(saver)
            for _ in range(3):
                await graph.ainvoke(HELLO, thread("t"))
            return [state.metadata["step"] async for state in graph.aget_state_history(thread("t"))]

        assert asyncio.run(turns()) == list(range(7, -2, -1))

    def test_what_a_connection_string_opens(self, path):
        with StrandlineSaver.from_conn_string(str(path), tenant="acme") as saver:
            talk(saver).invoke(HELLO, thread("t"))

        async def again():
            async with StrandlineSaver.from_conn_string(str(path), tenant="acme") as saver:
                return await saver.aget_tuple(thread("t"))

        assert len(asyncio.run(again()).checkpoint["channel_values"]["messages"]) == 2


class TestTwoWriters:
    @pytest.mark.parametrize("begun", [True, False], ids=["a thread that was there", "a new thread"])
    def test_who_is_overtaken_is_refused(self, saver, begun):
        if begun:
            talk(saver).invoke(HELLO, thread("t"))

        def overtake():
            talk(fresh(saver)).invoke({"messages": [("user", "second")]}, thread("t"))

        with pytest.raises(StateConflictError) as refused:
            talk(saver, overtake).invoke({"messages": [("user", "first")]}, thread("t"), durability="sync")
        assert refused.value.reason == "moved"
        assert texts(talk(saver).get_state(thread("t")).values)[-2] == "second"

    def test_two_that_begin_at_once(self, saver):
        # Both have read nothing when the first one saves.
        read = threading.Barrier(2)
        told = []

        class Reading(StrandlineSaver):
            def get_tuple(self, config):
                found = super().get_tuple(config)
                read.wait(10)
                return found

        def run(name):
            try:
                told.append(talk(Reading(saver.tenant)).invoke({"messages": [("user", name)]}, thread("t")))
            except StateConflictError as error:
                told.append(error)

        runs = [threading.Thread(target=run, args=(name,)) for name in ("a", "b")]
        for one in runs:
            one.start()
        for one in runs:
            one.join()
        (refused,) = [one for one in told if isinstance(one, StateConflictError)]
        assert refused.reason == "moved"

    def test_a_hand_that_saves_behind_what_it_saved(self, saver):
        first = put(saver, beginning(), {"n": 1})
        put(saver, first, {"n": 2})
        with pytest.raises(StateConflictError, match="moved on"):
            put(saver, first, {"n": 3})

    def test_going_back_is_a_branch_that_is_meant(self, saver):
        graph = talk(saver)
        for _ in range(3):
            graph.invoke(HELLO, thread("t"))
        old = list(graph.get_state_history(thread("t")))[4]
        assert len(texts(graph.invoke(HELLO, old.config))) == len(old.values["messages"]) + 2
        graph.update_state(old.config, {"messages": [("user", "other")]}, as_node="answer")
        assert texts(graph.get_state(thread("t")).values)[-1] == "other"
        graph.update_state(thread("t"), None, as_node="__copy__")
        graph.invoke(HELLO, thread("t"))


class TestNothingIsOverwritten:
    def test_an_id_has_one_content(self, saver):
        first = put(saver, beginning(), {"n": 1}, "c1")
        with pytest.raises(StateConflictError, match="another content"):
            put(saver, beginning(), {"n": 2}, "c1")
        assert saver.get(first)["channel_values"] == {"n": 1}

    def test_a_parent_must_be_there(self, saver):
        lost = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": str(uuid6())}}
        with pytest.raises(StateConflictError, match="names as its parent"):
            put(saver, lost)
        assert saver.get_tuple(beginning()) is None

    def test_newest_is_what_was_saved_last_not_what_a_clock_says(self, saver):
        late, early = sorted([str(uuid6()), str(uuid6())], reverse=True)
        first = put(saver, beginning(), {"n": 1}, late)
        put(saver, first, {"n": 2}, early)  # by a machine whose clock is behind
        assert saver.get(beginning())["channel_values"] == {"n": 2}
        assert [one.checkpoint["id"] for one in saver.list(beginning())] == [early, late]

    def test_a_late_write_brings_nothing_back(self, saver):
        first = put(saver, beginning(), {"n": 1})
        saver.delete_thread("t")
        with pytest.raises(StateConflictError, match="deleted"):
            put(saver, first, {"n": 2})
        with pytest.raises(StateConflictError, match="deleted"):
            saver.put_writes(first, [("n", 3)], "task")
        assert saver.get_tuple(beginning()) is None
        put(saver, beginning(), {"n": 4})  # the thread may begin anew

    def test_writes_are_kept_whole_or_not_at_all(self, saver):
        first = put(saver, beginning())
        with pytest.raises(TypeError):
            saver.put_writes(first, [("a", 1), ("b", threading.Lock())], "task")
        assert saver.get_tuple(first).pending_writes == []

    def test_what_a_task_wrote_stays_and_what_it_was_told_is_replaced(self, saver):
        first = put(saver, beginning())
        saver.put_writes(first, [("a", 1), ("__resume__", "x")], "task")
        saver.put_writes(first, [("a", 2), ("__resume__", "y")], "task")
        assert {(channel, value) for _, channel, value in saver.get_tuple(first).pending_writes} == {
            ("a", 1),
            ("__resume__", "y"),
        }

    def test_writes_come_in_the_order_in_which_they_are_applied(self, saver):
        first = put(saver, beginning())
        for task, path in (("t1", "~b"), ("t2", "~a"), ("t0", "~a")):
            saver.put_writes(first, [("x", task), ("y", task)], task, path)
        assert [(task, channel) for task, channel, _ in saver.get_tuple(first).pending_writes] == [
            (task, channel) for task in ("t0", "t2", "t1") for channel in "xy"
        ]

    def test_a_flipped_byte_is_an_error(self, saver, db, path):
        talk(saver).invoke({"messages": [("user", "approved: NO " * 20)]}, thread("t"))
        db.close()
        with closing(sqlite3.connect(path)) as raw, raw:
            number, body = raw.execute("SELECT rowid, body FROM state_node ORDER BY length(body) DESC").fetchone()
            raw.execute("UPDATE state_node SET body = ? WHERE rowid = ?", (body[:-9] + b"!" + body[-8:], number))
        with (
            StrandlineSaver.from_conn_string(str(path), tenant="acme") as reading,
            pytest.raises(CorruptRecordError, match="state_node"),
        ):
            reading.get_tuple(thread("t"))


class TestTenants:
    def test_no_call_reaches_another_tenant(self, db, saver):
        other = StrandlineSaver(db.tenant("other"))
        put(saver, beginning("ours"), {"n": 1}, metadata={"run_id": "r1"})
        put(other, beginning("theirs"), {"n": 2}, metadata={"run_id": "r1"})
        assert [one.config["configurable"]["thread_id"] for one in saver.list(None)] == ["ours"]
        saver.delete_for_runs(["r1"])
        assert list(saver.list(None)) == []
        assert len(list(other.list(None))) == 1
        assert saver.get_tuple(beginning("theirs")) is None


class TestOtherStates:
    def test_what_no_saver_saved_is_no_checkpoint(self, saver):
        """The items of a store are saved states of the tenant, too."""
        StrandlineStore(saver.tenant).put(("users", "ann"), "prefs", {"theme": "dark"})
        put(saver, beginning(), {"n": 1})
        assert [one.config["configurable"]["thread_id"] for one in saver.list(None)] == ["t"]
        saver.tenant.workflow("other").states.save("1", {}, meta=b"what another guest says")
        assert len(list(saver.list(None))) == 1
        with pytest.raises(CorruptRecordError, match="no checkpoint"):
            saver.get_tuple(beginning("other"))


class TestRemoving:
    def test_a_pruned_thread_goes_on(self, saver):
        graph = delta(saver)
        for number in range(9):
            graph.invoke({"log": [f"u{number}"]}, thread("t"))
        held, before = graph.get_state(thread("t")).values, len(list(saver.list(thread("t"))))
        saver.prune(["t"])
        assert 1 < len(list(saver.list(thread("t")))) < 8 < before
        assert delta(fresh(saver)).get_state(thread("t")).values == held
        assert len(graph.invoke({"log": ["on"]}, thread("t"))["log"]) == len(held["log"]) + 2

    def test_a_thread_without_delta_channels_keeps_one_checkpoint(self, saver):
        graph = talk(saver)
        for _ in range(3):
            graph.invoke(HELLO, thread("t"))
        saver.prune(["t"])
        assert len(list(saver.list(thread("t")))) == 1
        assert len(graph.invoke(HELLO, thread("t"))["messages"]) == 8

    def test_what_a_delta_channel_needs_and_is_gone_is_an_error(self, saver):
        graph = delta(saver)
        for number in range(2):
            graph.invoke({"log": [f"u{number}"]}, {**thread("t"), "metadata": {"run_id": f"r{number}"}})
        saver.delete_for_runs(["r0"])
        with pytest.raises(StateErasedError, match="was deleted"):
            graph.get_state(thread("t"))

    def test_a_copied_thread_holds_the_same(self, saver):
        graph = talk(saver)
        graph.invoke(HELLO, thread("t"))
        saver.copy_thread("t", "u")
        assert graph.get_state(thread("u")).values == graph.get_state(thread("t")).values
        graph.invoke(HELLO, thread("u"))
        assert len(graph.get_state(thread("t")).values["messages"]) == 2
        with pytest.raises(StateConflictError, match="not among those"):
            saver.copy_thread("t", "u")
        assert len(graph.get_state(thread("u")).values["messages"]) == 4

    def test_a_subgraphs_state_is_updated_though_its_graphs_checkpoint_was_pruned(self, saver):
        """What `update_state` saves names the checkpoint of the graph that the one before it came with."""
        inner, told, own = beginning(line="inner"), [], asking(saver, keeps_its_own=True)
        for graph in (asking(InMemorySaver(), keeps_its_own=True), own):
            graph.invoke(HELLO, thread("t"))
            graph.invoke(Command(resume="this"), thread("t"))
            if graph is own:
                saver.prune(["t"])
            for node in ("ask", "__input__"):
                graph.update_state(inner, {"messages": [("ai", node)]}, as_node=node)
            told.append(texts(graph.get_state(inner).values))
        assert told[0] == told[1]

    @pytest.mark.parametrize("strategy", ["prune", "runs", "thread"])
    def test_what_is_older_than_a_checkpoint_that_is_gone(self, saver, tmp_path, strategy):
        """A reader of pages holds the id of the last one that he was shown; the stock saver goes by its id."""
        told = []
        with SqliteSaver.from_conn_string(str(tmp_path / "stock.db")) as stock:
            for one in (stock, saver):
                config, ids = beginning(), [str(uuid6()) for _ in range(5)]
                for number, state_id in enumerate(ids):
                    config = put(one, config, {"n": number}, state_id, {"run_id": f"r{number}", "step": number})
                put(one, beginning(line="inner"), {"n": 9}, metadata={"step": 9, "parents": {"": ids[3]}})
                bound = {"configurable": {"thread_id": "t", "checkpoint_id": ids[4]}}
                told.append([[state.metadata["step"] for state in one.list(beginning(), before=bound)]])
                if one is stock:
                    continue
                if strategy == "prune":
                    saver.tenant.workflow("t").states.prune([("", ids[0]), ("", ids[3]), ("inner", "none")])
                elif strategy == "runs":
                    saver.delete_for_runs(["r4", "r2"])
                else:
                    saver.delete_thread("t")
                left = {"prune": [3, 0], "runs": [3, 1, 0], "thread": []}[strategy]
                assert [state.metadata["step"] for state in one.list(beginning(), before=bound)] == left
                assert one.get_tuple({"configurable": {**bound["configurable"], "checkpoint_ns": ""}}) is None
        assert told[0] == told[1]

    def test_each_checkpoint_of_many_subgraphs_is_compared_by_one_read(self, saver, monkeypatch):
        config, gets, rows = beginning(), SqlStates.get, []
        for number in range(10):
            config = put(saver, config, state_id=f"g{number}")
            put(saver, beginning(line=f"inner {number}"), metadata={"step": 0, "parents": {"": f"g{number}"}})
        monkeypatch.setattr(SqlStates, "get", lambda *named: rows.append(named) or gets(*named))
        assert len(list(saver.list(thread("t"), before=config))) == 9 + 9
        assert len(rows) == 11 + 10  # where the bound is, in one of the lines; and for each one of a subgraph

    def test_a_subgraphs_checkpoint_comes_with_one_of_its_graph_that_is_gone(self, saver):
        """Saved in the background, a graph's checkpoint may stand behind that of its subgraph; then it is deleted."""
        first = put(saver, beginning(), state_id="1", metadata={"run_id": "a", "step": 0})
        put(saver, beginning(line="inner"), state_id="i", metadata={"run_id": "b", "step": 0, "parents": {"": "2"}})
        second = put(saver, first, state_id="2", metadata={"run_id": "a", "step": 1})
        put(saver, second, state_id="3", metadata={"run_id": "b", "step": 2})
        saver.delete_for_runs(["a"])

        def before(state_id):
            bound = {"configurable": {"checkpoint_id": state_id}}
            return [one.checkpoint["id"] for one in saver.list(beginning(line="inner"), before=bound)]

        assert (before("2"), before("3")) == ([], ["i"])

    @pytest.mark.parametrize(("threads", "strategy"), [("t", "delete"), (["t"], "keep_some")])
    def test_what_a_prune_is_not(self, saver, threads, strategy):
        put(saver, beginning())
        with pytest.raises(InvalidInputError):
            saver.prune(threads, strategy=strategy)
        assert saver.get_tuple(beginning()) is not None


class TestBadInput:
    def test_a_config_without_a_thread(self, saver):
        with pytest.raises(InvalidInputError, match="thread_id"):
            saver.get_tuple({"configurable": {}})

    def test_writes_behind_nothing(self, saver):
        with pytest.raises(InvalidInputError, match="checkpoint_id"):
            saver.put_writes(beginning(), [("a", 1)], "task")

    def test_before_what_is_not_there(self, saver):
        put(saver, beginning())
        lost = {"configurable": {"thread_id": "t", "checkpoint_id": "none"}}
        with pytest.raises(InvalidInputError, match="before which"):
            list(saver.list(beginning(), before=lost))
        with pytest.raises(InvalidInputError, match="one thread"):
            list(saver.list(None, before=lost))

    def test_a_limit_that_is_none(self, saver):
        with pytest.raises(InvalidInputError, match="0 or more"):
            list(saver.list(beginning(), limit=-1))

    def test_a_restore_that_is_none(self, saver):
        with pytest.raises(InvalidInputError, match="restore"):
            StrandlineSaver(saver.tenant, restore="maybe")

    @pytest.mark.parametrize("guest", [StrandlineSaver, StrandlineStore])
    def test_what_is_no_tenant_is_refused_at_once(self, guest):
        with strandline.open(":memory:") as db:
            for wrong in (db, "acme"):
                with pytest.raises(InvalidInputError, match="tenant is a Tenant"):
                    guest(wrong)

    def test_versions_go_on_where_a_stock_saver_left_them(self, saver):
        stock = InMemorySaver().get_next_version(None, None)
        after = saver.get_next_version(stock, None)
        assert after > stock
        assert len(after) == len(stock.partition(".")[0])
        assert saver.get_next_version(saver.get_next_version(None, None), None) == "0000000002"


class TestEachValueOnce:
    def test_a_history_costs_what_is_new_of_it(self, saver, db, path):
        with strandline.open(path.with_name("empty.db")):
            pass
        empty = path.with_name("empty.db").stat().st_size
        config, messages = beginning(), []
        for number in range(200):
            messages = [*messages, HumanMessage("".join(str(uuid.uuid4()) for _ in range(28)), id=str(number))]
            config = put(saver, config, {"messages": messages})
        assert saver.get(beginning())["channel_values"]["messages"] == messages
        assert fresh(saver).get(beginning())["channel_values"]["messages"] == messages
        db.close()
        payload = sum(len(message.content) for message in messages)
        assert path.stat().st_size - empty < 2 * payload

    def test_what_a_reader_changes_is_his_own(self, saver):
        talk(saver).invoke(HELLO, thread("t"))
        mine = saver.get(thread("t"))["channel_values"]["messages"]
        mine[0].content, mine[1].additional_kwargs["seen"] = "changed", True
        assert saver.get(thread("t")) == fresh(saver).get(thread("t"))

    def test_what_a_node_changes_in_place_is_saved(self, saver):
        message = AIMessage("draft", id="a", tool_calls=[{"name": "f", "args": {"x": [1]}, "id": "c"}])
        first = put(saver, beginning(), {"messages": [HumanMessage("q", id="q"), message]})
        message.tool_calls[0]["args"]["x"].append(2)
        put(saver, first, {"messages": [HumanMessage("q", id="q"), message, HumanMessage("more", id="m")]})
        held = fresh(saver).get(beginning())["channel_values"]["messages"]
        assert held[1].tool_calls[0]["args"] == {"x": [1, 2]}
        assert saver.get(beginning())["channel_values"]["messages"] == held

    @pytest.mark.parametrize("at", [0, 1, 63, 64, 129])
    @pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
    def test_a_change_anywhere_is_seen(self, saver, at, change):
        messages = [AIMessage([{"type": "text", "text": str(n)}], id=str(n), name="n") for n in range(130)]
        first = put(saver, beginning(), {"messages": messages})
        before = saver.get(beginning())
        change(messages, at)
        put(saver, first, {"messages": [*messages, HumanMessage("more", id="m")]})
        held = fresh(saver).get(beginning())["channel_values"]["messages"]
        assert held == saver.get(beginning())["channel_values"]["messages"]
        assert [said.model_dump() for said in held[:-1]] == [said.model_dump() for said in messages]
        assert list(map(type, held[:-1])) == list(map(type, messages))
        assert fresh(saver).get(first) == before

    def test_what_is_taken_out_of_the_middle_is_gone(self, saver):
        messages = [HumanMessage(str(n), id=str(n)) for n in range(40)]
        first = put(saver, beginning(), {"messages": messages, "other": [{"n": n} for n in range(40)]})
        left = messages[:17] + messages[18:]
        put(saver, first, {"messages": left, "other": [{"n": n} for n in range(35)]})
        for one in (saver, fresh(saver)):
            assert one.get(beginning())["channel_values"]["messages"] == left
            assert one.get(beginning())["channel_values"]["other"] == [{"n": n} for n in range(35)]

    def test_an_artifact_that_cannot_be_compared_is_saved_again(self, saver):
        """An array answers `==` with an array, and two of them no yes or no."""
        found = ToolMessage("rows", id="t", tool_call_id="c", artifact=np.arange(3))
        first = put(saver, beginning(), {"messages": [HumanMessage("q", id="q"), found]})
        put(saver, first, {"messages": [HumanMessage("q", id="q"), found, HumanMessage("more", id="m")]})
        for one in (saver, fresh(saver)):
            held = one.get(beginning())["channel_values"]["messages"]
            assert [message.id for message in held] == ["q", "t", "m"]
            assert held[1].artifact.tolist() == [0, 1, 2]

    def test_another_savers_turns_are_seen(self, saver):
        talk(saver).invoke(HELLO, thread("t"))
        talk(fresh(saver)).invoke(HELLO, thread("t"))
        assert len(talk(saver).invoke(HELLO, thread("t"))["messages"]) == 6

    def test_what_is_erased_in_the_log_is_not_read_from_memory(self, saver):
        workflow = saver.tenant.workflow("t")
        secret = "the patient's name is Ada Example, born in Bern"
        workflow.append(strandline.message("user", secret, key="m1"))
        talk(saver).invoke({"messages": [("user", secret)]}, thread("t"))
        saver.get_tuple(thread("t"))
        workflow.erase(events=[1], by="ann", why="asked to")
        with pytest.raises(StateErasedError):
            saver.get_tuple(thread("t"))

    @pytest.mark.parametrize("where", ["messages", "metadata"])
    def test_a_thread_of_which_something_was_erased_is_listed_and_pruned(self, saver, where):
        workflow, secret = saver.tenant.workflow("t"), "the patient's name is Ada Example, born in Bern"
        workflow.append(strandline.message("user", secret, key="m1"))
        said = {"messages": secret if where == "messages" else "hello", "metadata": "none"} | {where: secret}
        told = {**thread("t"), "metadata": {"who": said["metadata"]}}
        for text in (said["messages"], "more"):
            talk(saver).invoke({"messages": [("user", text)]}, told)
        workflow.erase(events=[1], by="ann", why="asked to")
        if where == "messages":
            held = [one.checkpoint["channel_values"].get("messages", ()) for one in saver.list(thread("t"))]
            assert [len(messages) for messages in held] == [3, 2, 1, 1, 0, 0]
        else:
            with pytest.raises(StateErasedError, match="all that checkpoint"):
                list(saver.list(thread("t")))
        saver.prune(["t"])
        assert len(list(workflow.states.list())) == 1
