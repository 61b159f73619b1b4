"""Read a context: summary, anchors, ledger, tail, in one snapshot, within the budget (C18, C19, I7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from strandline.codec import encode_text, leaf_text
from strandline.engine.environment import PART_JOINT, Environment, part_tokens
from strandline.engine.reading import check_sighted, find_view, read_one, read_view
from strandline.errors import InvalidInputError, LastKnown, SummaryReconciliationError
from strandline.limits import CONTEXT_BUDGET_TOKENS, NEEDS_MAX
from strandline.model.context import ContextPart, ContextView, Omission, PartKind, Rung
from strandline.model.event import Basis
from strandline.model.recovery import ReconciliationReason
from strandline.model.register import OpenCall
from strandline.ports import TokenCounter, Transaction
from strandline.rules.fallback import fit
from strandline.rules.planning import check_budget
from strandline.rules.recovery import missing_dependencies
from strandline.rules.rendering import Message, plain_text, to_anthropic, to_openai

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
    open_calls: tuple[OpenCall, ...] = ()

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
        """What a needed reference may stand in: the text, and the values of payloads without JSON's escapes."""
        payloads = (leaf_text(part.event.payload) for part in self.parts if part.event is not None)
        return PART_JOINT.join((self.text, *payloads))

    def messages(self, provider: str) -> list[Message]:
        """Return the context as messages for a provider, "openai" or "anthropic".

        Raises:
            InvalidInputError: another provider.
        """
        if provider not in _RENDERERS:
            raise InvalidInputError(f"messages for {provider!r}; there are {', '.join(sorted(_RENDERERS))}")
        return _RENDERERS[provider](self.parts)


def read_context(env: Environment, view: str, budget: int | None, needs: Sequence[str] = ()) -> Context:
    """Read the context of a view.

    Args:
        env: ports and workflow.
        view: its name.
        budget: tokens; None: the view's own, or CONTEXT_BUDGET_TOKENS.
        needs: references that must stand verbatim in it.

    Raises:
        ContextOverflowError: what can't be left out exceeds the budget.
        SummaryReconciliationError: a need does not stand verbatim in it.
        CorruptRecordError: something that was read is not what was written.
    """
    check_needs(needs)
    with env.store.read(env.scope) as tx:
        snapshot = read_view(env, tx, view)
        stored = tx.views.get(view)
        own = stored.budget if stored is not None else None
        context = assemble_context(snapshot, env.counter, check_budget(first_set(budget, own)))
        missing = missing_dependencies(needs, context.dependency_text) if needs else ()
        if missing:
            raise _unmet(context, missing, last_known(tx, missing[0], snapshot, env.scope.workflow))
    env.emit("context", {"scope": str(env.scope), "tokens": context.tokens, "rung": context.rung.value})
    return context


def read_basis(env: Environment, view: str) -> Basis:
    """Return the present basis of a view, without reading what it holds."""
    with env.store.read(env.scope) as tx:
        head = find_view(tx, view, str(env.scope))
        return Basis(view=view, generation=head.generation, revision=tx.log.head().revision)


def _unmet(context: Context, missing: tuple[str, ...], known: LastKnown | None) -> SummaryReconciliationError:
    hint = None
    if known is not None and any(part.from_seq <= known.seq <= part.through_seq for part in context.omitted):
        hint = f"Event {known.seq} holds it, but the budget of {context.budget} left it out: raise it, or compact."
    return SummaryReconciliationError(
        f"generation {context.generation} of view {context.view!r} through event {context.revision} does not hold "
        f"{', '.join(map(repr, missing))} verbatim",
        summary_generation=context.generation,
        checkpoint_turn=None,
        reason=ReconciliationReason.DEPENDENCY_NOT_VERBATIM,
        missing_refs=missing,
        last_known=known,
        hint=hint,
    )


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


def last_known(tx: Transaction, ref: str, snapshot: ContextView, workflow: str) -> LastKnown | None:
    """Return where a reference was last seen, or None when no event holds it (I11)."""
    ref_id = tx.refs.find([ref]).get(ref)
    if ref_id is None:
        return None
    for seq, _ in tx.refs.sightings(ref_id, snapshot.revision, 1):
        event = read_one(tx, seq, workflow)
        check_sighted(event, ref_id, ref)
        summary_no = snapshot.summary.summary_no if snapshot.summary else 0
        dropped_by = tx.summaries.dropped_by(summary_no, [ref_id]) if summary_no else {}
        return LastKnown(seq=seq, generation_dropped=dropped_by.get(ref_id), event_kind=event.kind.value)
    return None


def context_parts(snapshot: ContextView, counter: TokenCounter) -> list[ContextPart]:
    """Return all parts of a snapshot in their order: the stable prefix first."""
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
    parts += (
        ContextPart(
            kind=PartKind.EVENT,
            from_seq=event.seq,
            through_seq=event.seq,
            tokens=event.tokens,
            text=plain_text(event),
            event=event,
        )
        for event in snapshot.tail
    )
    return parts


def assemble_context(snapshot: ContextView, counter: TokenCounter, budget: int) -> Context:
    """Fit a snapshot to the budget."""
    fitted = fit(context_parts(snapshot, counter), budget)
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
        open_calls=snapshot.open_calls,
    )
