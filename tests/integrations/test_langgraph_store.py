"""Law (C34, I14, I21): an item of a graph's store is never overwritten or lost, and found as stock stores find it.

The same calls are made to LangGraph's in-memory store where the answer has to be the same.
"""

import asyncio
import threading

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

import strandline
from strandline import InvalidInputError, StateErasedError
from strandline.engine import save_state
from strandline.engine.environment import Environment
from strandline.integrations.langgraph import StrandlineSaver, StrandlineStore
from strandline.integrations.langgraph.address import STORE_WORKFLOW
from strandline.limits import STORE_PUT_ATTEMPTS_MAX


@pytest.fixture
def db(tmp_path):
    with strandline.open(tmp_path / "agent.db") as opened:
        yield opened


@pytest.fixture
def store(db):
    return StrandlineStore(db.tenant("acme"))


def filled(store):
    store.put(("users", "1"), "prefs", {"theme": "dark", "n": 3})
    store.put(("users", "2"), "prefs", {"theme": "light", "n": 5, "at": {"city": "Bern"}, "tags": ["a", "b"]})
    store.put(("docs",), "d", {"text": "a Python tutorial"})
    store.put(("users", "1"), "prefs", {"theme": "blue", "n": 4})
    return store


def values(found):
    return sorted(str(item.value) for item in found)


@pytest.mark.parametrize(
    "wanted",
    [
        None,
        {"theme": "light"},
        {"n": {"$gt": 4}},
        {"n": {"$gte": 4, "$lt": 5}},
        {"n": {"$ne": 4}},
        {"at": {"city": "Bern"}},
        {"tags": ["a", "b"]},
        {"missing": 1},
    ],
)
def test_a_search_finds_what_a_stock_store_finds(store, wanted):
    ours, stock = (filled(one).search(("users",), filter=wanted) for one in (store, InMemoryStore()))
    assert values(ours) == values(stock)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"prefix": ("users",)},
        {"suffix": ("1",)},
        {"prefix": ("*", "2")},
        {"max_depth": 1},
        {"limit": 1, "offset": 1},
    ],
)
def test_namespaces_are_listed_as_a_stock_store_lists_them(store, asked):
    ours, stock = (filled(one).list_namespaces(**asked) for one in (store, InMemoryStore()))
    assert ours == stock


def test_what_is_put_again_or_deleted_stays_as_a_version(store, db):
    filled(store)
    made = store.get(("users", "1"), "prefs").created_at
    store.delete(("users", "1"), "prefs")
    assert store.get(("users", "1"), "prefs") is None
    assert values(store.search(("users", "1"))) == []
    assert store.list_namespaces() == [("docs",), ("users", "2")]
    store.put(("users", "1"), "prefs", {"n": 9})
    assert store.get(("users", "1"), "prefs").created_at > made
    versions = db.tenant("acme").workflow(STORE_WORKFLOW).states.list(line='["users", "1", "prefs"]')
    assert [(state.state_id, len(state.values)) for state in versions] == [("4", 1), ("3", 0), ("2", 1), ("1", 1)]


@pytest.mark.parametrize("keep", [None, [('["docs", "d"]', "1")]])
def test_an_item_whose_versions_were_deleted_is_put_anew(store, db, keep):
    store.put(("docs",), "d", {"n": 1})
    store.put(("docs",), "d", {"n": 2})
    states = db.tenant("acme").workflow(STORE_WORKFLOW).states
    states.delete() if keep is None else states.prune(keep)
    store.put(("docs",), "d", {"n": 3})
    store.put(("docs",), "d", {"n": 4})
    assert store.get(("docs",), "d").value == {"n": 4}


def test_an_item_that_was_erased_is_put_anew_or_deleted_and_hides_no_other(store, db):
    secret = "the patient's name is Ada Example, born in Bern"
    for key in ("a", "b"):
        store.put(("docs",), key, {"text": secret})
    store.put(("docs",), "c", {"text": "other"})
    workflow = db.tenant("acme").workflow(STORE_WORKFLOW)
    workflow.append(strandline.message("user", secret))
    workflow.erase(events=[1], by="ann", why="asked to")
    with pytest.raises(StateErasedError):
        store.get(("docs",), "a")
    assert [item.key for item in store.search(())] == ["c"]
    store.put(("docs",), "a", {"text": "new"})
    store.delete(("docs",), "b")
    assert store.get(("docs",), "a").value == {"text": "new"}
    assert store.get(("docs",), "b") is None


def test_a_query_ranks_by_words_and_the_newest_first(store):
    found = filled(store).search((), query="python dark tutorial")
    assert (found[0].key, found[0].namespace) == ("d", ("docs",))
    assert [round(item.score, 2) for item in found] == [0.67, 0.0, 0.0]
    assert [item.value["n"] for item in store.search(("users",))] == [4, 5]


