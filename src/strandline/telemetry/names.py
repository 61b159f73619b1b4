"""Every name under which something is told to the outside: metrics, spans, attributes, fields of log lines.

GenAI semantic conventions where they have a name (`gen_ai.*`, `error.type`); `strandline.*` otherwise. Units are UCUM.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from strandline.ports.occurrences import OCCURRENCES, Occurrence

PREFIX: Final = "strandline."  # of metrics, of spans and of our own attributes
SCOPE: Final = "strandline"  # of tracer, meter and logger

# ---------------------------------------------------------------------------------------------- attributes

TENANT: Final = "tenant"
"""The one label of every metric."""

ATTRIBUTES: Final[Mapping[str, str]] = {
    "workflow": "gen_ai.workflow.name",
    "tool": "gen_ai.tool.name",
    "error": "error.type",
}
"""The names that the conventions have for our words; any other word gets the prefix."""

OPERATION_NAME: Final = "gen_ai.operation.name"
EXECUTE_TOOL: Final = "execute_tool"  # its value for an effect


def attribute(word: str) -> str:
    """Return the attribute of a span, or of an OpenTelemetry metric, that a word stands under."""
    return ATTRIBUTES.get(word, PREFIX + word)


# ---------------------------------------------------------------------------------------------- spans

SPANS: Final[Mapping[str, str]] = {
    "append": "events are appended",
    "import": "a transcript is imported",
    "events": "events are read",
    "seqs_of": "events are found by their keys",
    "foreign_summaries": "the summaries of other tools are listed",
    "judge_foreign": "a summary of another tool is judged",
    "carried": "what must stand beside a summary of another tool is read",
    "context": "a context is read",
    "basis": "generation and revision are read",
    "recall": "a reference is looked up",
    "search": "the log is searched for words",
    "search.index": "what is not indexed yet is",
    "manifest": "the manifest is read",
    "lineage": "the lineage is read",
    "compact": "a view is compacted; its phases:",
    "compact.plan": "one snapshot is read, and what to do is decided",
    "compact.claim": "the job is stored, and the view's lease taken",
    "compact.read": "the events of a segment, or of a part of it, are read",
    "compact.draft": "the summarizer works; its own spans are children of this one",
    "compact.validate": "a draft is judged",
    "compact.consult": "a judge is asked about a draft that the rules let pass",
    "compact.assemble": "segments, anchors, ledger and manifest are put together",
    "compact.store": "drafts and summary are stored",
    "compact.activate": "the pointer is moved",
    "compact.index": "a log that is searched is indexed further; behind the activation",
    "preview": "what a compaction would do is worked out; its phases are those of `compact`",
    "compact_later": "a compaction is asked for in the background",
    "compact_when": "a view is told when it is to be compacted by itself",
    "run_due": "a worker runs a compaction that is due: `compact` is a child of it",
    "define_view": "a view is defined, or changed",
    "views": "views are listed",
    "compare": "summaries of another tool are compared with ours",
    "checkpoint": "a checkpoint is taken or registered",
    "recover": "a recovery; its phases, in one transaction:",
    "recover.fence": "what is in flight is fenced",
    "recover.choose": "the checkpoint is chosen, and everything checked that going on needs",
    "recover.restore": "the restore is recorded",
    "recover.replay": "the replay is recorded",
    "recover.dry_run": "a recovery is decided on, and nothing written",
    "cases": "cases are listed",
    "reconcile": "a case is answered",
    "revert": "a view goes back to an earlier generation",
    "report_regression": "a bad summary is reported",
    "rewind": "events are abandoned",
    "fork": "a workflow is begun from another",
    "erase": "events are erased; its phases:",
    "erase.prepare": "what is to be erased is found, and what takes the place of summaries is made",
    "erase.carry_out": "one transaction does it",
    "erase.prove": "the rows that are left are read, and the files searched",
    "erase_tenant": "the same is erased in several workflows of a tenant: `erase` is a child of it",
    "set_retention": "a retention rule of a tenant is set",
    "drop_retention": "and dropped",
    "retain": "what retention rules keep no longer is found, and erased: `erase` is a child of it",
    "hold": "a legal hold is set",
    "release": "and lifted",
    "holds": "legal holds are listed",
    "read_through": "a reader outside says how far it has come",
    "readers": "readers are listed",
    "save_state": "a framework saves a state",
    "write_state": "what a task wrote behind one is kept",
    "load_state": "a saved state is read",
    "list_states": "a page of saved states is read",
    "state_lines": "the lines of saved states are listed",
    "state_positions": "where states of an id were saved is looked up",
    "state_usage": "what they take is counted",
    "delete_states": "saved states are deleted",
    "prune_states": "and all but some of them",
    "copy_states": "they are copied to another workflow",
    "effect": "an effect runs, or its recorded result is given; the call's own spans are children of this one",
    "effects": "effects are listed",
    "guard": "an action is decided on",
    "permits": "permits are listed",
    "verify": "a store, or a workflow, is proved",
}
"""Verbs and their phases, without the prefix. A verb's name is also the value of the label `operation`."""

