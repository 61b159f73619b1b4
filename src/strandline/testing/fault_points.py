"""The points at which a test may let something go wrong: before and after the commit of each kind of write.

A transaction is named by what it writes, not by the code that wrote it: so the names stay when the engine is rewritten,
and hold for whatever calls a store.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Sequence
from typing import Final, NamedTuple

from strandline.errors import InvalidInputError
from strandline.model.candidate import Attempt, AttemptState
from strandline.model.effect import Effect, EffectState
from strandline.model.lineage import LineageEntry, LineageKind

BEGIN: Final = "begin"  # nothing was read or written yet
BEFORE_COMMIT: Final = "before_commit"  # all is written, and nothing of it is there for anybody else
AFTER_COMMIT: Final = "after_commit"  # it is there for everybody, and the caller does not know yet

_KINDS: Final = {
    LineageKind.COMPACTION: "activate",
    LineageKind.CHECKPOINT: "checkpoint",
    LineageKind.RESTORE: "restore",
    LineageKind.REPLAY: "replay",
    LineageKind.FENCE: "fence",
    LineageKind.REVERT: "revert",
    LineageKind.REWIND: "rewind",
    LineageKind.FORK: "fork",
    LineageKind.DIVERGENCE: "answer_case",
    LineageKind.ANSWER: "answer_case",
    LineageKind.ERASURE: "erase",
    LineageKind.DEFINE: "define_view",
    LineageKind.HOLD: "hold",
    LineageKind.RELEASE: "hold",
    LineageKind.RETENTION: "retention_rule",
}

WRITES: Final = {
    "activate": "A summary becomes the active one: pointer, generation, lineage, manifest.",
    "checkpoint": "A checkpoint is recorded.",
    "restore": "A recovery restores a checkpoint.",
    "replay": "A recovery goes on from summary and tail.",
    "fence": "What is in flight is fenced, and no more.",
    "revert": "A view goes back to an earlier summary.",
    "rewind": "A branch of the log is abandoned.",
    "fork": "A workflow is made from another one.",
    "answer_case": "A case is answered.",
    "erase": "Events are erased.",
    "define_view": "A view comes to be, or gets other audiences.",
    "hold": "A legal hold is set or lifted.",
    "retention_rule": "A rule for what is kept is set.",
    "intend_effect": "The intent of an effect is recorded; it has not run.",
    "settle_effect": "The outcome of an effect is recorded; it has run.",
    "decide": "A permit is granted, refused or consumed, without an effect.",
    "open_case": "A case is opened.",
    "claim": "A compaction takes its lease: candidate and attempt.",
    "store_draft": "A validated draft is stored, and is not active yet.",
    "end_attempt": "An attempt ends without a validated draft.",
    "save_state": "A framework's state is saved.",
    "append": "Events are appended, and nothing else of this list.",
    "request": "A compaction is asked for or settled in the queue.",
    "other": "Anything else: a lease that is held on to, an index, a reader.",
}
"""Each kind of write, and what it is."""

WATCHED: Final = {
    "lineage": frozenset({"add"}),
    "effects": frozenset({"add", "settle"}),
    "permits": frozenset({"add", "settle", "use"}),
    "cases": frozenset({"add", "settle"}),
    "jobs": frozenset({"add_candidate", "add_attempt", "settle_attempt"}),
    "states": frozenset({"put", "put_line"}),
    "log": frozenset({"insert"}),
    "due": frozenset({"add", "settle"}),
}
"""By facet the methods that tell what a transaction is."""

_BY_FACET: Final = (  # the first that was written to says what it is
    ("permits", "decide"),
    ("cases", "open_case"),
    ("states", "save_state"),
    ("log", "append"),
    ("due", "request"),
)


class Write(NamedTuple):
    """One call of a facet: which, its method, and what it was given first."""

    facet: str
    method: str
    row: object


class Moment(enum.StrEnum):
    """What does not belong to a kind of write."""

    TRANSACTION = "transaction.begin"
    SNAPSHOT = "snapshot.begin"


def points() -> list[str]:
    """Return the names of all points. They are stable: a release that takes one away says so in the changelog."""
    written = [f"{write}.{moment}" for write in WRITES for moment in (BEFORE_COMMIT, AFTER_COMMIT)]
    return [*map(str, Moment), *written]


def check_point(name: object) -> str:
    """Return the name of a point.

    Raises:
        InvalidInputError: there is none of that name; it says which are near.
    """
    known = points()
    if isinstance(name, str) and name in known:
        return name
    near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.4)
    raise InvalidInputError(
        f"there is no fault point {name!r}" + (f"; near it are {', '.join(near)}" if near else ""),
        hint="strandline.testing.points() lists them all.",
    )


def kind_of(writes: Sequence[Write]) -> str:
    """Return what a transaction is, by what it wrote: a name out of WRITES."""
    entries = [write.row for write in writes if isinstance(write.row, LineageEntry)]
    if entries:  # a recovery fences first: what it does then counts
        return _KINDS[max(entries, key=lambda entry: (entry.kind is not LineageKind.FENCE, entry.lineage_seq)).kind]
    effects = [write.row for write in writes if isinstance(write.row, Effect)]
    if effects:
        return "intend_effect" if effects[-1].state is EffectState.INTENDED else "settle_effect"
    facets = {write.facet for write in writes}
    attempts = [write.row for write in writes if isinstance(write.row, Attempt)]
    if attempts and attempts[-1].state is AttemptState.VALIDATED:
        return "store_draft"
    if attempts or "jobs" in facets:
        settled = any(write.method == "settle_attempt" for write in writes)
        return "end_attempt" if settled and "add_attempt" not in {write.method for write in writes} else "claim"
    return next((name for facet, name in _BY_FACET if facet in facets), "other")
