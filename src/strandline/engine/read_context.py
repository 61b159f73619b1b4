"""Read a context: summary, quotes of what is needed, tail, in one snapshot, within the budget (C18, C19, I7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from strandline.codec import copied, encode_text
from strandline.engine.cases import Question, ask, case_on, find_case
from strandline.engine.environment import PART_JOINT, Environment, part_tokens
from strandline.engine.kept_tail import KeptTail
from strandline.engine.reading import find_view, read_view
from strandline.engine.retrieve import Outgrown, Retrieval, dependency_text, divergences
from strandline.engine.watching import watched
from strandline.errors import ContextOverflowError, InvalidInputError, SummaryReconciliationError
from strandline.limits import CONTEXT_BUDGET_TOKENS, NEEDS_MAX
from strandline.model.case import CaseKind
from strandline.model.context import ContextPart, ContextView, NeedCounts, Omission, PartKind, Rung
from strandline.model.event import Basis, SourceEvent
from strandline.model.register import OpenCall
from strandline.ports import TokenCounter, Transaction
from strandline.ports.occurrences import ContextTold
from strandline.rules.fallback import Fitted, add_quotes, fit
from strandline.rules.planning import check_budget
from strandline.rules.recovery import missing_dependencies
from strandline.rules.rendering import Message, plain_text, to_anthropic, to_openai
from strandline.rules.retrieval import Source, rests, widen

BLOCKED: Final = "blocked"  # what a hook is told as the rung, where there is no context
_RENDERERS: dict[str, Callable[[Sequence[ContextPart]], list[Message]]] = {
    "openai": to_openai,
    "anthropic": to_anthropic,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A working context: the output of exactly one generation plus its tail (I13).

    `tokens` never exceeds `budget`; what did not fit is in `omitted`.
    """

    view: str
    generation: int
    revision: int
    watermark: int
    budget: int
    tokens: int
    token_counter: str
    rung: Rung
    parts: tuple[ContextPart, ...]
    omitted: tuple[Omission, ...]
    needs: NeedCounts
    open_calls: tuple[OpenCall, ...] = ()
    divergences: Mapping[str, str] = field(default_factory=dict)  # needs that another reference meets (I17)
    case_id: str | None = None  # the open case under which its summary stands (I11)

    @property
    def basis(self) -> Basis:
        """What a state made from this context is made from; give it to `checkpoint`."""
        return Basis(view=self.view, generation=self.generation, revision=self.revision)

    @property
    def text(self) -> str:
        """All parts as one text."""
        return PART_JOINT.join(part.text for part in self.parts)

    @property
    def dependency_text(self) -> str:
        """What a needed reference may stand in, for a recovery: summary and tail, and the values of payloads without
        JSON's escapes; not what was retrieved (I16).
        """
        return dependency_text(self.parts)

    @property
    def tokens_by_kind(self) -> dict[PartKind, int]:
        """The tokens of the parts of each kind."""
        kinds = dict.fromkeys(part.kind for part in self.parts)
        return {kind: sum(part.tokens for part in self.parts if part.kind is kind) for kind in kinds}

    def messages(self, provider: str) -> list[Message]:
        """Return the context as messages for a provider, "openai" or "anthropic".

        Raises:
            InvalidInputError: another provider.
        """
        if provider not in _RENDERERS:
            raise InvalidInputError(f"messages for {provider!r}; there are {', '.join(sorted(_RENDERERS))}")
        return _RENDERERS[provider](self.parts)


