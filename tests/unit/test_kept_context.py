"""Law (I4, I7, C18): a context that is kept answers as one that is read anew, whatever happened to the memory between
two reads; it reads again nothing but what came since; what the store holds no longer it does not answer from memory.
"""

import asyncio
import sqlite3
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.rules.newest import NewestEvents
from tests.unit.test_engine_stage import bounded, new_workflow

SAY, CALL, RESULT = strandline.message, strandline.tool_call, strandline.tool_result
WHO = {"by": "dana", "why": "a test"}
BUDGET = 600
WORDS = "the quick brown fox of order 4411 looks at https://example.org/a and writes /srv/report.txt "


@pytest.fixture
def wf(db):
    return new_workflow(db)


@pytest.fixture
def counted(monkeypatch):
    """The seqs of the events that were decoded, in order."""
    seen: list[int] = []
    opened = strandline.engine.reading.open_event

    def count(stored, chain, workflow):
        seen.append(stored.seq)
        return opened(stored, chain, workflow)

    monkeypatch.setattr(strandline.engine.reading, "open_event", count)
    return seen


def answer(read):
    """Return what a read answers: a context, or what it refuses with."""
    try:
        return read()
    except strandline.StrandlineError as error:
        return type(error), str(error)


# ---------------------------------------------------------------------------------------------- only what came since


def test_what_was_read_is_not_read_again(wf, counted):
    wf.append([SAY("user", f"turn {number}") for number in range(1, 9)])
    kept = wf.keep_context(BUDGET)
    kept.read()
    assert counted == [1, 2, 3, 4, 5, 6, 7, 8]
    counted.clear()
    wf.append([SAY("user", "turn 9"), SAY("assistant", "turn 10")])
    del counted[:]
    context = kept.read()
    assert counted == [9, 10]
    assert [part.from_seq for part in context.parts] == list(range(1, 11))
    del counted[:]
    assert kept.read() == context
    assert counted == []


def test_with_needs_all_is_read(wf, counted):
    wf.append([SAY("user", f"turn {number}: order 4411") for number in range(1, 4)])
    kept = wf.keep_context(BUDGET)
    kept.read()
    del counted[:]
    context = kept.read(["order 4411"])
    assert counted == [1, 2, 3]
    assert context.needs.in_tail == 1
    assert kept.read() == wf.context(BUDGET)


def test_what_leaves_the_window_is_kept_no_longer(wf):
    kept = wf.keep_context(BUDGET)
    for number in range(40):
        wf.append(SAY("user", WORDS * 2 + str(number)))
        kept.read()
    assert len(kept._kept.parts) < 40
    assert kept.read() == wf.context(BUDGET)


def test_an_event_loop_has_it_too(wf):
    async def go():
        mine = strandline.AsyncWorkflow(wf)
        await mine.append(SAY("user", "hello"))
        return await mine.keep_context(BUDGET).read(), await mine.context(BUDGET)

    kept, fresh = asyncio.run(go())
    assert kept == fresh


def test_a_size_that_is_none_is_refused(wf):
    wf.append(SAY("user", "hello"))
    with pytest.raises(strandline.InvalidInputError):
        wf.keep_context(1).read()


# ---------------------------------------------------------------------------------------------- what moves the memory


def test_what_was_erased_is_not_answered(wf):
    """C31: the words are gone for a process, too, that read them before."""
    wf.append([SAY("user", "my card is 4111-1111"), SAY("assistant", "noted")])
    kept = wf.keep_context(BUDGET)
    assert "4111" in kept.read().text
    wf.erase(events=[1], **WHO)
    context = kept.read()
    assert "4111" not in context.text
    assert context == wf.context(BUDGET)


def test_a_fork_is_not_answered_from_what_its_parent_had(db, wf):
    """C31: an erasure in the parent moves the fork's pointer, too."""
    wf.append([SAY("user", "my card is 4111-1111"), SAY("assistant", "noted")])
    wf.fork(2, f"{wf.name}-fork", **WHO)
    fork = db.tenant("acme").workflow(f"{wf.name}-fork")
    kept = fork.keep_context(BUDGET)
    assert "4111" in kept.read().text
    wf.erase(events=[1], **WHO)
    assert "4111" not in kept.read().text
    assert kept.read() == fork.context(BUDGET)


def test_a_view_that_reads_more_is_read_anew(wf):
    wf.define_view("narrow", audiences=["support"])
    wf.append([SAY("user", "for all"), SAY("user", "for sales", audience="sales")])
    narrow = wf.view("narrow")
    kept = narrow.keep_context(BUDGET)
    assert [part.from_seq for part in kept.read().parts] == [1]
    wf.define_view("narrow", audiences=["support", "sales"])
    assert kept.read() == narrow.context(BUDGET)
    assert [part.from_seq for part in kept.read().parts] == [1, 2]


