"""What watches a store from outside: log lines, spans, metrics. All of it is hooks (`ports.Hook`, `ports.Tracer`)."""

from strandline.telemetry.logging import JsonFormatter, LoggingHook, log_json
from strandline.telemetry.otel import OpenTelemetryHook, observe_figures
from strandline.telemetry.prometheus import FiguresCollector, PrometheusHook

__all__ = [
    "FiguresCollector",
    "JsonFormatter",
    "LoggingHook",
    "OpenTelemetryHook",
    "PrometheusHook",
    "log_json",
    "observe_figures",
]
