"""Law (C27, C28): log lines, spans and metrics say what happened, with ids and numbers, under the names of one module;
and no payload, no reference, no reason and no name of a person ever leaves in them.
"""

import asyncio
import io
import json
import logging
import subprocess
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.trace import StatusCode
from prometheus_client import CollectorRegistry, generate_latest

import strandline
from strandline.telemetry import (
    FiguresCollector,
    JsonFormatter,
    LoggingHook,
    OpenTelemetryHook,
    PrometheusHook,
    log_json,
    names,
    observe_figures,
)
from strandline.telemetry.names import MetricKind
from strandline.telemetry.prometheus import as_text
from tests.unit.test_engine_stage import new_workflow, open_store, quiet, talk
from tests.unit.test_telemetry_stage import PAYLOADS, live


class Traced:
    """An SDK with everything in memory, and the hook that feeds it."""

    def __init__(self):
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers, self.meters = TracerProvider(), MeterProvider([self.reader])
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.hook = OpenTelemetryHook(self.tracers, self.meters)
        self.tracer = self.tracers.get_tracer("the program")

    @property
    def spans(self):
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def parents(self) -> dict[str, str | None]:
        names_of = {span.context.span_id: span.name for span in self.exporter.get_finished_spans()}
        found = self.exporter.get_finished_spans()
        return {span.name: names_of[span.parent.span_id] if span.parent else None for span in found}

    def metrics(self) -> dict[str, list]:
        data = self.reader.get_metrics_data()
        found = data.resource_metrics if data else []
        return {
            metric.name: list(metric.data.data_points)
            for resource in found
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture
def traced():
    traced = Traced()
    yield traced
    traced.tracers.shutdown()
    traced.meters.shutdown()


# ---------------------------------------------------------------------------------------------- nothing leaks


def test_no_payload_leaves(tmp_path, traced):
    """A life with a secret everywhere, watched by every sink at its loudest."""
    stream, registry = io.StringIO(), CollectorRegistry()
    hooks = [log_json(stream, logging.DEBUG), traced.hook, PrometheusHook(registry)]
    db = live(tmp_path, *hooks)
    FiguresCollector(db.figures, registry)
    observe_figures(db.figures, traced.meters)
    outputs = {
        "log": stream.getvalue(),
        "prometheus": generate_latest(registry).decode(),
        "metrics": str(traced.metrics()),
        "spans": "\n".join(span.to_json() for span in traced.exporter.get_finished_spans()),
    }
    db.close()
    for sink, text in outputs.items():
        assert "run-" in text or sink in ("prometheus", "metrics")  # the workflow is no label: there may be many
        assert "acme" in text
        for payload in PAYLOADS:
            assert payload not in text, f"{payload!r} left in the {sink}"


# ---------------------------------------------------------------------------------------------- log lines


def test_a_line_is_one_object_with_ids(tmp_path):
    stream = io.StringIO()
    with open_store("memory", tmp_path, hooks=[log_json(stream)]) as db:
        wf = new_workflow(db)
        wf.append(talk(8))
        outcome = wf.compact(400, quiet)
    attempt, compaction = map(json.loads, stream.getvalue().splitlines())
    assert list(compaction)[:5] == ["time", "level", "event", "tenant", "workflow"]
    assert (compaction["event"], compaction["level"], compaction["tenant"]) == ("compaction", "info", "acme")
    assert compaction["workflow"] == attempt["workflow"] == wf.name
    assert compaction["attempt_id"] == attempt["attempt_id"] == outcome.attempts[-1].attempt_id
    assert attempt["attempt_id"].startswith(compaction["candidate_id"])
    assert compaction["phases_ms"].keys() == outcome.phases_ms.keys()
    assert "case_id" not in compaction  # what is None is left out


def test_levels_say_what_wants_attention(tmp_path):
    stream = io.StringIO()
    live(tmp_path, log_json(stream, logging.WARNING)).close()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {line["level"] for line in lines} == {"warning", "error"}
    assert {line["event"] for line in lines if line["level"] == "error"} == {"incident"}
    assert {"attempt", "case", "operation", "overflow", "regression"} <= {line["event"] for line in lines}


def test_the_hook_writes_to_the_logging_that_is_there(tmp_path, caplog):
    """With the program's own handlers and formatter; `record.strandline` has the details."""
    with caplog.at_level(logging.DEBUG, "strandline"), open_store("memory", tmp_path, hooks=[LoggingHook()]) as db:
        new_workflow(db).append(talk(1))
    record = caplog.records[0]
    assert (record.name, record.message, record.strandline["added"]) == ("strandline", "append", 2)
    assert json.loads(JsonFormatter().format(record))["added"] == 2


# ---------------------------------------------------------------------------------------------- spans


def test_names_are_those_of_the_conventions():
    assert names.attribute("workflow") == gen_ai_attributes.GEN_AI_WORKFLOW_NAME
    assert names.attribute("tool") == gen_ai_attributes.GEN_AI_TOOL_NAME
    assert names.OPERATION_NAME == gen_ai_attributes.GEN_AI_OPERATION_NAME
    assert gen_ai_attributes.GenAiOperationNameValues.EXECUTE_TOOL.value == names.EXECUTE_TOOL
    assert names.attribute("error") == error_attributes.ERROR_TYPE


PHASES = ("plan", "claim", "read", "draft", "validate", "assemble", "store", "activate")


@pytest.mark.parametrize("deadline_s", [5.0, None], ids=["in a thread of its own", "in the caller's"])
def test_the_program_s_spans_and_ours_are_one_tree(tmp_path, traced, deadline_s):
    """The caller's span is the parent of the verb; the summarizer's own one is a child of the phase that waits."""

    def summarize(request):
        with traced.tracer.start_as_current_span("llm"):
            return quiet(request)

    with open_store("sqlite", tmp_path, hooks=[traced.hook]) as db, traced.tracer.start_as_current_span("turn"):
        wf = new_workflow(db)
        wf.append(talk(8))
        wf.compact(400, summarize, **({"deadline_s": deadline_s} if deadline_s else {}))
        assert trace.get_current_span().name == "turn"
    parents = traced.parents()
    assert parents["strandline.append"] == parents["strandline.compact"] == "turn"
    assert {parents[f"strandline.compact.{phase}"] for phase in PHASES} == {"strandline.compact"}
    assert parents["llm"] == "strandline.compact.draft"


@pytest.mark.parametrize("awaited", [True, False])
def test_so_they_are_in_an_event_loop(tmp_path, traced, awaited):
    """DESIGN §3: steps run in threads, the summarizer and the effect's call are awaited or not."""

    def work(name, value):
        with traced.tracer.start_as_current_span(name):
            return value

    async def awaited_work(name, value):
        with traced.tracer.start_as_current_span(name):
            await asyncio.sleep(0)
            return value

    async def slow(request):
        return await awaited_work("llm", quiet(request))

    async def call():
        return await awaited_work("http", "ok")

    async def run(db):
        wf = strandline.AsyncStrandline(db).tenant("acme").workflow("w")
        with traced.tracer.start_as_current_span("turn"):
            await wf.append(talk(8))
            await wf.compact(400, slow if awaited else lambda request: work("llm", quiet(request)))
            await wf.effect("key", "create_bucket", {}, run=call if awaited else lambda: work("http", "ok"))
            assert trace.get_current_span().name == "turn"

    with open_store("sqlite", tmp_path, hooks=[traced.hook]) as db:
        asyncio.run(run(db))
    parents = traced.parents()
    assert {parents[f"strandline.compact.{phase}"] for phase in PHASES} == {"strandline.compact"}
    assert (parents["strandline.compact"], parents["llm"]) == ("turn", "strandline.compact.draft")
    assert (parents["strandline.effect"], parents["http"]) == ("turn", "strandline.effect")


def test_spans_say_where_and_what(tmp_path, traced):
    with open_store("memory", tmp_path, hooks=[traced.hook]) as db:
        wf = new_workflow(db)
        wf.append(talk(8))
        outcome = wf.compact(400, quiet)
        wf.effect("key", "create_bucket", {}, run=lambda: "ok")
    compact, effect = traced.spans["strandline.compact"], traced.spans["strandline.effect"]
    assert dict(compact.attributes) == {"strandline.tenant": "acme", "gen_ai.workflow.name": wf.name}
    attempt, compaction = compact.events
    assert (attempt.name, compaction.name) == ("strandline.attempt", "strandline.compaction")
    assert compaction.attributes["strandline.tokens_before"] == outcome.tokens_before
    assert compaction.attributes["strandline.phases_ms.draft"] == outcome.phases_ms["draft"]
    assert effect.attributes["gen_ai.operation.name"] == "execute_tool"
    assert effect.attributes["gen_ai.tool.name"] == "create_bucket"
    assert compact.status.status_code is StatusCode.UNSET


def test_a_span_of_an_error_has_its_type_and_not_its_message(tmp_path, traced):
    with open_store("memory", tmp_path, hooks=[traced.hook]) as db:
        wf = new_workflow(db)
        wf.append(talk(8))
        with pytest.raises(ZeroDivisionError):
            wf.compact(400, lambda request: 1 / 0)
    for name in ("strandline.compact", "strandline.compact.draft"):
        span = traced.spans[name]
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "ZeroDivisionError")
        assert span.attributes["error.type"] == "ZeroDivisionError"
        assert not [event for event in span.events if event.name == "exception"]


