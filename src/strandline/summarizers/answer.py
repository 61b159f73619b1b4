"""From a model's answer to a draft: is it the form that was asked for, and do its claims cite what was shown?

The draft has a line for each claim, with the events that it cites behind it: `- The bucket is bucket-7f3a. [12, 15]`. A
claim that does not fit the budget is left out, and so is one that should quote an event and does not. Whatever else is
wrong makes the whole answer malformed: who gets one claim's form or events wrong is not believed in the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

import msgspec

from strandline.errors import MalformedDraftError
from strandline.model.candidate import CitedClaim, Draft
from strandline.model.event import SourceEvent
from strandline.ports import SummaryRequest
from strandline.rules.no_summary import what_it_is_instead
from strandline.rules.wording import one_line, plain
from strandline.summarizers.prompt import QUOTE_WORDS_MIN

SHOWN_CHARS_MAX: Final = 160  # of an answer that is no good, in the message that says so
SHOWN_SEQS_MAX: Final = 8

_FENCE: Final = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL | re.IGNORECASE)


class _Claim(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    events: list[int]
    quote: str = ""


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    claims: list[_Claim]


_decoder: Final = msgspec.json.Decoder(_Answer)


def read_answer(answer: str, request: SummaryRequest, *, strict: bool, model: str) -> Draft:
    """Return the draft that a finished answer holds.

    Args:
        answer: the text, all of it.
        request: what was asked.
        strict: leave out claims that quote none of the events that they cite.
        model: which model answered, as it said itself.

    Raises:
        MalformedDraftError: it is not the JSON that was asked for; a claim is empty, or cites no event, or one that was
            not shown; no claim is left; or the claims are no summary but a placeholder, a refusal or an error's text.
    """
    fenced = _FENCE.fullmatch(answer)
    try:
        claims = _decoder.decode(fenced[1] if fenced else answer).claims
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise MalformedDraftError(f"{_instead(answer)}: {error}") from error
    if not claims:
        raise MalformedDraftError("the answer makes no claim")
    _check(claims, request)
    instead = what_it_is_instead(plain("\n".join(claim.text for claim in claims)))
    if instead:
        raise MalformedDraftError(f"the claims are no summary ({instead}): {_cut(claims[0].text)!r}")
    if strict:
        claims = _quoting(claims, request)
    return _fitted(claims, request, model)


def _instead(answer: str) -> str:
    text = plain(answer)
    rule = what_it_is_instead(text) if text.strip() else "empty"
    said = f" ({rule})" if rule else ""
    return f"the answer is not the JSON that was asked for{said}, it begins {_cut(answer)!r}"


def _check(claims: list[_Claim], request: SummaryRequest) -> None:
    """Refuse claims that say nothing, or cite what was not shown."""
    shown = {event.seq for event in request.events}
    first = request.events[0].seq if request.events else request.through_seq + 1
    told_before = range(request.from_seq, first) if request.prior else range(0)  # by older summaries
    for number, claim in enumerate(claims, 1):
        if not claim.text.strip():
            raise MalformedDraftError(f"claim {number} says nothing")
        if not claim.events:
            raise MalformedDraftError(f"claim {number} cites no event: {_cut(claim.text)!r}")
        unknown = [seq for seq in claim.events if seq not in shown and seq not in told_before]
        if unknown:
            named = ", ".join(map(str, unknown[:SHOWN_SEQS_MAX]))
            raise MalformedDraftError(f"claim {number} cites events that were not shown: {named}")


def _quoting(claims: list[_Claim], request: SummaryRequest) -> list[_Claim]:
    """Return the claims whose quote stands in an event that they cite; of older summaries none has to quote."""
    events = {event.seq: event for event in request.events}
    texts: dict[int, str] = {}
    kept = [claim for claim in claims if _quotes(claim, events, texts)]
    if not kept:
        raise MalformedDraftError("no claim quotes an event that it cites")
    return kept


def _quotes(claim: _Claim, events: Mapping[int, SourceEvent], texts: dict[int, str]) -> bool:
    quote = one_line(claim.quote)
    for seq in claim.events:
        if seq not in events:
            return True  # an older summary tells of it: there is no text to look in
        if seq not in texts:
            texts[seq] = one_line(events[seq].text)
        enough = len(quote.split()) >= QUOTE_WORDS_MIN or quote == texts[seq]
        if quote and enough and quote in texts[seq]:
            return True
    return False


def _fitted(claims: list[_Claim], request: SummaryRequest, model: str) -> Draft:
    """Return the draft of the claims that fit the budget, in the order of the answer, which is that of importance."""
    count, left = request.counter.count, request.budget_tokens
    lines: list[str] = []
    kept: list[CitedClaim] = []
    for claim in claims:
        text, seqs = one_line(claim.text), tuple(sorted(set(claim.events)))
        line = f"- {text} [{', '.join(_spans(seqs))}]"
        tokens = count(f"{line}\n")
        if tokens <= left:
            left -= tokens
            lines.append(line)
            kept.append(CitedClaim(text=text, seqs=seqs))
    if not lines:
        raise MalformedDraftError(f"none of its {len(claims)} claims fits {request.budget_tokens} tokens")
    return Draft(text="\n".join(lines), model=model, claims=tuple(kept))


def _spans(seqs: tuple[int, ...]) -> Iterator[str]:
    """Yield ascending numbers as they are cited: three and more in a row as `15-17`."""
    starts = [seqs[0], *(after for before, after in pairwise(seqs) if after != before + 1)]
    ends = [*(before for before, after in pairwise(seqs) if after != before + 1), seqs[-1]]
    for start, end in zip(starts, ends, strict=True):
        if end - start < 2:
            yield from map(str, range(start, end + 1))
        else:
            yield f"{start}-{end}"


def _cut(text: str) -> str:
    line = one_line(text[: 4 * SHOWN_CHARS_MAX])
    return line if len(line) <= SHOWN_CHARS_MAX else f"{line[: SHOWN_CHARS_MAX - 1]}…"
