"""The steps that a workflow takes: each is one transaction of the store.

A search makes them up, and a trace of a real store is read as them; `rules.apply` is what both ask.
"""

from __future__ import annotations

from typing import NamedTuple

from strandline.testing.protocol.memory import Plan


class Append(NamedTuple):
    """Add events through a seq."""

    through: int
    is_call: bool = False  # the last one asks for a tool
    answers: int = 0  # the call whose result the last one is


class Claim(NamedTuple):
    """Take the lease of a view for a plan, under a new fencing token."""

    plan: Plan
    fence: int = 0  # 0: the next one. A higher one says that claims which left nothing came between
    leases: bool = True  # whether the lease runs from now on; of a trace it is not known


class Store(NamedTuple):
    """Store what an attempt drafted; what is half a draft does not pass validation."""

    view: int
    number: int
    fence: int
    complete: bool = True
    summary: int = 0  # its number; 0: the next one


class Activate(NamedTuple):
    """Move a pointer to what an attempt stored."""

    view: int
    number: int
    fence: int


class GiveBack(NamedTuple):
    """Give the lease of a refused attempt back."""

    view: int
    number: int
    fence: int


class Expire(NamedTuple):
    """The clock passes the end of a lease; its holder may still be at work."""

    view: int


class Keep(NamedTuple):
    """Keep a checkpoint of a state that was made from a generation."""

    name: int
    view: int
    generation: int
    revision: int  # of the basis
    read_at: int  # lineage_seq that was the newest when the context was read; -1: not known
    free: bool = False


class KeepElsewhere(NamedTuple):
    """Another saver keeps a state, under the lineage_seq that came next when its turn began: nobody asks the store."""

    name: int
    view: int
    generation: int
    past: int
    stamp: int


class Recover(NamedTuple):
    """Fence what is in flight, choose by the gate, check the need, record."""

    name: int
    view: int
    need: int = 0  # the event whose reference the next turn needs; 0: none


class Fence(NamedTuple):
    """An entry that says that a lease which ran was taken away."""

    view: int
    fence: int


class Revert(NamedTuple):
    """Go back to the content of a generation."""

    view: int
    generation: int


class Rewind(NamedTuple):
    """Abandon the events behind one; with `checkpoint`, go back to that."""

    to: int
    checkpoint: int = 0
    restated: int = 0  # events stated again on the new branch
    targets: tuple[int, ...] = ()  # the summaries that a store says it went back to, by view


class Replace(NamedTuple):
    """An erasure moves a pointer to what was prepared for it; the first of a transaction fences every view."""

    view: int
    summary: int
    watermark: int
    base: int
    is_first: bool


class Define(NamedTuple):
    """A view comes to be, or begins anew with other audiences."""

    view: int
    generation: int


class TakeOver(NamedTuple):
    """A fork's view begins with a copy of a summary of its parent."""

    view: int
    summary: int
    watermark: int


class Report(NamedTuple):
    """Open a case that blocks a summary."""

    case: int
    view: int
    summary: int


class Answer(NamedTuple):
    """Answer a case. `pins`: the reference that it misses is pinned by a new event."""

    case: int
    pins: bool = False
    passes_over: int = 0  # a checkpoint


class Note(NamedTuple):
    """An entry that changes nothing which the model knows."""


Step = (
    Append
    | Claim
    | Store
    | Activate
    | GiveBack
    | Expire
    | Keep
    | KeepElsewhere
    | Recover
    | Fence
    | Revert
    | Rewind
    | Replace
    | Define
    | TakeOver
    | Report
    | Answer
    | Note
)