# ---------------------------------------------------------------------------------------------- log lines

PRIVATE: Final = frozenset({"key", "action", "by"})
"""Details that a hook gets and that leave the process under no name: the user's own words, and names of persons."""

FIELDS: Final = frozenset().union(*(kind.__annotations__ for kind in (Occurrence, *OCCURRENCES.values()))) - PRIVATE
"""The details that stand in log lines and on spans; what is not declared in `ports.occurrences` does not."""

# ---------------------------------------------------------------------------------------------- metrics


class MetricKind(enum.StrEnum):
    """How a number behaves: it only grows; it goes up and down; it is one of many."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Source(enum.StrEnum):
    """Where a number comes from."""

    LIVE = "live"  # what this process has done since it started
    DURABLE = "durable"  # the store's rows, at the time of asking


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. Every one also has the label `tenant`, but for the one without tenants."""

    name: str  # of OpenTelemetry
    kind: MetricKind
    source: Source
    unit: str
    labels: tuple[str, ...] = ()
    meaning: str

    @property
    def prometheus(self) -> str:
        """The name of the family in Prometheus: counters end in _total, seconds say so."""
        name = self.name.replace(".", "_") + ("_seconds" if self.unit == "s" else "")
        return f"{name}_total" if self.kind is MetricKind.COUNTER else name


SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
TOKENS: Final = (250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 1_000_000)


def _live(name: str, kind: MetricKind, unit: str, labels: str, meaning: str) -> Metric:
    return Metric(
        name=PREFIX + name,
        kind=kind,
        source=Source.LIVE,
        unit=unit,
        labels=tuple(labels.split()),
        meaning=meaning,
    )


def _durable(name: str, kind: MetricKind, unit: str, labels: str, meaning: str) -> Metric:
    return Metric(
        name=PREFIX + name,
        kind=kind,
        source=Source.DURABLE,
        unit=unit,
        labels=tuple(labels.split()),
        meaning=meaning,
    )


_COUNTER, _GAUGE, _HISTOGRAM = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM

OPERATION_DURATION: Final = _live(
    "operation.duration",
    _HISTOGRAM,
    "s",
    "operation error",
    "how long a verb took; `error`: which error of ours it raised, `other`, or empty",
)
COMPACTION_DURATION: Final = _live(
    "compaction.duration", _HISTOGRAM, "s", "outcome", "how long a call to compact took, by how it ended"
)
TOKENS_BEFORE: Final = _live(
    "compaction.tokens.before", _HISTOGRAM, "{token}", "", "tokens of the context that a compaction began from"
)
TOKENS_AFTER: Final = _live(
    "compaction.tokens.after", _HISTOGRAM, "{token}", "", "tokens of the context right after its activation"
)
ATTEMPTS_REFUSED: Final = _live(
    "attempts.refused", _COUNTER, "{attempt}", "reason", "late, superseded, fenced or blocked attempts (I6)"
)
RECOVERY_DURATION: Final = _live(
    "recovery.duration", _HISTOGRAM, "s", "outcome", "how long a recovery took: restore, replay, reconcile, error"
)
CONTEXT_TOKENS: Final = _live(
    "context.tokens", _HISTOGRAM, "{token}", "rung", "tokens of a context, by the rung of the fallback ladder"
)
CONTEXT_BLOCKED: Final = _live(
    "context.blocked", _COUNTER, "{context}", "error", "contexts that were refused: the ladder's last rung"
)
OVERFLOW_ERRORS: Final = _live(
    "overflow.errors", _COUNTER, "{error}", "operation", "what can't be left out exceeded a budget (C11, C19)"
)
MISSING_EVENT_INCIDENTS: Final = _live(
    "missing_event.incidents",
    _COUNTER,
    "{incident}",
    "operation place",
    "a read or a verification found a gap, or what is not what was written (I4, I7)",
)