# ---------------------------------------------------------------------------------------------- metrics


def counted(registry, metric, **labels) -> float | None:
    suffix = {MetricKind.HISTOGRAM: "_count"}.get(metric.kind, "")
    return registry.get_sample_value(metric.prometheus + suffix, {"tenant": "acme", **labels})


def test_what_a_life_adds_to_the_live_metrics(tmp_path, traced):
    """SPEC C27, each by its occurrence; OpenTelemetry and Prometheus count the same."""
    registry = CollectorRegistry()
    live(tmp_path, PrometheusHook(registry), traced.hook).close()
    n = names
    assert counted(registry, n.COMPACTION_DURATION, outcome="activated") == 1
    assert counted(registry, n.COMPACTION_DURATION, outcome="quarantined") == 1
    assert counted(registry, n.TOKENS_BEFORE) == counted(registry, n.TOKENS_AFTER) == 1
    assert counted(registry, n.RECOVERY_DURATION, outcome="restore") == 1
    assert counted(registry, n.RECOVERY_DURATION, outcome="replay") == 1
    assert counted(registry, n.RECOVERY_DURATION, outcome="reconcile") == 1
    assert counted(registry, n.CONTEXT_TOKENS, rung="whole") >= 1
    assert counted(registry, n.CONTEXT_BLOCKED, error="ContextOverflowError") == 1
    assert counted(registry, n.OVERFLOW_ERRORS, operation="context") == 1
    assert counted(registry, n.MISSING_EVENT_INCIDENTS, operation="events", place="event") == 1
    assert counted(registry, n.MISSING_EVENT_INCIDENTS, operation="verify", place="event") >= 1
    assert counted(registry, n.OPERATION_DURATION, operation="effect", error="") == 1
    assert counted(registry, n.OPERATION_DURATION, operation="guard", error="ActionDeniedError") == 1
    metrics = traced.metrics()
    assert set(metrics) | {n.ATTEMPTS_REFUSED.name} == {metric.name for metric in names.LIVE}
    for metric in names.LIVE:
        for point in metrics.get(metric.name, ()):
            words = {label: point.attributes.get(names.attribute(label), "") for label in metric.labels}
            assert counted(registry, metric, **words) == getattr(point, "count", None) or point.value
            assert point.attributes["strandline.tenant"] == "acme"


