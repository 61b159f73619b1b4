"""The log facet: head row and events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Final

from strandline.codec import EMPTY_CHAIN, PLAIN, compress, decompress, row_digest
from strandline.errors import CorruptRecordError
from strandline.model.event import StoredEvent
from strandline.model.ids import Scope
from strandline.model.lineage import AbandonedRange, WorkflowHead
from strandline.stores.sql.rows import pack_key, unpack_key
from strandline.stores.sql.session import Row, Session, check_seal, seal

_COLUMNS: Final = tuple(field.name for field in fields(WorkflowHead))  # as the statement `head` gives them
_BYTES: Final = frozenset({bytes, type(None)})
_VALUES: Final = attrgetter(*_COLUMNS)  # each append asks three times


def head_digest(digest_key: bytes, scope: Scope, head: WorkflowHead) -> bytes:
    """Return the digest of a head row: over the names of tenant and workflow, then its columns."""
    return row_digest(digest_key, "workflow", (scope.tenant, scope.workflow, *_VALUES(head)))


class SqlLog:
    """`ports.LogFacet` over SQL."""

    def __init__(self, session: Session, scope: Scope) -> None:
        self._session = session
        self._scope = scope
        self._workflow = scope.workflow
        self._head_rows = session.rows("head")  # the first statement: from here on the snapshot stands
        self._head: WorkflowHead | None = None
        self._rewound = any(row[1 + _COLUMNS.index("branch")] for row in self._head_rows)  # asked for each event
        self._ranges: list[AbandonedRange] | None = None

    def head(self) -> WorkflowHead:
        if self._head is None:
            empty = WorkflowHead(chain=EMPTY_CHAIN, lineage_chain=EMPTY_CHAIN)
            self._head = self._to_head(self._head_rows[0]) if self._head_rows else empty
        return self._head

    def _to_head(self, row: Row) -> WorkflowHead:
        name, *values, digest = row
        head = WorkflowHead(**dict(zip(_COLUMNS, values, strict=True)))
        if name != self._workflow or self._digest(head) != digest:
            raise CorruptRecordError("the row does not match its digest", place=f"workflow {self._workflow!r}")
        return head

    def _digest(self, head: WorkflowHead) -> bytes:
        return head_digest(self._session.digest_key, self._scope, head)

    def set_head(self, head: WorkflowHead) -> None:
        values = dict(zip(_COLUMNS, _VALUES(head), strict=True))
        self._session.send("set_head", **values, row_digest=self._digest(head))
        self._head = head
        self._rewound = head.branch > 0

    def insert(self, events: Sequence[StoredEvent], *, may_wait: bool = False) -> None:
        self._session.insert_events([_to_row(event) for event in events], may_wait=may_wait)

    def read(self, from_seq: int, through_seq: int) -> Iterator[StoredEvent]:
        if self._rewound:
            self._known_ranges()
        rows = self._session.stream("read_events", from_seq=from_seq, through_seq=through_seq)
        return (self._to_event(row) for row in rows)

    def _to_event(self, row: Row) -> StoredEvent:
        seq, key, record, codec, body, salt, digest, chain, abandoned_by = row
        if not (
            isinstance(record, bytes)
            and isinstance(chain, bytes)
            and _BYTES.issuperset(map(type, (key, body, salt, digest)))
        ):
            reason = "a column is of another type than it was written with"  # a page of another table stands there
            raise CorruptRecordError(reason, place=f"event {seq} of {self._workflow!r}")
        if self._rewound or abandoned_by is not None:
            self._check_mark(seq, abandoned_by)
        if body is not None and codec != PLAIN:
            body = decompress(codec, body, f"event {seq} of {self._workflow!r}", record)
        return StoredEvent(seq, None if key is None else unpack_key(key), record, body, salt, digest, chain)

    def _check_mark(self, seq: int, abandoned_by: int | None) -> None:
        """Check the mark by which the key of an event is free against the ranges of the rewinds. Those were read before
        the event was; of a relative that is not locked a rewind may have been committed since, which is looked up.
        """
        known = self._known_ranges()
        if _branch_of(known, seq) != abandoned_by:
            self._ranges = self.abandoned()
            if abandoned_by is None or _branch_of(self._ranges, seq) != abandoned_by:
                place = f"event {seq} of {self._workflow!r}"
                raise CorruptRecordError("its mark is not that of the rewinds", place=place)

    def _known_ranges(self) -> list[AbandonedRange]:
        if self._ranges is None:
            self._ranges = self.abandoned()
        return self._ranges

    def by_keys(self, keys: Sequence[str]) -> dict[str, StoredEvent]:
        found = {}
        if self._rewound:
            self._known_ranges()
        for key in keys:
            for row in self._session.rows("event_by_key", key=pack_key(key)):
                found[key] = self._to_event(row)
        return found

    def key_holders(self, key: str) -> list[StoredEvent]:
        if self._rewound:
            self._known_ranges()
        return [self._to_event(row) for row in sorted(self._session.rows("key_holders", key=pack_key(key)))]

    def abandon(self, abandoned: AbandonedRange) -> None:
        values = (abandoned.branch, abandoned.from_seq, abandoned.through_seq)
        places = dict(zip(("branch", "from_seq", "through_seq"), values, strict=True))
        self._session.send("add_abandoned", **places, row_digest=seal(self._session, "abandoned_range", values))
        self._session.send("abandon_events", **places)
        self._ranges = None

    def abandoned(self) -> list[AbandonedRange]:
        found = []
        for row in self._session.rows("abandoned"):
            branch, from_seq, through_seq, _ = row
            check_seal(self._session, "abandoned_range", row, branch)
            found.append(AbandonedRange(branch=branch, from_seq=from_seq, through_seq=through_seq))
        return found

    def count(self) -> int:
        count: int = self._session.rows("count_events")[0][0]
        return count

    def erase(self, digests: Mapping[int, bytes]) -> None:
        for seq, digest in digests.items():
            self._session.send("erase_event", seq=seq, codec=PLAIN, body_digest=digest)


def _branch_of(ranges: Sequence[AbandonedRange], seq: int) -> int | None:
    """Return the branch that began by leaving an event, or None."""
    return next((left.branch for left in ranges if left.from_seq <= seq <= left.through_seq), None)


def _to_row(event: StoredEvent) -> Row:
    seq, key, record, body, salt, digest, chain = event
    codec, packed = (PLAIN, None) if body is None else compress(body, record)
    return seq, None if key is None else pack_key(key), record, codec, packed, salt, digest, chain
