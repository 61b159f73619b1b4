"""Law (C27): hooks are told what happened, with declared details only, and watch verbs and phases as they nest, in both
drivers. What a hook raises changes nothing; without hooks nothing is done.
"""

import asyncio
import inspect
import re
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import msgspec
import pytest

import strandline
from strandline.engine import environment
from strandline.ports.occurrences import OCCURRENCES, Occurrence
from strandline.telemetry import names
from strandline.telemetry.samples import samples_of
from tests.unit.test_engine_stage import STORES, new_workflow, open_store, quiet, talk
from tests.unit.test_telemetry_stage import Recorder, live

GIVE_UP_S = 20.0  # what takes longer hangs
ENGINE = Path(inspect.getfile(environment)).parent
SOURCES = "\n".join(path.read_text(encoding="utf-8") for path in sorted(ENGINE.glob("*.py")))


class Watcher(Recorder):
    """Notes spans as they nest, too: a path of names, and what each ended with."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.spans: list[str] = []
        self.ends: list[tuple[str, str | None]] = []

    @contextmanager
    def span(self, name, details):
        self.open.append(name)
        self.spans.append("/".join(self.open))
        error = None
        try:
            yield
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            assert self.open.pop() == name
            self.ends.append((name, error))


@pytest.fixture(params=STORES)
def kind(request):
    return request.param


# ---------------------------------------------------------------------------------------------- occurrences


def test_details_are_those_that_are_declared(tmp_path, kind):
    """Each with the declared keys and types, and where it happened."""
    recorder = Recorder()
    live(tmp_path, recorder, kind=kind).close()
    common = Occurrence.__annotations__.keys()
    for name, details in recorder.told:
        where = {key: details.pop(key) for key in common}
        msgspec.convert(where, Occurrence, strict=True)
        assert where["tenant"] == "acme"
        assert where["elapsed_s"] is None or where["elapsed_s"] >= 0
        declared = OCCURRENCES[name]
        assert details.keys() <= declared.__annotations__.keys(), name
        assert declared.__required_keys__ <= details.keys(), name
        msgspec.convert(details, declared, strict=True)


def test_every_occurrence_of_the_engine_is_declared():
    assert set(re.findall(r"emit\(\s*\"(\w+)\"", SOURCES)) == set(OCCURRENCES)


def test_every_span_of_the_engine_has_its_name():
    named = set(re.findall(r"watched(?:_flow)?\(\"([\w.]+)\"", SOURCES))
    named |= set(re.findall(r"\.phase\(\"((?:recover|search|erase)\.\w+)\"", SOURCES))
    named |= {f"compact.{phase}" for phase in re.findall(r"(?:run\.phase\(|reading\(run, job, )\"(\w+)\"", SOURCES)}
    named |= {"recover", "recover.dry_run", "recover.restore", "recover.replay"}
    assert named == set(names.SPANS)


def test_no_hook_can_change_what_the_next_is_told(tmp_path):
    class Vandal:
        def emit(self, name, details):
            assert isinstance(details, MappingProxyType)
            details["tenant"] = "umbrella"

    recorder = Recorder()
    with open_store("memory", tmp_path, hooks=[Vandal(), recorder]) as db:
        new_workflow(db).append(talk(1))
    assert [details["tenant"] for _, details in recorder.told] == ["acme", "acme"]


def test_how_an_attempt_was_refused_is_told(tmp_path, kind):
    """I6: while it drafts another compaction takes the view over, and activates."""
    recorder = Recorder()
    with open_store(kind, tmp_path, hooks=[recorder]) as db:
        wf = new_workflow(db)
        wf.append(talk(8))

        def overtaken(request):
            assert wf.compact(400, quiet).outcome == "activated"
            return "Work went on."

        assert wf.compact(400, overtaken).outcome != "activated"
    refused = [details for details in recorder.of("attempt") if details["state"] == "refused"]
    assert [details["reason"] for details in refused] == ["fenced"]
    assert next(iter(recorder.of("compaction")))["outcome"] == "activated"


def test_damage_is_told_once_by_the_verb_that_met_it(tmp_path):
    """I4: a read and a verification that meet damage are incidents, with the kind of place and no name."""
    recorder = Recorder()
    live(tmp_path, recorder).close()
    incidents = recorder.of("incident")
    assert [(told["operation"], told["place"]) for told in incidents] == [("events", "event"), ("verify", "event")]
    assert all(told["problems"] >= 1 for told in incidents)


def test_a_damaged_summary_that_recovery_meets_is_an_incident(tmp_path):
    """I16: recovery says what can't be used as a reconciliation; what it met is damage all the same."""
    import sqlite3

    recorder = Recorder()
    with open_store("sqlite", tmp_path, hooks=[recorder]) as db:
        wf = new_workflow(db)
        wf.append(talk(8))
        wf.compact(400, quiet)
        with sqlite3.connect(tmp_path / "store.db") as connection:
            connection.execute("UPDATE segment SET tokens = tokens + 1")
        connection.close()
        with pytest.raises(strandline.SummaryReconciliationError):
            wf.recover()
    (told,) = recorder.of("incident")
    assert (told["operation"], told["place"]) == ("recover", "segment")
    assert [details["error"] for details in recorder.of("operation")][-1] == "SummaryReconciliationError"


