"""Law (C31, I1): an erasure takes what events said out of the store, and out of all that was made from it.

Checked by a walk over every column of every table afterwards, over the files, and through every facet; and by what
still holds: seqs, keys, digests, `verify`, what a revocation said.
"""

import errno
import json
import os
import sqlite3
import zlib
from contextlib import closing, suppress
from dataclasses import replace

import msgspec
import pytest

import strandline
from strandline.codec.packing import PLAIN, decompress, unfold
from strandline.engine import search_index
from strandline.engine.cases import open_case
from strandline.engine.reading import find_view
from strandline.errors import CorruptRecordError
from strandline.model.candidate import Verdict
from strandline.model.case import CaseKind
from strandline.model.ids import Scope
from strandline.model.judgement import ClaimStatus, JudgedClaim
from strandline.model.summary import DropReason
from strandline.testing import ScriptedSummarizer
from strandline.testing.conformance.stage import dump
from strandline.testing.values import make_foreign
from tests.unit.test_engine_stage import STORES, WHOLE, open_store, quiet, talk, transaction

MARK = 'Zébulon "Q" Quartermain of Hidden Lane'
REF = "patient-77fa31"
SAID = f"The patient {MARK} has the number {REF}, as he told us on the phone."
WHO = {"by": "dpo", "why": "request 12"}
FORMS = {
    MARK,
    MARK.replace('"', '\\"'),
    json.dumps(MARK)[1:-1],
    REF,
    "Zébulon",
    "Z\\u00e9bulon",
    "quartermain",
    "77fa31",
}
NEEDLES = [form.encode() for form in FORMS]


@pytest.fixture(params=STORES)
def db(request, tmp_path):
    with open_store(request.param, tmp_path) as opened:
        yield opened


def workflow_of(db, name="release"):
    return db.tenant("acme").workflow(name)


def fill(db, wf):
    """Let every table that can hold what an event said hold it; return the seqs of the events that said it."""
    wf.append(talk(4))
    seqs = [*wf.append(strandline.message("user", SAID, key="told", refs=[REF], actor="zeb")).seqs]
    seqs += wf.append(strandline.constraint("privacy", f"Never write to {MARK} by letter.", key="rule")).seqs
    seqs += wf.append(strandline.approval("publish", f"{MARK} said yes to it.", granter="ana")).seqs
    seqs += wf.append(strandline.tool_call("c1", "mail", {"to": MARK, "of": [REF]})).seqs
    seqs += wf.append(strandline.tool_result("c1", {"sent": True, "to": MARK})).seqs
    wf.append(talk(6, start=30))
    fail(wf)
    said = f"[9] user/message: {SAID}"
    assert wf.compact(600, ScriptedSummarizer([said, said])).outcome == "activated"
    keep_foreign(db, wf)
    wf.checkpoint({"memory": [SAID]}, 1, basis=wf.context())
    wf.checkpoint({"queue": f"ask {MARK} again tomorrow"}, 2, context_free=True, name="flow")
    wf.checkpoint({"turn": 3}, 3, context_free=True, name="clean")
    ask(db, wf)
    keep_states(wf)
    wf.append(talk(6, start=60))
    assert wf.compact(600, ScriptedSummarizer(["Work went on.", said, said, said])).outcome == "activated"
    wf.append(talk(12, start=90))
    wf.compact_later(600)
    db.run_due(db.sweep()[0], failing(f"the model says: {SAID}"), worker="w1")
    index(wf)
    return seqs


