"""Law: a soak counts each unit once, whatever ends it, and the page says what was counted.

The harness is run on a tree of its own, with programmes of a few lines.
"""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tools import soak, soak_page
from tools.soak_progress import Chunk, Programme, UnfitError, read_chunks, read_programmes, standing, write_chunks

ROOT = Path(__file__).resolve().parents[2]
UNITS = """
import argparse, json, pathlib, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.add_argument("--count", type=int)
parser.add_argument("--json", action="store_true")
asked = parser.parse_args()
here = pathlib.Path(__file__).parent
bad = [s for s in range(asked.seed, asked.seed + asked.count) if (here / f"bad-{s}").exists()]
if (here / "unable").exists():
    print("this machine has no disk", file=sys.stderr)
    sys.exit(2)
with open(here / "ran", "a") as ran:
    print(asked.seed, asked.count, file=ran)
time.sleep(float((here / "slow").read_text()) if (here / "slow").exists() else 0)
for s in bad:
    print(f"the unit {s} lost an event; python units.py --seed {s} --count 1")
print(json.dumps({"count": asked.count, "violations": len(bad), "seconds": 0.1, "detail": {"kills": asked.count}}))
sys.exit(bool(bad))
"""
LIST = """
[[programme]]
name = "{name}"
measure = "units of {name}"
command = "python {name}/units.py --seed {{seed}} --count {{count}} --json"
chunk = {chunk}
target = {target}
mark = "{target} units, 0 violations"
proves = "Nothing is lost."
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with two programmes, `quick` and `thorough`."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "rule.py").touch()
    listed = LIST.format(name="quick", chunk=4, target=10) + LIST.format(name="thorough", chunk=5, target=20)
    (tmp_path / "tools" / "soak.toml").write_text(listed)
    for name in ("quick", "thorough"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "units.py").write_text(UNITS)
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def git(tree: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    return subprocess.run(["git", *identity, *words], cwd=tree, check=True, capture_output=True, text=True).stdout


def commit(tree: Path) -> None:
    git(tree, "add", "src", "tools")
    git(tree, "commit", "-q", "-m", "A change")


def counted(tree: Path, name: str) -> list[int]:
    """Return the units that count, in their order."""
    own = [chunk for chunk in standing(read_chunks(tree / soak.RECORD)) if chunk.programme == name]
    return [unit for chunk in own for unit in range(chunk.seed, chunk.end)]


def test_every_unit_is_run_once_and_the_next_soak_has_nothing_left(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert soak.main(["--minutes", "1"], tree) == 0
    assert counted(tree, "quick") == list(range(1, 11))
    assert counted(tree, "thorough") == list(range(1, 21))
    assert "quick: 10 of 10 units of quick, 0 violations" in capsys.readouterr().out
    before = (tree / "quick" / "ran").read_text()
    assert soak.main(["--minutes", "1"], tree) == 0
    assert (tree / "quick" / "ran").read_text() == before


def test_the_one_furthest_from_its_target_comes_first(tree: Path) -> None:
    assert soak.main(["--minutes", "1", "--workers", "1"], tree) == 0
    record = [(chunk.programme, chunk.seed) for chunk in read_chunks(tree / soak.RECORD)]
    assert record[:4] == [("quick", 1), ("thorough", 1), ("thorough", 6), ("quick", 5)]


def test_only_what_was_asked_for_is_run(tree: Path) -> None:
    assert soak.main(["--only", "thorough"], tree) == 0
    assert (counted(tree, "quick"), len(counted(tree, "thorough"))) == ([], 20)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_what_was_whole_when_it_was_stopped_counts_and_nothing_else(tree: Path, number: signal.Signals) -> None:
    (tree / "quick" / "slow").write_text("60")
    listed = tree / "tools" / "soak.toml"
    listed.write_text(listed.read_text().replace("chunk = 4", "chunk = 10").replace("chunk = 5", "chunk = 20"))
    program = f"import pathlib, sys; from tools import soak; sys.exit(soak.main([], pathlib.Path({str(tree)!r})))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    words = [sys.executable, "-c", program]
    process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (len(counted(tree, "thorough")) == 20 and (tree / "quick" / "ran").exists()):
        assert time.monotonic() < deadline
        time.sleep(0.05)  # another process runs
    process.send_signal(number)
    told = process.communicate(timeout=30)[1]
    assert process.returncode == 0
    assert f"quick: stopped ({number.name}); it counts for nothing" in told
    assert (counted(tree, "quick"), len(counted(tree, "thorough"))) == ([], 20)
    assert [path.name for path in (tree / soak.FOLDER).iterdir() if path.suffix in (".out", ".err")] == []
    (tree / "quick" / "slow").unlink()
    assert soak.main([], tree) == 0
    assert counted(tree, "quick") == list(range(1, 11))


def test_when_the_time_is_over_it_stops(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "quick" / "slow").write_text("60")
    assert soak.main(["--minutes", "0.02", "--only", "quick"], tree) == 0
    assert "stopped (the time is over)" in capsys.readouterr().err
    assert counted(tree, "quick") == []


def test_a_line_that_was_torn_is_run_again(tree: Path) -> None:
    assert soak.main(["--only", "quick"], tree) == 0
    record = tree / soak.RECORD
    record.write_bytes(record.read_bytes()[:-20])
    assert len(counted(tree, "quick")) < 10
    assert soak.main(["--only", "quick"], tree) == 0
    assert counted(tree, "quick") == list(range(1, 11))


def test_a_violation_is_told_and_stands_until_the_same_units_are_clean(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "quick" / "bad-6").touch()
    assert soak.main(["--only", "quick"], tree) == 1
    assert "the unit 6 lost an event; python units.py --seed 6 --count 1" in capsys.readouterr().err
    before = (tree / "quick" / "ran").read_text()
    (tree / "quick" / "bad-6").unlink()
    assert soak.main(["--only", "quick"], tree) == 1  # the sources are what they were: nothing was mended
    assert (tree / "quick" / "ran").read_text() == before
    (tree / "src" / "rule.py").write_text("mended = True\n")
    commit(tree)
    assert soak.main(["--only", "quick"], tree) == 0
    assert (tree / "quick" / "ran").read_text() == before + "5 4\n"
    assert counted(tree, "quick") == list(range(1, 11))


def test_changed_sources_are_told_beside_the_commit(tree: Path) -> None:
    clean = soak.commit_of(tree)
    (tree / "src" / "rule.py").write_text("changed = True\n")
    assert soak.commit_of(tree) == f"{clean}+changes"
    (tree / "README.md").write_text("a page that no programme reads")
    git(tree, "checkout", "src")
    assert soak.commit_of(tree) == clean


def test_what_could_not_run_is_told_and_the_rest_runs(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "quick" / "unable").touch()
    assert soak.main([], tree) == 2
    shown = capsys.readouterr()
    assert "quick: could not run: exit code 2; this machine has no disk" in shown.out
    assert (counted(tree, "quick"), len(counted(tree, "thorough"))) == ([], 20)


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ("print('done')", "its last line is no result"),
        ("raise MemoryError", "its last line is no result; .*MemoryError"),
        ('print(\'{"count": 1, "violations": 0}\')', "its last line is no result"),
        ("print(json.dumps(dict(count=99, violations=0, seconds=1, detail={})))", "4 units were asked for, 99"),
        ("print(json.dumps(dict(count=4, violations=1, seconds=1, detail={})))", "exit code 0 with 1 violations"),
        ("sys.exit(3)", "exit code 3"),
    ],
    ids=["no JSON", "crashed", "half", "too many", "code", "other code"],
)
def test_a_programme_that_does_not_keep_the_contract_counts_for_nothing(
    tree: Path, capsys: pytest.CaptureFixture[str], ends: str, told: str
) -> None:
    (tree / "quick" / "units.py").write_text(f"import json, sys\n{ends}\n")
    assert soak.main(["--only", "quick"], tree) == 2
    assert counted(tree, "quick") == []
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(capsys.readouterr().out.replace("\n", " "))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--only", "quik"], "there is no programme 'quik'; there are quick, thorough"),
        (["--minutes", "0"], "--minutes is above 0"),
        (["--workers", "0"], "--workers at least 1"),
    ],
)
def test_a_wrong_order_is_refused(tree: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str) -> None:
    assert soak.main(words, tree) == 2
    assert told in capsys.readouterr().err
    assert not (tree / "quick" / "ran").exists()


def test_a_second_soak_is_refused_and_a_record_that_is_no_record(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with soak.only_one(tree):
        assert soak.main([], tree) == 2
    assert "another soak runs on this checkout" in capsys.readouterr().err
    (tree / soak.RECORD).write_text('{"programme": "quick"}\n')
    assert soak.main([], tree) == 2
    assert "line 1: no chunk" in capsys.readouterr().err


def chunk(seed: int, count: int, *, commit: str = "a", violations: int = 0) -> Chunk:
    return Chunk(
        programme="quick",
        seed=seed,
        count=count,
        violations=violations,
        seconds=2.0,
        detail={"kills": count},
        commit=commit,
        machine="a machine",
        date="2026-01-02",
    )


def test_no_unit_stands_twice(tmp_path: Path) -> None:
    for one in (chunk(1, 4), chunk(4, 4)):
        write_chunks(tmp_path / "record", [one])
    with pytest.raises(UnfitError, match="the unit 4 stands in two chunks"):
        read_chunks(tmp_path / "record")


def test_faults_are_taken_by_name(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two of three ran; one is added before them: the two that did not run are run."""
    (tree / "tools" / "mutants.py").write_text(
        "import json, sys\nnames = [w for w in sys.argv[1:] if w[:2] != '--']\n"
        "print(json.dumps({'faults': [{'name': n} for n in names], 'survived': 0, 'seconds': 1}, indent=1))\n"
    )
    fault = '[[fault]]\nname = "{}"\ninvariant = "I1"\nwhy = "."\nfile = "a"\nold = "b"\nnew = "c"\ntest = "d"\n'
    listed = "".join(fault.format(name) for name in ("two", "three"))
    (tree / "tools" / "mutants.toml").write_text(listed)
    (tree / "tools" / "soak.toml").write_text(
        LIST.format(name="mutants", chunk=2, target=0).replace(
            "mutants/units.py --seed {seed} --count {count} --json", "tools/mutants.py --json {names}"
        )
        + "names = true\n"
    )
    assert soak.main([], tree) == 0
    (tree / "tools" / "mutants.toml").write_text(fault.format("one") + listed + fault.format("four"))
    assert soak.main([], tree) == 0
    chunks = read_chunks(tree / soak.RECORD)
    assert [(one.seed, one.names) for one in chunks] == [(1, ["two", "three"]), (3, ["one", "four"])]
    assert "mutants: 4 of 4 units of mutants, 0 violations" in capsys.readouterr().out


