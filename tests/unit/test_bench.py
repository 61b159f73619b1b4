"""Law: the benchmark measures what it says, on any size; a peer that is not there is named; nothing is timed here."""

import json
import random
import shutil
from pathlib import Path

import pytest

import strandline
from bench.page import BY_HAND, page, peers_table, write_page
from bench.store import merged
from strandline.bench import child, corpus, peers, reading, storage, store, transcript, writing
from strandline.bench.figures import (
    CPU_TIME_OF_THIS,
    SPEED_OF_OURS,
    SPEED_OF_THIS,
    Line,
    Mark,
    Verdict,
    compare,
    spread_of,
)
from strandline.bench.raw import KEYED, PLAIN, Raw
from strandline.bench.rounds import contest, peak_memory_mb
from strandline.bench.stage import Stage
from strandline.bench.transcript import body_bytes
from strandline.cli.app import app

pytestmark = pytest.mark.long

SIZES = (120, 240)
LINE = Line(section="s", what="w", unit="µs")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stores of an earlier run, in few batches."""
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "BATCHES_MIN", 4)
        for size in SIZES:
            corpus.build(folder / f"corpus-{size}.db", size, lambda done, total: None)
    return folder


@pytest.fixture
def stage(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A run small enough for a test."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    for place, name, value in (
        (child, "APPENDED_EVENTS", 9),
        (child, "APPENDED_SINGLY", 2),
        (peers, "ROUND_EVENTS", 2),
        (peers, "SIZES", (120,)),
        (peers, "STORED_STEPS", 3),
        (reading, "CALLS", 2),
        (reading, "COMPACTED_EVENTS", 120),
        (reading, "FLAT_FROM_EVENTS", 120),
        (reading, "LAST_CALLS", 2),
        (reading, "LAST_EVENTS", 50),
        (storage, "BATCH_EVENTS", 20),
        (storage, "EVENTS_MAX", 50),
        (transcript, "MADE_RECORDS", 90),
        (writing, "CLIENT_EVENTS", 2),
        (writing, "PROCESSES", 2),
        (writing, "PROCESS_EVENTS", 2),
        (writing, "ROUND_BATCHES", 1),
        (writing, "ROUND_EVENTS", 2),
    ):
        monkeypatch.setattr(place, name, value)
    monkeypatch.setattr(Raw.__init__, "__kwdefaults__", {"keyed": False, "shared": False, "synchronous": "OFF"})
    return Stage(folder=tmp_path, sizes=SIZES, runs=1, say=lambda _: None, reuse=True)


# ------------------------------------------------------------------------------------------------------ figures


def test_ratios_are_taken_round_by_round_against_the_first() -> None:
    values = {"ours": [2.0, 4.0, 3.0], "raw": [1.0, 1.0, 3.0]}
    ours, raw = compare(LINE, values, SPEED_OF_OURS, marks={"raw": Mark(at_least=0.5)})
    assert (ours.ratio, ours.verdict) == (None, None)
    assert raw.ratio is not None
    assert (raw.ratio.least, raw.ratio.median, raw.ratio.most, raw.ratio.rounds) == (0.25, 0.5, 1.0, 3)
    assert raw.verdict is Verdict.UNSURE


@pytest.mark.parametrize(("of", "ratio"), [(SPEED_OF_OURS, 4), (CPU_TIME_OF_THIS, 4), (SPEED_OF_THIS, 0.25)])
def test_a_ratio_says_what_it_is_called(of: str, ratio: float) -> None:
    _, this = compare(LINE, {"first": [1.0], "this": [4.0]}, of)
    assert this.ratio is not None
    assert this.ratio.median == ratio


@pytest.mark.parametrize(("value", "met"), [(0.79, False), (0.8, True), (1.2, True), (1.21, False)])
def test_a_mark_has_bounds_on_both_sides(value: float, met: bool) -> None:
    judged = Mark(at_least=0.8, at_most=1.2).judge(spread_of([value]))
    assert judged is (Verdict.MET if met else Verdict.MISSED)


@pytest.mark.parametrize(
    ("rounds", "verdict"),
    [
        ([0.9, 1.0, 1.1], Verdict.MET),
        ([0.368, 0.979, 1.3], Verdict.UNSURE),
        ([0.9, 1.0, 1.3], Verdict.UNSURE),
        ([0.9, 1.3, 1.4], Verdict.MISSED),
    ],
)
def test_a_mark_is_met_only_if_every_round_meets_it(rounds: list[float], verdict: Verdict) -> None:
    assert Mark(at_least=0.8, at_most=1.2).judge(spread_of(rounds)) is verdict


def test_each_round_has_all_competitors_in_turn_and_the_first_round_is_dropped() -> None:
    calls: list[str] = []
    taken = contest({name: lambda name=name: lambda: calls.append(name) for name in "ab"}, runs=2, calls=1)  # type: ignore[misc]
    assert "".join(calls) == "abbaab"
    assert {name: len(timings) for name, timings in taken.items()} == {"a": 2, "b": 2}


# ------------------------------------------------------------------------------------------------------- corpus


def test_a_corpus_is_the_same_each_time_and_its_bodies_are_those_of_the_log(stage: Stage) -> None:
    size = SIZES[0]
    with strandline.open(stage.corpus(size)) as db:
        wf = corpus.workflow(db)
        assert wf.basis().revision == corpus.length(size)
        assert body_bytes(db) == sum(map(len, corpus.bodies(0, corpus.length(size))))
        assert wf.context(corpus.CONTEXT_BUDGET_TOKENS).open_calls == ()
        assert wf.append(corpus.events(0, size)).added == 0
        first = corpus.free(wf)
        assert wf.append(corpus.events(first, 6)).added == 6
        assert wf.append(corpus.events(corpus.free(wf), 6)).added == 6
        assert db.verify().ok


@pytest.mark.parametrize("size", [100, 101, 102, 1_000, 10_000, 1_000_000])
def test_the_last_call_of_a_corpus_has_its_result(size: int) -> None:
    assert corpus.length(size) % 3 == 0
    assert corpus.length(size) >= size + corpus.TAIL_EVENTS


def test_texts_are_as_long_as_they_are_said_to_be() -> None:
    for number in random.Random(1).sample(range(1_000_000), 50):
        assert len(corpus.text_of(number).encode()) == corpus.BODY_BYTES
        text, refs = corpus.random_text(number)
        assert len(text.encode()) == corpus.BODY_BYTES
        assert all(ref in text for ref in refs)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("keyed", [False, True])
def test_raw_stores_each_body_once_in_order(tmp_path: Path, keyed: bool, shared: bool) -> None:
    raw = Raw(tmp_path / "raw.db", keyed=keyed, shared=shared)
    raw.append(b"1", "a")
    raw.append_many([b"2", b"3"], ["b", "c"])
    raw.append(b"4", "d")
    assert raw.last(3) == [b"2", b"3", b"4"]
    raw.close()


# ----------------------------------------------------------------------------------------------------- sections


@pytest.mark.parametrize("section", [name for name in store.SECTIONS if name != "memory"])
def test_a_section_measures_something_and_says_it_in_json(stage: Stage, section: str) -> None:
    report = store.run(stage, [section])
    assert {figure.section for figure in report.figures} <= {section}
    assert report.figures or (section in ("peers", "postgres") and report.notes)
    assert all(figure.value.median > 0 for figure in report.figures if "processor" not in figure.what)
    names = [(figure.what, figure.who, figure.events) for figure in report.figures]
    assert len(names) == len(set(names))


def test_appends_are_measured_beside_both_raws(stage: Stage) -> None:
    figures = writing.append(stage)
    assert {figure.who for figure in figures} == {writing.OURS, PLAIN, KEYED}
    assert {figure.events for figure in figures} == set(stage.sizes)
    assert sum(figure.mark is not None for figure in figures) == 2 * len(stage.sizes)


def test_memory_is_measured_in_children(stage: Stage) -> None:
    child.run("append", stage.corpus(120), 120)
    with strandline.open(stage.corpus(120)) as db:
        assert corpus.workflow(db).basis().revision == corpus.length(120) + 999 + 100  # the child's own constants
    assert child.run("verify", stage.corpus(120), 120)["memory_mb"] > 1
    assert peak_memory_mb() > 1


def test_a_child_that_fails_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="verify"):
        child.run("verify", tmp_path / "none.db", 1)


def test_a_store_of_an_earlier_run_is_taken_only_when_that_is_asked_for(stage: Stage) -> None:
    left = (stage.folder / "corpus-120.db").stat().st_mtime_ns
    assert stage.corpus(120).stat().st_mtime_ns == left
    assert stage.built == {120: {}}
    anew = Stage(folder=stage.folder, sizes=(120,), runs=1, say=lambda _: None)
    assert anew.corpus(120).stat().st_mtime_ns != left
    assert anew.built[120]["memory_mb"] > 1


def test_a_peer_that_is_not_installed_is_named(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "PEERS", {"Nobody": ("no-such-package", peers.Ours)})
    assert peers.peers(stage) == []
    assert stage.notes == ["Nobody is not installed and was left out: pip install no-such-package"]


# ------------------------------------------------------------------------------------------- the command, the page


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as exit_:
        app(["bench", "store", *words])
    return int(exit_.value.code or 0), capsys.readouterr().out


def test_the_command_prints_a_table_and_json(stage: Stage, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--events", "120,240", "--only", "context", "--runs", "1", "--dir", str(tmp_path), "--reuse"]
    code, out = run(capsys, *words)
    assert code == 0
    assert "CONTEXT" in out
    assert "≤ 1 ms" in out
    code, out = run(capsys, *words, "--json")
    report = json.loads(out)
    assert (code, report["sizes"]) == (0, [120, 240])
    (tmp_path / "store.json").write_text(json.dumps({"command": "make bench", "runs": [report, report]}))
    write_page(tmp_path)
    written = tmp_path / "store.md"
    assert "| 240 | read the context, p50 | Strandline |" in written.read_text(encoding="utf-8")
    assert "| ≤ 1 ms |" in written.read_text(encoding="utf-8")
    with written.open("a", encoding="utf-8") as file:
        file.write("\nBy hand.\n")
    write_page(tmp_path)
    assert written.read_text(encoding="utf-8").endswith(f"{BY_HAND}\n\nBy hand.\n")


@pytest.mark.parametrize(
    "words",
    [
        ("--only", "nothing"),
        ("--events", "ten"),
        ("--events", "99"),
        ("--events", ""),
        ("--events", "1000,,2000"),
        ("--runs", "0"),
        ("--file", "no such file"),
        ("--dir", "no such folder"),
    ],
    ids=" ".join,
)
def test_a_wrong_order_is_refused_before_anything_is_built(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _ = run(capsys, *words)
    assert code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("load", "said"), [([0.5, 2.0], False), ([0.5, 2.1], True), ([8.6, 1.0], True)])
def test_a_machine_that_others_kept_busy_is_said_beside_the_figures(load: list[float], said: bool) -> None:
    found = json.loads((ROOT / "docs" / "results" / "store.json").read_text(encoding="utf-8"))
    found["runs"] = [{**run, "load": load} for run in found["runs"]]
    assert (f"load {load[0]:g} before and {load[1]:g} after" in peers_table(found)) is True
    for text in (page(found), peers_table(found)):
        assert ("Other programs kept the processor busy" in text) is said


def test_sizes_of_the_storage_follow_those_of_the_run(stage: Stage) -> None:
    storage.EVENTS_MAX = 10_000  # undone by the stage
    assert {figure.events for figure in storage.storage(stage)} == set(SIZES)


def test_sections_that_are_measured_again_take_the_place_of_the_old_ones() -> None:
    old = [{"load": [1.0, 2.0], "figures": [{"section": "append", "n": 1}, {"section": "last", "n": 1}]}]
    new = [{"load": [0.5, 9.0], "figures": [{"section": "last", "n": 2}]}]
    (run,) = merged(old, new, ["last"])
    assert run["figures"] == [{"section": "append", "n": 1}, {"section": "last", "n": 2}]
    assert run["load"] == [1.0, 9.0]  # else the page would hide that others kept the machine busy


def test_bench_alone_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        app(["bench"])
    assert int(exit_.value.code or 0) == 0
    assert "store" in capsys.readouterr().out


def test_the_help_names_defaults_and_sections(capsys: pytest.CaptureFixture[str]) -> None:
    _, out = run(capsys, "--help")
    said = " ".join(out.split())
    assert f"[default: {','.join(map(str, store.SIZES))}]" in said
    assert f"[default: {store.RUNS}]" in said
    assert ", ".join(store.SECTIONS) in said
    assert "[default: a temporary folder" in said


def test_the_published_page_is_what_its_json_says() -> None:
    results = ROOT / "docs" / "results"
    found = json.loads((results / "store.json").read_text(encoding="utf-8"))
    assert (results / "store.md").read_text(encoding="utf-8").startswith(page(found))
    assert peers_table(found) in (ROOT / "README.md").read_text(encoding="utf-8")
