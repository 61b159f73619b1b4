"""Summaries that another tool makes in the agent's own context: what is carried past them, and what they did (I9, I10).

Such a summary is no candidate of ours: it stands in the agent's context whatever we say. So nothing is refused. What it
must not lose is read out of the log, to be put beside it; and what it was, once it is there, is judged by the same
rules as a draft of ours, with a case where somebody may act wrongly on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from strandline.codec import decode_sightings
from strandline.engine.cases import open_case
from strandline.engine.environment import PART_JOINT, Environment, check_whole
from strandline.engine.plan_job import anchors_at
from strandline.engine.reading import find_view, open_calls_of, read_live, read_one, to_source, visible
from strandline.engine.watching import watched
from strandline.errors import InvalidInputError
from strandline.limits import (
    CONTEXT_BUDGET_TOKENS,
    DRAFT_BYTES_MAX,
    FOREIGN_REASONS_MAX,
    FOREIGN_SOURCE_TOKENS,
    NAME_CHARS_MAX,
    REFS_PAGE,
)
from strandline.model.candidate import Draft
from strandline.model.case import Case, CaseKind, CaseState
from strandline.model.event import SourceEvent
from strandline.model.foreign import Carried, DroppedReference, ForeignJudgement
from strandline.model.outcome import ForeignSummary
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.rules.anchors import render_older_calls
from strandline.rules.foreign import fates, reasons, told
from strandline.rules.ledger import Tally, select
from strandline.rules.planning import check_budget
from strandline.rules.validation import invented_refs, validate
from strandline.rules.verbatim import verbatim_subset

REASON: Final = "a foreign summary drops a mandatory fact, or says what nobody did"


@watched("foreign_summaries")
def list_foreign(env: Environment, view: str) -> list[ForeignSummary]:
    """Return the summaries that other tools wrote into imported transcripts, in log order; erased ones are left out.

    Raises:
        InvalidInputError: the view is a narrow one; such a summary speaks of what it may not read (I21).
    """
    with env.read() as tx:
        _wide(env, tx, view)
        return [summary for summary in tx.summaries.foreign() if not summary.erased]


@watched("carried")
def read_carried(env: Environment, view: str, budget: int, beside: str) -> Carried:
    """Return what a reader must have beside a summary that is not ours, as of now.

    Facts and open calls are never cut; the ledger takes what they leave of the budget. `beside` is what the reader has
    anyhow: references that stand there need no place.

    Raises:
        InvalidInputError: a budget that can't be.
        CorruptRecordError: an event, or the register, is not what was written.
    """
    check_budget(budget)
    with env.read() as tx:
        reader, revision = find_view(tx, view, str(env.scope)), tx.log.head().revision
        facts = anchors_at(env, tx, reader, revision, budget)
        open_facts = [fact for fact in tx.register.open_calls() if reader.reads(fact.audience)]
        calls = [to_source(read_one(tx, fact.source_seq, env.scope.workflow), env.counter) for fact in open_facts]
        tally, texts, _ = _read(env, tx, reader, revision, 0)
        older = render_older_calls(facts.older_calls, max(0, budget - facts.tokens), env.counter.count)
        room = budget - facts.tokens - env.part_tokens(older) - env.counter.count(PART_JOINT)
        standing = verbatim_subset(texts.values(), "\n".join((beside, facts.text, older)))
        _, ledger = select(
            tally.best([texts]),
            standing={number for number, text in texts.items() if text in standing},
            budget_tokens=room,
            count=env.counter.count,
        )
        ledger_text = "\n".join(text for text in (older, ledger) if text)
        return Carried(
            revision=revision,
            facts=facts.anchors,
            facts_text=facts.text,
            open_calls=open_calls_of(open_facts, calls),
            ledger_text=ledger_text,
            tokens=facts.tokens + env.part_tokens(ledger_text),
            token_counter=env.counter.name,
        )


@watched("judge_foreign")
def judge_foreign(env: Environment, view: str, text: str, through: int | None, by: str) -> ForeignJudgement:
    """Judge a summary that another tool made of the log through an event, and open a case where it may do harm.

    The case is opened once for each event through which a summary speaks; one that was answered is not asked again.

    Raises:
        InvalidInputError: no text, a text longer than DRAFT_BYTES_MAX, an event that is not there, or the view
            is a narrow one; nothing was written.
        CorruptRecordError: an event, or the register, is not what was written.
    """
    if not isinstance(text, str) or len(text.encode("utf-8", "surrogatepass")) > DRAFT_BYTES_MAX:
        raise InvalidInputError(f"a summary is a text of at most {DRAFT_BYTES_MAX:,} bytes; nothing was written")
    with env.read() as tx:
        reader, revision = _wide(env, tx, view), tx.log.head().revision
        last = revision if through is None else through
        check_whole("through", last)
        if not 0 <= last <= revision:
            raise InvalidInputError(f"through is {last}; the log holds events 1 to {revision}; nothing was written")
        judgement = _judged(env, tx, reader, text, last)
    if not judgement.reasons:
        return judgement
    with env.write() as tx:
        return replace(judgement, case_id=_case(env, tx, view, judgement, by).case_id)


def _wide(env: Environment, tx: Transaction, view: str) -> ViewHead:
    """Return a view that reads everything.

    Raises:
        InvalidInputError: it is a narrow one.
    """
    reader = find_view(tx, view, str(env.scope))
    if reader.narrow:
        raise InvalidInputError(
            f"view {view!r} is narrow: a summary of another tool speaks of what it may not read",
            hint="Ask through the view `main`, which reads everything.",
        )
    return reader


def _judged(env: Environment, tx: Transaction, reader: ViewHead, text: str, last: int) -> ForeignJudgement:
    tally, texts, events = _read(env, tx, reader, last, FOREIGN_SOURCE_TOKENS)
    anchors = anchors_at(env, tx, reader, last, CONTEXT_BUDGET_TOKENS).anchors
    facts = fates(anchors, text)
    known = {ref for ref, ref_id in tx.refs.find(list(env.references.of_text(text))).items() if ref_id in tally}
    verdict = validate(
        Draft(text=text, finish="stop"),
        budget_tokens=0,
        tokens=0,
        events=events,
        prior=(),
        unknown_refs=invented_refs(text, known, [event.text for event in events], env.references),
        facts=anchors,
    )
    violations = told(verdict.violations)
    standing = verbatim_subset(texts.values(), text)
    dropped = [
        DroppedReference(ref=ref, last_seq=tally.last_seq(ref_id))
        for ref_id, ref in texts.items()
        if ref not in standing
    ]
    return ForeignJudgement(
        through_seq=last,
        read_from=events[0].seq if events else last + 1,
        facts=tuple(facts),
        violations=violations,
        refs_seen=sum(1 for _ in tally),
        dropped=tuple(sorted(dropped, key=lambda one: (-one.last_seq, one.ref))),
        reasons=reasons(facts, violations),
    )


def _read(
    env: Environment, tx: Transaction, reader: ViewHead, through: int, source_tokens: int
) -> tuple[Tally, dict[int, str], Sequence[SourceEvent]]:
    """Return what references were sighted, their texts, and the newest events, of so many tokens at most."""
    tally = Tally()
    sources: deque[SourceEvent] = deque()
    held = 0
    for event in visible(reader, read_live(tx, 1, through, env.scope.workflow)):
        tally.see(event.seq, event.kind, decode_sightings(event.sightings))
        if source_tokens:
            sources.append(to_source(event, env.counter))
            held += sources[-1].tokens
        while held > source_tokens:
            held -= sources.popleft().tokens
    texts: dict[int, str] = {}
    numbers = iter(tally)
    while page := list(islice(numbers, REFS_PAGE)):
        texts |= tx.refs.texts(page)
    return tally, texts, tuple(sources)


def _case(env: Environment, tx: Transaction, view: str, judgement: ForeignJudgement, by: str) -> Case:
    """Return the case of a summary: the open one, the one that was answered, or a new one."""
    subject = f"through event {judgement.through_seq}"
    for answered in tx.cases.of_kind(CaseKind.FOREIGN_SUMMARY, CaseState.ANSWERED):
        if (answered.view, answered.subject) == (view, subject):
            return answered
    return open_case(
        env,
        tx,
        CaseKind.FOREIGN_SUMMARY,
        view=find_view(tx, view, str(env.scope)),
        reason=REASON,
        subject=subject,
        detail={
            "by": by,
            "reasons": [reason[:NAME_CHARS_MAX] for reason in judgement.reasons[:FOREIGN_REASONS_MAX]],
            "dropped": len(judgement.dropped),
        },
    )