def test_the_page_says_what_was_counted_and_which_marks_are_not_reached(tree: Path) -> None:
    write_chunks(make_record(tree), [chunk(1, 4, violations=2)])
    write_chunks(tree / soak.RECORD, [chunk(5, 4, commit="b")])
    write_chunks(tree / soak.RECORD, [chunk(1, 4, commit="c")])  # mended
    (tree / "tools" / "bugs.toml").write_text(
        '[[bug]]\nfound_by = "quick"\nseed = 3\nwhat = "An event was lost (I2)."\nfix = "Sync it"\ntest = "t.py::t"\n'
    )
    assert soak.main(["--report"], tree) == 0
    text = (tree / "docs" / "results" / "reliability.md").read_text()
    command = "`python quick/units.py --seed {seed} --count {count} --json`"
    assert f"| units of quick | 8 | 0 | {command} | 1–8 | c (4), b (4) |" in text
    assert "- units of quick: 10 units, 0 violations: **not reached yet**: 8 of 10." in text
    assert "- units of thorough: 20 units, 0 violations: **not reached yet**: 0 of 20." in text
    assert "Met: kills 8. It took 4 s of one worker, 2 a second; 2026-01-02, on a machine." in text
    assert "| quick | 3 | An event was lost (I2). | Sync it | `t.py::t` |" in text


