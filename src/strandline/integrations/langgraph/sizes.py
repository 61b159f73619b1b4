"""When a context is compacted, and to what: in our tokens, or in the words of LangChain's `SummarizationMiddleware`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, TypedDict

from strandline import Context, EventKind, InvalidInputError, PartKind
from strandline.integrations.agent_memory import check_tokens
from strandline.limits import (
    CONTEXT_BUDGET_TOKENS,
    CONTEXT_BUDGET_TOKENS_MIN,
    KEEP_SHARE_MAX,
    KEEP_SHARE_MIN,
    TAIL_SHARE,
    TRIGGER_HEADROOM,
)

Size = tuple[str, float]  # ("tokens", 3000), ("messages", 20) or ("fraction", 0.8) of the model's window


class Clause(TypedDict, total=False):
    """Sizes of which all must be reached."""

    tokens: int
    messages: int
    fraction: float


Trigger = Size | Clause | Sequence[Size | Clause]
_KINDS: Final = ("tokens", "messages", "fraction")
_SHOWN: Final = frozenset({EventKind.MESSAGE, EventKind.TOOL_RESULT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The sizes of one compaction, as `AgentMemory` takes them."""

    budget: int
    compact_at: int
    compact_to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What was asked for. With a trigger of LangChain's, any one of the clauses makes a compaction due."""

    budget: int | None
    clauses: tuple[Mapping[str, float], ...]
    keep: Size | None

    def budget_for(self, window: int | None) -> int:
        """Return the tokens of the context that the model is shown: as was said, else the model's window, else a
        part more than a trigger that waits for tokens alone.
        """
        if self.budget is not None:
            return self.budget
        if window is not None and self.clauses:
            return window
        most = max((clause["tokens"] for clause in self.clauses if set(clause) == {"tokens"}), default=0.0)
        return max(ceil(most * TRIGGER_HEADROOM), CONTEXT_BUDGET_TOKENS if not most else CONTEXT_BUDGET_TOKENS_MIN)

    def due(self, context: Context, window: int | None) -> Target | None:
        """Return the sizes of the compaction that is due; None: none is.

        Raises:
            InvalidInputError: a fraction of a window that the model's profile does not tell.
        """
        budget, size = self.budget_for(window), whole_size(context)
        if size < CONTEXT_BUDGET_TOKENS_MIN or not self._is_due(context, size, budget, window):
            return None
        compact_at = max(CONTEXT_BUDGET_TOKENS_MIN, min(size, budget))
        return Target(budget=budget, compact_at=compact_at, compact_to=self._compact_to(context, compact_at, window))

    def _is_due(self, context: Context, size: int, budget: int, window: int | None) -> bool:
        if size >= budget or not self.clauses:  # over the budget something is left out, whatever the trigger waits for
            return size >= budget
        reached = {"tokens": float(size), "messages": float(len(_lines(context)))}
        if any("fraction" in clause for clause in self.clauses):
            reached["fraction"] = size / _known(window)
        return any(all(reached[kind] >= least for kind, least in clause.items()) for clause in self.clauses)

    def _compact_to(self, context: Context, compact_at: int, window: int | None) -> int:
        """Return what a compaction comes down to, so that its tail holds what is to be kept."""
        least, most = (max(CONTEXT_BUDGET_TOKENS_MIN, int(compact_at * share)) for share in _KEEP_SHARES)
        if self.keep is None:
            return most
        kind, number = self.keep
        if kind == "messages":
            lines = _lines(context)
            number = float(sum(lines[-int(number) :])) if number else 0.0
        elif kind == "fraction":
            number *= _known(window)
        return min(max(ceil(number / TAIL_SHARE), least), most)


_KEEP_SHARES: Final = (KEEP_SHARE_MIN, KEEP_SHARE_MAX)


def sizes_of(budget: int | None, trigger: Trigger | None, keep: Size | None) -> Sizes:
    """Return the sizes that arguments ask for.

    Raises:
        InvalidInputError: a size that is none.
    """
    if budget is not None:
        check_tokens("budget", budget)
    if trigger is None:
        clauses: tuple[Mapping[str, float], ...] = ()
    elif isinstance(trigger, Mapping):
        clauses = (_clause(trigger),)
    elif isinstance(trigger, tuple) and trigger and isinstance(trigger[0], str):
        clauses = (dict([_size("trigger", trigger)]),)
    elif isinstance(trigger, Sequence) and not isinstance(trigger, str):
        clauses = tuple(_clause(one) if isinstance(one, Mapping) else dict([_size("trigger", one)]) for one in trigger)
    else:
        raise InvalidInputError(
            f'trigger is a size such as ("tokens", 3000), a dict of sizes or a list, not {trigger!r}'
        )
    return Sizes(budget=budget, clauses=clauses, keep=None if keep is None else _size("keep", keep))


def whole_size(context: Context) -> int:
    """Return the tokens of a context with what did not fit into it."""
    return context.tokens + sum(left.tokens for left in context.omitted)


def _clause(clause: Mapping[str, object]) -> Mapping[str, float]:
    if not clause:
        raise InvalidInputError("an empty clause of a trigger would always be met")
    return dict(_size("trigger", (kind, number)) for kind, number in clause.items())


def _size(name: str, size: object) -> Size:
    kind, number = size if isinstance(size, tuple) and len(size) == 2 else (None, None)
    whole = isinstance(number, int) and not isinstance(number, bool) and number >= (0 if name == "keep" else 1)
    if kind in _KINDS and (whole if kind != "fraction" else isinstance(number, int | float) and 0 < number <= 1):
        return str(kind), float(str(number))
    raise InvalidInputError(
        f'{name} is a size: ("tokens", n), ("messages", n) or ("fraction", 0 to 1), not {size!r}; nothing was compacted'
    )


def _known(window: int | None) -> int:
    if window is None:
        raise InvalidInputError(
            "a fraction of the model's window was asked for, and its profile does not tell the window",
            hint='Give tokens, or the model profile={"max_input_tokens": …}.',
        )
    return window


def _lines(context: Context) -> list[int]:
    """Return the tokens of the messages and results in the tail, in order: what LangChain counts as messages."""
    return [
        part.tokens
        for part in context.parts
        if part.kind is PartKind.EVENT and part.event is not None and part.event.kind in _SHOWN
    ]
