"""Law (C4, I21, I4): a search gives back every event that the view may read and that holds what is asked for, verbatim,
whatever is indexed; a damaged index is found, and makes no hit up.

On all stores. What must be found is told by reading the whole log.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.codec import searched_text
from strandline.engine import search_index
from strandline.engine.reading import read_log
from strandline.engine.search_index import extend_index
from strandline.errors import CorruptRecordError, InvalidInputError, StoreUnavailableError
from strandline.limits import SEARCH_CHARS_MAX, SEARCH_HITS, SEARCH_HITS_MAX
from strandline.model.view import ViewHead
from strandline.rules.searching import find, parse, words_of
from strandline.stores.postgres.statements import Statements
from strandline.testing import SeededEntropy, VirtualClock
from tests.unit.test_engine_stage import STORES, bounded, new_workflow, open_store, quiet, talk, transaction

CHUNK = 8  # events; the real one is tried where it is said so


def open_at(url: str) -> strandline.Strandline:
    return strandline.open(url, clock=VirtualClock(), entropy=SeededEntropy(1))


@pytest.fixture(scope="module", params=[*STORES, "postgres"])
def db(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[strandline.Strandline]:
    if request.param == "postgres":
        with open_at(request.getfixturevalue("postgres_stores")(18)) as db:
            yield db
    else:
        with open_store(request.param, tmp_path_factory.mktemp("stores")) as db:
            yield db


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "SEARCH_CHUNK_EVENTS", CHUNK)


def seqs(hits: list[strandline.SearchHit]) -> list[int]:
    return [hit.seq for hit in hits]


def ranges(db, wf) -> list[tuple[int, int]]:
    with transaction(db, wf) as tx:
        return tx.search.ranges()


def notes(wf, *texts: str, **arguments) -> None:
    wf.append([strandline.note(text, **arguments) for text in texts])


def walked(wf, query: str) -> list[int]:
    """Return what a walk through the whole log finds."""
    with wf._env.read() as tx:
        events = list(read_log(tx, 1, tx.log.head().revision, wf.name))
    return [event.seq for event in reversed(events) if find(parse(query), searched_text(event))]


# ------------------------------------------------------------------------------------------ what is found


def test_a_hit_is_the_verbatim_event_with_its_provenance(db) -> None:
    wf = new_workflow(db)
    wf.append(strandline.issue("scope", "The OAuth token\nmay write.", actor="reviewer", refs=["ticket 7"]))
    (hit,) = wf.search("oauth")
    assert (hit.seq, hit.text, hit.event.kind, hit.event.actor) == (
        1,
        "The OAuth token\nmay write.",
        "issue",
        "reviewer",
    )
    assert (hit.event.subject, hit.event.declared, hit.event.abandoned) == ("scope", ("ticket 7",), False)
    assert hit.at_us > 0
    assert [hit.excerpt[start:end] for start, end in hit.matches] == ["OAuth"]
    assert hit.event == wf.events(1)[0]


def test_what_an_event_is_about_is_searched_too(db) -> None:
    wf = new_workflow(db)
    wf.append(
        [
            strandline.issue("oauth-scope", "It may write."),
            strandline.tool_call("c1", "create_bucket", {"path": "a.txt", "text": "first line\nsecond line", "n": 77}),
            strandline.tool_result("c1", {"made": ["bucket-7f3a"], "log": "one\nnext"}),
            strandline.artifact("report", "report-2.pdf", "the report"),
        ]
    )
    asked = {"oauth-scope": [1], "create_bucket": [2], '"second line"': [2], "77": [2], "next": [3], "path": [2]}
    asked |= {"bucket-7f3a": [3], "report-2.pdf": [4], "nnext": [], "nsecond": []}
    assert {query: seqs(wf.search(query)) for query in asked} == asked


def test_encoded_images_are_no_words(db) -> None:
    wf = new_workflow(db)
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "SECRETDATA"}}
    wf.append(strandline.tool_call("c1", "look", {}))
    wf.append(strandline.tool_result("c1", [image, {"type": "text", "text": "a red door"}]))
    assert seqs(wf.search("red door")) == [2]
    assert wf.search("SECRETDATA") == []


def test_the_newest_come_first_up_to_a_limit_and_before_an_event(db) -> None:
    wf = new_workflow(db)
    notes(wf, *(f"step {number}" for number in range(1, 51)))
    assert seqs(wf.search("step")) == list(range(50, 50 - SEARCH_HITS, -1))
    assert seqs(wf.search("step", 3)) == [50, 49, 48]
    assert seqs(wf.search("step", 3, before=48)) == [47, 46, 45]
    assert seqs(wf.search("step", before=3)) == [2, 1]
    assert wf.search("step", before=1) == []
    assert seqs(wf.search("step", 1, before=1_000)) == [50]
    assert len(wf.search("step", SEARCH_HITS_MAX)) == 50


WRONG: list[dict[str, object]] = [
    *({"text": text} for text in ("", None, b"a", "*", '"a', "\ud800", '"\ud800"', "a" * 1024 * 1024)),
    *({"text": "a", "limit": limit} for limit in (0, True, "1", SEARCH_HITS_MAX + 1)),
    *({"text": "a", "before": before} for before in (0, "1")),
]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_a_search_that_is_none_is_refused_and_writes_nothing(db, wrong: dict[str, object]) -> None:
    wf = new_workflow(db)
    with pytest.raises(InvalidInputError):
        wf.search(**wrong)  # type: ignore[arg-type]
    assert wf.name not in db.tenant("acme").workflows()


def test_where_nothing_is_nothing_is_found_and_nothing_written(db) -> None:
    wf = new_workflow(db)
    assert wf.search("anything") == []
    assert wf.search("anything", reindex=True) == []
    assert wf.name not in db.tenant("acme").workflows()


HOSTILE = [
    "NUL \0 here",
    "'; DROP TABLE event; --",
    '" OR 1=1',
    "a*b",
    "100%",
    "_",
    "NEAR(a b)",
    "\\",
    "{x}:y",
    "👩\u200d💻",
]


def test_hostile_text_is_text(db) -> None:
    wf = new_workflow(db)
    notes(wf, *HOSTILE, *(f"filler {number}" for number in range(CHUNK)))
    for seq, text in enumerate(HOSTILE, start=1):
        asked = f'"{text}"' if '"' not in text else "OR 1=1"
        assert seqs(wf.search(asked)) == [seq]
    with pytest.raises(InvalidInputError, match=f"at most {SEARCH_CHARS_MAX:,}"):
        wf.search("word " * 200_000)


# ------------------------------------------------------------------------------------------ the index

WORDS = ("pump", "room", "bucket-7f3a", "logs/run-7.txt", "Straße", "数据库", "🎉", "e\u0301t\u00e9", "a_b", "42", ".")
ASKED = (
    "pump",
    "bucket",
    "7f3a",
    '"pump room"',
    "run*",
    "strasse",
    "据库",
    "🎉",
    "été",
    "a_b",
    "4*",
    "room 42",
    "none",
    "p*",
)


@bounded(25)
@given(
    st.lists(
        st.lists(st.sampled_from(WORDS), max_size=5).map(lambda said: " ".join([".", *said])), min_size=1, max_size=40
    ),
    st.lists(st.integers(1, 40), max_size=4),
)
def test_what_is_found_is_what_a_walk_finds(db, texts: list[str], cuts: list[int]) -> None:
    """However much is indexed when it is asked."""
    wf = new_workflow(db)
    for first, end in zip(
        (bounds := sorted({0, len(texts), *(min(cut, len(texts)) for cut in cuts)})), bounds[1:], strict=False
    ):
        notes(wf, *texts[first:end])
        for query in ASKED:
            assert seqs(wf.search(query, 100)) == walked(wf, query), query
    assert ranges(db, wf) == ([(1, len(texts) // CHUNK * CHUNK)] if len(texts) >= CHUNK else [])
    assert wf.verify().ok


def test_an_append_writes_no_index(db) -> None:
    wf = new_workflow(db)
    notes(wf, *(f"step {number}" for number in range(5 * CHUNK)))
    assert ranges(db, wf) == []
    wf.search("step 3")
    assert ranges(db, wf) == [(1, 5 * CHUNK)]
    notes(wf, *(f"step {number}" for number in range(CHUNK - 1)))
    assert seqs(wf.search("step 3")) == [5 * CHUNK + 4, 4]
    assert ranges(db, wf) == [(1, 5 * CHUNK)]


def test_one_search_indexes_no_more_than_a_few_chunks(db, monkeypatch: pytest.MonkeyPatch) -> None:
    """I22: the first search of a long log does not pay for all of it; it is complete all the same."""
    monkeypatch.setattr(search_index, "SEARCH_CHUNKS_AT_ONCE", 2)
    wf = new_workflow(db)
    notes(wf, *(f"step {number}" for number in range(5 * CHUNK)))
    for chunks in (2, 4, 5, 5):
        assert len(wf.search("step", 100)) == 5 * CHUNK
        assert ranges(db, wf) == [(1, chunks * CHUNK)]
    assert len(wf.search("step", 100, reindex=True)) == 5 * CHUNK
    assert ranges(db, wf) == [(1, 5 * CHUNK)]


def test_a_compaction_brings_the_index_up_to_date_where_somebody_searched(db) -> None:
    wf, other = new_workflow(db), new_workflow(db)
    for each in (wf, other):
        each.append(talk(CHUNK))
    wf.search("step")
    for each in (wf, other):
        each.append(talk(3 * CHUNK))
        assert each.compact(1_000, quiet).outcome == "activated"
    assert ranges(db, wf) == [(1, 8 * CHUNK)]
    assert ranges(db, other) == []  # who never searches pays nothing


def test_a_chunk_of_many_words_ends_early(db, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "SEARCH_CHUNK_WORDS_MAX", 10)
    wf = new_workflow(db)
    notes(wf, *(" ".join(f"w{number}x{word}" for word in range(6)) for number in range(CHUNK)))
    assert seqs(wf.search("w5x5")) == [6]
    assert ranges(db, wf) == [(1, 2)]  # what is left is no whole chunk
    assert wf.verify().ok


def test_an_event_of_too_many_words_is_found(db, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline.rules.searching.SEARCH_EVENT_WORDS_MAX", 5)
    wf = new_workflow(db)
    notes(wf, "one two three four five six", *("one two" for _ in range(2 * CHUNK)))
    assert seqs(wf.search("six")) == [1]
    assert seqs(wf.search("one six")) == [1]
    assert wf.search("seven") == []
    assert wf.verify().ok


@pytest.mark.parametrize("most", [3, 100])
def test_a_beginning_of_too_many_words_only_filters(db, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr("strandline.engine.search.SEARCH_BEGINNING_ROWS_MAX", most)
    wf = new_workflow(db)
    notes(wf, *(f"word{number} and" for number in range(2 * CHUNK)))
    assert seqs(wf.search("word*", 100)) == list(range(2 * CHUNK, 0, -1))
    assert seqs(wf.search("and word1*", 100)) == [16, 15, 14, 13, 12, 11, 2]


def test_where_the_index_can_not_be_written_all_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica, a full disk: what is not indexed is looked through."""
    with open_store("sqlite", tmp_path) as db:
        wf = new_workflow(db)
        notes(wf, *(f"step {number}" for number in range(3 * CHUNK)))

        def refuse(*_: object, **__: object) -> None:
            raise StoreUnavailableError("the store is read-only")

        monkeypatch.setattr(db.store, "write", refuse)
        assert seqs(wf.search("step 3")) == [4]
        assert ranges(db, wf) == []
        with pytest.raises(StoreUnavailableError):
            wf.search("step", reindex=True)


