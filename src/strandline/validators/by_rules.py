"""The rules as a function: any summary, by whatever tool, against facts that somebody names."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.errors import InvalidInputError
from strandline.limits import DRAFT_BYTES_MAX, JUDGED_FACTS_MAX
from strandline.model.event import NewEvent
from strandline.model.judgement import Judgement
from strandline.rules.judging import judge_facts


def judge(facts: Sequence[str | NewEvent], summary: str, tail: Sequence[str] = ()) -> Judgement:
    """Say what became of each fact in a summary, without a model and without a store (C13).

    Args:
        facts: statements that must hold for the reader, such as "Never deploy on Fridays."; or events, as `constraint`
            and its kin make them, whose text states the fact.
        summary: the text that is judged, from whatever tool.
        tail: texts that the reader gets behind it, verbatim: what stands there need not stand in the summary.

    Returns:
        One verdict per fact, with the sentence and the line that decide it. `accepted` only if each fact is preserved
        or provably paraphrased.

    Raises:
        InvalidInputError: a fact or text that is none, more than JUDGED_FACTS_MAX facts, or a text longer than
            DRAFT_BYTES_MAX.
    """
    if isinstance(facts, str | NewEvent) or isinstance(tail, str):
        raise InvalidInputError("facts and tail are lists, also of one", hint="Put it in [ ].")
    if len(facts) > JUDGED_FACTS_MAX:
        raise InvalidInputError(f"{len(facts):,} facts; at most {JUDGED_FACTS_MAX:,} are judged at once")
    stated = [_statement(number, fact) for number, fact in enumerate(facts)]
    for what, text in (("the summary", summary), *((f"text {n} of the tail", text) for n, text in enumerate(tail))):
        if not isinstance(text, str):
            raise InvalidInputError(f"{what} is {type(text).__name__}, no text")
        if len(text.encode("utf-8", "surrogatepass")) > DRAFT_BYTES_MAX:
            raise InvalidInputError(f"{what} is longer than {DRAFT_BYTES_MAX:,} bytes")
    return judge_facts(stated, summary, tail)


def _statement(number: int, fact: object) -> str:
    text = fact.body if isinstance(fact, NewEvent) else fact
    if not isinstance(text, str) or not text.strip():
        raise InvalidInputError(f"fact {number} states nothing in words: {fact!r}"[:500])
    return text