UP: Final = _durable("store.up", _GAUGE, "1", "", "1 when the figures could be read from the store, else 0; no tenant")
WORKFLOWS: Final = _durable("workflows", _GAUGE, "{workflow}", "", "workflows")
EVENTS: Final = _durable("events", _COUNTER, "{event}", "", "events in the logs")
CANDIDATES: Final = _durable("candidates", _COUNTER, "{candidate}", "", "jobs of compactions that were begun")
ATTEMPTS_STARTED: Final = _durable("attempts.started", _COUNTER, "{attempt}", "", "attempts that were begun")
ATTEMPTS_FAILED: Final = _durable(
    "attempts.failed", _COUNTER, "{attempt}", "failure", "attempts that failed, by class (C14)"
)
ATTEMPTS_RETRIED: Final = _durable(
    "attempts.retried", _COUNTER, "{attempt}", "", "attempts that were not the first of their candidate"
)
ATTEMPTS: Final = _durable("attempts", _GAUGE, "{attempt}", "state", "attempts by state")
ATTEMPTS_STALE: Final = _durable(
    "attempts.stale", _GAUGE, "{attempt}", "", "attempts that were fenced, or validated and then refused (I6)"
)
RUNNING_AGE: Final = _durable("attempts.running.age", _GAUGE, "s", "", "age of the oldest attempt that runs; 0: none")
LEASES: Final = _durable("leases", _GAUGE, "{lease}", "state", "leases of views: live, expired")
DUE: Final = _durable(
    "due", _GAUGE, "{compaction}", "state", "compactions asked for in the background: due, later, running"
)
DUE_AGE: Final = _durable("due.age", _GAUGE, "s", "", "how long the oldest has been due and nobody runs it; 0: none")
LINEAGE: Final = _durable(
    "lineage.entries", _COUNTER, "{entry}", "kind", "what happened to the memory, but for checkpoints (I13)"
)
RECOVERIES: Final = _durable(
    "recoveries", _COUNTER, "{recovery}", "outcome", "recoveries: restore, replay; reconcile: cases that they opened"
)
REGRESSIONS: Final = _durable("regressions", _COUNTER, "{case}", "", "summaries found bad after their activation (C14)")
CASES_OPENED: Final = _durable("cases.opened", _COUNTER, "{case}", "kind", "cases that were opened")
CASES_OPEN: Final = _durable("cases.open", _GAUGE, "{case}", "kind", "cases that are open")
CASES_AGE: Final = _durable("cases.open.age", _GAUGE, "s", "kind", "age of the oldest open case")
SUMMARIES: Final = _durable("summaries", _GAUGE, "{summary}", "", "active summaries")
SUMMARY_TOKENS: Final = _durable("summary.tokens", _GAUGE, "{token}", "", "tokens of the active summaries together")
DEPTH: Final = _durable("summary.depth", _GAUGE, "{pass}", "", "most lossy passes of an active summary (I12)")
MANIFEST_REFS: Final = _durable(
    "manifest.refs", _GAUGE, "{ref}", "", "references in the manifests of the active summaries together (I9)"
)
MANIFEST_REFS_MAX: Final = _durable("manifest.refs.max", _GAUGE, "{ref}", "", "references in the largest manifest")
SOURCE_TOKENS: Final = _durable(
    "segments.source.tokens", _COUNTER, "{token}", "", "tokens of the events that segments were made from"
)
SEGMENT_TOKENS: Final = _durable("segments.tokens", _COUNTER, "{token}", "", "tokens of those segments")

METRICS: Final = (
    OPERATION_DURATION,
    COMPACTION_DURATION,
    TOKENS_BEFORE,
    TOKENS_AFTER,
    ATTEMPTS_REFUSED,
    RECOVERY_DURATION,
    CONTEXT_TOKENS,
    CONTEXT_BLOCKED,
    OVERFLOW_ERRORS,
    MISSING_EVENT_INCIDENTS,
    UP,
    WORKFLOWS,
    EVENTS,
    CANDIDATES,
    ATTEMPTS_STARTED,
    ATTEMPTS_FAILED,
    ATTEMPTS_RETRIED,
    ATTEMPTS,
    ATTEMPTS_STALE,
    RUNNING_AGE,
    LEASES,
    DUE,
    DUE_AGE,
    LINEAGE,
    RECOVERIES,
    REGRESSIONS,
    CASES_OPENED,
    CASES_OPEN,
    CASES_AGE,
    SUMMARIES,
    SUMMARY_TOKENS,
    DEPTH,
    MANIFEST_REFS,
    MANIFEST_REFS_MAX,
    SOURCE_TOKENS,
    SEGMENT_TOKENS,
)
LIVE: Final = tuple(metric for metric in METRICS if metric.source is Source.LIVE)
DURABLE: Final = tuple(metric for metric in METRICS if metric.source is Source.DURABLE)


def buckets(metric: Metric) -> tuple[float, ...]:
    """Return the upper bounds of a histogram's buckets."""
    return SECONDS if metric.unit == "s" else TOKENS
