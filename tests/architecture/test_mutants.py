"""Law: the list of faults fits the source, and the tool that tries them tells killed from survived.

The list is checked by its text alone, so that it can't rot between two runs of `make mutants`: each line stands where
the list says, once, and each test is there. The tool is tried on a package of one module.
"""

import ast
import re
from pathlib import Path

import pytest

from strandline.testing.conformance import StoreConformance
from tools import mutants

ROOT = Path(__file__).resolve().parents[2]
FAULTS = mutants.read_faults()
FAULTS_MIN = 25


def test_there_are_enough_of_them() -> None:
    assert len(FAULTS) >= FAULTS_MIN


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_fits_the_source_and_its_test_is_there(fault: mutants.Fault) -> None:
    assert mutants.find_line(fault) > 0
    assert fault.old != fault.new
    assert "\n" not in fault.old + fault.new
    assert re.fullmatch(r"[IC]\d{1,2}", fault.invariant)
    assert fault.why.endswith(".")
    file, *names = fault.test.partition("[")[0].split("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    if len(names) == 2 and f"class {names[0]}(StoreConformance)" in text:
        assert callable(getattr(StoreConformance, names[1]))
    else:
        body: list[ast.stmt] = ast.parse(text).body
        for name in names:
            (found,) = (n for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name == name)
            body = found.body


RULE = """
def newer(a, b):
    if a > b:
        return True
    # a line that stands
    # a line that stands
    return False  # as good as None
"""
TEST = """
from strandline.rule import newer

def test_equal_is_not_newer():
    assert not newer(1, 1)

def test_that_fails():
    assert newer(1, 1)
"""
FAULT = """
[[fault]]
name = "{name}"
invariant = "I15"
why = "Equal passes for newer."
file = "rule.py"
old = '{old}'
new = '{new}'
test = "tests/test_rule.py::{test}"
"""
EQUAL = {"old": "if a > b:", "new": "if a >= b:", "test": "test_equal_is_not_newer"}
HARMLESS = {"old": "return False  # as good as None", "new": "return None", "test": "test_equal_is_not_newer"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with one rule and its tests."""
    (tmp_path / "src" / "strandline").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tools").mkdir()
    (tmp_path / "src" / "strandline" / "__init__.py").touch()
    (tmp_path / "src" / "strandline" / "rule.py").write_text(RULE)
    (tmp_path / "tests" / "test_rule.py").write_text(TEST)
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def try_list(tree: Path, *faults: dict[str, str]) -> int:
    listed = "".join(FAULT.format(name=f"fault-{number}", **fault) for number, fault in enumerate(faults))
    (tree / mutants.LIST).write_text(listed)
    return mutants.main([], tree)


def test_a_fault_that_no_test_notices_is_told(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert try_list(tree, EQUAL, HARMLESS) == 1
    shown = capsys.readouterr()
    assert re.search(r"^fault-0 +I15 +rule.py:3 +test_rule.py::\w+ +[\d.]+ +killed$", shown.out, re.MULTILINE)
    assert re.search(r"^fault-1 +I15 +rule.py:7 .* SURVIVED$", shown.out, re.MULTILINE)
    assert "fault-1 SURVIVED tests/test_rule.py::test_equal_is_not_newer: the test passes" in shown.err
    assert (tree / "src" / "strandline" / "rule.py").read_text() == RULE


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"test": "test_that_fails"}, "without any fault the tests do not pass"),
        ({"test": "test_that_is_not_there"}, "without any fault the tests do not pass"),
        ({"old": "if a < b:"}, "has 0 lines 'if a < b:', not one"),
        ({"old": "# a line that stands"}, "has 2 lines"),
    ],
    ids=["red", "no test", "no line", "two lines"],
)
def test_a_list_that_does_not_fit_is_refused(
    tree: Path, capsys: pytest.CaptureFixture[str], change: dict[str, str], told: str
) -> None:
    assert try_list(tree, EQUAL | change) == 2
    shown = capsys.readouterr()
    assert told in shown.err
    assert not shown.out