def test_the_page_tells_the_most_frequent_of_what_was_met(tree: Path) -> None:
    many = {f"thing {number:03}": number for number in range(1, soak_page.MET_MAX + 3)}
    write_chunks(make_record(tree), [replace(chunk(1, 4), detail=many)])
    assert soak.main(["--report"], tree) == 0
    text = (tree / "docs" / "results" / "reliability.md").read_text()
    assert "Met: thing 026 26, thing 025 25," in text
    assert "thing 003 3, and 2 kinds more, which the JSON lists. It took" in text


def test_a_checkout_without_a_record_goes_on_from_what_was_published(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_chunks(make_record(tree), [chunk(1, 4), chunk(5, 2), replace(chunk(7, 1), commit="b", violations=1)])
    before = read_chunks(tree / soak.RECORD)
    assert soak.main(["--report"], tree) == 0
    published = tree / soak_page.PUBLISHED
    said, page = published.read_bytes(), published.with_suffix(".md").read_bytes()
    (tree / soak.RECORD).unlink()
    assert soak.main(["--report"], tree) == 0
    assert (published.read_bytes(), published.with_suffix(".md").read_bytes()) == (said, page)
    joined = read_chunks(tree / soak.RECORD)
    assert [(one.seed, one.count, one.violations) for one in joined] == [(1, 6, 0), (7, 1, 1)]
    assert sum(one.seconds for one in joined) == sum(one.seconds for one in before)
    assert joined[0].detail == {"kills": before[0].detail["kills"] + before[1].detail["kills"]}
    assert soak.main([], tree) == 0
    assert f"goes on from {soak_page.PUBLISHED}" in capsys.readouterr().err
    assert counted(tree, "quick") == list(range(1, 11))
    assert (tree / "quick" / "ran").read_text() == "7 1\n8 3\n"


def test_a_report_that_is_none_is_refused(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published = tree / soak_page.PUBLISHED
    published.parent.mkdir(parents=True)
    published.write_text('{"measures": [{"programme": "quick", "runs": [{"seed": 1}]}]}')
    assert soak.main([], tree) == 2
    assert "is no report of a soak" in capsys.readouterr().err
    assert not (tree / soak.RECORD).exists()


def make_record(tree: Path) -> Path:
    (tree / soak.FOLDER).mkdir(exist_ok=True)
    return tree / soak.RECORD


def test_violations_that_stand_keep_a_mark_from_being_reached() -> None:
    programme = Programme(
        name="quick", measure="units", command="c", chunk=1, target=4, mark="4 units, 0 violations", proves="."
    )
    found = soak_page.measured(programme, 4, [chunk(1, 4, violations=2)])
    assert "**not reached**: 2 violations stand" in soak_page.page({"measures": [found], "bugs": []})
    found = soak_page.measured(programme, 4, [chunk(1, 4)])
    assert "4 units, 0 violations: reached." in soak_page.page({"measures": [found], "bugs": []})


def test_the_published_page_is_what_its_json_says() -> None:
    results = ROOT / "docs" / "results"
    found = json.loads((results / "reliability.json").read_text(encoding="utf-8"))
    assert (results / "reliability.md").read_text(encoding="utf-8") == soak_page.page(found)
    assert found["bugs"] == soak_page.read_bugs(ROOT)


def test_the_published_page_has_every_programme_of_the_list() -> None:
    found = json.loads((ROOT / "docs" / "results" / "reliability.json").read_text(encoding="utf-8"))
    listed = [(one.name, one.measure, one.mark) for one in read_programmes(ROOT / soak.LIST)]
    assert [(one["programme"], one["measure"], one["mark"]) for one in found["measures"]] == listed


def test_each_bug_that_is_listed_is_held_by_a_test_that_is_there() -> None:
    for bug in soak_page.read_bugs(ROOT):
        assert set(bug) - {"seed"} == {"found_by", "what", "fix", "test"}
        path, _, rest = bug["test"].partition("::")
        name = rest.partition("[")[0].rpartition("::")[2]
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), bug["test"]
