"""Law: the API reference names everything that is public, as it is."""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

import strandline
from strandline.model import constructors

API = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
CODE = re.findall(r"`([^`\n]+)`", API)
SAID = {re.split(r"[(.]", code)[0] for code in CODE}
DOORS = [strandline.Strandline, strandline.Tenant, strandline.Workflow]
ERRORS = [kind for kind in map(vars(strandline).get, strandline.__all__) if inspect.isclass(kind)]
ERRORS = [kind for kind in ERRORS if issubclass(kind, strandline.StrandlineError)]


def section(title: str) -> str:
    """Return what stands under a heading, up to the next one of any level."""
    found = re.search(rf"^#+ {title}\n(.*?)(?=^#|\Z)", API, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


def written(name: str, call: object) -> str:
    """Return a call as the page writes it: arguments and defaults, no types."""
    signature = inspect.signature(call)  # type: ignore[arg-type]
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name != "self"]
    return name + str(signature.replace(parameters=bare, return_annotation=signature.empty))


def public(kind: type) -> list[str]:
    return [name for name in vars(kind) if not name.startswith("_")]


@pytest.mark.parametrize("name", strandline.__all__)
def test_every_exported_name_stands_there(name: str) -> None:
    assert name in SAID


@pytest.mark.parametrize("kind", DOORS, ids=lambda kind: kind.__name__)
def test_every_method_stands_there_with_its_arguments(kind: type) -> None:
    text = section(kind.__name__)
    for name in public(kind):
        member = inspect.getattr_static(kind, name)
        wanted = name if isinstance(member, property) else written(name, member)
        assert f"| `{wanted}` |" in text, wanted


@pytest.mark.parametrize("kind", DOORS, ids=lambda kind: kind.__name__)
def test_the_methods_for_event_loops_are_the_same(kind: type) -> None:
    for name in public(kind):
        member = inspect.getattr_static(kind, name)
        if not isinstance(member, property):
            twin = getattr(getattr(strandline, f"Async{kind.__name__}"), name)
            assert written(name, twin) == written(name, member)


@pytest.mark.parametrize("name", [name for name in strandline.__all__ if hasattr(constructors, name)])
def test_every_constructor_stands_there_with_its_arguments(name: str) -> None:
    call = getattr(strandline, name)
    if inspect.isfunction(call):
        assert f"| `{written(name, call)}` |" in section("Events")


def test_the_common_arguments_of_events_stand_there() -> None:
    for name in constructors.Common.__annotations__:
        assert f"| `{name}` |" in section("Events")


@pytest.mark.parametrize("call", [strandline.open, strandline.aopen], ids=lambda call: call.__name__)
def test_the_ways_to_open_stand_there_with_their_arguments(call: object) -> None:
    name = call.__name__  # type: ignore[attr-defined]
    assert f"| `{written(name, call)}` |" in section("Opening a store")


@pytest.mark.parametrize(
    "kind",
    [strandline.Context, strandline.Recovery, strandline.CompactionOutcome, strandline.Comparison],
    ids=lambda kind: kind.__name__,
)
def test_every_field_of_an_answer_stands_there(kind: type) -> None:
    said = {code.split("(")[0] for code in re.findall(r"`([^`\n]+)`", section(kind.__name__))}
    assert {field.name for field in dataclasses.fields(kind)} | set(public(kind)) <= said


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_stands_there_with_its_attributes(kind: type[strandline.StrandlineError]) -> None:
    row = re.search(rf"^\| `{kind.__name__}` \|(.*)$", section("Errors"), re.MULTILINE)
    assert row is not None
    assert set(kind.fields) - {"hint"} <= set(re.findall(r"`(\w+)`", row[1]))


def test_every_reason_and_outcome_stands_there() -> None:
    for kind in (strandline.ReconciliationReason, strandline.CompactionResult, strandline.Rung, strandline.PartKind):
        assert {member.value for member in kind} <= set(CODE)