STEPS = (*["say"] * 3, "call", "answer", "fact", "private", "compact", "revert", "rewind", "erase", "view", "hold")


@bounded(150)
@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 30)), max_size=25))
def test_it_answers_as_a_context_that_is_read_anew(db, steps):
    """I7: over drawn histories, for the whole log and for a narrow view, and for two handles that read in turn."""
    wf = new_workflow(db)
    wf.append(SAY("user", "begin"))
    wf.define_view("narrow", audiences=["support"])
    views = (wf, wf.view("narrow"))
    kept = [view.keep_context(BUDGET) for view in views]
    seldom = [view.keep_context(BUDGET) for view in views]
    for number, (step, value) in enumerate(steps):
        with suppress(strandline.StrandlineError):
            do(wf, step, value, number)
        for view, one in zip(views, kept, strict=True):
            assert answer(one.read) == answer(lambda view=view: view.context(BUDGET))
    for view, one in zip(views, seldom, strict=True):
        assert answer(one.read) == answer(lambda view=view: view.context(BUDGET))


def do(wf, step, value, number):
    """Do one step of a history."""
    revision = wf.basis().revision
    seq = 1 + value % revision
    match step:
        case "say":
            wf.append([SAY("user" if value % 2 else "assistant", WORDS * (value % 4) + f"turn {number}")])
        case "call":
            wf.append(CALL(f"call-{number}", "look", {"at": value}))
        case "answer":
            wf.append(RESULT(f"call-{number - 1 - value % 3}", f"seen {number}"))
        case "fact":
            wf.append(strandline.constraint(f"rule-{value % 3}", f"never touch order {value}"))
        case "private":
            wf.append(SAY("user", f"secret {number}", audience="support" if value % 2 else "sales"))
        case "compact":
            wf.view("narrow" if value % 3 == 0 else "main").compact(BUDGET)
        case "revert":
            wf.revert(value % (wf.basis().generation + 1), **WHO)
        case "rewind":
            wf.rewind(seq, **WHO)
        case "erase":
            wf.erase(events=[seq], **WHO)
        case "view":
            wf.define_view("narrow", audiences=["support", "sales"][: 1 + value % 2])
        case "hold":
            wf.hold(f"hold-{number}", **WHO)


# ---------------------------------------------------------------------------------------------- who reads


def test_what_a_reader_changes_is_his_own(wf):
    wf.append([SAY("user", "go"), CALL("c1", "look", {"at": {"x": [1, 2]}}), RESULT("c1", {"seen": "all"})])
    kept = wf.keep_context(BUDGET)
    for _ in range(2):
        parts = kept.read().parts
        parts[1].event.payload["at"]["x"].append("CHANGED")
        parts[2].event.payload["seen"] = "CHANGED"
        assert kept.read() == wf.context(BUDGET)


def test_two_that_read_at_once_have_each_a_context_of_its_moment(wf, monkeypatch):
    """I7: one is stopped where it has read, and another reads on meanwhile."""
    wf.append([SAY("user", "one"), SAY("user", "two")])
    kept = wf.keep_context(BUDGET)
    kept.read()
    finished = NewestEvents.events

    def overtaken(self):
        monkeypatch.setattr(NewestEvents, "events", finished)
        wf.append(SAY("user", "three"))
        assert [part.from_seq for part in kept.read().parts] == [1, 2, 3]
        return finished(self)

    monkeypatch.setattr(NewestEvents, "events", overtaken)
    first = kept.read()
    assert (first.revision, [part.from_seq for part in first.parts]) == (2, [1, 2])
    assert kept.read() == wf.context(BUDGET)


def test_what_is_large_is_not_kept(wf, counted, monkeypatch):
    """The memory of a process is bounded by bytes, too: an image is few tokens."""
    wf.append([SAY("user", "one"), SAY("user", "two")])
    kept = wf.keep_context(BUDGET)
    monkeypatch.setattr(strandline.engine.kept_tail, "KEPT_CONTEXT_BYTES_MAX", 5)
    kept.read()
    del counted[:]
    kept.read()
    assert counted == [1, 2]


# ---------------------------------------------------------------------------------------------- a store that changed


