"""The log facet: head row and events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from strandline.codec import (
    EMPTY_CHAIN,
    compress,
    decode_envelope,
    decode_sightings,
    decompress,
    encode_envelope,
    encode_sightings,
)
from strandline.errors import CorruptRecordError
from strandline.model.event import Basis, BodyFormat, Event
from strandline.model.ids import Scope
from strandline.model.lineage import WorkflowHead
from strandline.stores.sql.rows import EVENT_CODES, EVENT_KINDS
from strandline.stores.sql.session import Names, Row, Session, check_seal, seal


def head_values(scope: Scope, head: WorkflowHead) -> list[object]:
    """Return what the digest of a head row is over: the names of tenant and workflow, then its columns."""
    return [
        scope.tenant,
        scope.workflow,
        head.revision,
        head.chain,
        head.lineage_seq,
        head.lineage_chain,
        head.branch,
        head.summary_no,
        head.ref_id,
        head.live_events,
    ]


class SqlLog:
    """`ports.LogFacet` over SQL."""

    def __init__(self, session: Session, names: Names, scope: Scope) -> None:
        self._session = session
        self._names = names
        self._scope = scope
        self._workflow = scope.workflow

    def head(self) -> WorkflowHead:
        rows = self._session.rows("head")
        if not rows:
            return WorkflowHead(chain=EMPTY_CHAIN, lineage_chain=EMPTY_CHAIN)
        row = rows[0]
        check_seal(self._session, "workflow", (self._scope.tenant, *row), self._workflow)
        _, revision, chain, lineage_seq, lineage_chain, branch, summary_no, ref_id, live_events, _ = row
        return WorkflowHead(
            revision=revision,
            chain=chain,
            lineage_seq=lineage_seq,
            lineage_chain=lineage_chain,
            branch=branch,
            summary_no=summary_no,
            ref_id=ref_id,
            live_events=live_events,
        )

    def set_head(self, head: WorkflowHead) -> None:
        self._session.run(
            "set_head",
            revision=head.revision,
            chain=head.chain,
            lineage_seq=head.lineage_seq,
            lineage_chain=head.lineage_chain,
            branch=head.branch,
            summary_no=head.summary_no,
            ref_id=head.ref_id,
            live_events=head.live_events,
            row_digest=seal(self._session, "workflow", head_values(self._scope, head)),
        )

    def insert(self, events: Sequence[Event]) -> None:
        self._session.insert_events([self._to_row(event) for event in events])

    def _to_row(self, event: Event) -> Row:
        codec, body = compress(event.body) if event.body is not None else (0, None)
        basis = event.basis
        return (
            event.seq,
            event.branch,
            EVENT_CODES[event.kind],
            self._names.number(event.actor),
            self._names.number(event.audience),
            event.at_us,
            event.key,
            event.call_seq,
            self._names.number(basis.view) if basis else None,
            basis.generation if basis else None,
            basis.revision if basis else None,
            encode_envelope(event.envelope),
            encode_sightings(event.sightings),
            int(event.format),
            codec,
            body,
            event.salt,
            event.body_digest,
            event.chain,
        )

    def read(self, from_seq: int, through_seq: int) -> Iterator[Event]:
        for row in self._session.stream("read_events", from_seq=from_seq, through_seq=through_seq):
            yield self._to_event(row)

    def _to_event(self, row: Row) -> Event:
        (seq, branch, kind, actor_id, audience_id, at_us, key, call_seq, view_id, generation, revision) = row[:11]
        (envelope, refs, format_, codec, body, salt, body_digest, chain) = row[11:]
        place = f"event {seq} of {self._workflow!r}"
        try:
            event_kind, body_format = EVENT_KINDS[kind], BodyFormat(format_)
            sightings = decode_sightings(refs)
        except (KeyError, ValueError) as error:
            raise CorruptRecordError(f"unknown code {error}", place=place) from error
        basis = None
        if view_id is not None:
            basis = Basis(view=self._names.name(view_id), generation=generation, revision=revision)
        return Event(
            seq=seq,
            branch=branch,
            kind=event_kind,
            actor=self._names.name(actor_id),
            audience=self._names.name(audience_id),
            at_us=at_us,
            key=key,
            call_seq=call_seq,
            basis=basis,
            envelope=decode_envelope(envelope, place),
            sightings=sightings,
            format=body_format,
            body=None if body is None else decompress(codec, body, place),
            salt=salt,
            body_digest=body_digest,
            chain=chain,
        )

    def by_keys(self, keys: Sequence[str]) -> dict[str, Event]:
        found = {}
        for key in keys:
            for (seq,) in self._session.rows("event_by_key", key=key):
                found[key] = next(self.read(seq, seq))
        return found

    def count(self) -> int:
        count: int = self._session.rows("count_events")[0][0]
        return count
