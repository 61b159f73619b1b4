"""Law (I14, I15, I16): agent state that lives elsewhere is a checkpoint by its digest, gated as one of ours, and what
is loaded of it is what was registered, or recovery fails closed.

Checked on both stores, with files: tampered with, moved, replaced between choice and load, registered in flight.
"""

import asyncio
import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import strandline
from strandline import limits
from strandline.model.checkpoint import ExternalState
from tests.unit.test_engine_stage import WHOLE, lease_of, new_workflow, open_store, quiet, seen_of, talk, transaction

DATA = '{"todo": ["publish bucket-77aa"], "ü": 1}\n'.encode()


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def read(address: str) -> bytes:
    return Path(address).read_bytes()


@pytest.fixture
def wf(db):
    wf = new_workflow(db)
    wf.append(talk(8))
    yield wf
    assert lease_of(db, wf) is None
    assert wf.verify().problems == ()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "state.json"
    path.write_bytes(DATA)
    return path


def register(wf, file, turn: int = 3, **arguments) -> strandline.Checkpoint:
    return wf.register_checkpoint(
        str(file), digest_of(file.read_bytes()), turn, **({"basis": wf.context()} | arguments)
    )


def refused(wf, said: str, **arguments) -> strandline.SummaryReconciliationError:
    """Recover, and be refused: the reason, and nothing written but what a refusal leaves."""
    seen = [entry for entry in wf.lineage() if entry.kind in ("restore", "replay")]
    with pytest.raises(strandline.SummaryReconciliationError, match=said) as caught:
        wf.recover(**arguments)
    assert caught.value.reason == "checkpoint_digest"
    assert [entry for entry in wf.lineage() if entry.kind in ("restore", "replay")] == seen
    return caught.value


# ---------------------------------------------------------------------------------------------- registered, restored


def test_it_is_restored_as_one_of_ours(db, wf, file):
    """I14–I16: the bytes, the events since then, where it lives; one entry of the lineage."""
    wf.compact(400, quiet)
    made = register(wf, file, 7, name="planner")
    assert made.external == ExternalState(address=str(file), digest=digest_of(DATA))
    assert (made.turn, made.name, made.in_flight, made.state) == (7, "planner", False, b"null")
    wf.append(strandline.note("afterwards"))
    found = wf.recover(name="planner", load=read)
    assert (found.kind, found.state, found.turn, found.checkpoint_seq) == ("restore", DATA, 7, made.lineage_seq)
    assert (found.external.address, found.external.digest, found.external.verified) == (
        str(file),
        digest_of(DATA),
        True,
    )
    assert [part.since_checkpoint for part in found.context.parts if part.kind == "event"][-1]
    entry = wf.lineage()[-1]
    assert (entry.kind, entry.restored_seq) == ("restore", made.lineage_seq)
    with transaction(db, wf) as tx:
        assert list(tx.checkpoints.all()) == [made]


def test_without_load_it_is_not_fetched(wf, file):
    """The state is None and says so; its text is no place for a dependency."""
    register(wf, file)
    file.unlink()
    found = wf.recover()
    assert (found.kind, found.state, found.external.verified) == ("restore", None, False)
    wf.append(strandline.note("x", refs=["bucket-77aa"]))
    wf.compact(300, quiet)


def test_a_dependency_may_stand_in_its_text(wf, file, tmp_path):
    """I16: verbatim in the loaded text; of bytes that are no text, nowhere."""
    register(wf, file)
    assert wf.recover(["bucket-77aa"], load=read).state == DATA
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        wf.recover(["bucket-77aa"])
    assert caught.value.reason == "dependency_not_verbatim"
    binary = tmp_path / "state.bin"
    binary.write_bytes(b"\xff bucket-77aa")
    register(wf, binary)
    assert wf.recover(load=read).state == b"\xff bucket-77aa"
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        wf.recover(["bucket-77aa"], load=read)
    assert caught.value.reason == "dependency_not_verbatim"