def keep_states(wf):
    """Let frameworks have saved it: as JSON, as msgpack in msgpack, and as bytes of a form that nobody knows."""
    inner = msgspec.msgpack.Ext(5, msgspec.msgpack.encode(("HumanMessage", {"content": SAID})))
    held = {
        "messages": [json.dumps({"content": "hello"}).encode(), json.dumps({"content": SAID}).encode()],
        "packed": [msgspec.msgpack.encode({"last": inner})],
        "pickled": [b"\x80\x05\x8c" + bytes([len(MARK.encode())]) + MARK.encode() + b"\x94."],
    }
    values = {
        name: strandline.StateValue(tuple(strandline.Part(kind=name, data=data) for data in parts), many=True)
        for name, parts in held.items()
    }
    other = strandline.StateValue((strandline.Part(kind="json", data=b'"nothing of it"'),))
    wf.states.save("clean", {"step": other})
    wf.states.save("told", values | {"step": other}, parent="clean")
    wf.states.save("named", {"step": other}, meta=json.dumps({"user": MARK}).encode(), parent="clean")
    write = strandline.StateWrite(task="t", index=0, channel="messages", value=values["packed"])
    wf.states.write("clean", [replace(write, index=1, value=other), write])


def failing(text):
    def summarize(request):
        raise strandline.TransientSummarizerError(text, retry_after_s=0.0)

    return summarize


def fail(wf):
    """Leave attempts that failed with it, and a candidate that is quarantined with a draft of it."""
    wf.compact(500, failing(f"refused to go on with {SAID}"), fallback=False)
    wf.compact(550, ScriptedSummarizer([f"{SAID} He owns vault-9999."] * 8), fallback=False)


def keep_foreign(db, wf):
    theirs = [replace(make_foreign("theirs", 20), text=f"It was about: {SAID}"), make_foreign("before", 2)]
    with db.store.write(Scope(tenant="acme", workflow=wf.name)) as tx:
        head = tx.log.head()
        tx.log.set_head(replace(head, foreign_summaries=tx.summaries.add_foreign(theirs)))


def ask(db, wf):
    with wf._env.write() as tx:
        view = find_view(tx, "main", str(wf._env.scope))
        open_case(wf._env, tx, CaseKind.LINEAGE_REFUSAL, view=view, reason="x", subject="x", detail={"about": SAID})


def index(*workflows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_index, "SEARCH_CHUNK_EVENTS", 2)
        for wf in workflows:
            wf.search("inspected")


def through_facets(db, name="release"):
    with db.store.read(Scope(tenant="acme", workflow=name)) as tx:
        cases = list(tx.cases.all())
        return repr((dump(tx), cases, list(tx.effects.all()), list(tx.permits.all())))


def found_in(text):
    return sorted(form for form in FORMS if form in text)


