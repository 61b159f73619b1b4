"""The table of memory quality: its measures in their order, and a run of all of them or of some."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from strandline.bench.quality import (
    constraints,
    dependencies,
    kit,
    needed,
    prefix,
    throughput,
    tokens,
    unaccounted,
    validators,
)
from strandline.bench.quality.row import Row

Tell = Callable[[int, int], None]  # what is done, of how much
Measure = Callable[[Path, Tell], Iterator[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One measure, and the ids of its rows in their order."""

    ids: tuple[str, ...]
    measure: Measure


# A line for each module, in the order of the page.
TABLE: Final = (
    Entry(ids=("needed_later", "needed_names"), measure=needed.measure),
    Entry(ids=("tau_5", "tau_10", "tau_20"), measure=dependencies.measure),
    Entry(
        ids=("found", "found_real", "wrong_pins", "pin_precision", "constraints_50"),
        measure=constraints.measure,
    ),
    Entry(
        ids=("kit_10", "kit_20", "kit_30", "kit_latest", "kit_latest_10", "kit_stale", "kit_stale_keyed"),
        measure=kit.measure,
    ),
    Entry(ids=("unaccounted",), measure=unaccounted.measure),
    Entry(ids=("validator_bad", "validator_verbatim", "validator_paraphrase"), measure=validators.measure),
    Entry(ids=("prefix_stable", "prefix_compacted"), measure=prefix.measure),
    Entry(ids=tokens.IDS, measure=tokens.measure),
    Entry(ids=("import_mb_s", "compact_mb_s"), measure=throughput.measure),
)

IDS: Final = tuple(name for entry in TABLE for name in entry.ids)


def entries(only: Sequence[str] = ()) -> list[Entry]:
    """Return the entries that measure what is asked for; all of them, where nothing is named."""
    return [entry for entry in TABLE if not only or not set(only).isdisjoint(entry.ids)]


def rows_of(entry: Entry, data: Path, tell: Tell, only: Sequence[str] = ()) -> Iterator[Row]:
    """Measure on the data sets of a folder, and yield the rows that are asked for.

    Raises:
        ValueError: the measure has other rows than its entry names: the table would lack one unnoticed.
    """
    found: list[str] = []
    for row in entry.measure(data, tell):
        found.append(row.id)
        if not only or row.id in only:
            yield row
    if tuple(found) != entry.ids:
        raise ValueError(f"the entry names {entry.ids}, its measure has {tuple(found)}")
