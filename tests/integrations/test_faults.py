"""Law: in each accident the framework's release loses or misreads something, and Strandline's integration does not."""

from pathlib import Path

import pytest

from bench.faults.shown import NAMES, fault

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # the frameworks' own
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.mark.parametrize("name", NAMES)
def test_the_release_shows_the_fault(name: str, tmp_path: Path) -> None:
    each = fault(name)
    if each.version is None:
        pytest.skip(f"{each.package} is not installed, as the module of {name} says")
    seen = each.stock(tmp_path)
    assert not seen.held, f"{name} is no fault any more: {seen.said}"


@pytest.mark.parametrize("name", [name for name in NAMES if fault(name).ours])
def test_ours_holds(name: str, tmp_path: Path) -> None:
    half = fault(name).ours
    assert half is not None
    seen = half(tmp_path)
    assert seen.held, seen.said