@watched("context")
def read_context(
    env: Environment, view: str, budget: int | None, needs: Sequence[str] = (), kept: KeptTail | None = None
) -> Context:
    """Read the context of a view.

    A need that stands verbatim in summary or tail costs nothing. For another one the newest event that holds it is
    quoted out of the log (C19).

    Args:
        env: ports and workflow.
        view: its name.
        budget: tokens; None: the view's own, or CONTEXT_BUDGET_TOKENS.
        needs: references that must stand verbatim in it; with any of them all is read.
        kept: of the view, what was read before.

    Raises:
        ContextOverflowError: what can't be left out, or what is needed, exceeds the budget or the limits of retrieval.
        SummaryReconciliationError: no event that the view may read holds a need.
        CorruptRecordError: something that was read is not what was written.
    """
    check_needs(needs)
    try:
        with env.read() as tx:
            stored = tx.views.get(view)
            own = stored.budget if stored is not None else None
            tokens = check_budget(first_set(budget, own))
            reader = find_view(tx, view, str(env.scope))
            instead = divergences(tx, needs, reader) if needs else {}
            wanted = [instead.get(need, need) for need in needs]
            outgrown = Outgrown(wanted)
            if needs:
                kept = None
            snapshot = read_view(env, tx, view, tokens, outgrown.take if needs else None, kept)
            parts = context_parts(snapshot, env.counter, kept)
            context = _with_needs(env, tx, snapshot, outgrown, tokens, wanted, parts)
            context = replace(context, divergences=instead, case_id=case_on(tx, reader))
    except (ContextOverflowError, SummaryReconciliationError) as error:
        if isinstance(error, ContextOverflowError) and error.needs:
            error.case_id = _block(env, view)
        env.emit("context", ContextTold(view=view, rung=BLOCKED, error=type(error).__name__, case_id=error.case_id))
        raise
    if env.hooks:
        env.emit("context", _told(context))
    return context


def _told(context: Context) -> ContextTold:
    return ContextTold(
        view=context.view,
        generation=context.generation,
        revision=context.revision,
        budget=context.budget,
        tokens=context.tokens,
        tokens_by_kind={kind.value: tokens for kind, tokens in context.tokens_by_kind.items()},
        tokens_omitted=sum(left.tokens for left in context.omitted),
        rung=context.rung.value,
        needs=asdict(context.needs),
        case_id=context.case_id,
    )


def _block(env: Environment, view: str) -> str:
    """Open the case of a context whose needs can't be retrieved within the limits, or find it; return its id (C19)."""
    with env.read() as tx:
        there = find_case(env, tx, _blocked(env, tx, view))
    if there is None:
        with env.write() as tx:
            there = ask(env, tx, _blocked(env, tx, view))
    return there.case_id


def _blocked(env: Environment, tx: Transaction, view: str) -> Question:
    head = find_view(tx, view, str(env.scope))
    return Question(kind=CaseKind.BLOCKED_CONTEXT, view=head, reason="what is needed exceeds the limits of retrieval")


def _with_needs(
    env: Environment,
    tx: Transaction,
    snapshot: ContextView,
    outgrown: Outgrown,
    budget: int,
    needs: Sequence[str],
    parts: Sequence[ContextPart],
) -> Context:
    """Fit a snapshot to the budget together with quotes of what is needed and does not stand in it.

    Quotes may take the place of the ledger and of the tail's older part, where other needs may stand. So it goes round,
    and each round looks up another one of them. The quotes begin as short as they can be; in the end they take what the
    tail leaves over.
    """
    retrieval = Retrieval(env, tx, snapshot, outgrown, parts, budget)
    if needs:
        retrieval.quotes(needs)  # where nothing fits, the error tells of the needs too
    fitted = fit(parts, budget)
    taken = 0
    while missing := _missing(needs, fitted.parts, retrieval.sources):
        retrieval.look_up(missing)
        taken = max(taken, sum(quoted.tokens for quoted in retrieval.quotes(needs)))  # the tail never grows again
        fitted = fit(parts, budget - taken)
    sources = retrieval.sources
    free = min(budget - fitted.tokens, retrieval.share_tokens) - taken
    quotes = widen(sources, free, env.part_tokens)
    in_summary, in_tail = _standing(needs, fitted.parts)
    counts = NeedCounts(
        in_summary=in_summary,
        in_tail=in_tail,
        retrieved=len(dict.fromkeys(needs)) - in_summary - in_tail,
        lookups=retrieval.lookups,
        events=len(sources),
    )
    with_quotes = add_quotes(fitted, quotes, rests(sources, quotes, env.part_tokens))
    return _context(snapshot, env.counter, budget, with_quotes, counts)


def _missing(needs: Sequence[str], parts: Sequence[ContextPart], sources: Sequence[Source]) -> tuple[str, ...]:
    """Return the needs that stand in no part, and for which no event is quoted."""
    quoted = {ref for source in sources for ref in source.refs}
    return missing_dependencies((need for need in needs if need not in quoted), dependency_text(parts)) if needs else ()