def test_an_older_file_that_was_put_back_is_read_as_it_is(tmp_path):
    """I4: what is kept of a log that the store holds no longer is not mixed with what it holds."""
    path, copy = tmp_path / "memory.db", tmp_path / "copy.db"
    with strandline.open(path) as db:
        wf = db.tenant("t").workflow("w")
        wf.append([SAY("user", "one"), SAY("user", "two")])
        db.backup(copy)
        wf.append(SAY("user", "three"))
        kept = wf.keep_context(BUDGET)
        kept.read()
        put_back(copy, path)
        assert [part.text for part in kept.read().parts] == [part.text for part in wf.context(BUDGET).parts]
        kept.read()
        wf.append([SAY("user", "another three"), SAY("user", "four")])
        assert kept.read() == wf.context(BUDGET)


@pytest.mark.parametrize("others", [["another two"], ["another two", "three"]])
def test_a_log_that_says_something_else_is_read_anew(tmp_path, others):
    path, copy = tmp_path / "memory.db", tmp_path / "copy.db"
    with strandline.open(path) as db:
        wf = db.tenant("t").workflow("w")
        wf.append(SAY("user", "one"))
        db.backup(copy)
        wf.append(SAY("user", "two"))
        kept = wf.keep_context(BUDGET)
        kept.read()
        with strandline.open(copy) as other:
            other.tenant("t").workflow("w").append([SAY("user", other) for other in others])
        put_back(copy, path)
        assert kept.read() == wf.context(BUDGET)
        assert "another two" in kept.read().text


def put_back(copy, path):
    with sqlite3.connect(copy) as older, sqlite3.connect(path) as here:
        older.backup(here)


@pytest.mark.parametrize("twice", ["erase", "compact"])
def test_a_pointer_that_moved_as_often_in_another_way_is_seen(tmp_path, twice):
    """C31: a backup is put back, and what comes then gives the view's row and the log the numbers that they had."""
    path, copy = tmp_path / "memory.db", tmp_path / "copy.db"
    with strandline.open(path) as db:
        wf = db.tenant("t").workflow("w")
        wf.append([SAY("user", "the first secret " * 5), SAY("user", "the second secret " * 5)])
        wf.append([SAY("user", f"turn {number} " * 20) for number in range(30)])
        db.backup(copy)
        move(wf, twice, 1)
        kept = wf.keep_context(20_000)
        kept.read()
        put_back(copy, path)
        move(wf, twice, 2)
        assert kept.read() == wf.context(20_000)


def move(wf, how, number):
    if how == "erase":
        wf.erase(events=[number], **WHO)
    else:
        assert wf.compact(600, lambda request: f"Draft {number}.").outcome == "activated"


def test_a_head_that_was_put_back_ends_the_context(tmp_path):
    """I7: nothing behind the revision that the context names stands in it."""
    path = tmp_path / "memory.db"
    with strandline.open(path) as db:
        wf = db.tenant("t").workflow("w")
        wf.append([SAY("user", "one"), SAY("user", "two")])
        with sqlite3.connect(path) as here:
            before = here.execute("SELECT * FROM workflow").fetchall()
            columns = [name for _, name, *_ in here.execute("PRAGMA table_info(workflow)")]
        wf.append(SAY("user", "three"))
        kept = wf.keep_context(BUDGET)
        kept.read()
        with sqlite3.connect(path) as here:
            places = ", ".join(f"{name} = ?" for name in columns)
            here.executemany(f"UPDATE workflow SET {places} WHERE workflow_id = ?", [(*row, row[0]) for row in before])
        assert kept.read() == wf.context(BUDGET)
        assert kept.read().revision == 2


def test_damage_in_what_came_since_is_found_and_leaves_nothing_behind(tmp_path):
    """I4: the read after it reads all, and what was mended is answered once."""
    path = tmp_path / "memory.db"
    with strandline.open(path) as db:
        wf = db.tenant("t").workflow("w")
        wf.append([SAY("user", "one"), SAY("user", "two")])
        kept = wf.keep_context(BUDGET)
        kept.read()
        wf.append([SAY("user", "three"), SAY("user", "four")])
        with sqlite3.connect(path) as here:
            here.execute("DROP TRIGGER event_is_never_changed")
            (whole,) = here.execute("SELECT body FROM event WHERE seq = 4").fetchone()
            here.execute("UPDATE event SET body = zeroblob(length(body)) WHERE seq = 4")
        for _ in range(2):
            with pytest.raises(strandline.CorruptRecordError, match="event 4"):
                kept.read()
        with sqlite3.connect(path) as here:
            here.execute("UPDATE event SET body = ? WHERE seq = 4", (whole,))
        assert kept.read() == wf.context(BUDGET)
        assert [part.from_seq for part in kept.read().parts] == [1, 2, 3, 4]
