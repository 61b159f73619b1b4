"""What a store says of itself: counts and ages out of its rows, so that a restart loses none (C27)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

MICROSECONDS: Final = 1_000_000
EVERYWHERE: Final = ""  # the label of a figure that has none

FigureRow = tuple[str, str, str, int]  # tenant, figure, label, number: what a store's statement returns


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of one tenant. Those by a word leave out words that are not met; ages are in seconds, of the oldest.

    What only grows: events, attempts_started, retries, failures, lineage, cases_opened, source_tokens, segment_tokens.
    """

    tenant: str
    workflows: int = 0
    events: int = 0  # in the logs, also those that a rewind abandoned
    candidates: int = 0  # jobs that were begun
    attempts: Mapping[str, int] = field(default_factory=dict)  # by state
    failures: Mapping[str, int] = field(default_factory=dict)  # attempts that failed, by class (C14)
    retries: int = 0  # attempts that were not the first of their candidate
    stale: int = 0  # attempts that were fenced, or validated and then refused
    running_age_s: float = 0.0
    leases: Mapping[str, int] = field(default_factory=dict)  # live, expired
    due: Mapping[str, int] = field(default_factory=dict)  # compactions asked for: due, later, running
    due_age_s: float = 0.0  # of the one that has been due for the longest time
    lineage: Mapping[str, int] = field(default_factory=dict)  # entries by kind, but for checkpoints
    cases_opened: Mapping[str, int] = field(default_factory=dict)  # by kind
    cases_open: Mapping[str, int] = field(default_factory=dict)  # by kind
    cases_age_s: Mapping[str, float] = field(default_factory=dict)  # by kind
    summaries: int = 0  # that are active
    summary_tokens: int = 0  # of those together
    depth_max: int = 0
    manifest_refs: int = 0  # references in the manifests of the active summaries
    manifest_refs_max: int = 0
    source_tokens: int = 0  # of the events that segments were made from
    segment_tokens: int = 0  # of those segments

    @property
    def attempts_started(self) -> int:
        """All attempts that were begun."""
        return sum(self.attempts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFigures:
    """The figures of a store, or of one tenant of it, as one snapshot holds them."""

    at_us: int
    tenants: tuple[Figures, ...]

    def of(self, tenant: str) -> Figures:
        """Return a tenant's figures; those of one that has no rows are 0."""
        return next((figures for figures in self.tenants if figures.tenant == tenant), Figures(tenant=tenant))


def fold_figures(rows: Iterable[FigureRow], now_us: int) -> StoreFigures:
    """Return the figures that a store's rows say."""
    said: defaultdict[str, defaultdict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for tenant, figure, label, number in rows:
        said[tenant][figure][label] = number
    return StoreFigures(at_us=now_us, tenants=tuple(_figures(tenant, said[tenant], now_us) for tenant in sorted(said)))


def _figures(tenant: str, said: defaultdict[str, dict[str, int]], now_us: int) -> Figures:
    def one(figure: str) -> int:
        return said[figure].get(EVERYWHERE, 0)

    def age_s(since_us: int) -> float:
        return max(0, now_us - since_us) / MICROSECONDS

    def oldest_s(figure: str) -> float:
        return max(map(age_s, said[figure].values()), default=0.0)

    return Figures(
        tenant=tenant,
        workflows=one("workflows"),
        events=one("events"),
        candidates=one("candidates"),
        attempts=said["attempts"],
        failures=said["failures"],
        retries=one("retries"),
        stale=one("stale"),
        running_age_s=oldest_s("running_since"),
        leases=said["leases"],
        due=said["due"],
        due_age_s=oldest_s("due_since"),
        lineage=said["lineage"],
        cases_opened=said["cases_opened"],
        cases_open=said["cases_open"],
        cases_age_s={kind: age_s(since_us) for kind, since_us in said["cases_since"].items()},
        summaries=one("summaries"),
        summary_tokens=one("summary_tokens"),
        depth_max=one("depth_max"),
        manifest_refs=one("manifest_refs"),
        manifest_refs_max=one("manifest_refs_max"),
        source_tokens=one("source_tokens"),
        segment_tokens=one("segment_tokens"),
    )
