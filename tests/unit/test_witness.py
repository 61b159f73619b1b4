"""Law (ADR 0071): a witness that is kept outside of a store tells whether the store is still what was witnessed, or a
continuation of it. Whatever the library itself does is a continuation, also what it takes back or erases; an older copy
that was put back, a history that went another way, and another store are none.
"""

import asyncio
import json
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import strandline
from strandline import NotContinuedError
from strandline.cli.app import app
from strandline.model.witness import HeadNow, WitnessedHead, WitnessFinding
from strandline.rules.witness import heads_to_judge, judge_head
from tests.unit.test_engine_stage import STORES, bounded, open_store, quiet, talk

KEY = b"sixteen bytes ok"


def say(*texts):
    return [strandline.message("user", text) for text in texts]


def store_at(path):
    return strandline.open(path, durability="normal")


def findings(db, witness, **arguments):
    with pytest.raises(NotContinuedError) as refused:
        db.check_witness(witness, **arguments)
    return [(one.workflow, one.finding) for one in refused.value.findings]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.db"
    with store_at(path) as db:
        db.tenant("acme").workflow("one").append(say("a", "b", "c"))
        db.tenant("acme").workflow("two").append(say("x"))
    return path


# ------------------------------------------------------------------------------------------ what is a continuation


@pytest.mark.parametrize("kind", STORES)
def test_all_that_the_library_does_is_a_continuation(kind, tmp_path):
    """After each step every witness of before holds: compaction, revert, rewind, fork, erasure, effect, saved state."""
    with open_store(kind, tmp_path) as db:
        tenant = db.tenant("acme")
        wf = tenant.workflow("run")
        lines = []
        steps = [
            lambda: wf.append([*talk(8), strandline.message("user", "call me at secret-7f3a", actor="eve")]),
            lambda: wf.compact(350, quiet),
            lambda: wf.append(talk(8, start=20)),
            lambda: wf.compact(350, quiet),
            lambda: wf.checkpoint({"turn": 1}, 1, basis=wf.context()),
            lambda: wf.revert(to_generation=1, by="ann", why="a test"),
            lambda: wf.effect("make", "create", {}, lambda: "made"),
            lambda: wf.states.save("s0", {"x": strandline.StateValue((strandline.Part(kind="json", data=b"1"),))}),
            lambda: wf.append(talk(2, start=50)),
            lambda: wf.rewind(wf.basis().revision - 2, by="ann", why="a test"),
            lambda: wf.fork(wf.basis().revision, "other", by="ann", why="a test"),
            lambda: wf.erase(refs=["secret-7f3a"], by="ann", why="a test", force=True),
            lambda: wf.define_view("narrow", audiences={"all"}),
            lambda: tenant.set_retention("rule", older_than_s=1e9, by="ann", why="a test"),
            wf.recover,
        ]
        for number, step in enumerate(steps):
            step()
            for line in lines:
                db.check_witness(line)
            lines.append(db.witness(key=KEY).document)
            report = db.check_witness("\n".join(reversed(lines)), key=KEY)
            assert (report.witnesses, report.continued, report.unwitnessed) == (number + 1, 0, 0)
        assert db.verify().ok


def test_the_same_state_has_the_same_digest(file):
    with store_at(file) as db:
        before = db.witness()
        assert db.witness().digest == before.digest
        db.tenant("acme").workflow("one").append(say("d"))
        assert db.witness().digest != before.digest


@pytest.mark.parametrize("way", ["backup", "copy"])
def test_a_backup_that_has_all_of_it_is_a_continuation(file, tmp_path, way):
    with store_at(file) as db:
        witness = db.witness()
        db.tenant("acme").workflow("one").append(say("d"))
        if way == "backup":
            db.backup(tmp_path / "b.db")
    if way == "copy":
        strandline.copy_store(str(file), str(tmp_path / "b.db"))
    with store_at(tmp_path / "b.db") as db:
        report = db.check_witness(witness)
        assert (report.workflows, report.continued) == (2, 1)


# ------------------------------------------------------------------------------------------ what is none


def put_back(file, tmp_path, *, witnessed=lambda db: None):
    """Witness a store behind what an older copy of it holds, put the copy back, and return the witness."""
    shutil.copy(file, tmp_path / "old.db")
    with store_at(file) as db:
        db.tenant("acme").workflow("one").append(say("d", "e"))
        witnessed(db)
        witness = db.witness()
    shutil.copy(tmp_path / "old.db", file)
    for beside in ("-wal", "-shm"):
        Path(f"{file}{beside}").unlink(missing_ok=True)
    return witness