# ---------------------------------------------------------------------------------------------- spans


COMPACTION = [
    "compact",
    *(f"compact/compact.{phase}" for phase in ("plan", "claim", "read", "draft", "validate", "assemble", "store")),
    "compact/compact.activate",
    "compact/compact.index",
]


def test_spans_nest_in_the_blocking_driver(tmp_path, kind):
    watcher = Watcher()
    with open_store(kind, tmp_path, hooks=[watcher]) as db:
        wf = new_workflow(db)
        wf.append(talk(8))
        wf.compact(400, quiet)
        wf.recover()
        wf.context()
        wf.recover(dry_run=True)
    recovery = ["recover", "recover/recover.fence", "recover/recover.choose", "recover/recover.replay"]
    assert watcher.spans == ["append", *COMPACTION, *recovery, "context", "recover.dry_run"]
    assert not watcher.open
    assert {error for _, error in watcher.ends} == {None}


def test_spans_nest_in_the_awaiting_driver(tmp_path, kind):
    """DESIGN §3: its steps run in several threads, and the phases nest as they do in one."""
    watcher = Watcher()

    async def summarize(request):
        await asyncio.sleep(0)
        return quiet(request)

    async def run():
        with open_store(kind, tmp_path, hooks=[watcher]) as db:
            wf = strandline.AsyncStrandline(db).tenant("acme").workflow("w")
            await wf.append(talk(8))
            await wf.compact(400, summarize)
            await wf.effect("key", "tool", {}, run=summarize_nothing)

    async def summarize_nothing():
        return None

    asyncio.run(run())
    assert watcher.spans == ["append", *COMPACTION, "effect"]
    assert not watcher.open


def test_a_span_ends_with_what_the_verb_raised(tmp_path):
    watcher = Watcher()
    with open_store("memory", tmp_path, hooks=[watcher]) as db:
        wf = new_workflow(db)
        wf.append(talk(8))
        with pytest.raises(ZeroDivisionError):
            wf.compact(400, lambda request: 1 / 0)
        with pytest.raises(strandline.InvalidInputError):
            wf.rewind(99, by="me", why="")
    assert [end for end in watcher.ends if end[1]] == [
        ("compact.draft", "ZeroDivisionError"),
        ("compact", "ZeroDivisionError"),
        ("rewind", "InvalidInputError"),
    ]
    assert [told["error"] for told in watcher.of("operation")] == [None, "ZeroDivisionError", "InvalidInputError"]


def test_a_cancelled_verb_leaves_no_span_open(tmp_path):
    watcher = Watcher()

    async def run():
        hangs = asyncio.Event()

        async def hang(request):
            hangs.set()
            await asyncio.Event().wait()

        with open_store("memory", tmp_path, hooks=[watcher]) as db:
            wf = strandline.AsyncStrandline(db).tenant("acme").workflow("w")
            await wf.append(talk(8))
            task = asyncio.ensure_future(wf.compact(400, hang))
            await asyncio.wait_for(hangs.wait(), GIVE_UP_S)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())
    assert not watcher.open
    assert watcher.ends[-1] == ("compact", "CancelledError")


@pytest.mark.parametrize("broken", ["span", "enter", "exit", "emit"])
def test_a_hook_that_raises_changes_nothing(tmp_path, broken):
    """DESIGN §2: wherever it raises, the verb gives what it gives without it, and other hooks are told."""

    class Broken:
        def span(self, name, details):
            if broken == "span":
                raise RuntimeError("broken hook")
            return self

        def __enter__(self):
            if broken == "enter":
                raise RuntimeError("broken hook")

        def __exit__(self, *error):
            if broken == "exit":
                raise RuntimeError("broken hook")
            return True  # would swallow the verb's own error

        def emit(self, name, details):
            raise RuntimeError("broken hook")

    watcher = Watcher()
    with open_store("memory", tmp_path, hooks=[Broken(), watcher, Broken()]) as db:
        wf = new_workflow(db)
        wf.append(talk(8))
        assert wf.compact(400, quiet).outcome == "activated"
        with pytest.raises(strandline.SummaryReconciliationError):
            wf.recover(["never-seen-1"])
    assert watcher.spans[:2] == ["append", "compact"]
    assert not watcher.open


def test_an_old_hook_without_spans_is_told_as_before(tmp_path):
    """`Hook` asks for `emit` only."""
    recorder = Recorder()
    with open_store("memory", tmp_path, hooks=[recorder]) as db:
        new_workflow(db).append(talk(1))
    assert [name for name, _ in recorder.told] == ["append", "operation"]


def test_a_label_is_a_word_of_a_fixed_list():
    """C27: what a program of others raises has names without end, and each would be a series of its own."""
    told = {"tenant": "acme", "operation": "effect", "elapsed_s": 0.1}
    labels = [
        sample.labels
        for error in ("UsersError", "StoreUnavailableError", None)
        for sample in samples_of("operation", {**told, "error": error})
    ]
    assert [each[-1] for each in labels] == ["other", "StoreUnavailableError", ""]
