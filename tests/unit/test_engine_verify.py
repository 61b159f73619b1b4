"""Law (I4, C5): what is not what was written is found, with its place, before anything is compacted from there.

Checked by changing the file with sqlite3, after dropping the triggers: one change a test; each must be found by
`verify`, and whoever reads the place must refuse. Nothing is repaired.
"""

import sqlite3
from contextlib import closing

import pytest

import strandline
from strandline.engine.reading import read_log
from tests.unit.test_engine_stage import open_store, quiet, talk

COVERED, TAIL = 5, 30  # an event below the watermark, and one behind it


def workflow_of(db: strandline.Strandline) -> strandline.Workflow:
    return db.tenant("acme").workflow("verified")


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A store with two generations, a tail, checkpoints, facts and a foreign lease that was fenced."""
    folder = tmp_path_factory.mktemp("verify")
    with open_store("sqlite", folder) as db:
        wf = workflow_of(db)
        wf.append(
            [
                strandline.constraint("rule", "Never on Fridays.", refs=["bucket-0001"]),
                strandline.pin("bucket-0001"),
                *talk(6),
            ]
        )
        wf.compact(350, quiet)
        wf.append(
            [strandline.tool_call("c1", "fetch", {"of": "bucket-0001"}), strandline.tool_result("c1", "vol-77aa")]
        )
        wf.append(talk(8, start=20))
        wf.compact(350, quiet)
        wf.checkpoint({"turn": 1}, 1, basis=wf.context())
        wf.append(talk(3, start=60))
        assert wf.context().watermark > 10
        assert wf.context().watermark < TAIL < wf.context().revision
        assert wf.verify().ok
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        for trigger in (
            "event_is_never_deleted",
            "event_is_never_changed",
            "entry_is_never_deleted",
            "entry_is_never_changed",
        ):
            connection.execute(f"DROP TRIGGER {trigger}")
    return (folder / "store.db").read_bytes()


@pytest.fixture
def damaged(template, tmp_path):
    """Return a function that runs statements on a copy of the template and opens it."""
    (tmp_path / "store.db").write_bytes(template)
    opened = []

    def damage(*statements: str) -> strandline.Strandline:
        with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
            changed = [connection.execute(statement).rowcount for statement in statements]
            connection.commit()
        assert all(changed), "every statement changes something"
        opened.append(open_store("sqlite", tmp_path))
        return opened[0]

    yield damage
    for db in opened:
        db.close()


FLIPPED = "UPDATE event SET body = CAST(substr(body, 1, 3) || 'X' || substr(body, 5) AS BLOB) WHERE seq = {0}"
SWAPPED = (
    "UPDATE event SET seq = -1 WHERE seq = {0}",
    "UPDATE event SET seq = {0} WHERE seq = {0} + 2",
    "UPDATE event SET seq = {0} + 2 WHERE seq = -1",
)
EVENT_DAMAGE = {
    "deleted": ("DELETE FROM event WHERE seq = {0}",),
    "flipped byte": (FLIPPED,),
    "truncated": ("UPDATE event SET body = substr(body, 1, 10) WHERE seq = {0}",),
    "nul": ("UPDATE event SET body = zeroblob(length(body)) WHERE seq = {0}",),
    "swapped": SWAPPED,
    "another's body": tuple(
        f"UPDATE event SET {column} = (SELECT {column} FROM event WHERE seq = {{0}} + 2) WHERE seq = {{0}}"
        for column in ("body", "salt", "codec")
    ),
    "another salt": ("UPDATE event SET salt = zeroblob(16) WHERE seq = {0}",),
    "another record": ("UPDATE event SET record = (SELECT record FROM event WHERE seq = {0} + 2) WHERE seq = {0}",),
    "no record": ("UPDATE event SET record = x'' WHERE seq = {0}",),
    "another key": ("UPDATE event SET key = CAST('stolen' AS BLOB) WHERE seq = {0}",),
    "another chain": ("UPDATE event SET chain = zeroblob(32) WHERE seq = {0}",),
    "erased": ("UPDATE event SET body = NULL, salt = NULL, body_digest = zeroblob(32) WHERE seq = {0}",),
}


@pytest.mark.parametrize("statements", EVENT_DAMAGE.values(), ids=EVENT_DAMAGE)
@pytest.mark.parametrize("seq", [COVERED, TAIL], ids=["covered", "tail"])
def test_a_damaged_event_is_found(damaged, statements, seq):
    """I1, I4: wherever it stands; the place names an event. Behind the watermark nothing is read past it, either."""
    wf = workflow_of(damaged(*(statement.format(seq) for statement in statements)))
    report = wf.verify()
    assert not report.ok
    assert any("event" in problem.place or "seq" in problem.reason for problem in report.problems)
    if seq == TAIL and statements != EVENT_DAMAGE["erased"]:
        for read in (wf.context, lambda: wf.compact(200, quiet), wf.recover):
            with pytest.raises(strandline.CorruptRecordError) as caught:
                read()
            assert str(TAIL) in caught.value.place or str(TAIL + 1) in caught.value.place
    assert wf.verify().problems == report.problems


def test_the_last_events_are_missed_too(damaged):
    """I4: by count and by the head's chain."""
    wf = workflow_of(damaged("DELETE FROM event WHERE seq > 32"))
    assert not wf.verify().ok
    with pytest.raises(strandline.CorruptRecordError):
        wf.context()