def test_the_gate_is_the_same(wf, file):
    """I14, I15: a stale basis is refused; after a compaction it is replayed; ours and theirs are one order."""
    stale = wf.context()
    register(wf, file, 1)
    wf.compact(400, quiet)
    with pytest.raises(strandline.CompactionLineageError):
        register(wf, file, 2, basis=stale)
    asked = []
    found = wf.recover(load=lambda address: asked.append(address) or DATA, prior_state=True)
    assert (found.kind, found.state, found.external, asked) == ("replay", None, None, [])
    assert (found.prior_state.turn, found.prior_state.external.address) == (1, str(file))
    wf.checkpoint({"ours": 3}, 3, basis=wf.context())
    assert wf.recover(load=read).state == {"ours": 3}
    register(wf, file, 4)
    assert wf.recover(load=read).turn == 4


def test_a_context_free_one_is_paired_with_the_replayed_context(wf, file):
    register(wf, file, 5, basis=None, context_free=True)
    wf.compact(400, quiet)
    found = wf.recover(load=read)
    assert (found.kind, found.state, found.turn, found.generation) == ("replay", DATA, 5, 1)


def test_a_dry_run_loads_and_writes_nothing(wf, file):
    register(wf, file)
    seen = seen_of(wf)
    assert wf.recover(load=read, dry_run=True).state == DATA
    assert seen_of(wf) == seen


# ---------------------------------------------------------------------------------------------- not what was registered


def test_a_file_that_was_tampered_with(wf, file):
    """I15: the digest is another; no older checkpoint slips into its place."""
    wf.checkpoint({"older": 1}, 1, basis=wf.context())
    register(wf, file, 2)
    file.write_bytes(DATA.replace(b"77aa", b"77ab"))
    error = refused(wf, "its digest is sha256", load=read)
    assert error.checkpoint_turn == 2
    assert "Put back" in error.hint
    file.write_bytes(DATA)
    assert wf.recover(load=read).state == DATA


def test_a_file_that_was_moved(wf, file, tmp_path):
    register(wf, file)
    file.rename(tmp_path / "elsewhere.json")
    refused(wf, "it can't be loaded: FileNotFoundError", load=read)
    (tmp_path / "elsewhere.json").rename(file)
    assert wf.recover(load=read).state == DATA


@pytest.mark.parametrize(
    ("given", "said"), [("text", "returned a str"), (None, "returned a NoneType"), (bytearray(DATA), "a bytearray")]
)
def test_what_is_no_bytes_is_no_state(wf, file, given, said):
    register(wf, file)
    refused(wf, said, load=lambda address: given)


def test_one_that_is_too_large(wf, file, monkeypatch):
    monkeypatch.setattr("strandline.engine.external.EXTERNAL_STATE_BYTES_MAX", 3)
    register(wf, file)
    refused(wf, "at most 3 are taken", load=read)


def test_that_an_address_is_of_another_kind_is_passed_on(wf, file):
    """Nothing is wrong with the checkpoint: whoever loads does not know such addresses."""
    wf.register_checkpoint("s3://bucket/state", digest_of(DATA), 1, basis=wf.context())
    seen = seen_of(wf)

    def only_files(address: str) -> bytes:
        raise strandline.InvalidInputError("no file")

    with pytest.raises(strandline.InvalidInputError, match="no file"):
        wf.recover(load=only_files)
    assert seen_of(wf) == seen
    assert wf.recover(load=lambda address: DATA).external.address == "s3://bucket/state"


# ---------------------------------------------------------------------------------------------- between choice and load


def test_no_transaction_is_open_while_it_is_loaded(wf, file):
    """The choice is made again after it: a newer checkpoint, registered meanwhile, is the one that is restored."""
    register(wf, file, 1)
    newer = file.with_name("newer.json")
    newer.write_bytes(b"[]")

    def slow(address: str) -> bytes:
        if address == str(file):
            register(wf, newer, 2)
        return read(address)

    found = wf.recover(load=slow)
    assert (found.turn, found.state) == (2, b"[]")


