"""Log lines: one JSON object for each occurrence, with ids and durations and no payload (C28)."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, TextIO

from strandline.telemetry import names

_QUIET: Final = frozenset({"append", "context"})  # several each turn
_LOUD: Final[Mapping[str, int]] = {
    "incident": logging.ERROR,
    "overflow": logging.WARNING,
    "case": logging.WARNING,
    "regression": logging.WARNING,
}


class LoggingHook:
    """Writes each occurrence to a logger: its name is the message, its details are in `record.strandline`.

    What happens several times a turn is DEBUG, damage ERROR, what wants somebody's attention WARNING, the rest INFO.
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger(names.SCOPE)

    def emit(self, name: str, details: Mapping[str, object]) -> None:
        """Write a line."""
        level = level_of(name, details)
        if self._logger.isEnabledFor(level):
            self._logger.log(level, name, extra={names.SCOPE: fields_of(details)})


class JsonFormatter(logging.Formatter):
    """Renders a record as one JSON object: time, level, event, and the details of an occurrence."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, names.SCOPE, {}),
        }
        return json.dumps(line, ensure_ascii=False, default=str)


def log_json(stream: TextIO | None = None, level: int = logging.INFO) -> LoggingHook:
    """Return a hook that writes JSON lines to a stream; None: stderr. Nothing else gets them."""
    logger = logging.Logger(names.SCOPE, level)  # noqa: LOG001  one of its own: nobody else's handlers hang on it
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    logger.addHandler(handler)
    return LoggingHook(logger)


def level_of(name: str, details: Mapping[str, object]) -> int:
    """Return how loud an occurrence is."""
    if name == "operation":
        return logging.DEBUG if details.get("error") is None else logging.WARNING
    if name == "attempt":
        return logging.INFO if details.get("failure") is None and details.get("reason") is None else logging.WARNING
    if name in _QUIET:
        return logging.DEBUG if details.get("error") is None else logging.WARNING
    return _LOUD.get(name, logging.INFO)


def fields_of(details: Mapping[str, object]) -> dict[str, object]:
    """Return the details that may leave the process: declared ones, and none that are None."""
    return {
        word: dict(value) if isinstance(value, Mapping) else value
        for word, value in details.items()
        if word in names.FIELDS and value is not None
    }
