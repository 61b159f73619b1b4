"""Law (I1–I3): the log is gap-free, a batch is all or nothing, a key names one content for ever.

Checked on both stores through the public API, by cases and by generated batches against a dictionary as the oracle.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.limits import APPEND_EVENTS_MAX, EVENT_REFS_MAX, KEY_CHARS_MAX
from tests.unit.test_engine_stage import bounded, log_of, new_workflow

SAY = strandline.message


@pytest.fixture
def wf(db):
    return new_workflow(db)


def contents(db, wf) -> list[tuple[int, str | None, bytes]]:
    return [(event.seq, event.key, event.body) for event in log_of(db, wf)]


def test_the_same_key_with_the_same_content_gives_the_same_seq(db, wf):
    """I3: a repeat adds nothing, and says so."""
    first = wf.append(SAY("user", "hello", key="k", actor="a", refs=["bucket-1"]))
    again = wf.append(SAY("user", "hello", key="k", actor="a", refs=["bucket-1"]))
    assert (first.seqs, first.revision, first.added) == ((1,), 1, 1)
    assert (again.seqs, again.revision, again.added) == ((1,), 1, 0)
    assert contents(db, wf) == [(1, "k", b"hello")]


@pytest.mark.parametrize(
    "other",
    [
        SAY("user", "hello!", key="k"),
        SAY("assistant", "hello", key="k"),
        SAY("user", "hello", key="k", actor="b"),
        SAY("user", "hello", key="k", thread="t"),
        SAY("user", "hello", key="k", audience="release"),
        SAY("user", "hello", key="k", refs=["bucket-1"]),
        strandline.note("hello", key="k"),
        strandline.constraint("s", "hello", key="k"),
    ],
    ids=["text", "role", "actor", "thread", "audience", "refs", "kind", "subject"],
)
def test_the_same_key_with_other_content_is_an_error(db, wf, other):
    """I3: whatever differs, the error names key and seq, and nothing is appended, nor the rest of the batch."""
    wf.append(SAY("user", "hello", key="k"))
    with pytest.raises(strandline.IdempotencyConflictError) as caught:
        wf.append([SAY("user", "more", key="m"), other])
    assert (caught.value.key, caught.value.seq) == ("k", 1)
    assert contents(db, wf) == [(1, "k", b"hello")]


def test_a_repeat_for_a_wider_audience_is_an_error(db, wf):
    """I3, I21: what was said to a few is not taken for what is said to everyone."""
    wf.append(SAY("user", "hello", key="k", audience="release"))
    with pytest.raises(strandline.IdempotencyConflictError):
        wf.append(SAY("user", "hello", key="k"))


def test_a_batch_that_repeats_some_keys_appends_the_rest(db, wf):
    """I3: the answer has the seq of each event in the order given, old and new."""
    wf.append([SAY("user", "a", key="a"), SAY("user", "b"), SAY("user", "c", key="c")])
    mixed = wf.append(
        [SAY("user", "d"), SAY("user", "c", key="c"), SAY("user", "e", key="e"), SAY("user", "a", key="a")]
    )
    assert (mixed.seqs, mixed.revision, mixed.added) == ((4, 3, 5, 1), 5, 2)
    assert [key for _, key, _ in contents(db, wf)] == ["a", None, "c", None, "e"]
    assert mixed.seq == 1


def test_a_repeated_call_does_not_open_again_and_its_result_is_taken_once(db, wf):
    """I3, I8: a redelivered batch of call and result leaves call, result and register as they were."""
    batch = [strandline.tool_call("c1", "fetch", {}, key="call"), strandline.tool_result("c1", "done", key="result")]
    wf.append(batch)
    again = wf.append([*batch, strandline.tool_call("c1", "fetch", {}, key="next")])
    assert again.seqs == (1, 2, 3)
    assert [event.call_seq for event in log_of(db, wf)] == [None, 1, None]


def test_a_late_result_may_be_sent_again(db, wf):
    """I3: that a result was late is the log's finding and no part of its content."""
    wf.append([strandline.tool_call("c1", "fetch", {}), strandline.abandoned("c1")])
    first = wf.append(strandline.tool_result("c1", "done", key="result"))
    assert wf.append(strandline.tool_result("c1", "done", key="result")).seqs == first.seqs


def test_a_key_twice_in_one_batch_is_an_error(db, wf):
    """I3: also when the contents are the same, and nothing of the batch is appended."""
    with pytest.raises(strandline.IdempotencyConflictError) as caught:
        wf.append([SAY("user", "x"), SAY("user", "a", key="k"), SAY("user", "a", key="k")])
    assert (caught.value.key, caught.value.seq) == ("k", None)
    assert contents(db, wf) == []