def test_a_missing_event_is_missed_where_a_reading_ends_before_the_last(damaged):
    """I4: whoever asks for that event alone, or for those up to it, is not told of fewer."""
    wf = workflow_of(damaged(f"DELETE FROM event WHERE seq = {COVERED}"))
    with wf._env.read() as tx:
        for first in (COVERED, COVERED - 2):
            with pytest.raises(strandline.CorruptRecordError, match=f"event {COVERED} "):
                list(read_log(tx, first, COVERED, wf.name))


@pytest.mark.parametrize("revision", ["revision - 1", "revision + 1"])
def test_a_changed_revision_is_found(damaged, revision):
    """I1, I4: the head row carries a digest."""
    wf = workflow_of(damaged(f"UPDATE workflow SET revision = {revision}"))
    assert not wf.verify().ok
    with pytest.raises(strandline.CorruptRecordError):
        wf.append(strandline.note("x"))


OTHER_DAMAGE = {
    "watermark moved": "UPDATE view_head SET watermark = watermark - 1",
    "pointer moved back": "UPDATE view_head SET summary_no = 1, generation = 1",
    "pointer gone": "DELETE FROM view_head",
    "lineage entry gone": "DELETE FROM lineage WHERE lineage_seq = 2",
    "last lineage entry gone": "DELETE FROM lineage WHERE lineage_seq = (SELECT max(lineage_seq) FROM lineage)",
    "lineage entry changed": "UPDATE lineage SET generation = 9 WHERE lineage_seq = 1",
    "lineage time changed": "UPDATE lineage SET at_us = at_us + 1 WHERE lineage_seq = 1",
    "segment text": "UPDATE segment SET text = CAST('Work went on from event 2.' AS BLOB)",
    "segments are another's": "UPDATE summary SET segments = (SELECT segments FROM summary WHERE summary_no = 1)",
    "old segment text": "UPDATE segment SET text = CAST('x' AS BLOB) WHERE from_seq = 1",
    "summary changed": "UPDATE summary SET watermark = watermark - 1 WHERE summary_no = 2",
    "anchors changed": "UPDATE summary SET anchors_text = CAST('' AS BLOB) WHERE summary_no = 2",
    "changes of the manifest gone": "DELETE FROM dropped_ref WHERE summary_no = 2",
    "changes of the base gone": "DELETE FROM dropped_ref WHERE summary_no = 1",
    "changes are another's": "UPDATE dropped_ref SET changes = (SELECT changes FROM dropped_ref WHERE summary_no = 1)",
    "fact gone": "DELETE FROM register_fact WHERE kind = 'constraint'",
    "fact changed": "UPDATE register_fact SET state = 'unknown' WHERE kind = 'constraint'",
    "fact ended": "UPDATE register_fact SET through_seq = 9 WHERE kind = 'constraint'",
    "references gone": "DELETE FROM ref_block WHERE first_id = 1",
    "references are others": "UPDATE ref_block SET texts = CAST('0[\"a\"]' AS BLOB)",
    "key of a reference gone": "DELETE FROM ref_key WHERE ref_id = 1",
    "key of another reference": "UPDATE ref_key SET ref_id = 99 WHERE ref_id = 1",
    "key of a reference changed": "UPDATE ref_key SET digest = digest + 1 WHERE ref_id = 1",
    "newest sighting gone": "DELETE FROM ref_sighting WHERE first_seq = (SELECT max(first_seq) FROM ref_sighting)",
    "earlier sightings gone": "UPDATE ref_block SET sightings = x'00' WHERE first_id = 1",
    "sighting made up": "INSERT INTO ref_sighting VALUES (1, 1, 1, 7, x'00', 0)",
    "sighting declared": "UPDATE ref_sighting SET seqs = CAST(seqs || x'01' AS BLOB)",
    "checkpoint gone": "DELETE FROM checkpoint",
    "checkpoint changed": "UPDATE checkpoint SET turn = 2",
    "candidate gone": "DELETE FROM candidate WHERE state = 'active'",
    "candidate changed": "UPDATE candidate SET state = 'pending' WHERE state = 'active'",
    "attempt changed": "UPDATE attempt SET draft_digest = zeroblob(32)",
    "attempt gone": "DELETE FROM attempt",
    "workflow renamed": "UPDATE workflow SET name = 'elsewhere'",
    "digest key changed": "UPDATE store_meta SET value = zeroblob(32)",
}


@pytest.mark.parametrize("statement", OTHER_DAMAGE.values(), ids=OTHER_DAMAGE)
def test_any_other_damaged_row_is_found(damaged, statement):
    """C5: pointers, lineage, summaries, manifests, register, references, checkpoints and jobs."""
    db = damaged(statement)
    assert not db.verify().ok
