"""Law: in each accident of docs/frameworks-faults.md the framework's release does what the page says, and ours holds.

The stock half runs the installed release. Where that is another than the page names (`make frameworks-latest`) and the
fault is mended in it, the test is skipped and says so by name: the page is then to be brought up to date.
"""

import re
from pathlib import Path

import pytest

from bench.faults.shown import NAMES, fault

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "frameworks-faults.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (.+) \| (\S+) (\S+) \| (.+) \| (.+) \| `python -m bench\.faults (\S+)` \|$", re.MULTILINE)
ROWS = {name: cells for *cells, name in ROW.findall(PAGE)}
# A kill needs a process of its own, which imports the framework anew.
CASES = [pytest.param(name, marks=[pytest.mark.long] if "kill" in name else []) for name in NAMES]

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # the frameworks' own
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def test_the_page_has_a_row_for_each_fault() -> None:
    assert tuple(ROWS) == NAMES


@pytest.mark.parametrize("name", CASES)
def test_the_release_shows_the_fault(name: str, tmp_path: Path) -> None:
    each = fault(name)
    what, package, version, theirs, _ = ROWS[name]
    assert (what, package) == (each.what, each.package)
    if each.version is None:
        pytest.skip(f"{package} is not installed, as the module of {name} says")
    seen = each.stock(tmp_path)
    if each.version != version and seen.held:
        pytest.skip(f"{package} {each.version} has mended {name}; the page says so of {version}")
    assert not seen.held, f"{name} is no fault any more: {seen.said}"
    assert seen.said == theirs or each.version != version


@pytest.mark.parametrize("name", CASES)
def test_ours_holds(name: str, tmp_path: Path) -> None:
    seen = fault(name).ours(tmp_path)
    assert seen.held, seen.said
    assert seen.said == ROWS[name][4]


def test_the_page_speaks_of_the_releases_that_are_locked() -> None:
    locked = dict(
        re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    )
    named = {(package, version) for _, package, version, *_ in ROWS.values()}
    assert {(package, locked.get(package, version)) for package, version in named} == named
