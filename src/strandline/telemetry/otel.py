"""Spans and metrics by OpenTelemetry: its API only; SDK and exporter are the choice of the program (C27)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from strandline.errors import InvalidInputError, extra_hint
from strandline.telemetry import names
from strandline.telemetry.logging import fields_of
from strandline.telemetry.names import Metric, MetricKind, attribute, buckets
from strandline.telemetry.samples import ReadFigures, Sample, samples_of, samples_of_store

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation
    from opentelemetry.trace import TracerProvider
    from opentelemetry.util.types import Attributes


class OpenTelemetryHook:
    """A hook for `open(hooks=[…])`: a span for each verb and each phase of it, and the live metrics.

    Occurrences are events of the span in which they happen. What a summarizer or the call of an effect records itself
    becomes a child of the phase that waits for it.
    """

    def __init__(
        self, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        """Take the providers; None: the global ones.

        Raises:
            InvalidInputError: the extra `otel` is not installed.
        """
        meter = _meter(meter_provider)
        from opentelemetry import trace

        self._trace = trace
        self._tracer = trace.get_tracer(names.SCOPE, tracer_provider=tracer_provider)
        self._add = {
            metric.name: meter.create_counter(metric.name, metric.unit, metric.meaning).add
            for metric in names.LIVE
            if metric.kind is MetricKind.COUNTER
        }
        self._record = {
            metric.name: meter.create_histogram(
                metric.name, metric.unit, metric.meaning, explicit_bucket_boundaries_advisory=buckets(metric)
            ).record
            for metric in names.LIVE
            if metric.kind is MetricKind.HISTOGRAM
        }

    @contextmanager
    def span(self, name: str, details: Mapping[str, object]) -> Iterator[None]:
        """Make a span the current one. Of an error it has the type; its message may hold what must not leave."""
        attributes = {attribute(word): value for word, value in fields_of(details).items() if isinstance(value, str)}
        with self._tracer.start_as_current_span(
            names.PREFIX + name, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            except BaseException as error:
                span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, type(error).__name__))
                span.set_attribute(attribute("error"), type(error).__name__)
                raise

    def emit(self, name: str, details: Mapping[str, object]) -> None:
        """Note an occurrence on the current span, and in the metrics."""
        span = self._trace.get_current_span()
        if span.is_recording():
            if name == "effect":
                span.set_attribute(names.OPERATION_NAME, names.EXECUTE_TOOL)
                span.set_attribute(attribute("tool"), str(details.get("tool")))
            if name != "operation":  # the span itself says that
                span.add_event(names.PREFIX + name, _event(details))
        for sample in samples_of(name, details):
            put = self._record if sample.metric.kind is MetricKind.HISTOGRAM else self._add
            put[sample.metric.name](sample.value, _labels(sample))


def observe_figures(read: ReadFigures, meter_provider: MeterProvider | None = None) -> None:
    """Let the durable metrics be read from a store whenever metrics are collected.

    Args:
        read: `Strandline.figures` for all tenants, or `Tenant.figures` for one.
        meter_provider: None: the global one.

    Raises:
        InvalidInputError: the extra `otel` is not installed.
    """
    meter = _meter(meter_provider)
    from opentelemetry.metrics import Observation

    read_last: list[Sample] = []

    def observe_one(metric: Metric) -> list[Observation]:
        if metric is names.DURABLE[0]:  # they are asked in this order: one reading of the store serves all of them
            read_last[:] = samples_of_store(read)
        return [Observation(sample.value, _labels(sample)) for sample in read_last if sample.metric is metric]

    for metric in names.DURABLE:

        def observe(options: CallbackOptions, metric: Metric = metric) -> list[Observation]:  # noqa: ARG001
            return observe_one(metric)

        made = meter.create_observable_counter if metric.kind is MetricKind.COUNTER else meter.create_observable_gauge
        made(metric.name, [observe], metric.unit, metric.meaning)


def _meter(provider: MeterProvider | None) -> Meter:
    try:
        from opentelemetry.metrics import get_meter
    except ImportError as error:
        raise InvalidInputError(
            "spans and metrics by OpenTelemetry need its API, which is not installed",
            hint=extra_hint("otel"),
        ) from error
    return get_meter(names.SCOPE, meter_provider=provider)


def _labels(sample: Sample) -> Attributes:
    words = (names.TENANT, *sample.metric.labels)
    pairs = zip(words, sample.labels, strict=False)  # `store.up` has none
    return {attribute(word): value for word, value in pairs if value}


def _event(details: Mapping[str, object]) -> Attributes:
    found: dict[str, str | int | float | bool] = {}
    for word, value in fields_of(details).items():
        if isinstance(value, str | int | float | bool):
            found[attribute(word)] = value
        elif isinstance(value, dict):
            found |= {f"{attribute(word)}.{part}": number for part, number in value.items()}
    return found