def test_refused_attempts_are_counted(tmp_path):
    registry = CollectorRegistry()
    with open_store("memory", tmp_path, hooks=[PrometheusHook(registry)]) as db:
        wf = new_workflow(db)
        wf.append(talk(8))

        def overtaken(request):
            wf.compact(400, quiet)
            return "Work went on."

        wf.compact(400, overtaken)
    assert counted(registry, names.ATTEMPTS_REFUSED, reason="fenced") == 1


def test_durable_metrics_are_the_store_s(tmp_path, traced):
    """C27: read when they are asked for; both sinks give the same, and another process gives it, too."""
    registry = CollectorRegistry()
    db = live(tmp_path)
    FiguresCollector(db.figures, registry)
    observe_figures(db.figures, traced.meters)
    metrics = traced.metrics()
    for metric in names.DURABLE:
        if metric is names.UP:
            assert registry.get_sample_value(metric.prometheus) == 1
            continue
        for point in metrics.get(metric.name, ()):
            words = {label: point.attributes.get(names.attribute(label), "") for label in metric.labels}
            assert counted(registry, metric, **words) == point.value, metric.name
    assert counted(registry, names.ATTEMPTS_STARTED) == 6
    assert counted(registry, names.ATTEMPTS_FAILED, failure="transient") == 2
    assert counted(registry, names.ATTEMPTS_FAILED, failure="storage") == 0
    assert counted(registry, names.REGRESSIONS) == 1
    assert counted(registry, names.RECOVERIES, outcome="restore") == 1
    assert counted(registry, names.RECOVERIES, outcome="reconcile") == 1
    before = as_text(db.figures)
    db.close()
    with open_store("sqlite", tmp_path) as again:
        assert as_text(again.figures) == before


def test_a_store_that_is_gone_is_down_and_no_exception(tmp_path, traced):
    registry = CollectorRegistry()
    db = open_store("sqlite", tmp_path)
    new_workflow(db).append(talk(1))
    FiguresCollector(db.figures, registry)
    observe_figures(db.figures, traced.meters)
    db.close()
    assert [family.name for family in registry.collect()] == ["strandline_store_up"]
    assert registry.get_sample_value("strandline_store_up") == 0
    assert {name: points[0].value for name, points in traced.metrics().items()} == {"strandline.store.up": 0}


def test_a_tenant_s_metrics_are_its_own(tmp_path):
    """I21: what is given `Tenant.figures` shows no other tenant."""
    with open_store("sqlite", tmp_path) as db:
        new_workflow(db).append(talk(1))
        db.tenant("umbrella").workflow("w").append(talk(2))
        text = as_text(db.tenant("acme").figures)
        assert "acme" in text
        assert "umbrella" not in text
        assert 'strandline_events_total{tenant="umbrella"} 4.0' in as_text(db.figures)


def test_watching_needs_no_extra_before_it_is_used(tmp_path):
    """C25: the core, and `strandline.telemetry` itself, import neither library; who lacks one is told which extra."""
    program = """
import sys
sys.modules["opentelemetry.metrics"] = sys.modules["prometheus_client"] = None
import strandline, strandline.telemetry as telemetry
for make in (telemetry.OpenTelemetryHook, telemetry.PrometheusHook):
    try:
        make()
    except strandline.InvalidInputError as error:
        print(error.hint)
assert not [name for name in sys.modules if name.startswith(("opentelemetry.sdk", "prometheus_client."))]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert 'checkout[otel]"' in done.stdout
    assert 'checkout[prometheus]"' in done.stdout
