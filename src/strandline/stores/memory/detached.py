"""Rows that nobody else can change."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Final, TypeVar

from strandline.model.case import Case
from strandline.model.lineage import LineageEntry
from strandline.model.outcome import ForeignSummary

D = TypeVar("D", LineageEntry, ForeignSummary, Case)
ADDED: Final = "it is there already; nothing was written"


def detached(row: D) -> D:
    """Return the row with a detail that nobody else holds: it is the one value of the model that can change."""
    return replace(row, detail=deepcopy(dict(row.detail)))
