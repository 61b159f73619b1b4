"""What the scenarios share: one run of an incident for all tests of a module, told to nobody."""

import pytest

from strandline.cli.drill_story import Silent
from strandline.drill.program import run
from strandline.drill.report import Incident


@pytest.fixture(scope="module")
def incident(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Incident:
    """The incident of the module, as it ran; its stores are gone with the test session."""
    (ran,) = run([request.module.NAME], tmp_path_factory.mktemp("drill"), Silent())
    return ran


@pytest.fixture(scope="module")
def got(incident: Incident) -> dict[str, object]:
    """What was got, by the name of the promise."""
    assert len({check.name for check in incident.checks}) == len(incident.checks)
    return {check.name: check.got for check in incident.checks}