def test_a_stale_writer_is_refused(db, wf):
    """I3: expected_revision is compared in the transaction; a repeat of what is there already is no stale write."""
    wf.append(SAY("user", "a", key="a"), expected_revision=0)
    with pytest.raises(strandline.StaleRevisionError) as caught:
        wf.append(SAY("user", "b", key="b"), expected_revision=0)
    assert (caught.value.expected, caught.value.actual) == (0, 1)
    with pytest.raises(strandline.StaleRevisionError):
        wf.append([SAY("user", "a", key="a"), SAY("user", "b", key="b")], expected_revision=0)
    with pytest.raises(strandline.StaleRevisionError):
        wf.append(SAY("user", "b", key="b"), expected_revision=2)
    assert wf.append(SAY("user", "a", key="a"), expected_revision=0).seqs == (1,)
    assert wf.append([SAY("user", "a", key="a"), SAY("user", "b", key="b")], expected_revision=1).seqs == (1, 2)


@pytest.mark.parametrize(
    "bad",
    [
        strandline.tool_result("nobody", "x"),
        strandline.lift_constraint("nothing"),
        SAY("user", "x", key="k" * (KEY_CHARS_MAX + 1)),
        SAY("user", "x", refs=[f"r{n}" for n in range(EVENT_REFS_MAX + 1)]),
        SAY("user", ",".join(f"job-{n}" for n in range(EVENT_REFS_MAX + 1))),
        strandline.tool_call("c", "fetch", {"x": float("nan")}),
        strandline.tool_call("c", "fetch", {"x": "\ud800"}),
        SAY("user", "x", key="a\0b"),
    ],
    ids=["orphan", "lift", "key", "refs", "found refs", "nan", "surrogate", "nul"],
)
def test_a_batch_with_one_bad_event_appends_none(db, wf, bad):
    """I2: all or nothing; seqs go on without a gap."""
    with pytest.raises(strandline.InvalidInputError):
        wf.append([SAY("user", "good", key="good"), bad])
    assert contents(db, wf) == []
    assert wf.append([SAY("user", "good", key="good")]).seqs == (1,)


@pytest.mark.parametrize("bad", [[], [SAY("user", "x")] * (APPEND_EVENTS_MAX + 1)], ids=["none", "too many"])
def test_a_batch_has_bounds(db, wf, bad):
    """I22: nothing to append, or more than one append takes, is an error."""
    with pytest.raises(strandline.InvalidInputError):
        wf.append(bad)


def test_keys_are_of_their_workflow(db):
    """I21: the same key in another workflow or tenant is another key."""
    one, other = new_workflow(db), new_workflow(db)
    foreign = db.tenant("umbrella").workflow(one.name)
    for number, wf in enumerate((one, other, foreign)):
        assert wf.append(SAY("user", f"text {number}", key="k")).seqs == (1,)


keys = st.one_of(st.none(), st.sampled_from("abcde"))
batches = st.lists(st.lists(st.tuples(keys, st.integers(0, 1)), min_size=1, max_size=5), min_size=1, max_size=6)


@bounded(40)
@given(batches=batches)
def test_any_sequence_of_batches_ends_as_a_dictionary_says(db, batches):
    """I1–I3: a batch is appended as a whole or refused as a whole, seqs are 1..revision, keys name one content."""
    wf = new_workflow(db)
    expected: list[tuple[str | None, str]] = []
    for batch in batches:
        owned = {key: (seq, text) for seq, (key, text) in enumerate(expected, start=1) if key is not None}
        named = [key for key, _ in batch if key is not None]
        bad = len(set(named)) < len(named) or any(k in owned and owned[k][1] != f"{k}{n}" for k, n in batch if k)
        events = [SAY("user", f"{key}{n}", key=key) for key, n in batch]
        if bad:
            with pytest.raises(strandline.IdempotencyConflictError):
                wf.append(events)
            continue
        seqs = []
        for key, n in batch:
            if key in owned:
                seqs.append(owned[key][0])
            else:
                expected.append((key, f"{key}{n}"))
                seqs.append(len(expected))
        appended = wf.append(events)
        assert (appended.seqs, appended.revision) == (tuple(seqs), len(expected))
    assert contents(db, wf) == [(seq, key, text.encode()) for seq, (key, text) in enumerate(expected, start=1)]
    assert wf.verify().ok
