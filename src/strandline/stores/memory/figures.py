"""The figures of a workflow, counted over its tables: the same rows that the SQL statement returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from strandline.limits import LEASE_TTL_S
from strandline.model.candidate import AttemptState
from strandline.model.case import CaseState
from strandline.model.figures import EVERYWHERE, MICROSECONDS
from strandline.model.ids import TENANT_RULES
from strandline.model.lineage import LineageKind, WorkflowHead
from strandline.stores.memory.schema import Tables
from strandline.stores.memory.tables import ONLY, Moment

_OLDEST = {"running_since", "cases_since", "due_since"}
_LARGEST = {"depth_max", "manifest_refs_max"}


def add_up(found: Iterator[tuple[str, str, int]], total: dict[tuple[str, str], int]) -> None:
    """Add the figures of a workflow to those of its tenant."""
    for figure, label, value in found:
        there = total.get((figure, label))
        if there is None:
            total[figure, label] = value
        elif figure in _OLDEST:
            total[figure, label] = min(there, value)
        else:
            total[figure, label] = max(there, value) if figure in _LARGEST else there + value


def count_workflow(name: str, tables: Tables, moment: Moment, now_us: int) -> Iterator[tuple[str, str, int]]:
    """Yield figure, word and number, each once or several times."""
    head = tables.head.get(moment, ONLY) or WorkflowHead()
    yield "workflows", EVERYWHERE, int(name != TENANT_RULES)
    yield "events", EVERYWHERE, head.revision - head.fork_seq
    yield from _attempts(tables, moment)
    yield from _views(tables, moment, now_us)
    for kind, entries in Counter(entry.kind for entry in tables.lineage.all(moment)).items():
        if kind is not LineageKind.CHECKPOINT:
            yield "lineage", kind, entries
    for case in tables.cases.all(moment):
        yield "cases_opened", case.kind, 1
        if case.state is CaseState.OPEN:
            yield "cases_open", case.kind, 1
            yield "cases_since", case.kind, case.opened_us
    for row in tables.due.all(moment):
        if row.due_us is not None:
            waits = row.due_us <= now_us
            yield "due", "running" if row.worker is not None else "due" if waits else "later", 1
            if waits and row.worker is None:
                yield "due_since", EVERYWHERE, row.due_us
    for segment in tables.segments.all(moment):
        yield "source_tokens", EVERYWHERE, segment.head.source_tokens
        yield "segment_tokens", EVERYWHERE, segment.head.tokens


def _attempts(tables: Tables, moment: Moment) -> Iterator[tuple[str, str, int]]:
    held = {view.lease_attempt for view in tables.views.all(moment)}
    for attempt in tables.attempts.all(moment):
        yield "attempts", attempt.state, 1
        yield "candidates" if attempt.number == 1 else "retries", EVERYWHERE, 1
        if attempt.failure is not None:
            yield "failures", attempt.failure, 1
        late = attempt.state is AttemptState.VALIDATED and attempt.attempt_id not in held
        if attempt.state is AttemptState.FENCED or late:
            yield "stale", EVERYWHERE, 1
        if attempt.state is AttemptState.RUNNING:
            yield "running_since", EVERYWHERE, attempt.started_us


def _views(tables: Tables, moment: Moment, now_us: int) -> Iterator[tuple[str, str, int]]:
    for view in tables.views.all(moment):
        if view.lease_attempt is not None:
            live = now_us < view.lease_until_us <= now_us + int(LEASE_TTL_S * MICROSECONDS)
            yield "leases", "live" if live else "expired", 1
        if view.summary_no:
            summary = tables.summaries.expect(moment, view.summary_no)
            yield "summaries", EVERYWHERE, 1
            yield "summary_tokens", EVERYWHERE, summary.tokens
            yield "depth_max", EVERYWHERE, summary.depth
            yield "manifest_refs", EVERYWHERE, summary.dropped_count
            yield "manifest_refs_max", EVERYWHERE, summary.dropped_count
