"""Views: a reader's window onto the log, and the pointer to its active summary."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.limits import LEASE_TTL_S
from strandline.model.ids import EVERYONE


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A view as its readers are told of it."""

    name: str
    audiences: frozenset[str] | None  # beside everyone's; None: it reads everything
    budget: int | None  # tokens of its contexts, where a call names none; None: CONTEXT_BUDGET_TOKENS
    audience_version: int  # how often its audiences were defined, from 1
    generation: int
    watermark: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewHead:
    """A view and its pointer. The pointer moves by compare-and-swap only; `generation` counts its moves (SPEC §2)."""

    view_id: int
    name: str
    audiences: frozenset[str] | None = None  # None: reads everything
    audience_version: int = 1
    budget: int | None = None
    generation: int = 0
    summary_no: int = 0  # 0: the empty summary of generation 0
    watermark: int = 0
    moved_lineage_seq: int = 0  # lineage_seq of the last move of the pointer
    fence: int = 0  # the highest fencing token handed out
    lease_attempt: str | None = None
    lease_until_us: int = 0

    @property
    def narrow(self) -> bool:
        """Whether there may be events that it does not read."""
        return self.audiences is not None

    def reads(self, audience: str) -> bool:
        """Tell whether the view may read an event of this audience (I21)."""
        return self.audiences is None or audience == EVERYONE or audience in self.audiences

    def leased(self, now_us: int) -> bool:
        """Tell whether an attempt holds the view. A lease further ahead than its TTL counts as expired (DESIGN §5)."""
        return self.lease_attempt is not None and now_us < self.lease_until_us <= now_us + int(LEASE_TTL_S * 1_000_000)
