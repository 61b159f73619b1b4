"""Metrics for Prometheus: live ones by a hook, durable ones out of the store when it is scraped (C27)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from strandline.errors import InvalidInputError, extra_hint
from strandline.telemetry import names
from strandline.telemetry.names import MetricKind, buckets
from strandline.telemetry.samples import ReadFigures, samples_of, samples_of_store

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Histogram
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

R = TypeVar("R")


class PrometheusHook:
    """A hook for `open(hooks=[…])`: it counts what this process does."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register the live metrics; None: in the default registry.

        Raises:
            InvalidInputError: the extra `prometheus` is not installed.
        """
        registry = _registry(registry)
        from prometheus_client import Counter, Histogram

        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        for metric in names.LIVE:
            labels = (names.TENANT, *metric.labels)
            if metric.kind is MetricKind.HISTOGRAM:
                self._histograms[metric.name] = Histogram(
                    metric.prometheus, metric.meaning, labels, registry=registry, buckets=buckets(metric)
                )
            else:
                self._counters[metric.name] = Counter(metric.prometheus, metric.meaning, labels, registry=registry)

    def emit(self, name: str, details: Mapping[str, object]) -> None:
        """Count an occurrence."""
        for sample in samples_of(name, details):
            if sample.metric.kind is MetricKind.HISTOGRAM:
                self._histograms[sample.metric.name].labels(*sample.labels).observe(sample.value)
            else:
                self._counters[sample.metric.name].labels(*sample.labels).inc(sample.value)


class FiguresCollector:
    """A collector that reads the durable metrics from a store whenever it is scraped."""

    def __init__(self, read: ReadFigures, registry: CollectorRegistry | None = None) -> None:
        """Register itself; None: in the default registry.

        Args:
            read: `Strandline.figures` for all tenants, or `Tenant.figures` for one.
            registry: of prometheus_client.

        Raises:
            InvalidInputError: the extra `prometheus` is not installed.
        """
        self._read = read
        _registry(registry).register(self)

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return nothing, so that registering reads nothing."""
        return []

    def collect(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
        """Read the store. One that can't be read is down, and says nothing else."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        samples = samples_of_store(self._read)
        for metric in names.DURABLE:
            found = [sample for sample in samples if sample.metric is metric]
            labels = (names.TENANT, *metric.labels)[: len(found[0].labels)] if found else ()
            made = CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily
            family = made(metric.prometheus, metric.meaning, labels=labels)
            for sample in found:
                family.add_metric(sample.labels, sample.value)
            if found:
                yield family


def as_text(read: ReadFigures) -> str:
    """Return the durable metrics in the text format of Prometheus.

    Raises:
        InvalidInputError: the extra `prometheus` is not installed.
    """
    _registry(None)
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    FiguresCollector(read, registry)
    return generate_latest(registry).decode("utf-8")


def _registry(given: CollectorRegistry | None) -> CollectorRegistry:
    try:
        from prometheus_client import REGISTRY
    except ImportError as error:
        raise InvalidInputError(
            "metrics for Prometheus need its client library, which is not installed",
            hint=extra_hint("prometheus"),
        ) from error
    return REGISTRY if given is None else given
