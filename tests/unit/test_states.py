"""Law (I3, I4, I14, C31): saved states are versions that are never overwritten, never lost and never brought back.

Checked through the client on every embedded store: what is saved is what is loaded; who is late is refused, and nothing
was written; what is damaged or missing is an error with its place.
"""

import asyncio
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline import InvalidInputError, NewState, Part, SavedState, StateConflictError, StateValue, StateWrite
from strandline.engine import save_state
from strandline.limits import STATE_BLOCK_NODES, STATES_PAGE
from strandline.rules.states import levels_of, loose_from
from tests.unit.test_engine_stage import STORES, bounded, open_store


@pytest.fixture(params=STORES)
def db(request, tmp_path):
    with open_store(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
def states(db):
    return db.tenant("acme").workflow("thread-1").states


def one(text):
    return StateValue((Part(kind="text", data=text.encode()),))


def many(*texts):
    return StateValue(tuple(Part(kind="text", data=text.encode()) for text in texts), many=True)


def texts_of(value):
    return [part.data.decode() for part in value.parts]


def write(task, index, text="w", channel="c"):
    return StateWrite(task=task, index=index, channel=channel, path="~", value=one(text))


def chain(states, count, line=""):
    """Save a list that grows by one message a state."""
    for number in range(count):
        parent = f"{line}s{number - 1}" if number else None
        values = {"messages": many(*(f"message {at}" for at in range(number + 1)))}
        states.save(f"{line}s{number}", values, line=line, parent=parent, run=f"run-{number % 2}")


class TestWhatIsSavedIsLoaded:
    def test_a_state_as_a_whole(self, states):
        saved = states.save("s1", {"a": one("x"), "b": many("p", "q", "p"), "none": many()}, meta=b"{}", run="r")
        assert saved == strandline.Saved(position=1, created=True)
        expected = SavedState(
            state_id="s1",
            line="",
            position=1,
            parent=None,
            values={"a": one("x"), "b": many("p", "q", "p"), "none": many()},
            meta=b"{}",
            run="r",
            writes=(),
            seen=1,
        )
        assert states.load("s1") == states.load() == expected
        assert list(states.list()) == [expected]

    def test_nothing(self, states):
        assert states.load() is None
        assert states.load("s1") is None
        assert list(states.list()) == []
        assert states.lines() == []
        assert (states.delete(), states.prune()) == (0, 0)

    def test_values_are_kept_from_the_parent(self, states):
        states.save("s1", {"a": one("x"), "b": one("y")})
        states.save("s2", {"b": one("z")}, parent="s1", kept=["a"])
        assert states.load("s2").values == {"a": one("x"), "b": one("z")}

    def test_lists_of_every_length(self, states):
        """Across the ends of blocks, and of blocks of blocks."""
        near = {STATE_BLOCK_NODES**level + step for level in (0, 1, 2) for step in (-1, 0, 1)}
        for length in sorted(near):
            value = many(*(f"m{at}" for at in range(length)))
            states.save(f"s{length}", {"list": value})
            assert states.load(f"s{length}").values == {"list": value}

    def test_lists_that_change_anywhere(self, states):
        base = [f"m{at}" for at in range(40)]
        for number, changed in enumerate([base, base[1:], [*base[:20], "new", *base[20:]], base[::-1], base * 2]):
            states.save(f"s{number}", {"list": many(*changed)})
            assert texts_of(states.load(f"s{number}").values["list"]) == changed

    def test_a_part_is_kept_once(self, db, states):
        chain(states, 40)
        with db.store.read(states._env.scope) as tx:
            levels = [node.level for node in tx.nodes.all()]
        assert levels.count(0) == 40
        assert levels.count(1) == 2

    def test_the_newest_is_the_one_that_was_saved_last(self, states):
        for state_id in ("b", "c", "a"):
            states.save(state_id, {})
        assert states.load().state_id == "a"
        assert [state.state_id for state in states.list()] == ["a", "c", "b"]

    def test_lines_are_apart(self, states):
        states.save("s", {"of": one("main")})
        states.save("s", {"of": one("sub")}, line="sub|1")
        assert states.lines() == ["", "sub|1"]
        assert texts_of(states.load("s", line="sub|1").values["of"]) == ["sub"]
        assert [state.line for state in states.list()] == ["sub|1", ""]
        assert [state.line for state in states.list(line="")] == [""]
        assert states.load(line="other") is None

    def test_pages(self, states):
        count = 2 * STATES_PAGE + 3
        chain(states, count)
        ids = [f"s{number}" for number in reversed(range(count))]
        assert [state.state_id for state in states.list()] == ids
        assert [state.state_id for state in states.list(line="", limit=STATES_PAGE + 1)] == ids[: STATES_PAGE + 1]
        assert [state.state_id for state in states.list(before=3)] == ["s1", "s0"]
        assert [state.state_id for state in states.list(limit=0)] == []
        assert next(iter(states.list(values=False, limit=1))).values == {}

    def test_other_tenants_and_forks_see_nothing(self, db, states):
        db.tenant("acme").workflow("thread-1").append(strandline.note("x"))
        states.save("s", {"a": one("x")})
        assert db.tenant("other").workflow("thread-1").states.load() is None
        db.tenant("acme").workflow("thread-1").fork(1, "fork", by="ann", why="to try")
        assert db.tenant("acme").workflow("fork").states.load() is None

    def test_a_narrow_view_has_none(self, db):
        workflow = db.tenant("acme").workflow("w")
        workflow.define_view("narrow", audiences={"x"})
        with pytest.raises(strandline.InvalidInputError, match="narrow"):
            _ = workflow.view("narrow").states

    def test_the_async_twin(self, db, states):
        twin = strandline.AsyncStates(states)

        async def all_of_it():
            await twin.save("s1", {"a": one("x")}, writes=[write("t", 1)])
            await twin.write("s1", [write("t", 0)])
            (again,) = await twin.save_all([NewState(state_id="s1", values={"a": one("x")})])
            assert (again.created, await twin.positions("s1", line="")) == (False, {"": 1})
            found = [state async for state in twin.list()]
            assert found == [await twin.load()]
            assert await twin.lines() == [""]
            assert await twin.copy_to("other") == 1
            return await twin.prune(), await twin.delete()

        assert asyncio.run(all_of_it()) == (0, 1)


class TestWhoIsLateIsRefused:
    def refused(self, states, reason, *arguments, **named):
        before = list(states.list())
        with pytest.raises(StateConflictError) as caught:
            states.save(*arguments, **named)
        assert caught.value.reason == reason
        assert list(states.list()) == before
        return caught.value

    def test_the_same_again(self, states):
        first = states.save("s1", {"a": one("x")}, meta=b"m", run="r", seen=0)
        states.save("s2", {}, parent="s1")
        again = states.save("s1", {"a": one("x")}, meta=b"m", run="r", seen=0)
        assert (again.position, again.created) == (first.position, False)

    @pytest.mark.parametrize(
        "other", [{"values": {"a": one("y")}}, {"values": {}}, {"meta": b"n"}, {"run": "q"}, {"parent": "s0"}]
    )
    def test_another_content(self, states, other):
        states.save("s0", {})
        states.save("s1", {"a": one("x")}, meta=b"m")
        arguments = {"values": {"a": one("x")}, "meta": b"m"} | other
        self.refused(states, "taken", "s1", arguments.pop("values"), **arguments)

    def test_an_unknown_parent(self, states):
        states.save("elsewhere", {}, line="other")
        error = self.refused(states, "unknown parent", "s2", {}, parent="s1")
        assert (error.line, error.state_id, error.newest) == ("", "s2", None)
        self.refused(states, "unknown parent", "s2", {}, parent="elsewhere")
        states.write("s1", [write("t", 0)])
        self.refused(states, "unknown parent", "s2", {}, parent="s1")

    def test_two_writers(self, states):
        states.save("s1", {})
        seen = states.load().seen
        states.save("mine", {}, parent="s1", seen=seen)
        error = self.refused(states, "moved", "theirs", {}, parent="s1", seen=seen)
        assert error.newest == "mine"

    def test_two_who_begin_at_once(self, states):
        states.save("mine", {}, seen=0)
        self.refused(states, "moved", "theirs", {}, seen=0)

    def test_a_branch_that_is_meant(self, states):
        for number in range(3):
            states.save(f"s{number}", {}, parent=f"s{number - 1}" if number else None)
        older = states.load("s0")
        states.save("branch", {}, parent="s0", seen=older.seen)
        assert states.load().state_id == "branch"

    def test_another_line_moves_nobody(self, states):
        states.save("s1", {})
        seen = states.load().seen
        states.save("sub", {}, line="sub")
        states.save("s2", {}, parent="s1", seen=seen)
        assert states.load().state_id == "s2"

    def test_threads_on_one_parent(self, states):
        states.save("s0", {})
        seen, done = states.load().seen, []

        def save(number):
            try:
                done.append(states.save(f"t{number}", {"n": one(str(number))}, parent="s0", seen=seen))
            except StateConflictError as error:
                done.append(error.reason)

        threads = [threading.Thread(target=save, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(map(str, done)).count("moved") == 5

    def test_what_was_deleted_does_not_come_back(self, states):
        chain(states, 3)
        assert states.delete() == 3
        self.refused(states, "deleted", "s3", {}, parent="s2")
        self.refused(states, "deleted", "s1", {})
        with pytest.raises(StateConflictError):
            states.write("s2", [write("t", 0)])
        assert states.load("s2") is None
        self.refused(states, "deleted", "of another line", {}, line="sub", beside=[("sub", "unknown"), ("", "s1")])
        assert states.lines() == []
        assert (states.positions("s2"), states.positions("unknown")) == ({"": 3}, {})
        assert (states.positions("s2", line=""), states.positions("s2", line="sub")) == ({"": 3}, {})
        states.save("anew", {"a": one("x")}, seen=0)
        assert states.load().state_id == "anew"
        states.save("anew", {}, line="sub", beside=[("", "anew"), ("", "not saved yet"), ("no line", "s1")])
        self.refused(states, "moved", "anew too", {}, seen=0)


class TestSeveralAtOnce:
    def test_all_or_none(self, states):
        first, second = NewState(state_id="s1", values={"a": one("x")}), NewState(state_id="t1", values={}, line="t")
        behind = NewState(state_id="s2", values={}, parent="s1", kept=("a",), run="r")
        assert [saved.position for saved in states.save_all([first, second, behind])] == [1, 2, 3]
        assert (states.load("s2").values, states.load(line="t").state_id) == ({"a": one("x")}, "t1")
        late = NewState(state_id="s3", values={}, parent="s2", seen=2)
        with pytest.raises(StateConflictError):
            states.save_all([NewState(state_id="t2", values={"b": one("y")}, line="t"), replace(late, parent="s1")])
        assert (states.load(line="t").state_id, states.usage().parts) == ("t1", 1)
        assert [saved.created for saved in states.save_all([first, late])] == [False, True]
        assert states.save_all([]) == ()

    def test_what_is_none_is_refused(self, states):
        of_a_mapping = NewState(state_id="s1", values={}, beside=tuple({"line": "s0"}))
        wrongs = ("s1", NewState(state_id="", values={}), NewState(state_id="s1", values={"a": "text"}), of_a_mapping)
        for wrong in wrongs:
            with pytest.raises(InvalidInputError):
                states.save_all([NewState(state_id="s", values={}), wrong])
        assert states.lines() == []


class TestWrites:
    def test_they_stand_behind_their_state(self, states):
        states.save("s1", {})
        states.write("s1", [write("t2", 0), write("t1", 1), write("t1", -1)])
        assert [(w.task, w.index) for w in states.load().writes] == [("t1", -1), ("t1", 1), ("t2", 0)]

    def test_they_may_come_first(self, states):
        states.write("s1", [write("t", 0, "early")])
        assert states.load("s1") is None
        assert states.load() is None
        assert states.lines() == []
        states.save("s1", {"a": one("x")})
        assert [texts_of(w.value) for w in states.load().writes] == [["early"]]

    def test_or_only_behind_a_state_that_is_there(self, states):
        assert not states.write("s1", [write("t", 0, "early")], ahead=False)
        states.save("s1", {"a": one("x")})
        assert (states.load().writes, states.usage().parts) == ((), 1)
        assert states.write("s1", [write("t", 0)], ahead=False)
        assert len(states.load().writes) == 1

    def test_or_with_their_state_in_one_transaction(self, states, monkeypatch):
        new = NewState(state_id="s1", values={"a": one("x")}, writes=(write("t", 1), write("t", 0)))
        with monkeypatch.context() as broken:
            broken.setattr(save_state, "write_in", _unavailable)
            with pytest.raises(strandline.StoreUnavailableError):
                states.save_all([new])
        assert (states.load(), states.usage().parts) == (None, 0)
        states.write("s1", [write("t", 0, "early")])
        states.save("s1", {"a": one("x")}, writes=new.writes)
        assert [texts_of(w.value) for w in states.load().writes] == [["early"], ["w"]]
        states.save("s1", {"a": one("x")}, writes=[write("t", 0, "again"), write("t", 2)])
        assert [texts_of(w.value) for w in states.load().writes] == [["early"], ["w"], ["w"]]

    def test_more_than_stand_behind_one_are_refused_with_it(self, states, monkeypatch):
        monkeypatch.setattr(save_state, "STATE_WRITES_MAX", 1)
        with pytest.raises(InvalidInputError, match="2 writes"):
            states.save("s1", {}, writes=[write("t", 0), write("t", 1)])
        with pytest.raises(InvalidInputError, match="2 writes"):
            states.write("s1", [write("t", 0), write("t", 1)], ahead=False)
        assert states.load() is None

    def test_the_first_stays_unless_it_is_to_be_replaced(self, states):
        states.save("s1", {})
        states.write("s1", [write("t", 0, "first")])
        states.write("s1", [write("t", 0, "second"), write("t", 1, "more")])
        assert [texts_of(w.value) for w in states.load().writes] == [["first"], ["more"]]
        states.write("s1", [write("t", 0, "third")], replace=True)
        assert [texts_of(w.value) for w in states.load().writes] == [["third"], ["more"]]


def _unavailable(*_args, **_named):
    raise strandline.StoreUnavailableError("no answer")


class TestWhatIsDeleted:
    def test_prune_keeps_the_newest_of_each_line(self, db, states):
        chain(states, 20)
        chain(states, 3, line="sub")
        assert states.prune() == 21
        assert [state.state_id for state in states.list()] == ["subs2", "s19"]
        assert len(texts_of(states.load().values["messages"])) == 20
        with db.store.read(states._env.scope) as tx:
            assert sum(node.level == 0 for node in tx.nodes.all()) == 20
        states.save("s20", {}, parent="s19")
        assert db.verify().ok

    def test_prune_keeps_what_is_named(self, states):
        chain(states, 4)
        assert states.prune([("", "s1"), ("", "s3")]) == 2
        assert [state.state_id for state in states.list()] == ["s3", "s1"]
        with pytest.raises(strandline.InvalidInputError):
            states.prune("oldest")

    def test_runs_of_all_workflows(self, db, states):
        tenant = db.tenant("acme")
        chain(states, 4)
        tenant.workflow("thread-2").states.save("x", {}, run="run-1")
        tenant.workflow("empty").append(strandline.note("no states"))
        assert tenant.state_workflows() == ["thread-1", "thread-2"]
        assert tenant.delete_states(runs=["run-1", "run-9"]) == {"thread-1": 2, "thread-2": 1}
        assert [state.state_id for state in states.list()] == ["s2", "s0"]
        assert tenant.state_workflows() == ["thread-1"]
        with pytest.raises(strandline.InvalidInputError):
            tenant.delete_states(runs="run-1")
        assert db.verify().ok

    def test_a_deleted_newest_leaves_the_one_before(self, db, states):
        chain(states, 2)
        seen = states.load().seen
        db.tenant("acme").delete_states(runs=["run-1"])
        assert states.load().state_id == "s0"
        assert states.load().seen == seen
        states.save("s2", {}, parent="s0", seen=seen)

    def test_a_hold_stands_in_the_way(self, db, states):
        chain(states, 2)
        workflow = db.tenant("acme").workflow("thread-1")
        workflow.append(strandline.note("x"))
        workflow.hold("case-1", by="ann", why="court")
        for delete in (states.delete, states.prune, lambda: db.tenant("acme").delete_states(runs=["run-1"])):
            with pytest.raises(strandline.ErasureRefusedError, match="case-1"):
                delete()
        assert len(list(states.list())) == 2

    def test_a_proof_says_how_many_it_has_read(self, db, states):
        chain(states, 3)
        wf = db.tenant("acme").workflow(states._env.scope.workflow)
        assert wf.verify().states == 3
        assert states.prune() == 2
        assert wf.verify().states == 1

    def test_what_holds_no_states_is_not_made_by_deleting_or_copying_them(self, db, states):
        """A thread whose name is misspelt leaves no workflow behind."""
        tenant = db.tenant("acme")
        before = tenant.workflows()
        misspelt = tenant.workflow("misspelt").states
        assert (misspelt.delete(), misspelt.prune(), misspelt.copy_to("another-target")) == (0, 0, 0)
        assert tenant.workflows() == before

    def test_a_copy(self, db, states):
        chain(states, 40)
        states.write("s39", [write("t", 0, "pending")])
        states.prune([("", "s5"), ("", "s39")])
        other = db.tenant("acme").workflow("copy").states
        other.save("begun", {"messages": many("message 3")}, line="x")
        assert states.copy_to("copy") == 2
        assert states.copy_to("copy") == 0
        assert [(s.state_id, s.values, s.writes) for s in other.list(line="")] == [
            (s.state_id, s.values, s.writes) for s in states.list()
        ]
        assert db.verify().ok
        with pytest.raises(strandline.InvalidInputError):
            states.copy_to("thread-1")

    def test_a_copy_brings_nothing_back(self, db, states):
        """What was deleted in the target, also before it was saved, stays deleted."""
        chain(states, 1)
        other = db.tenant("acme").workflow("copy").states
        other.write("s0", [write("t", 0)])
        assert other.delete() == 1
        with pytest.raises(StateConflictError) as caught:
            states.copy_to("copy")
        assert caught.value.reason == "deleted"
        assert list(other.list()) == []

    def test_a_copy_over_others(self, db, states):
        chain(states, 2)
        other = db.tenant("acme").workflow("copy").states
        other.save("s1", {})
        with pytest.raises(StateConflictError):
            states.copy_to("copy")
        assert [state.state_id for state in other.list()] == ["s1"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"state_id": ""},
        {"state_id": "x\0"},
        {"state_id": "x" * 501},
        {"state_id": None},
        {"line": None},
        {"meta": "text"},
        {"run": ""},
        {"seen": 1.5},
        {"kept": ["a"]},
        {"kept": ["missing"], "parent": "s0"},
        {"kept": ["a"], "parent": "s0", "values": {"a": one("x")}},
        {"values": {"a": "text"}},
        {"values": {"a": StateValue(())}},
        {"values": {"a": StateValue((Part(kind="k", data="text"),))}},
        {"values": {"a": StateValue((Part(kind="", data=b""),))}},
        {"values": {"\ud800": one("x")}},
    ],
)
def test_what_cannot_be_kept(states, arguments):
    """Nothing is written, and the error says what it is."""
    states.save("s0", {"b": one("y")})
    with pytest.raises(strandline.InvalidInputError, match=r"nothing was written|lone surrogate|whole number"):
        states.save(**{"state_id": "s1", "values": {}} | arguments)
    assert [state.state_id for state in states.list()] == ["s0"]


@bounded(200)
@given(st.lists(st.integers(0, 9), max_size=600))
def test_blocks_hold_what_they_were_made_of(numbers):
    """The digits expand to the list, and a list that grew shares every block."""
    parts = [bytes([number]) for number in numbers]
    blocks = {}

    def join(level, below):
        name = b"%d(" % level + b",".join(below) + b")"
        blocks[name] = tuple(below)
        return name

    levels = levels_of(parts, join)
    nodes = []
    for level in reversed(levels):
        nodes = [inner for block in nodes for inner in blocks[block]] + list(level[loose_from(level) :])
    assert nodes == parts
    assert all(len(level) - loose_from(level) < STATE_BLOCK_NODES for level in levels)
    grown = levels_of([*parts, b"new"], join)
    assert all(set(old[: loose_from(old)]) <= set(new) for old, new in zip(levels, grown, strict=False))


class TestWhatIsDamaged:
    @pytest.fixture
    def path(self, tmp_path):
        with open_store("sqlite", tmp_path) as db:
            states = db.tenant("acme").workflow("thread-1").states
            chain(states, 20)
            states.write("s19", [write("t", 0)])
        return tmp_path / "store.db"

    @pytest.mark.parametrize(
        ("statement", "read"),
        [
            ("DELETE FROM saved_state WHERE number = 20", "load"),
            ("DELETE FROM saved_state WHERE number = 10", "list"),
            ("DELETE FROM saved_state WHERE number = 10", "list_before"),
            ("DELETE FROM saved_state WHERE number <= 10", "list_before"),
            ("DELETE FROM saved_state WHERE number = 10", "by_id"),
            ("DELETE FROM saved_state WHERE number = 1", "list"),
            ("DELETE FROM saved_state", "list"),
            ("DELETE FROM state_line", "load"),
            ("DELETE FROM state_line", "lines"),
            ("DELETE FROM state_node WHERE node_id = 3", "load"),
            ("DELETE FROM state_node WHERE level = 1", "load"),
            ("UPDATE state_node SET body = x'00ff' WHERE node_id = 3", "load"),
            ("UPDATE state_node SET body = NULL WHERE node_id = 3", "load"),
            ("UPDATE state_line SET newest = 19", "load"),
            ("UPDATE saved_state SET writes = x'005b5d' WHERE number = 20", "load"),
        ],
    )
    def test_it_is_an_error_with_its_place(self, path, statement, read):
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute(statement).rowcount
            connection.commit()
        with strandline.open(path) as db:
            states = db.tenant("acme").workflow("thread-1").states
            reads = {
                "load": states.load,
                "list": lambda: list(states.list(line="")),
                "list_before": lambda: list(states.list(line="", before=11, limit=3)),
                "by_id": lambda: states.load("s9"),
                "lines": states.lines,
            }
            with pytest.raises(strandline.CorruptRecordError) as caught:
                reads[read]()
            assert caught.value.place.startswith(("saved_state", "state_line", "state_node"))
            assert not db.verify().ok


def test_an_erasure_in_all_workflows_names_what_it_does_not_reach(db, states):
    """A state repeats nothing of an event where none was ever recorded (C31)."""
    states.save("s1", {"messages": many("Ada Quill lives in Bern")})
    found = db.tenant("acme").erase(person="Ada Quill", by="ann", why="asked to")
    assert [(one.workflow, one.due, len(one.erased.left_in)) for one in found] == [("thread-1", 0, 1)]
    states.delete()
    assert db.tenant("acme").erase(person="Ada Quill", by="ann", why="asked to") == []


@pytest.mark.parametrize("name", ["\ud800", "a\0b", 5])
def test_a_name_that_no_store_can_look_for(states, name):
    states.save("s1", {})
    for read in (
        lambda: states.load(name),
        lambda: states.load(line=name),
        lambda: list(states.list(line=name)),
    ):
        with pytest.raises(strandline.InvalidInputError):
            read()
