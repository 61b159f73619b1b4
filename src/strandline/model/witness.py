"""A witness: what a store's heads were, kept outside of it (ADR 0071)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

WITNESS_FORMAT = "strandline-witness-1"


class WitnessFinding(enum.StrEnum):
    """What became of a workflow that was witnessed and is not continued."""

    MISSING = "missing"  # no such workflow is there
    REPLACED = "replaced"  # another store, or another workflow, stands in its place
    FORKED = "forked"  # it went on from an earlier state than the witnessed one
    ROLLED_BACK = "rolled_back"  # it stands at an earlier state


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessedHead:
    """How far one workflow was. Chain values are hex digits; each speaks for everything before it (I4, I13)."""

    tenant: str
    workflow: str
    revision: int
    first: str  # chain value of the first event; "": there was none
    chain: str  # of the last event; "": there was none
    lineage_seq: int
    lineage_chain: str  # of the last entry; "": there was none
    generations: Mapping[str, int]  # by view
    counters: Mapping[str, int]  # of what stands in neither log nor lineage; none of them ever becomes less

    @property
    def name(self) -> str:
        """The workflow, as errors name it."""
        return f"{self.tenant}/{self.workflow}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """What a store's heads were at one time. `document` is all of it as one line of JSON: that is what is kept."""

    document: str
    tenant: str | None  # of whom it is; None: of the whole store
    store: str  # which store, as a digest that says nothing else
    taken_us: int
    heads: tuple[WitnessedHead, ...]
    digest: str  # over tenant, store and heads: the same for as long as nothing was written
    signature: str | None = None  # HMAC-SHA256 over everything else


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadNow:
    """What stands in a workflow's place when a witness is checked. Chain values are those at the witnessed numbers."""

    revision: int
    first: str
    chain: str | None  # None: the log does not reach so far
    lineage_seq: int
    lineage_chain: str | None
    generations: Mapping[str, int]
    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotContinued:
    """A workflow that is not what was witnessed, nor a continuation of it."""

    tenant: str
    workflow: str
    finding: WitnessFinding
    witnessed_revision: int
    witnessed_lineage_seq: int
    revision: int | None  # what is there now; None: nothing
    lineage_seq: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessReport:
    """What a check against witnesses proved: every witnessed head is still there, as it was or with more behind it."""

    witnesses: int
    workflows: int  # that were witnessed
    continued: int  # of these: have more events or entries than they had
    unwitnessed: int  # workflows that are there, and of which no witness speaks
    signed: bool  # whether every signature was checked