def test_an_older_copy_that_was_put_back_is_found(file, tmp_path):
    """`verify` finds nothing wrong with it: every record in it is what was written."""
    witness = put_back(file, tmp_path)
    with store_at(file) as db:
        assert db.verify().ok
        with pytest.raises(NotContinuedError) as refused:
            db.check_witness(witness)
    (one,) = refused.value.findings
    assert (one.tenant, one.workflow, one.finding) == ("acme", "one", "rolled_back")
    assert (one.witnessed_revision, one.revision) == (5, 3)
    assert "acme/one is rolled back: revision was 5, is 3" in str(refused.value)


@pytest.mark.parametrize("more", [2, 3], ids=["of the same length", "longer"])
def test_a_history_that_went_another_way_is_found(file, tmp_path, more):
    witness = put_back(file, tmp_path)
    with store_at(file) as db:
        db.tenant("acme").workflow("one").append(say("d", "e", "f")[:more])
        assert db.verify().ok
        assert findings(db, witness) == [("one", WitnessFinding.FORKED)]


@pytest.mark.parametrize(
    "written",
    [
        lambda wf: wf.states.save("s", {"x": strandline.StateValue((strandline.Part(kind="json", data=b"1"),))}),
        lambda wf: wf.define_view("narrow", audiences={"all"}),
        lambda wf: wf.checkpoint({}, 1, context_free=True),
        lambda wf: wf.effect("make", "create", {}, lambda: "made"),
    ],
    ids=["saved state", "view", "checkpoint", "effect"],
)
def test_what_is_no_event_is_missed_too(file, tmp_path, written):
    witness = put_back(file, tmp_path, witnessed=lambda db: written(db.tenant("acme").workflow("two")))
    with store_at(file) as db:
        assert ("two", WitnessFinding.ROLLED_BACK) in findings(db, witness)


def test_a_lineage_that_went_another_way_is_found(file, tmp_path):
    def mark(db):
        db.tenant("acme").workflow("two").checkpoint({"a": 1}, 1, context_free=True)

    witness = put_back(file, tmp_path, witnessed=mark)
    with store_at(file) as db:
        db.tenant("acme").workflow("two").checkpoint({"a": 2}, 1, context_free=True)
        assert ("two", WitnessFinding.FORKED) in findings(db, witness)


def test_another_workflow_in_its_place_is_found(file, tmp_path):
    """I21: the rows are whole, and of one store; they change places. A head names its workflow, so the read is refused;
    with heads that were written anew the witness still tells.
    """
    with store_at(file) as db:
        witness = db.witness()
    with store_at(tmp_path / "other.db") as db:
        db.tenant("acme").workflow("one").append(say("a", "b", "c", "d"))
        assert findings(db, witness) == [("one", WitnessFinding.REPLACED), ("two", WitnessFinding.REPLACED)]
    head = {"tenant": "t", "workflow": "w", "revision": 3, "first": "aa", "chain": "bb", "lineage_seq": 0}
    now = HeadNow(revision=9, first="cc", chain="dd", lineage_seq=0, lineage_chain="", generations={}, counters={})
    told = judge_head(WitnessedHead(**head, lineage_chain="", generations={}, counters={}), now, same_store=True)
    assert told.finding is WitnessFinding.REPLACED


def test_a_missing_workflow_is_found(file):
    with store_at(file) as db:
        early = db.witness()
        shutil.copy(file, file.with_name("old.db"))
        db.tenant("acme").workflow("three").append(say("q"))
        late = db.witness()
    with store_at(file.with_name("old.db")) as db:
        db.check_witness(early)
        assert findings(db, late) == [("three", WitnessFinding.MISSING)]
        assert db.verify().ok


def test_a_damaged_event_at_the_witnessed_place_is_an_error_of_its_own(file):
    import sqlite3

    with store_at(file) as db:
        witness = db.witness()
    with sqlite3.connect(file) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE event SET chain = zeroblob(32) WHERE seq = 3")
    connection.close()
    with store_at(file) as db:
        for verb in (db.witness, lambda: db.check_witness(witness)):
            with pytest.raises(strandline.CorruptRecordError, match="event 3 of 'one'"):
                verb()


