"""Law: a constructor makes one event of its kind, and refuses by the argument's name what the log could not use."""

from collections.abc import Callable

import pytest

from strandline.errors import InvalidInputError
from strandline.model import constructors as make
from strandline.model.event import Envelope, EventKind, NewEvent, Role


def test_bodies_and_envelopes() -> None:
    assert make.message(Role.ASSISTANT, " a ", key="k", actor="me", audience="x", refs=["r"], thread="t") == NewEvent(
        kind=EventKind.MESSAGE,
        body=" a ",
        envelope=Envelope(role=Role.ASSISTANT, thread="t"),
        actor="me",
        audience="x",
        key="k",
        refs=("r",),
    )
    call = make.tool_call("c1", "bash", {"b": 1})
    assert call.body == {"type": "tool_use", "id": "c1", "name": "bash", "input": {"b": 1}}
    assert call.envelope == Envelope(call_id="c1", tool="bash")
    result = make.tool_result("c1", ["x"])
    assert result.body == {"type": "tool_result", "tool_use_id": "c1", "content": ["x"]}
    assert result.envelope == Envelope(call_id="c1")
    failed = make.tool_result("c1", "x", is_error=True)
    assert failed.body == {"type": "tool_result", "tool_use_id": "c1", "content": "x", "is_error": True}
    assert failed.envelope == Envelope(call_id="c1", is_error=True)
    approval = make.approval("s", "", granter="g", scope="x", expires_us=5)
    assert approval.envelope == Envelope(subject="s", granter="g", scope="x", expires_us=5)
    assert make.constraint("s", "").body == ""


def test_handles_and_pins_are_declared_references() -> None:
    artifact = make.artifact("bucket", "bucket-7f3a", refs=["r"])
    assert artifact.body == {"type": "artifact", "handle": "bucket-7f3a", "text": ""}
    assert artifact.refs == ("bucket-7f3a", "r")
    assert make.artifact("bucket", "h", refs=("r", "h")).refs == ("r", "h")
    for pin in (make.pin, make.unpin):
        assert (pin("r-1").body, pin("r-1").refs, pin("r-1").envelope) == ("r-1", ("r-1",), Envelope())
        assert (pin("r-1", "why").body, pin("r-1", "why").refs) == ("why", ("r-1",))


@pytest.mark.parametrize(
    ("make_it", "reason"),
    [
        (lambda: make.message("robot", "x"), "role must be one of user, assistant, system, got 'robot'"),
        (lambda: make.message("user", ""), "text must hold more than white space"),
        (lambda: make.message("user", "\n"), "text must hold more than white space"),
        (lambda: make.message("user", b"x"), "text must be a string, got bytes"),
        (lambda: make.message("user", "ab\ud83d"), r"text holds '\ud83d' at 2, which UTF-8 can't hold"),
        (lambda: make.message("user", "x", key=""), "key must not be empty"),
        (lambda: make.message("user", "x", actor=None), "actor must be a string, got NoneType"),
        (lambda: make.message("user", "x", audience=""), "audience must not be empty"),
        (lambda: make.message("user", "x", thread=1), "thread must be a string, got int"),
        (lambda: make.message("user", "x", refs="abc"), "refs must be a sequence of strings, got str"),
        (lambda: make.message("user", "x", refs={"abc"}), "refs must be a sequence of strings, got set"),
        (lambda: make.message("user", "x", refs=["a", ""]), "refs[1] must not be empty"),
        (lambda: make.tool_call("", "t", 1), "call_id must not be empty"),
        (lambda: make.tool_call("c", None, 1), "tool must be a string, got NoneType"),
        (lambda: make.tool_result(None, 1), "call_id must be a string, got NoneType"),
        (lambda: make.tool_result("c", 1, is_error="no"), "is_error must be a bool, got str"),
        (lambda: make.abandoned(""), "call_id must not be empty"),
        (lambda: make.constraint("", "x"), "subject must not be empty"),
        (lambda: make.constraint("s", None), "text must be a string, got NoneType"),
        (lambda: make.approval("s", "x", granter=""), "granter must not be empty"),
        (lambda: make.approval("s", "x", granter="g", scope=""), "scope must not be empty"),
        (lambda: make.approval("s", "x", granter="g", expires_us=1.5), "expires_us must be an int"),
        (lambda: make.approval("s", "x", granter="g", expires_us=True), "expires_us must be an int"),
        (lambda: make.decision("", subject="s"), "text must hold more than white space"),
        (lambda: make.decision("x", subject=""), "subject must not be empty"),
        (lambda: make.failed_attempt(" "), "text must hold more than white space"),
        (lambda: make.note(""), "text must hold more than white space"),
        (lambda: make.artifact("s", ""), "handle must not be empty"),
        (lambda: make.pin(""), "ref must not be empty"),
        (lambda: make.unpin("", "why"), "ref must not be empty"),
    ],
)
def test_bad_arguments_are_refused_by_name(make_it: Callable[[], NewEvent], reason: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        make_it()
    assert reason in caught.value.message


def test_an_unknown_argument_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'subjekt'"):
        make.note("x", subjekt="y")  # type: ignore[call-arg]