def holding(path):
    """Return the columns of a store's rows that hold it, in any form."""
    held = set()
    with closing(sqlite3.connect(path)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in names:
            rows = connection.execute(f"SELECT * FROM {table}")
            columns = [column[0] for column in rows.description]
            for row in map(lambda row, columns=columns: dict(zip(columns, row, strict=True)), rows):
                for column, value in row.items():
                    if any(needle in form for form in forms_of(table, column, value, row) for needle in NEEDLES):
                        held.add(f"{table}.{column}")
    return held


def forms_of(table, column, value, row):
    """Return a value as it lies there, and unpacked."""
    if value is None or isinstance(value, int | float):
        return []
    data = value.encode() if isinstance(value, str) else value
    forms = [data]
    if table == "event" and column == "body" and row["codec"] != PLAIN:
        forms.append(decompress(row["codec"], data, "", row["record"]))
    with suppress(CorruptRecordError, zlib.error):
        forms.append(unfold(data, ""))
    return forms


# ---------------------------------------------------------------------------------------------- the whole store


HOLDS_IT = {
    "event.body",
    "ref_block.texts",
    "search_posting.word",
    "attempt.drafts",
    "attempt.failure_text",
    "segment.text",
    "summary.anchors",
    "summary.anchors_text",
    "checkpoint.state",
    "foreign_summary.text",
    "case_file.record",
    "due_compaction.failure_text",
    "state_node.body",
    "saved_state.meta",
}


def test_no_column_and_no_file_holds_it_afterwards(tmp_path):
    """C31: before, each of these columns holds it; after, none does, and no byte of the files."""
    path = tmp_path / "store.db"
    with open_store("sqlite", tmp_path) as db:
        wf = workflow_of(db)
        seqs = fill(db, wf)
        assert holding(path) >= HOLDS_IT
        erased = wf.erase(person=MARK, **WHO)
        assert erased.events == tuple(seqs)
        assert erased.scan.found == 0
        assert erased.scan.searched_for > len(seqs)
        assert erased.left_in == ()
        assert erased.repeated_in == ()
        assert holding(path) == set()
        assert db.verify().ok, db.verify().problems
        db.backup(tmp_path / "backup.db")
    assert holding(tmp_path / "backup.db") == set()
    for file in tmp_path.iterdir():
        data = file.read_bytes()
        assert [needle for needle in NEEDLES if needle in data] == [], file
        assert erased.scan.files.keys() >= {"store.db"}


def test_a_disk_that_fails_under_the_search_is_told_as_such(tmp_path, monkeypatch):
    """C31, I1: what was erased is erased, and the caller is told that its files were not searched."""

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with open_store("sqlite", tmp_path) as db:
        wf = workflow_of(db)
        told = wf.append(strandline.message("user", SAID)).seq
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(strandline.StoreUnavailableError, match=r"it is erased, but .* No space left") as failed:
                wf.erase(events=[told], **WHO)
        assert "VACUUM" in failed.value.hint
        assert wf.erase(events=[told], **WHO).event_count == 0, "nothing is left to erase"
        assert wf.append(strandline.message("user", "go on")).seq == told + 1


def test_what_lies_in_free_space_is_found_and_written_over(tmp_path):
    """C31: a file that was written without `secure_delete` holds old rows; the search finds them, and none is left."""
    path = tmp_path / "store.db"
    with open_store("sqlite", tmp_path) as db:
        workflow_of(db).append(talk(4))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA secure_delete=OFF")
        connection.execute("CREATE TABLE gone (text TEXT)")
        connection.executemany("INSERT INTO gone VALUES (?)", [(SAID,)] * 100)
        connection.commit()
        connection.execute("DROP TABLE gone")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert REF.encode() in path.read_bytes()
    with open_store("sqlite", tmp_path) as db:
        wf = workflow_of(db)
        told = wf.append(strandline.message("user", SAID)).seq
        assert wf.erase(events=[told], **WHO).scan.found == 0
        assert REF.encode() not in path.read_bytes()


def test_no_facet_tells_it_afterwards(db):
    """C31: on every store; what was made before and says nothing of it stays."""
    wf = workflow_of(db)
    seqs = fill(db, wf)
    assert found_in(through_facets(db))
    erased = wf.erase(events=seqs, **WHO)
    assert erased.event_count == len(seqs)
    assert found_in(through_facets(db)) == []
    assert found_in(wf.context(WHOLE).text) == []
    assert db.verify().ok
    assert erased.also["checkpoint"] == 2
    with transaction(db, wf) as tx:
        kept = {made.name: made.erased for made in tx.checkpoints.all()}
    assert kept == {"main": True, "flow": True, "clean": False}


def test_what_stays_of_an_event_is_its_envelope(db):
    """I1: seq, key and digest stay; the same key returns the same seq, compares nothing and stores nothing."""
    wf = workflow_of(db)
    seqs = fill(db, wf)
    revision = wf.basis().revision
    wf.erase(events=seqs, **WHO)
    again = wf.append(strandline.message("user", "something else", key="told", actor="zeb"))
    assert (again.seqs, again.added, again.revision) == ((seqs[0],), 0, revision)
    event = wf.events(seqs[0], seqs[0])[0]
    assert (event.text, event.actor, event.declared) == ("[erased]", "zeb", ())
    assert db.verify().ok


def test_what_was_said_of_a_draft_goes_with_it(db):
    """C31: a verdict quotes the sentences that it judged."""
    wf = workflow_of(db)
    wf.append(talk(6))
    told = wf.append(strandline.message("user", SAID)).seq
    wf.append(talk(8, start=30))
    wf.compact(500, ScriptedSummarizer(["Work went on."]))
    claim = JudgedClaim(claim=SAID, status=ClaimStatus.PRESERVED, sentence=SAID)
    with transaction(db, wf, write=True) as tx:
        (candidate,) = tx.jobs.all_candidates()
        (attempt,) = tx.jobs.attempts(candidate.candidate_id)
        tx.jobs.erase(replace(attempt, verdict=Verdict(claims=(claim,))))
    assert found_in(through_facets(db))
    wf.erase(events=[told], **WHO)
    assert found_in(through_facets(db)) == []


# ---------------------------------------------------------------------------------------------- the memory


def test_the_summary_covers_the_same_events_from_what_remains(db):
    """I7, I9: the watermark stays, segments that were not made from it stay byte for byte, and the erased reference is
    accounted for by number and reason.
    """
    wf = workflow_of(db)
    wf.append(talk(12))
    wf.compact(400, quiet)
    told = wf.append(strandline.message("user", SAID)).seq
    wf.append(talk(12, start=50))
    wf.compact(400, quiet)
    before = wf.context(WHOLE)
    with transaction(db, wf) as tx:
        old = tx.summaries.get(find_view(tx, "main", "").summary_no)
    erased = wf.erase(events=[told], **WHO)
    after = wf.context(WHOLE)
    assert (after.watermark, after.generation) == (before.watermark, before.generation + 1)
    assert erased.generations == {"main": after.generation}
    with transaction(db, wf) as tx:
        new = tx.summaries.get(find_view(tx, "main", "").summary_no)
        assert tx.summaries.get(old.summary_no).erased
    kept = [s for s in old.segments if not s.head.from_seq <= told <= s.head.through_seq]
    assert set(kept) <= set(new.segments)
    assert new.source_digest == old.source_digest
    assert new.tokens <= old.tokens
    assert {(m.ref, m.last_seq) for m in wf.manifest() if m.reason is DropReason.ERASED} == {(None, told)}
    assert wf.recall(REF) == []
    assert db.verify().ok


def test_an_erased_grant_is_void_and_an_erased_revocation_counts(db):
    """C31: kind, target and effect live in the envelope."""
    wf = workflow_of(db)
    granted = wf.append(strandline.approval("publish", "Yes, go.", granter="ana")).seq
    wf.append(strandline.approval("deploy", "Yes, go.", granter="ana"))
    taken = wf.append(strandline.revoke("deploy", "No, stop it now.", actor="ana")).seq
    stood = wf.append(strandline.constraint("rule", "Never on Fridays.")).seq
    lifted = wf.append(strandline.lift_constraint("rule", "Fridays are fine.")).seq
    wf.append(talk(8))
    wf.compact(300, quiet)
    assert "publish" in wf.context(WHOLE).text
    wf.erase(events=[granted, taken, stood, lifted], **WHO)
    for action in ("publish", "deploy"):
        with pytest.raises(strandline.ActionDeniedError):
            wf.guard(action, [strandline.approved(action)])
    text = wf.context(WHOLE).text
    assert "approval publish" not in text
    assert "constraint rule" not in text
    assert "revoked deploy" in text
    assert db.verify().ok


def test_what_was_made_before_is_no_target_of_a_recovery(db):
    """I15: the pointer moved, so a state from before is replayed, not restored; a context-free one that is erased is a
    question, never skipped in silence.
    """
    wf = workflow_of(db)
    seqs = fill(db, wf)
    wf.erase(events=seqs, **WHO)
    recovery = wf.recover(prior_state=False)
    assert (recovery.kind, recovery.state) == ("replay", None)
    with pytest.raises(strandline.SummaryReconciliationError) as refused:
        wf.recover(name="flow")
    assert refused.value.reason == "checkpoint_erased"
    assert wf.recover(name="clean").state == {"turn": 3}
    wf.reconcile(refused.value.case_id, strandline.ReplayFromExact(), by="ann", why="it is gone")
    assert wf.recover(name="flow").state is None


def test_a_generation_that_was_erased_is_none_to_go_back_to(db):
    """C17, C22: revert says so, a rewind takes an older summary or none, a fork too."""
    wf = workflow_of(db)
    seqs = fill(db, wf)
    wf.erase(events=seqs, **WHO)
    with pytest.raises(strandline.InvalidInputError, match="erasure"):
        wf.revert(1, by="ann", why="why not")
    wf.fork(None, "aside", by="ann", why="to look")
    assert found_in(through_facets(db, "aside")) == []
    wf.rewind(seqs[-1] + 2, by="ann", why="back")
    assert found_in(wf.context(WHOLE).text) == []
    assert db.verify().ok


def test_a_compaction_goes_on_from_the_replacement(db):
    """I7, I12: as from any summary."""
    wf = workflow_of(db)
    seqs = fill(db, wf)
    wf.erase(events=seqs, **WHO)
    wf.append(talk(12, start=80))
    outcome = wf.compact(600)
    assert outcome.outcome == "activated"
    assert outcome.refs_unaccounted == 0
    assert found_in(wf.context(WHOLE).text) == []
    assert db.verify().ok


def test_an_erasure_in_the_tail_voids_what_covers_it(db):
    """I6: the job is void, and the same compaction is another one afterwards."""
    wf = workflow_of(db)
    wf.append(talk(12))
    told = wf.append(strandline.message("user", SAID)).seq
    wf.append(talk(6, start=40))
    wf.compact(900, failing(f"cannot do {SAID}"), through=told, fallback=False)
    wf.erase(events=[told], **WHO)
    with transaction(db, wf) as tx:
        assert {candidate.state for candidate in tx.jobs.all_candidates()} == {"void"}
    assert wf.compact(900, quiet, through=told).outcome == "activated"
    assert {(entry.ref, entry.last_seq) for entry in wf.manifest() if entry.reason == "erased"} == {(None, told)}
    assert db.verify().ok


def test_a_draft_that_is_in_flight_does_not_land(db):
    """I6: the fence was raised, and nothing of it is stored."""
    wf = workflow_of(db)
    wf.append(talk(12))
    told = wf.append(strandline.message("user", SAID)).seq
    wf.append(talk(8, start=40))
    erased = []

    def slow(request):
        if not erased:
            erased.append(wf.erase(events=[told], **WHO))
            return f"[{told}] user/message: {SAID}"
        return "Work went on."

    wf.compact(900, slow, through=told + 4)
    assert found_in(through_facets(db)) == []
    assert db.verify().ok


# ---------------------------------------------------------------------------------------------- whose, and which


@pytest.mark.parametrize("named", [{"person": "Ada Quill"}, {"refs": ["Ada Quill"]}])
def test_what_is_named_goes_from_whatever_repeats_it_however_short_it_is(db, named):
    """C31: a name has no four words, and is no reference that the extractor sees; the proof would not miss it."""
    wf = workflow_of(db)
    told = wf.append(strandline.message("user", "I am Ada Quill of Hidden Lane 12, and wait for you.", actor="ada")).seq
    wf.append(talk(6))
    wf.checkpoint({"customer": "Ada Quill"}, 1, context_free=True, name="value")
    wf.checkpoint({"Ada Quill": 3}, 2, context_free=True, name="key")
    wf.checkpoint({"customer": "Adam Quillon"}, 3, context_free=True, name="other")
    theirs = replace(make_foreign("earlier", 0), text="In a session before this one Ada Quill called.")
    with db.store.write(Scope(tenant="acme", workflow=wf.name)) as tx:
        head = tx.log.head()
        tx.log.set_head(replace(head, foreign_summaries=tx.summaries.add_foreign([theirs])))
    erased = wf.erase(**named, **WHO)
    assert erased.events == (told,)
    assert (erased.also["checkpoint"], erased.also["foreign_summary"], erased.left_in) == (2, 1, ())
    assert "Ada Quill" not in through_facets(db)
    assert wf.recover(name="other").state == {"customer": "Adam Quillon"}
    assert db.verify().ok


def test_what_is_left_is_told_where_no_event_holds_it_any_more(db):
    """C31: an answer that nothing was there to erase would be taken for one that nothing is there."""
    wf = workflow_of(db)
    told = wf.append(strandline.message("user", "Ada Quill is here.")).seq
    wf.erase(events=[told], **WHO)
    made = wf.checkpoint({"customer": "Ada Quill"}, 1, context_free=True)
    again = wf.erase(person="Ada Quill", **WHO)
    assert (again.event_count, again.left_in) == (0, (f"checkpoint {made.lineage_seq} of 'release'",))


def test_a_view_that_never_read_it_is_left_alone(db):
    """I21: its pointer does not move, and its lineage tells it nothing."""
    wf = workflow_of(db)
    wf.define_view("public", audiences={"open"})
    wf.append(talk(4))
    told = wf.append(strandline.message("user", SAID, audience="secret")).seq
    wf.append(talk(10, start=40))
    pub = wf.view("public")
    pub.compact(400, quiet)
    wf.compact(400, quiet)
    before = pub.context(WHOLE)
    erased = wf.erase(events=[told], **WHO)
    assert erased.generations.keys() == {"main"}
    assert pub.context(WHOLE).text == before.text
    assert pub.context(WHOLE).generation == before.generation
    assert all(entry.kind != "erasure" for entry in pub.lineage())
    with pytest.raises(strandline.InvalidInputError):
        pub.erase(events=[told], **WHO)
    assert db.verify().ok


@pytest.mark.parametrize("named", ["parent", "fork"])
def test_an_erasure_reaches_every_fork(db, named):
    """C22, C31: whoever is asked, the shared event is gone for all of the family, and so is what each made from it."""
    wf = workflow_of(db)
    seqs = fill(db, wf)
    wf.fork(None, "aside", by="ann", why="to try")
    aside = workflow_of(db, "aside")
    aside.append(talk(4, start=200))
    aside.append(strandline.message("user", f"And {SAID}"))
    aside.compact(600, ScriptedSummarizer([f"[9] user/message: {SAID}"] * 8))
    aside.checkpoint({"memory": SAID}, 1, basis=aside.context())
    aside.fork(None, "deeper", by="ann", why="to try further")
    wf.append(talk(4, start=300))
    asked = wf if named == "parent" else aside
    erased = asked.erase(person=MARK, **WHO)
    assert set(erased.forks) | {asked.name} == {"release", "aside", "deeper"}
    for name in ("release", "aside", "deeper"):
        assert found_in(through_facets(db, name)) == []
        assert found_in(workflow_of(db, name).context(WHOLE).text) == []
        assert workflow_of(db, name).events(seqs[0], seqs[0])[0].text == "[erased]"
    assert db.verify().ok, db.verify().problems


@pytest.mark.parametrize("named", ["parent", "fork"])
def test_a_fork_of_what_an_erasure_made_can_be_erased_from_again(db, named):
    """C22, C31: what takes a summary's place is told from what the fork took over, which an erasure had made, too."""
    wf = workflow_of(db)
    wf.append(talk(12))
    wf.compact(400, quiet)
    wf.erase(events=[2], **WHO)
    wf.fork(None, "aside", by="ann", why="to try")
    aside = workflow_of(db, "aside")
    aside.fork(None, "deeper", by="ann", why="to try further")
    (wf if named == "parent" else aside).erase(events=[4], **WHO)
    for name in ("release", "aside", "deeper"):
        assert workflow_of(db, name).context(WHOLE).text
    assert db.verify().ok, db.verify().problems


def test_a_reference_that_another_event_holds_keeps_its_text(db):
    """C31: also one of a fork, which shares the number."""
    wf = workflow_of(db)
    first = wf.append(strandline.note("about vol-77aa and vol-88bb")).seq
    wf.fork(None, "aside", by="ann", why="to try")
    workflow_of(db, "aside").append(strandline.note("vol-88bb again"))
    wf.append(strandline.note("vol-77aa again"))
    erased = wf.erase(events=[first], **WHO)
    assert erased.refs == 0
    assert [hit.seq for hit in wf.recall("vol-77aa") if hit.text != "[erased]"] == [3 - 1]
    assert db.verify().ok
    again = workflow_of(db, "aside").erase(refs=["vol-88bb"], **WHO)
    assert again.refs == 1
    assert workflow_of(db, "aside").recall("vol-88bb") == []
    assert db.verify().ok, db.verify().problems


def test_what_is_named_is_what_is_erased(db):
    """C31: events, references on token boundaries, an actor, a person, everything."""
    wf = workflow_of(db)
    wf.append(
        [
            strandline.message("user", "I am here.", actor="ana"),
            strandline.message("assistant", "ana asked for $500."),
            strandline.message("user", "It was $5000, by anabel."),
            strandline.approval("pay", "Yes, pay.", granter="ana"),
        ]
    )
    assert wf.erase(refs=["$500"], **WHO).events == (2,)
    assert wf.erase(actor="ana", **WHO).events == (1,)
    assert wf.erase(person="ana", **WHO).events == (4,)
    assert wf.erase(refs=["nowhere"], **WHO).event_count == 0
    assert wf.erase(everything=True, **WHO).events == (3,)
    again = wf.erase(everything=True, **WHO)
    assert (again.event_count, again.lineage_seq) == (0, 0)
    assert {event.text for event in wf.events()} == {"[erased]"}
    assert db.verify().ok


def test_what_stays_and_repeats_it_is_named(db):
    """C31: the answer says which events to look at."""
    wf = workflow_of(db)
    told = wf.append(strandline.message("user", SAID)).seq
    other = wf.append(strandline.message("user", "You said: as he told us on the phone, or so.")).seq
    erased = wf.erase(events=[told], by="dpo", why=f"for {MARK}")
    assert erased.repeated_in == (f"event {other} of 'release'",)
    assert erased.left_in == (f"lineage {erased.lineage_seq} of 'release'",)


# ---------------------------------------------------------------------------------------------- what stands in its way


def test_a_legal_hold_stops_it_and_nothing_forces_one(db):
    """C31: one of the workflow, and one of its tenant."""
    wf = workflow_of(db)
    wf.append(talk(2))
    before = through_facets(db)
    wf.hold("case 7", by="law", why="it is in court")
    for force in (False, True):
        with pytest.raises(strandline.ErasureRefusedError) as refused:
            wf.erase(events=[1], force=force, **WHO)
        assert refused.value.holds == ("case 7",)
    with pytest.raises(strandline.InvalidInputError):
        wf.hold("case 7", by="law", why="again")
    assert [(hold.name, hold.workflow, hold.by) for hold in wf.holds()] == [("case 7", "release", "law")]
    assert "[erased]" not in through_facets(db)
    wf.lift_hold("case 7", by="law", why="it is over")
    with pytest.raises(strandline.InvalidInputError):
        wf.lift_hold("case 7", by="law", why="again")
    assert wf.holds() == []
    assert wf.erase(events=[1], **WHO).events == (1,)
    assert before != through_facets(db)
    assert db.verify().ok


def test_what_a_reader_still_needs_is_erased_by_force_only(db):
    """C31: one who has read it, or has finished, needs it no more."""
    wf = workflow_of(db)
    wf.append(talk(2))
    wf.read_through("export", 1)
    wf.read_through("audit", 0, finished=True)
    with pytest.raises(strandline.ErasureRefusedError) as refused:
        wf.erase(events=[2], **WHO)
    assert refused.value.readers == ("export",)
    assert wf.erase(events=[1], **WHO).events == (1,)
    assert wf.erase(events=[2], force=True, **WHO).events == (2,)
    wf.read_through("export", 3)
    assert wf.erase(events=[3], **WHO).events == (3,)
    for seq in (2, 9):
        with pytest.raises(strandline.InvalidInputError):
            wf.read_through("export", seq)
    assert [(reader.name, reader.seq, reader.finished) for reader in wf.readers()] == [
        ("audit", 0, True),
        ("export", 3, False),
    ]
    assert db.verify().ok


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"events": [0]},
        {"events": [99]},
        {"events": ["1"]},
        {"refs": [""]},
        {"refs": [7]},
        {"person": " "},
        {"actor": 3},
    ],
    ids=str,
)
def test_what_can_not_be_erased_is_refused(db, named):
    """§6: nothing was written."""
    wf = workflow_of(db)
    wf.append(talk(2))
    before = through_facets(db)
    with pytest.raises(strandline.InvalidInputError):
        wf.erase(**named, **WHO)
    with pytest.raises(strandline.InvalidInputError):
        wf.erase(events=[1], by=" ", why="")
    assert through_facets(db) == before


