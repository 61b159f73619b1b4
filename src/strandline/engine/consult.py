"""Ask a judge about a draft that the rules let pass (C13). It can only refuse: what the rules refuse is never asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from strandline.engine.compaction_run import Run
from strandline.engine.flow import Consult, Told, Verb
from strandline.engine.material import Material
from strandline.errors import InvalidInputError, TransientSummarizerError
from strandline.limits import FAILURE_CHARS_MAX, OBJECTIONS_MAX, SUMMARIZER_DEADLINE_S
from strandline.model.candidate import Draft, FailureClass, Violation
from strandline.model.event import SourceEvent
from strandline.model.judgement import JudgedClaim, Objection
from strandline.model.summary import Anchor
from strandline.ports import JudgeRequest

OBJECTED = "judge_objects"


def consult(
    run: Run,
    facts: Sequence[Anchor],
    material: Material,
    events: Sequence[SourceEvent],
    draft: Draft,
    claims: Sequence[JudgedClaim],
) -> Verb[list[Violation]]:
    """Return the violations that the judge of the order sees; none where it was given none.

    Raises:
        TransientSummarizerError: it gave no answer in time, or its connection failed; another attempt may do.
        InvalidInputError: it gave something else than objections.
    """
    judge = run.order.judge
    if judge is None:
        return []
    request = JudgeRequest(draft=draft, events=events, prior=material.prior, facts=facts, claims=claims)
    deadline_s = SUMMARIZER_DEADLINE_S if run.order.deadline_s is None else run.order.deadline_s
    with run.phase("consult"):
        told: Told = yield Consult(call=lambda: judge.judge(request), deadline_s=deadline_s)
    if isinstance(told.error, TimeoutError | ConnectionError):
        raise TransientSummarizerError(f"{judge.name}: {type(told.error).__name__}: {told.error}") from told.error
    if told.error is not None:
        raise told.error
    return [_violation(judge.name, objection) for objection in _objections(judge.name, told.value)]


def _objections(name: str, value: object) -> list[Objection | str]:
    """Return what a judge objects to, the first OBJECTIONS_MAX of it."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InvalidInputError(f"the judge {name!r} gave {type(value).__name__}, no list of objections")
    given = list(value)
    wrong = next((one for one in given if not isinstance(one, Objection | str)), None)
    if wrong is not None:
        raise InvalidInputError(f"the judge {name!r} gave {type(wrong).__name__} for an objection")
    return given[:OBJECTIONS_MAX]


def _violation(name: str, objection: Objection | str) -> Violation:
    reason, sentence = (objection, "") if isinstance(objection, str) else (objection.reason, objection.sentence)
    of = f" of {sentence!r}" if sentence else ""
    return Violation(failure=FailureClass.SEMANTIC, rule=OBJECTED, detail=f"{name}: {reason}{of}"[:FAILURE_CHARS_MAX])
