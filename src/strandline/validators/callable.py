"""Any function as a judge: a language model, a model of textual entailment, or a rule of one's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from strandline.errors import InvalidInputError
from strandline.limits import NAME_CHARS_MAX
from strandline.model.judgement import Objection
from strandline.ports import Judge, JudgeRequest

Objections = Iterable[Objection | str]


class CallableJudge:
    """Judges with a function, sync or async, which returns what it objects to.

    Args:
        function: gets the request; an objection is an `Objection`, or its reason in words.
        name: of the candidate's recipe: another judge makes another candidate.
        version: change it when the judgements change.

    Raises:
        InvalidInputError: not callable, or an empty or overlong name.
    """

    def __init__(
        self,
        function: Callable[[JudgeRequest], Objections | Awaitable[Objections]],
        *,
        name: str,
        version: str = "1",
    ) -> None:
        if not callable(function):
            raise InvalidInputError(f"a judge is called; {function!r} can't be")
        _check_identity(name, version)
        self._function = function
        self.name, self.version = name, version

    def judge(self, request: JudgeRequest) -> Objections | Awaitable[Objections]:
        """Return what the function objects to."""
        return self._function(request)


def as_judge(thing: object) -> Judge | None:
    """Return the judge that is meant; None: the rules alone.

    Raises:
        InvalidInputError: something else.
    """
    if thing is None:
        return None
    if isinstance(thing, type) or not isinstance(thing, Judge):
        raise InvalidInputError(
            f"a judge has name, version and judge(request); {thing!r} is none",
            hint="Wrap a function in CallableJudge(function, name=…).",
        )
    _check_identity(thing.name, thing.version)
    return thing


def _check_identity(*values: object) -> None:
    for value in values:
        if not isinstance(value, str) or not 0 < len(value) <= NAME_CHARS_MAX:
            raise InvalidInputError(
                f"a judge's name and version have 1 to {NAME_CHARS_MAX} characters each; one is {value!r}"
            )
