"""Dependencies of later tool calls: of the values that calls after a cut take, how many the ledger holds.

The episodes are OpenAI messages of an agent that serves customers. Each is cut at three places. What lies before the
cut, without the system prompt, is imported, and the ledger of it may take a share of its characters, heading included.
Needed are the leaves of the JSON arguments of all later calls that stand before the cut and not in the system prompt,
which the agent has anyway.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import strandline
from strandline.bench.quality.row import Row
from strandline.model.summary import LedgerEntry
from strandline.rules.ledger import score, select
from strandline.rules.verbatim import stands_verbatim, verbatim_subset

SETS: Final = "tau_bench"
CUTS: Final = (0.25, 0.5, 0.75)
MARKS: Final = {5: 78.0, 10: 95.0, 20: 99.0}  # percent of the characters: percent of the values
VALUE_CHARS_MIN: Final = 3
VALUE_CHARS_MAX: Final = 60

Message = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What lies before one cut, and what is needed of it behind the cut."""

    before: tuple[Message, ...]
    characters: int
    needed: frozenset[str]


def measure(data: Path, tell: Callable[[int, int], None]) -> Iterator[Row]:
    """Cut and compact every episode."""
    cuts = list(_cuts(data))
    needed = sum(len(cut.needed) for cut in cuts)
    kept = dict.fromkeys(MARKS, 0)
    with tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder:
        for number, cut in enumerate(cuts):
            tell(number, len(cuts))
            entries = _entries(cut, Path(folder) / "episode.json")
            for percent in MARKS:
                budget = cut.characters * percent // 100
                _, text = select(entries, standing=(), budget_tokens=budget, count=len)
                kept[percent] += len(verbatim_subset(cut.needed, text))
    for percent, mark in MARKS.items():
        said = f"{kept[percent]} of {needed} values at {len(cuts)} cuts" if cuts else f"no episode in {SETS}"
        yield Row(
            id=f"tau_{percent}",
            measure=f"values that later tool calls take, in a ledger of {percent} % of the characters before",
            data=SETS,
            value=100 * kept[percent] / needed if needed else None,
            mark=mark,
            reason=said,
        )


def _cuts(data: Path) -> Iterator[Cut]:
    """Yield the cuts behind which something is needed. None lies between a call and its result."""
    for file in sorted(data.glob(f"{SETS}/*.json")):
        for episode in json.loads(file.read_text(encoding="utf-8")):
            messages = episode["traj"]
            prompt = "\n".join(map(_text, (each for each in messages if each["role"] == "system")))
            for share in CUTS:
                place = int(len(messages) * share)
                while place and messages[place]["role"] == "tool":
                    place -= 1
                before = tuple(each for each in messages[:place] if each["role"] != "system")
                said = "\n".join(map(_text, before))
                values = {value for each in messages[place:] for value in _values(each)}
                needed = {v for v in verbatim_subset(values, said) if not stands_verbatim(v, prompt)}
                if needed:
                    yield Cut(before=before, characters=len(said), needed=frozenset(needed))


def _entries(cut: Cut, file: Path) -> list[LedgerEntry]:
    """Import what lies before the cut, and return its references as the ledger ranks them."""
    file.write_text(json.dumps(cut.before), encoding="utf-8")
    with strandline.open(":memory:") as db:
        workflow = db.tenant("bench").workflow("episode")
        workflow.import_transcript(file)
        events = workflow.events()
    found = dict.fromkeys(ref for event in events for ref in (*event.declared, *event.extracted))
    return score((), events, {ref: number for number, ref in enumerate(found, start=1)})


def _text(message: Message) -> str:
    return "\n".join([str(message.get("content") or ""), *_arguments(message)])


def _arguments(message: Message) -> list[str]:
    calls = message.get("tool_calls")
    return [call["function"]["arguments"] for call in calls] if isinstance(calls, list) else []


def _values(message: Message) -> Iterator[str]:
    for arguments in _arguments(message):
        for value in _leaves([json.loads(arguments)]):
            if VALUE_CHARS_MIN <= len(value) <= VALUE_CHARS_MAX:
                yield value


def _leaves(items: Sequence[object]) -> Iterator[str]:
    for item in items:
        if isinstance(item, Mapping):
            yield from _leaves(list(item.values()))
        elif isinstance(item, list):
            yield from _leaves(item)
        elif isinstance(item, str):
            yield item
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield json.dumps(item)