def test_it_is_indexed_by_the_real_chunk(db, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    wf = new_workflow(db)
    size = search_index.SEARCH_CHUNK_EVENTS
    notes(wf, *(f"step {number} of run-{number % 7}" for number in range(2 * size + 3)))
    assert seqs(wf.search('"step 3"')) == [4]
    assert len(wf.search("run-3", SEARCH_HITS_MAX)) == len([n for n in range(2 * size + 3) if n % 7 == 3])
    assert ranges(db, wf) == [(1, 2 * size)]
    assert wf.verify().ok


# ------------------------------------------------------------------------------------------ views, tenants, branches


def test_a_view_gets_no_hit_outside_its_audiences(db) -> None:
    """I21: indexed or not."""
    wf = new_workflow(db)
    notes(wf, *(f"open step {number}" for number in range(CHUNK)))
    notes(wf, *(f"hidden step {number}" for number in range(CHUNK)), audience="security")
    notes(wf, "hidden tail", audience="security")
    with transaction(db, wf, write=True) as tx:
        tx.views.put(ViewHead(view_id=2, name="publisher", audiences=frozenset({"release"})))
    publisher = strandline.Workflow(wf._env, "publisher")
    assert publisher.search("hidden") == []
    assert seqs(publisher.search("step", 100)) == list(range(CHUNK, 0, -1))
    assert len(wf.search("hidden", 100)) == CHUNK + 1
    with pytest.raises(strandline.TenantScopeError):
        strandline.Workflow(wf._env, "nobody").search("step")


def test_another_tenant_and_another_workflow_find_nothing(db) -> None:
    """I21: under the same name, too."""
    wf = new_workflow(db)
    notes(wf, *(f"secret-{wf.name} step" for _ in range(2 * CHUNK)))
    assert len(wf.search("secret*", 100)) == 2 * CHUNK
    stranger = db.tenant("umbrella").workflow(wf.name)
    other = new_workflow(db)
    for each in (stranger, other):
        notes(each, *("nothing" for _ in range(2 * CHUNK)))
        assert each.search("step") == []
        assert each.search("secret*") == []


def test_what_a_rewind_left_is_found_and_says_so(db) -> None:
    """As `recall` does (C22)."""
    wf = new_workflow(db)
    notes(wf, *(f"step {number}" for number in range(2 * CHUNK)))
    wf.search("step")
    wf.rewind(CHUNK, by="dana", why="the wrong way")
    notes(wf, "step again")
    assert [(hit.seq, hit.event.abandoned) for hit in wf.search("step 9")] == [(10, True)]
    assert [hit.event.abandoned for hit in wf.search("again")] == [False]
    assert wf.verify().ok


@pytest.mark.parametrize("searched", [False, True])
@pytest.mark.parametrize("at", [CHUNK // 2, CHUNK, CHUNK + 3])
def test_a_fork_finds_the_past_that_it_shares(db, searched: bool, at: int) -> None:
    """And nothing of what its parent did since, whoever indexed what."""
    wf = new_workflow(db)
    notes(wf, *(f"parent step {number}" for number in range(1, 3 * CHUNK + 1)))
    if searched:
        wf.search("step")
    names = [new_workflow(db).name, new_workflow(db).name]
    wf.fork(at, names[0], by="dana", why="try")
    child = db.tenant("acme").workflow(names[0])
    notes(child, *(f"child step {number}" for number in range(1, 2 * CHUNK)))
    child.fork(at + CHUNK, names[1], by="dana", why="try")
    grandchild = db.tenant("acme").workflow(names[1])
    notes(grandchild, "grandchild step")
    assert seqs(child.search("parent", 100)) == list(range(at, 0, -1))
    assert seqs(child.search("step", 100)) == list(range(at + 2 * CHUNK - 1, 0, -1))
    assert seqs(child.search("parent st*", 100)) == list(range(at, 0, -1))
    assert seqs(grandchild.search("step", 100)) == list(range(at + CHUNK + 1, 0, -1))
    assert seqs(wf.search("step", 100)) == list(range(3 * CHUNK, 0, -1))
    assert wf.search("child") == []
    assert ranges(db, wf) == [(1, 3 * CHUNK)]
    assert ranges(db, child) == [(at + 1, at + CHUNK)]
    assert [each.verify().problems for each in (wf, child, grandchild)] == [(), (), ()]


LOOKUPS = {
    "postings": {"word": b"pump", "through_seq": 9, "limit": 9},
    "postings_of_beginning": {"low": b"p", "high": b"p\xff", "limit": 9},
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_row_level_security_leaves_a_lookup_its_index(postgres_stores, name: str) -> None:
    """I21: the policy comes first, and what is not leakproof behind it, on each row that the policy lets through. A
    lookup of words must not become that: it would cost what the tenant holds, not what it finds.
    """
    url = postgres_stores(18)
    with open_at(url) as db:
        db.tenant("acme").workflow("w").append(strandline.note("the pump"))
    with psycopg.connect(url) as connection:
        connection.execute("SET enable_seqscan = off")  # a table of no rows is read through, else
        connection.execute("SET ROLE strandline_app")
        connection.execute("SELECT set_config('strandline.tenant_id', '1', false)")
        asked = Statements("strandline")[name]
        given = {"tenant_id": 1, "workflow_id": 1, **LOOKUPS[name]}
        values = [given[each] for each in asked.names]
        plan = psycopg.RawCursor(connection).execute(f"EXPLAIN {asked.text}", values).fetchall()
    (condition,) = [row[0] for row in plan if "Index Cond" in row[0]]
    assert all(column in condition for column in ("tenant_id", "workflow_id", "word"))
    assert not [row[0] for row in plan if row[0].strip().startswith("Filter")]


# ------------------------------------------------------------------------------------------ damage


def damaged(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount != 0, statement
        connection.commit()


@pytest.fixture
def indexed(tmp_path: Path):
    with open_store("sqlite", tmp_path) as db:
        wf = new_workflow(db)
        notes(wf, *(f"step {number} of the pump" for number in range(2 * CHUNK)))
        wf.search("pump")
        yield db, wf, tmp_path / "store.db"


LOST = "DELETE FROM search_posting WHERE word = CAST('pump' AS BLOB) AND first_seq = 1"
CHANGED = [
    "UPDATE search_posting SET events = x'0101' WHERE word = CAST('pump' AS BLOB)",
    "UPDATE search_posting SET events = x'' WHERE word = CAST('pump' AS BLOB)",
    "UPDATE search_posting SET first_seq = first_seq + 1 WHERE word = CAST('pump' AS BLOB)",
    "UPDATE search_posting SET proof = proof + 1 WHERE word = CAST('pump' AS BLOB)",
    "UPDATE search_mark SET through_seq = through_seq - 8",
    "UPDATE search_mark SET from_seq = 2",
]


def test_a_lost_row_of_the_index_is_found_by_verify(indexed) -> None:
    _, wf, path = indexed
    damaged(path, LOST)
    assert seqs(wf.search("pump", 100)) == list(range(2 * CHUNK, CHUNK, -1))  # it hides, and invents nothing
    (problem,) = wf.verify().problems
    assert (problem.place, "first event 1;" in problem.reason) == ("search_posting", True)
    assert seqs(wf.search("pump", 100, reindex=True)) == list(range(2 * CHUNK, 0, -1))
    assert wf.verify().ok


@pytest.mark.parametrize("statement", CHANGED)
def test_a_changed_row_of_the_index_is_an_error(indexed, statement: str) -> None:
    _, wf, path = indexed
    damaged(path, statement)
    with pytest.raises(CorruptRecordError, match="search_") as caught:
        wf.search("pump")
    assert "reindex" in caught.value.hint
    assert not wf.verify().ok
    assert len(wf.search("pump", 100, reindex=True)) == 2 * CHUNK
    assert wf.verify().ok


def test_a_fork_makes_the_index_of_its_past_anew_too(indexed) -> None:
    db, wf, path = indexed
    wf.fork(CHUNK, "child", by="dana", why="try")
    child = db.tenant("acme").workflow("child")
    damaged(path, CHANGED[0])
    with pytest.raises(CorruptRecordError, match="search_posting"):
        child.search("pump")
    assert seqs(child.search("pump", reindex=True)) == list(range(CHUNK, 0, -1))
    assert wf.verify().ok


def test_rows_without_a_mark_are_nobodys(indexed) -> None:
    _, wf, path = indexed
    damaged(path, "DELETE FROM search_mark")
    assert not wf.verify().ok
    assert len(wf.search("pump", 100)) == 2 * CHUNK
    assert wf.verify().ok


def test_an_index_that_names_other_events_makes_no_hit_up(indexed) -> None:
    """Who can seal a row may name any event: it is read and compared."""
    db, wf, _ = indexed
    with transaction(db, wf, write=True) as tx:
        tx.search.reset()
        tx.search.add(1, 2 * CHUNK, {"valve": (1 << 2 * CHUNK) - 1, "pump": 1 << 3})
    assert wf.search("valve") == []
    assert seqs(wf.search("pump")) == [4]
    (problem,) = wf.verify().problems
    assert problem.place == "search_posting"


def test_an_index_of_more_than_the_log_holds_is_an_error(indexed) -> None:
    db, wf, _ = indexed
    with transaction(db, wf, write=True) as tx:
        tx.search.add(2 * CHUNK + 1, 3 * CHUNK, {"pump": 1})
    with pytest.raises(CorruptRecordError, match="search_mark"):
        wf.search("pump")
    assert not wf.verify().ok


def test_a_damaged_event_is_no_hit_but_an_error(indexed) -> None:
    _, wf, path = indexed
    damaged(path, "DROP TRIGGER event_is_never_changed", "UPDATE event SET body = x'00' WHERE seq = 3")
    with pytest.raises(CorruptRecordError, match="event 3"):
        wf.search("step 2")


# ------------------------------------------------------------------------------------------ at once


def test_what_changed_while_a_chunk_was_read_is_read_again(db, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else an erasure that came in between would leave its words in the index (C31)."""
    wf = new_workflow(db)
    notes(wf, *(f"step {number}" for number in range(2 * CHUNK)))
    read, moved = search_index._next_chunk, []

    def move(tx, workflow):
        chunk = read(tx, workflow)
        if len(moved) < 2:
            moved.append(chunk)
            chunk.events["erased"] = 1  # as if the erasure came behind the read
            wf.checkpoint({}, turn=len(moved), context_free=True)
        return chunk

    monkeypatch.setattr(search_index, "_next_chunk", move)
    extend_index(wf._env)
    assert ranges(db, wf) == [(1, 2 * CHUNK)]
    with transaction(db, wf) as tx:
        assert tx.search.beginning("erased", 1) == []
    assert wf.verify().ok


def test_an_index_that_is_overtaken_again_and_again_gives_way(db, monkeypatch: pytest.MonkeyPatch) -> None:
    wf = new_workflow(db)
    notes(wf, *(f"step {number}" for number in range(2 * CHUNK)))
    read, turns = search_index._next_chunk, []

    def move(tx, workflow):
        turns.append(1)
        chunk = read(tx, workflow)
        wf.checkpoint({}, turn=len(turns), context_free=True)
        return chunk

    monkeypatch.setattr(search_index, "_next_chunk", move)
    assert seqs(wf.search("step 3")) == [4]
    assert (len(turns), ranges(db, wf)) == (search_index.SEARCH_STALLS_MAX, [])


def _search_often(path: str, name: str, query: str) -> list[list[int]]:
    search_index.SEARCH_CHUNK_EVENTS = CHUNK  # type: ignore[misc]
    with strandline.open(path) as db:
        wf = db.tenant("acme").workflow(name)
        found = []
        for number in range(20):
            wf.append(strandline.note(f"late {number}"))
            found.append(seqs(wf.search(query, 1_000)))
        return found


def test_processes_that_index_at_once_leave_one_index(tmp_path: Path) -> None:
    with open_store("sqlite", tmp_path) as db:
        wf = new_workflow(db)
        notes(wf, *(f"step {number} of the pump" for number in range(50 * CHUNK)))
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(2, mp_context=spawn) as pool:
            running = [pool.submit(_search_often, str(tmp_path / "store.db"), wf.name, "pump") for _ in range(2)]
            for each in running:
                assert all(found == list(range(50 * CHUNK, 0, -1)) for found in each.result())
        assert len(wf.search("late", 100)) == 40
        ((first, last),) = ranges(db, wf)
        assert (first, last) == (1, (50 * CHUNK + 40) // CHUNK * CHUNK)
        assert wf.verify().ok


def test_an_event_loop_gets_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        async with strandline.aopen(tmp_path / "store.db") as db:
            wf = db.tenant("acme").workflow("w")
            await wf.append([strandline.note(f"step {number}") for number in range(2 * CHUNK)])
            assert seqs(await wf.search("step", 2, before=9)) == [8, 7]
            assert seqs(await wf.search("step 3", reindex=True)) == [4]

    asyncio.run(main())


def test_an_erasure_takes_its_words_along(db) -> None:
    """What C31 needs: an event is taken out of the index under the words that it had."""
    wf = new_workflow(db)
    notes(wf, *(f"step {number} of the pump" for number in range(CHUNK)))
    wf.search("pump")
    with transaction(db, wf, write=True) as tx:
        tx.search.drop(3, words_of("step 2 of the pump"))
    assert len(wf.search("pump", 100)) == CHUNK - 1
    assert wf.search("step 2") == []
