"""In which form a draft is asked for after one that can't be used (C14): the same failing request is not made again.

| form | what is another | how often a bad draft is taken from it |
| --- | --- | --- |
| as asked | the second attempt is told what was wrong with the first | FORM_DRAFTS_MAX times |
| smaller parts | the source is shown in parts of half the size, the drafts put one behind the other | once |
| last resort | a summarizer drafts that makes nothing up | once |

Each form is a candidate of its own, since its recipe differs. A malformed draft is asked for in smaller parts, then
rejected. A semantic failure goes on to the last resort, where there is one, and is quarantined behind it. A prompt that
is too long for its server is halved up to HALVINGS_MAX times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from strandline.limits import FORM_DRAFTS_MAX, HALVINGS_MAX, SAME_FACT_FAILURES_MAX
from strandline.model.candidate import FailureClass, Verdict

_BAD_DRAFT: Final = (FailureClass.MALFORMED, FailureClass.SEMANTIC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a draft is asked for."""

    halvings: int = 0  # of the largest part that is shown at once
    last_resort: bool = False  # by the summarizer that makes nothing up, whoever was asked for


AS_ASKED: Final = Form()
LAST_RESORT: Final = Form(last_resort=True)


def drafts_max(form: Form) -> int:
    """Return how many bad drafts are taken from a form before it is given up."""
    return FORM_DRAFTS_MAX if form == AS_ASKED else 1


def next_form(form: Form, failure: FailureClass, *, too_long: bool = False, can_fall_back: bool = False) -> Form | None:
    """Return the form that follows one that was given up; None: there is none, and the compaction ends.

    Args:
        form: that was given up.
        failure: the class of its last failure.
        too_long: the prompt was too long for the server that was asked.
        can_fall_back: there is a last resort.
    """
    if form.last_resort or failure not in _BAD_DRAFT:
        return None
    if form.halvings < (HALVINGS_MAX if too_long else 1):
        return Form(halvings=form.halvings + 1)
    return LAST_RESORT if can_fall_back and failure is FailureClass.SEMANTIC else None


def same_fact(verdicts: Sequence[Verdict]) -> str | None:
    """Return a mandatory fact that each of the last SAME_FACT_FAILURES_MAX drafts got wrong, or None.

    Args:
        verdicts: on drafts that broke a rule, the last one last.
    """
    last = verdicts[-SAME_FACT_FAILURES_MAX:]
    if len(last) < SAME_FACT_FAILURES_MAX:
        return None
    facts = [{violation.fact for violation in verdict.violations if violation.fact} for verdict in last]
    return min(set.intersection(*facts), default=None)