def test_a_compaction_meanwhile_leads_to_a_replay(wf, file):
    """I15: the checkpoint that was loaded passes the gate no more."""
    register(wf, file, 1)

    def slow(address: str) -> bytes:
        assert wf.compact(400, quiet).outcome == "activated"
        return read(address)

    found = wf.recover(load=slow)
    assert (found.kind, found.state, found.generation) == ("replay", None, 1)


def test_a_file_that_is_replaced_between_choice_and_load(wf, file):
    register(wf, file, 1)

    def replaced(address: str) -> bytes:
        file.write_bytes(b"another")
        return read(address)

    refused(wf, "its digest is sha256", load=replaced)


def test_the_loads_are_bounded(wf, file):
    """I22: somebody registers a newer one each time; in the end it is an error, and nothing was written."""
    register(wf, file, 0)
    loads = []

    def endless(address: str) -> bytes:
        loads.append(address)
        newer = file.with_name(f"{len(loads)}.json")
        newer.write_bytes(b"%d" % len(loads))
        register(wf, newer, len(loads))
        return read(address)

    with pytest.raises(strandline.StrandlineError, match="was another one each time"):
        wf.recover(load=endless)
    assert len(loads) == limits.RECOVERY_LOADS_MAX
    assert not [entry for entry in wf.lineage() if entry.kind in ("restore", "replay")]


# ---------------------------------------------------------------------------------------------- in flight


def test_one_registered_while_a_compaction_was_in_flight_is_refused(wf, file):
    """I15: it may hold half of it, whatever the numbers say; ours can't be torn."""
    basis = wf.context()

    def meanwhile(request: strandline.SummaryRequest) -> str:
        assert register(wf, file, 1, basis=basis).in_flight
        wf.checkpoint({"ours": 1}, 1, basis=basis, name="ours")
        assert not register(wf, file, 1, basis=None, context_free=True, name="free").in_flight
        raise strandline.MalformedDraftError("nothing came of it")

    assert wf.compact(400, meanwhile).outcome == "rejected"
    asked = []
    with pytest.raises(strandline.CompactionLineageError, match="may hold half of it") as caught:
        wf.recover(load=lambda address: asked.append(address) or DATA)
    newest = max(entry.lineage_seq for entry in wf.lineage() if entry.name == "main")
    assert (caught.value.checkpoint_seq, asked) == (newest, [])
    assert wf.recover(name="ours").state == {"ours": 1}
    assert wf.recover(name="free", load=read).state == DATA
    register(wf, file, 2)
    assert wf.recover(load=read).turn == 2


def test_one_in_flight_that_is_older_than_the_compaction_is_passed_by(wf, file):
    """I15: it is no target anyway, and hinders no replay."""
    basis = wf.context()

    def meanwhile(request: strandline.SummaryRequest) -> str:
        register(wf, file, 1, basis=basis)
        return quiet(request)

    assert wf.compact(400, meanwhile).outcome == "activated"
    assert wf.recover(load=read).kind == "replay"


# ---------------------------------------------------------------------------------------------- cases


def test_what_is_not_as_registered_opens_one_case(db, wf, file):
    """C21: asked twice it is the same; the answer to go on from the log passes the checkpoint over."""
    made = register(wf, file, 3)
    file.unlink()
    error = refused(wf, "it can't be loaded", load=read)
    assert refused(wf, "it can't be loaded", load=read).case_id == error.case_id
    (case,) = wf.cases()
    assert (case.kind, case.checkpoint_seq, case.checkpoint_turn) == ("checkpoint_digest", made.lineage_seq, 3)
    assert (case.blocking, case.case_id) == (False, error.case_id)
    wf.reconcile(case.case_id, strandline.ReplayFromExact(), by="ada", why="the file is gone")
    assert wf.recover(load=read).kind == "replay"


