"""A torn read: one record of one transaction comes back with a byte that nobody wrote; the store itself is unharmed.

Events, summaries, segments and checkpoints bear digests that the engine checks: of them a byte changes. Every other row
is one that a store keeps under a digest of its own, and refuses (a memory store needs none): it is refused here, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final, cast

from strandline.errors import CorruptRecordError
from strandline.model.checkpoint import Checkpoint
from strandline.model.event import StoredEvent
from strandline.model.segment import Segment
from strandline.model.summary import Summary
from strandline.ports import Transaction

TORN: Final = "~"  # what the byte becomes: a mark that stands in no text of the simulation
_READS: Final = 3  # the record that is torn is one of the first so many of its sort
_ROWS: Final = 0.25  # the chance that it is one of those that the store itself refuses
_CHECKED: Final[dict[type, tuple[str, ...]]] = {  # what is under a digest that the engine checks, and the digest
    StoredEvent: ("record", "body", "salt", "chain"),
    Summary: ("anchors_text", "ledger_text", "salt", "text_digest"),
    Segment: ("text", "salt", "text_digest"),
    Checkpoint: ("state", "salt", "digest"),
}


class Tear:
    """What is torn in one transaction: the how many-th record of which sort, and which byte of it."""

    def __init__(self, chance: Random, tell: Callable[[str], None]) -> None:
        self._pick = chance.random
        self._checked = self._pick() >= _ROWS
        self._left = int(self._pick() * _READS)
        self._tell = tell

    def through(self, read: object) -> object:
        """Return what was read, and tear the record if it is among it."""
        if isinstance(read, Iterator):
            return map(self.through, read)
        if isinstance(read, list):
            return [self.through(one) for one in read]
        if isinstance(read, dict):
            return {key: self.through(one) for key, one in read.items()}
        checked = type(read) in _CHECKED
        if checked is not self._checked or not (checked or dataclasses.is_dataclass(read)) or self._left < 0:
            return read
        self._left -= 1
        return read if self._left >= 0 else self._torn(read)

    def _torn(self, record: object) -> object:
        if isinstance(record, Summary) and record.segments and self._pick() < 0.5:
            at = int(self._pick() * len(record.segments))
            torn = cast(Segment, self._torn(record.segments[at]))
            return dataclasses.replace(record, segments=(*record.segments[:at], torn, *record.segments[at + 1 :]))
        name = type(record).__name__
        fields = [field for field in _CHECKED.get(type(record), ()) if getattr(record, field)]
        if not fields:
            self._tell(f"reads a torn {name}")
            raise CorruptRecordError("the row does not match its digest", place=name)
        field = fields[int(self._pick() * len(fields))]
        self._tell(f"reads a torn {name}: a byte of its {field} is another")
        changed: dict[str, Any] = {field: self._changed(getattr(record, field))}
        if isinstance(record, StoredEvent):
            return record._replace(**changed)
        return dataclasses.replace(cast(Any, record), **changed)

    def _changed(self, value: str | bytes) -> str | bytes:
        data = value.encode() if isinstance(value, str) else value
        at = int(self._pick() * len(data))
        mark = TORN.encode() if data[at : at + 1] != TORN.encode() else b"!"
        changed = data[:at] + mark + data[at + 1 :]
        return changed.decode() if isinstance(value, str) else changed


class TornTransaction:
    """A transaction through which one record is read torn."""

    def __init__(self, inner: Transaction, tear: Tear) -> None:
        self._inner = inner
        self._tear = tear
        self._facets: dict[str, _TornFacet] = {}

    def __getattr__(self, name: str) -> _TornFacet:
        if name not in self._facets:
            self._facets[name] = _TornFacet(getattr(self._inner, name), self._tear)
        return self._facets[name]

    def relative(self, workflow: str, *, locked: bool = False) -> Transaction:
        """As `Transaction.relative`: what is read there may be the torn record, too."""
        return torn(self._inner.relative(workflow, locked=locked), self._tear)


class _TornFacet:
    def __init__(self, inner: object, tear: Tear) -> None:
        self._inner = inner
        self._tear = tear

    def __getattr__(self, name: str) -> Callable[..., object]:
        method = getattr(self._inner, name)

        def read(*args: Any, **kwargs: Any) -> object:  # noqa: ANN401  what any method of a facet takes
            return self._tear.through(method(*args, **kwargs))

        return read


def torn(inner: Transaction, tear: Tear) -> Transaction:
    """Return a transaction through which one record is read torn."""
    return cast(Transaction, TornTransaction(inner, tear))