# ------------------------------------------------------------------------------------------ tenants


def test_a_tenants_witness_says_nothing_of_others(file):
    """I21: no name, no number, no digest of theirs; not even whether two tenants share a store."""
    with store_at(file) as db:
        before = db.tenant("acme").witness()
        db.tenant("other").workflow("secret").append(say("z"))
        after, other, whole = db.tenant("acme").witness(), db.tenant("other").witness(), db.witness()
        assert (after.digest, after.heads, after.store) == (before.digest, before.heads, before.store)
        assert not any(name in after.document for name in ("secret", "other"))
        assert len({after.store, other.store, whole.store}) == 3
        report = db.tenant("acme").check_witness(whole)
        assert (report.workflows, report.unwitnessed) == (2, 0)
        assert db.check_witness(after).unwitnessed == 1
        with pytest.raises(strandline.InvalidInputError, match="no witness in it speaks of tenant 'acme'"):
            db.tenant("acme").check_witness(other)


# ------------------------------------------------------------------------------------------ documents


def test_a_signature_is_demanded_with_a_key(file):
    with store_at(file) as db:
        signed, bare = db.witness(key=KEY), db.witness()
        assert signed.digest == bare.digest
        assert db.check_witness(signed, key=KEY).signed
        assert not db.check_witness(signed).signed
        for document, key, said in (
            (bare, KEY, "line 1 of the witnesses: not signed"),
            (signed, KEY + b"!", "signed with another key"),
            (f"{signed.document}\n{bare.document}", KEY, "line 2 of the witnesses: not signed"),
            (signed, b"short", "WITNESS_KEY_BYTES_MIN"),
        ):
            with pytest.raises(strandline.InvalidInputError, match=said):
                db.check_witness(document, key=key)
        later = signed.document.replace(f'"taken_us":{signed.taken_us}', f'"taken_us":{signed.taken_us + 1}')
        with pytest.raises(strandline.InvalidInputError, match="another key"):
            db.check_witness(later, key=KEY)


def test_a_flipped_byte_anywhere_in_a_document_is_refused_or_is_only_its_time(file):
    """With a key every byte counts; without one nothing speaks for the time, and for a signature that is not read."""
    with store_at(file) as db:
        line = db.witness(key=KEY).document.encode()
        for at in range(len(line)):
            flipped = line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :]
            with pytest.raises(strandline.InvalidInputError):
                db.check_witness(flipped, key=KEY)
            try:
                db.check_witness(flipped)
            except strandline.InvalidInputError:
                continue
            same, other = json.loads(line), json.loads(flipped)
            assert {name for name in same if same[name] != other[name]} <= {"taken_us", "signature"}


@pytest.mark.parametrize(
    "document", ["", "\n", "{}", "null", "[]", '{"format":"x"}', b"\xff\xfe", '{"format":"\udc80"}', "x" * 100, 7, None]
)
def test_what_is_no_witness_is_refused(file, document):
    with store_at(file) as db, pytest.raises(strandline.InvalidInputError):
        db.check_witness(document)


def test_a_line_that_was_added_without_a_check_hides_nothing(file, tmp_path):
    """Who only prints lines adds one also after an older copy was put back, and went on further than before."""
    witness = put_back(file, tmp_path)
    with store_at(file) as db:
        db.tenant("acme").workflow("one").append(say("d", "e", "f", "g"))
        lines = [witness.document, db.witness().document]
        for document in ("\n".join(lines), "\n".join(reversed(lines))):
            assert findings(db, document) == [("one", WitnessFinding.FORKED)]


numbers = st.integers(0, 4)


@given(st.lists(st.tuples(numbers, numbers, st.sampled_from("ab")), max_size=8))
@bounded(200)
def test_every_witnessed_state_is_judged_once(told):
    """The furthest comes first, whatever their order in the file."""
    heads = [
        WitnessedHead(
            tenant="t",
            workflow="w",
            revision=revision,
            first="",
            chain=f"{revision}{history}" if revision else "",
            lineage_seq=lineage,
            lineage_chain=f"{lineage}{history}" if lineage else "",
            generations={},
            counters={},
        )
        for revision, lineage, history in told
    ]
    kept = [head for same in heads_to_judge(heads) for head in same]
    assert sorted(map(repr, kept)) == sorted(set(map(repr, heads)))
    assert all((one.revision, one.lineage_seq) >= (two.revision, two.lineage_seq) for one, two in pairwise(kept))