# ---------------------------------------------------------------------------------------------- saved states


class TestSavedStates:
    def test_those_that_used_it_say_so_and_the_others_stay(self, db):
        wf = workflow_of(db)
        wf.append(strandline.message("user", SAID, actor="zeb"))
        keep_states(wf)
        wf.states.save("later", {}, kept=["step", "messages"], parent="told")
        erased = wf.erase(person=MARK, **WHO)
        assert (erased.also["state_part"], erased.also["saved_state"], erased.left_in) == (3, 1, ())
        for state_id in ("told", "later", "named", "clean"):
            with pytest.raises(strandline.StateErasedError, match=state_id):
                wf.states.load(state_id)
        left = wf.states.load("told", erased=True)
        assert left.erased
        assert [len(left.values[name].parts) for name in ("messages", "packed", "pickled", "step")] == [1, 0, 0, 1]
        assert wf.states.load("named", erased=True).values == {}
        assert [state.state_id for state in wf.states.list() if not state.erased] == []
        assert db.verify().ok, db.verify().problems

    def test_one_without_it_is_whole(self, db):
        wf = workflow_of(db)
        wf.append(strandline.message("user", SAID, actor="zeb"))
        keep_states(wf)
        wf.states.save("whole", {}, kept=["step"], parent="told")
        wf.erase(person=MARK, **WHO)
        assert not wf.states.load("whole").erased
        assert wf.states.load().state_id == "whole"

    def test_a_late_save_brings_nothing_back(self, db):
        """A process that still holds it in memory saves its list again."""
        wf = workflow_of(db)
        wf.append(strandline.message("user", SAID, actor="zeb"))
        parts = tuple(strandline.Part(kind="json", data=json.dumps(text).encode()) for text in ("hello", SAID))
        wf.states.save("before", {"messages": strandline.StateValue(parts, many=True)})
        wf.erase(person=MARK, **WHO)
        wf.states.save("after", {"messages": strandline.StateValue((*parts, parts[0]), many=True)}, parent="before")
        with pytest.raises(strandline.StateErasedError):
            wf.states.load()
        assert found_in(through_facets(db)) == []
        assert not wf.states.save("before", {"messages": strandline.StateValue(parts, many=True)}).created

    def test_everything_goes_with_everything(self, db):
        wf = workflow_of(db)
        wf.append(strandline.note("x"))
        wf.states.save("s", {"n": strandline.StateValue((strandline.Part(kind="json", data=b"1"),))}, meta=b"{}")
        wf.erase(everything=True, **WHO)
        with pytest.raises(strandline.StateErasedError):
            wf.states.load()
        wf.states.save("t", {"n": strandline.StateValue((strandline.Part(kind="json", data=b"1"),))}, parent="s")
        assert texts(wf.states.load()) == [b"1"]
        assert db.verify().ok, db.verify().problems


def texts(state):
    return [part.data for value in state.values.values() for part in value.parts]