def test_puts_of_two_at_once_are_both_kept(store, db):
    def put(name):
        for number in range(5):
            StrandlineStore(db.tenant("acme")).put(("a",), "k", {"by": name, "n": number})

    writers = [threading.Thread(target=put, args=(name,)) for name in "xy"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    versions = list(db.tenant("acme").workflow(STORE_WORKFLOW).states.list())
    assert len(versions) == 10


def test_a_batch_reads_what_was_before_it_and_of_two_puts_the_last_counts(db, store, tmp_path):
    told = []
    with SqliteStore.from_conn_string(str(tmp_path / "stock.db")) as stock:
        stock.setup()
        for one in (stock, InMemoryStore(), store):
            one.put(("a",), "k", {"n": 1})
            puts = [PutOp(("a",), "k", {"n": 2}), PutOp(("a",), "l", {"n": 3}), PutOp(("a",), "l", {"n": 4})]
            found = one.batch([*puts, GetOp(("a",), "k"), GetOp(("a",), "l"), PutOp(("a",), "k", None)])
            told.append([None if item is None else item.value for item in found])
            told[-1].append((one.get(("a",), "k"), one.get(("a",), "l").value))
    assert told[0] == told[1] == told[2]
    assert len(list(db.tenant("acme").workflow(STORE_WORKFLOW).states.list())) == 3


def test_a_batch_is_saved_whole_or_not_at_all(store, db, monkeypatch):
    """The second item can't be saved; then somebody else puts to it while the batch is being saved."""
    filled(store)
    states = db.tenant("acme").workflow(STORE_WORKFLOW).states
    before = len(list(states.list()))
    puts = [PutOp(("users", "1"), "prefs", {"n": 7}), PutOp(("docs",), "d", {"n": 8})]
    put_row, rows = save_state.put_state, []

    def failing(tx, line, row):
        rows.append(line)
        if len(rows) == 2:
            raise strandline.StoreUnavailableError("no answer")
        return put_row(tx, line, row)

    with monkeypatch.context() as broken:
        broken.setattr(save_state, "put_state", failing)
        with pytest.raises(strandline.StoreUnavailableError):
            store.batch(puts)
    assert (len(rows), len(list(states.list()))) == (2, before)
    load, loads = type(states).load, []

    def overtaken(self, *args, **named):
        found = load(self, *args, **named)
        loads.append(named)
        if len(loads) == 2:
            StrandlineStore(db.tenant("acme")).put(("docs",), "d", {"n": "between"})
        return found

    monkeypatch.setattr(type(states), "load", overtaken)
    store.batch(puts)
    monkeypatch.undo()
    assert len(list(states.list())) == before + 3
    assert (store.get(("users", "1"), "prefs").value, store.get(("docs",), "d").value) == ({"n": 7}, {"n": 8})


def test_who_only_reads_waits_for_no_writer(store, monkeypatch):
    filled(store)
    monkeypatch.setattr(Environment, "write", None)
    assert store.get(("docs",), "d").value == {"text": "a Python tutorial"}
    store.delete(("docs",), "there is none")


def test_a_batch_of_items_whose_numbers_were_all_deleted(store, db):
    """There are more of them than attempts."""
    puts = [PutOp(("a",), str(number), {"n": number}) for number in range(STORE_PUT_ATTEMPTS_MAX + 2)]
    store.batch(puts)
    db.tenant("acme").workflow(STORE_WORKFLOW).states.delete()
    store.batch(puts)
    assert len(store.search((), limit=100)) == len(puts)


def test_a_batch_of_more_than_can_be_saved_at_once(store, monkeypatch):
    monkeypatch.setattr(save_state, "STATES_AT_ONCE_MAX", 2)
    with pytest.raises(InvalidInputError, match="at once"):
        store.batch([PutOp(("a",), str(number), {"n": number}) for number in range(3)])
    assert store.search(()) == []


def test_bad_input_writes_nothing(store):
    with pytest.raises(InvalidInputError, match="expire"):
        store.batch([PutOp(("a",), "k", {"n": 1}), PutOp(("a",), "l", {"n": 1}, ttl=5.0)])
    with pytest.raises(InvalidInputError, match="expire"):
        store.batch([PutOp(("a",), "k", {"n": 1}, ttl=5.0), PutOp(("a",), "k", {"n": 2})])
    with pytest.raises(TypeError):
        store.batch([PutOp(("a",), "k", {"n": 1}), PutOp(("a",), "l", {"n": threading.Lock()})])
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("a",), "k", {"n": 1}), PutOp(("b.c",), "l", {"n": 1})])
    with pytest.raises(InvalidInputError, match="operator"):
        filled(store).search((), filter={"n": {"$like": 4}})
    assert store.get(("a",), "k") is None


def test_no_call_reaches_another_tenant(store, db):
    other = StrandlineStore(db.tenant("other"))
    filled(store)
    assert other.get(("docs",), "d") is None
    assert other.batch([SearchOp(())]) == [[]]


def test_for_an_event_loop(store):
    async def turn():
        await store.aput(("a",), "k", {"n": 1})
        return (await store.aget(("a",), "k")).value

    assert asyncio.run(turn()) == {"n": 1}


@pytest.mark.parametrize(
    "call",
    [
        lambda saver: saver.delete_thread(STORE_WORKFLOW),
        lambda saver: saver.prune([STORE_WORKFLOW], strategy="delete"),
        lambda saver: saver.copy_thread(STORE_WORKFLOW, "t"),
        lambda saver: saver.get_tuple({"configurable": {"thread_id": STORE_WORKFLOW}}),
    ],
)
def test_a_thread_that_is_named_as_the_store_is_refused(store, db, call):
    filled(store)
    with pytest.raises(InvalidInputError, match="no thread"):
        call(StrandlineSaver(db.tenant("acme")))
    assert store.get(("docs",), "d") is not None
