"""Samples: what an occurrence, or the figures of a store, add to which metric. Both sinks take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from strandline import errors
from strandline.model.candidate import FailureClass
from strandline.model.case import CaseKind
from strandline.model.figures import Figures, StoreFigures
from strandline.telemetry import names
from strandline.telemetry.names import Metric

ReadFigures = Callable[[], StoreFigures | Figures]
"""`Strandline.figures`, or `Tenant.figures`: a sink is given the one whose figures it may show."""

REFUSED: Final = frozenset(
    {
        CaseKind.MISSING_DEPENDENCY,
        CaseKind.GENERATION_MISMATCH,
        CaseKind.CORRUPT_SUMMARY,
        CaseKind.CHECKPOINT_DIGEST,
        CaseKind.LINEAGE_REFUSAL,
    }
)
"""The kinds of cases that a recovery opens when it fails closed."""

OTHER_ERROR: Final = "other"
_OUR_ERRORS: Final = frozenset(
    name
    for name, found in vars(errors).items()
    if isinstance(found, type) and issubclass(found, errors.StrandlineError)
)
_RECOVERED: Final = ("restore", "replay")
_RECONCILE: Final = ("SummaryReconciliationError", "CompactionLineageError")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One number for a metric, with the values of its labels, the tenant's first."""

    metric: Metric
    value: float
    labels: tuple[str, ...]


# ---------------------------------------------------------------------------------------------- live


Details = Mapping[str, object]


def _elapsed_s(details: Details) -> object:
    return details.get("elapsed_s")


def _activated(*words: str) -> Callable[[Details], object]:
    """Return what adds up tokens after an activation."""
    return lambda details: _sum(details, words) if details.get("outcome") == "activated" else None


_RULES: Final[tuple[tuple[str, Metric, Callable[[Details], object]], ...]] = (
    ("operation", names.OPERATION_DURATION, _elapsed_s),
    ("compaction", names.COMPACTION_DURATION, _elapsed_s),
    ("compaction", names.TOKENS_BEFORE, _activated("tokens_before")),
    ("compaction", names.TOKENS_AFTER, _activated("summary_tokens", "tail_tokens")),
    ("attempt", names.ATTEMPTS_REFUSED, lambda details: 1 if details.get("state") == "refused" else None),
    ("recovery", names.RECOVERY_DURATION, _elapsed_s),
    ("context", names.CONTEXT_TOKENS, lambda details: details.get("tokens")),
    ("context", names.CONTEXT_BLOCKED, lambda details: 1 if "error" in details else None),
    ("overflow", names.OVERFLOW_ERRORS, lambda details: 1),
    ("incident", names.MISSING_EVENT_INCIDENTS, lambda details: details.get("problems")),
)


def samples_of(name: str, details: Details) -> Iterator[Sample]:
    """Yield what an occurrence adds to the live metrics. A recovery that failed is an operation with an error."""
    for occurrence, metric, value_of in _RULES:
        value = value_of(details) if occurrence == name else None
        if isinstance(value, int | float):
            words = (names.TENANT, *metric.labels)
            yield Sample(metric=metric, value=value, labels=tuple(_label(word, details.get(word)) for word in words))
    if name == "operation" and details.get("operation") == "recover" and details.get("error") is not None:
        outcome = "reconcile" if details["error"] in _RECONCILE else "error"
        yield from samples_of("recovery", {**details, "outcome": outcome})


def _label(word: str, value: object) -> str:
    """Return a label's value, a word of a fixed list: what others' programs raise has names without end."""
    if word == "error" and value is not None and value not in _OUR_ERRORS:
        return OTHER_ERROR
    return "" if value is None else str(value)


def _sum(details: Details, words: Iterable[str]) -> float:
    found = [details.get(word) for word in words]
    return sum(number for number in found if isinstance(number, int | float))


# ---------------------------------------------------------------------------------------------- durable


def samples_of_store(read: ReadFigures) -> list[Sample]:
    """Return what a store says of itself now. One that can't be read is down, and says nothing else."""
    try:
        figures = read()
        tenants = figures.tenants if isinstance(figures, StoreFigures) else (figures,)
        found = [sample for tenant in tenants for sample in _samples_of_tenant(tenant)]
    except Exception:  # noqa: BLE001  what asks is told that the store is down, whatever it is that fails
        return [Sample(metric=names.UP, value=0, labels=())]
    return [Sample(metric=names.UP, value=1, labels=()), *found]


def _samples_of_tenant(figures: Figures) -> Iterator[Sample]:
    for metric, value in (
        (names.WORKFLOWS, figures.workflows),
        (names.EVENTS, figures.events),
        (names.CANDIDATES, figures.candidates),
        (names.ATTEMPTS_STARTED, figures.attempts_started),
        (names.ATTEMPTS_RETRIED, figures.retries),
        (names.ATTEMPTS_STALE, figures.stale),
        (names.RUNNING_AGE, figures.running_age_s),
        (names.DUE_AGE, figures.due_age_s),
        (names.REGRESSIONS, figures.cases_opened.get(CaseKind.REGRESSION, 0)),
        (names.SUMMARIES, figures.summaries),
        (names.SUMMARY_TOKENS, figures.summary_tokens),
        (names.DEPTH, figures.depth_max),
        (names.MANIFEST_REFS, figures.manifest_refs),
        (names.MANIFEST_REFS_MAX, figures.manifest_refs_max),
        (names.SOURCE_TOKENS, figures.source_tokens),
        (names.SEGMENT_TOKENS, figures.segment_tokens),
    ):
        yield Sample(metric=metric, value=value, labels=(figures.tenant,))
    failures = dict.fromkeys(FailureClass, 0) | dict(figures.failures)  # a rate needs the 0 before the first one
    opened = dict.fromkeys(CaseKind, 0) | dict(figures.cases_opened)
    recoveries = {outcome: figures.lineage.get(outcome, 0) for outcome in _RECOVERED}
    recoveries["reconcile"] = sum(figures.cases_opened.get(kind, 0) for kind in REFUSED)
    for metric, by_word in (
        (names.ATTEMPTS_FAILED, failures),
        (names.ATTEMPTS, figures.attempts),
        (names.LEASES, figures.leases),
        (names.DUE, figures.due),
        (names.LINEAGE, figures.lineage),
        (names.RECOVERIES, recoveries),
        (names.CASES_OPENED, opened),
        (names.CASES_OPEN, figures.cases_open),
        (names.CASES_AGE, figures.cases_age_s),
    ):
        for word, number in sorted(by_word.items()):
            yield Sample(metric=metric, value=number, labels=(figures.tenant, word))
