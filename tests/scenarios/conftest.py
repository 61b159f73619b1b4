"""What the scenarios share: one run of an incident for all tests of a module, told to nobody."""

from pathlib import Path

import pytest

import strandline
from strandline.cli.drill_story import Silent
from strandline.drill.program import run
from strandline.drill.report import Incident
from strandline.testing.protocol import conforms


@pytest.fixture(scope="module")
def incident(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Incident:
    """The incident of the module, as it ran; its stores are gone with the test session."""
    folder = tmp_path_factory.mktemp("drill")
    (ran,) = run([request.module.NAME], folder, Silent())
    refused = [refusal for path in folder.rglob("*.db") for refusal in refusals(path)]
    assert not refused, "what the drill did is what the protocol allows (ADR 67)"
    return ran


def refusals(path: Path) -> list[str]:
    with strandline.open(path, create=False) as db:
        scopes = db.store.scopes()
        found = [conforms(db.tenant(scope.tenant).workflow(scope.workflow)) for scope in scopes]
    assert scopes
    return [str(refusal) for refusal in found if refusal is not None]


@pytest.fixture(scope="module")
def got(incident: Incident) -> dict[str, object]:
    """What was got, by the name of the promise."""
    assert len({check.name for check in incident.checks}) == len(incident.checks)
    return {check.name: check.got for check in incident.checks}