def test_it_costs_what_was_witnessed_and_not_the_log(tmp_path):
    """The same number of statements for a log of 20 events and of 2,000."""
    counts = []
    for events in (20, 2_000):
        with store_at(tmp_path / f"{events}.db") as db:
            wf = db.tenant("acme").workflow("run")
            wf.append(say("a"))
            witness = db.witness()
            wf.append(say(*map(str, range(events))))
            read = []
            with db.store._reader() as connection:
                connection.set_trace_callback(read.append)
            db.check_witness(witness)
            counts.append(len(read))
    assert counts[0] == counts[1] < 40


# ------------------------------------------------------------------------------------------ the other doors


def test_the_awaiting_door(file):
    async def go():
        async with strandline.aopen(file) as db:
            witness = await db.witness(key=KEY)
            assert (await db.check_witness(witness, key=KEY)).workflows == 2
            own = await db.tenant("acme").witness()
            assert (await db.tenant("acme").check_witness(own)).workflows == 2

    asyncio.run(go())


def call(*words, env=None):
    done = CliRunner().invoke(app, [str(word) for word in words], env=env)
    return done.exit_code, done.stdout, done.stderr


def test_the_command_keeps_checks_and_refuses(file, tmp_path):
    kept = tmp_path / "kept.jsonl"
    assert call("witness", "--store", file, "--keep", kept)[0] == 0
    code, out, _ = call("witness", "--store", file, "--keep", kept, "--json")
    assert (code, json.loads(out)["checked"]["workflows"], kept.read_text().count("\n")) == (0, 2, 2)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert call("witness", "--store", file, "--check", kept)[1].startswith(
        "the same, or continued: 2 workflows of 2 li"
    )
    put_back(file, tmp_path, witnessed=lambda db: kept.write_text(kept.read_text() + db.witness().document))
    before = kept.read_bytes()
    for words in (("witness", "--check"), ("witness", "--keep"), ("verify", "--witness")):
        code, out, err = call(*words, kept, "--store", file)
        assert code == 8
        assert "revision was 5, is 3" in out + err
        assert "restore the newest backup that the witness accepts" in err
    assert kept.read_bytes() == before
    code, out, _ = call("verify", "--witness", kept, "--store", file, "--json")
    assert [(one["workflow"], one["place"]) for one in json.loads(out)["problems"]] == [("acme/one", "witness")]


def test_the_command_signs_with_a_key_of_a_file_or_the_environment(file, tmp_path):
    key, kept = tmp_path / "key", tmp_path / "kept.jsonl"
    key.write_bytes(KEY + b"\n")
    assert call("witness", "--store", file, "--keep", kept, "--key-file", key)[0] == 0
    env = {"STRANDLINE_WITNESS_KEY": KEY.decode()}
    assert call("witness", "--store", file, "--check", kept, env=env)[0] == 0
    assert (
        call("witness", "--store", file, "--check", kept, env={"STRANDLINE_WITNESS_KEY": "another key of 16"})[0] == 1
    )
    code, _, err = call("witness", "--store", file, "--keep", kept)
    assert (code, "its lines are signed" in err) == (1, True)
    assert call("witness", "--store", file, "--check", kept, env=env)[0] == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--keep", "k", "--check", "c"], 2, "give one of them"),
        (["--workflow", "one"], 2, "of the whole store or of a tenant"),
        (["--check", "missing.jsonl"], 1, "No such file"),
        (["--check", "."], 1, "Is a directory"),
        (["--keep", "no/such/folder/k"], 1, "No such file"),
        (["--keep", "k" * 300], 1, "File name too long"),
        (["--tenant", "nobody"], 1, "no tenant 'nobody'"),
        (["--key-file", "missing.key"], 1, "No such file"),
    ],
)
def test_the_command_refuses_what_can_not_be(file, tmp_path, monkeypatch, words, code, said):
    monkeypatch.chdir(tmp_path)
    done = call("witness", "--store", file, *words)
    assert (done[0], said in done[2]) == (code, True), done
    assert sorted(path.name for path in tmp_path.iterdir() if "-" not in path.name) == ["a.db"]