def test_one_taken_in_flight_opens_a_case_that_names_it(wf, file):
    """C21: a lineage refusal; a newer checkpoint is the other way out."""
    basis = wf.context()

    def meanwhile(request: strandline.SummaryRequest) -> str:
        register(wf, file, 1, basis=basis)
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        wf.compact(400, meanwhile)
    with pytest.raises(strandline.CompactionLineageError) as caught:
        wf.recover(load=read)
    (case,) = wf.cases()
    assert (case.kind, case.case_id, case.checkpoint_turn) == ("lineage_refusal", caught.value.case_id, 1)
    wf.reconcile(case.case_id, strandline.ReplayFromExact(), by="ada", why="torn")
    assert wf.recover(load=read).kind == "replay"


def test_a_controller_answers_and_the_state_is_loaded_all_the_same(wf, file):
    """C21: the answer passes over the one that is gone; the next recovery restores the next one."""
    register(wf, file, 1)

    class PassOver:
        name = "pass-over"

        def decide(self, case):
            return strandline.ReplayFromExact()

    file.write_bytes(b"changed")
    assert wf.recover(load=read, controller=PassOver()).kind == "replay"
    file.write_bytes(DATA)
    register(wf, file, 2)
    assert wf.recover(load=read, controller=PassOver()).state == DATA


# ---------------------------------------------------------------------------------------------- bad input, bad bytes


@pytest.mark.parametrize(
    ("address", "digest"),
    [
        ("", digest_of(DATA)),
        (" ", digest_of(DATA)),
        ("a\0b", digest_of(DATA)),
        ("\ud800", digest_of(DATA)),
        ("x" * (limits.EXTERNAL_ADDRESS_CHARS_MAX + 1), digest_of(DATA)),
        (None, digest_of(DATA)),
        ("/state", digest_of(DATA).upper()),
        ("/state", digest_of(DATA)[:-1]),
        ("/state", digest_of(DATA) + "\n"),
        ("/state", digest_of(DATA).removeprefix("sha256:")),
        ("/state", "md5:" + "0" * 32),
        ("/state", hashlib.sha256(DATA).digest()),
        ("/state", None),
    ],
)
def test_bad_input_is_refused(wf, address, digest):
    seen = seen_of(wf)
    with pytest.raises(strandline.InvalidInputError):
        wf.register_checkpoint(address, digest, 1, basis=wf.context())
    with pytest.raises(strandline.InvalidInputError, match="needs basis"):
        wf.register_checkpoint("/state", digest_of(DATA), 1)
    assert seen_of(wf) == seen


@pytest.mark.parametrize(
    "change", ["external = NULL", "external = replace(external, 'state', 'stath')", "in_flight = 1"]
)
def test_a_changed_row_is_found(tmp_path, file, change):
    """I14: the digest of the checkpoint covers address and digest."""
    with open_store("sqlite", tmp_path) as db:
        wf = new_workflow(db)
        wf.append(talk(2))
        register(wf, file)
        with closing(sqlite3.connect(tmp_path / "store.db")) as raw, raw:
            changed = f"UPDATE checkpoint SET {change}".replace("replace(external", "replace(CAST(external AS TEXT)")
            changed = changed.replace("= replace(", "= CAST(replace(").replace("'stath')", "'stath') AS BLOB)")
            assert raw.execute(changed).rowcount == 1
        refused(wf, "it can't be", load=read)
        assert not wf.verify().ok


def test_the_verbs_for_event_loops(tmp_path, file):
    async def all_of_it():
        async with strandline.aopen(tmp_path / "store.db") as db:
            wf = db.tenant("acme").workflow("run")
            await wf.append(talk(2))
            await wf.register_checkpoint(str(file), digest_of(DATA), 1, basis=await wf.context(WHOLE))
            return await wf.recover(load=read)

    assert asyncio.run(all_of_it()).state == DATA