def _standing(needs: Sequence[str], parts: Sequence[ContextPart]) -> tuple[int, int]:
    """Return how many needs stand in the summary, and how many others in the tail."""
    if not needs:
        return 0, 0
    summary = [part for part in parts if part.kind is not PartKind.EVENT]
    beside = missing_dependencies(needs, dependency_text(summary))
    return len(dict.fromkeys(needs)) - len(beside), len(beside) - len(
        missing_dependencies(beside, dependency_text(parts))
    )


@watched("basis")
def read_basis(env: Environment, view: str) -> Basis:
    """Return the present basis of a view, without reading what it holds."""
    with env.read() as tx:
        head = find_view(tx, view, str(env.scope))
        return Basis(view=view, generation=head.generation, revision=tx.log.head().revision)


def check_needs(needs: Sequence[str]) -> None:
    """Refuse needs that can't be looked for."""
    if isinstance(needs, str) or not isinstance(needs, Sequence):
        raise InvalidInputError(f"needs is a {type(needs).__name__}; give a list of references")
    if len(needs) > NEEDS_MAX:
        raise InvalidInputError(f"{len(needs)} needs; at most {NEEDS_MAX} are allowed")
    if any(not isinstance(need, str) or not need for need in needs):
        raise InvalidInputError("a need is a reference: text that is not empty")
    for need in needs:
        encode_text(need, "a need")


def first_set(*budgets: int | None) -> int:
    """Return the first budget that is given, or the default."""
    return next((budget for budget in budgets if budget is not None), CONTEXT_BUDGET_TOKENS)


def context_parts(snapshot: ContextView, counter: TokenCounter, kept: KeptTail | None = None) -> list[ContextPart]:
    """Return all parts of a snapshot in their order: the stable prefix first. `kept` holds those that were made."""
    parts: list[ContextPart] = []
    summary = snapshot.summary
    if summary is not None:
        parts += (
            ContextPart(
                kind=PartKind.SEGMENT,
                from_seq=segment.head.from_seq,
                through_seq=segment.head.through_seq,
                tokens=segment.head.tokens,
                text=segment.text,
            )
            for segment in summary.segments
        )
        for kind, text in ((PartKind.ANCHORS, summary.anchors_text), (PartKind.LEDGER, summary.ledger_text)):
            if text:
                parts.append(
                    ContextPart(
                        kind=kind,
                        from_seq=1,
                        through_seq=summary.watermark,
                        tokens=part_tokens(counter, text),
                        text=text,
                    )
                )
    made = kept.parts if kept is not None else {}
    tail = [_event_part(event, made.get(event.seq)) for event in snapshot.tail]
    if kept is not None:
        kept.parts = {part.from_seq: part for part in tail}
        tail = [_for_reader(part) for part in tail]
    tail += (  # never kept: what comes behind them exceeds the budget
        ContextPart(kind=PartKind.EVENT, from_seq=gap.from_seq, through_seq=gap.through_seq, tokens=gap.tokens, text="")
        for gap in snapshot.gaps
    )
    parts += sorted(tail, key=lambda part: part.from_seq)
    return parts


def _event_part(event: SourceEvent, made: ContextPart | None) -> ContextPart:
    """Return the part of an event: the one that was made, if it was made of just this event."""
    if made is not None and made.event is event:
        return made
    return ContextPart(
        kind=PartKind.EVENT,
        from_seq=event.seq,
        through_seq=event.seq,
        tokens=event.tokens,
        text=plain_text(event),
        event=event,
    )


def _for_reader(part: ContextPart) -> ContextPart:
    """Return a part that is kept as a reader may have it: what he changes in it is his own."""
    event = part.event
    if event is None or not isinstance(event.payload, dict | list):
        return part
    return replace(part, event=event._replace(payload=copied(event.payload)))


def assemble_context(snapshot: ContextView, counter: TokenCounter, budget: int) -> Context:
    """Fit a snapshot to the budget; nothing is retrieved."""
    return _context(snapshot, counter, budget, fit(context_parts(snapshot, counter), budget), NeedCounts())


def _context(snapshot: ContextView, counter: TokenCounter, budget: int, fitted: Fitted, needs: NeedCounts) -> Context:
    return Context(
        view=snapshot.view,
        generation=snapshot.generation,
        revision=snapshot.revision,
        watermark=snapshot.watermark,
        budget=budget,
        tokens=fitted.tokens,
        token_counter=counter.name,
        rung=fitted.rung,
        parts=fitted.parts,
        omitted=fitted.omitted,
        needs=needs,
        open_calls=snapshot.open_calls,
    )
