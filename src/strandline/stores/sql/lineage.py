"""The lineage and checkpoint facets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from strandline.codec import fold, pack, unfold, unpack
from strandline.errors import CorruptRecordError
from strandline.model.checkpoint import Checkpoint, CheckpointView, ExternalState
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.stores.sql.session import Row, Session


class SqlLineage:
    """`ports.LineageFacet` over SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, entry: LineageEntry) -> None:
        self._session.send(
            "add_lineage",
            lineage_seq=entry.lineage_seq,
            kind=entry.kind.value,
            op_key=entry.op_key,
            revision=entry.revision,
            at_us=entry.at_us,
            view=entry.view,
            generation=entry.generation,
            name=entry.name,
            restored_seq=entry.restored_seq,
            record=pack((entry.digest, entry.by, entry.why, entry.detail)),
            chain=entry.chain,
        )

    def read(self, after: int, limit: int) -> list[LineageEntry]:
        return [_to_entry(row) for row in self._session.rows("lineage", after=after, limit=limit)]

    def moved_to(self, view: str) -> int:
        return self._session.rows("lineage_move", view=view)[0][0] or 0

    def move_to(self, view: str, generation: int) -> LineageEntry | None:
        rows = self._session.rows("lineage_move_to", view=view, generation=generation)
        return _to_entry(rows[0]) if rows else None

    def newest_recovery(self) -> LineageEntry | None:
        rows = self._session.rows("newest_recovery")
        return _to_entry(rows[0]) if rows else None

    def by_op_key(self, op_key: str) -> LineageEntry | None:
        rows = self._session.rows("lineage_by_op", op_key=op_key)
        return _to_entry(rows[0]) if rows else None

    def newest_checkpoint(self, name: str, before: int, *, context_free: bool) -> LineageEntry | None:
        rows = self._session.rows("newest_checkpoint", name=name, before=before, context_free=int(context_free))
        return _to_entry(rows[0]) if rows else None

    def left_by_restore(self, name: str, lineage_seq: int) -> bool:
        return bool(self._session.rows("left_by_restore", name=name, lineage_seq=lineage_seq))

    def of_kinds(self, kinds: Collection[LineageKind]) -> list[LineageEntry]:
        found = (self._session.rows("lineage_of_kind", kind=kind.value) for kind in kinds)
        return sorted((_to_entry(row) for rows in found for row in rows), key=lambda entry: entry.lineage_seq)

    def forks(self) -> list[str]:
        return [name for (name,) in self._session.rows("forks")]


def _to_entry(row: Row) -> LineageEntry:
    lineage_seq, kind, op_key, revision, at_us, view, generation, name, restored_seq, record, chain = row
    place = f"lineage {lineage_seq}"
    try:
        entry_kind = LineageKind(kind)
    except ValueError as error:
        raise CorruptRecordError(f"{kind!r} is no kind of entry", place=place) from error
    digest, by, why, detail = unpack(record, tuple[bytes | None, str | None, str | None, Mapping[str, Any]], place)
    return LineageEntry(
        lineage_seq=lineage_seq,
        kind=entry_kind,
        op_key=op_key,
        revision=revision,
        at_us=at_us,
        view=view,
        generation=generation,
        name=name,
        restored_seq=restored_seq,
        digest=digest,
        by=by,
        why=why,
        detail=detail,
        chain=chain,
    )


class SqlCheckpoints:
    """`ports.CheckpointFacet` over SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, checkpoint: Checkpoint) -> None:
        self._session.send(
            "add_checkpoint",
            lineage_seq=checkpoint.lineage_seq,
            name=checkpoint.name,
            turn=checkpoint.turn,
            revision=checkpoint.revision,
            branch=checkpoint.branch,
            context_free=int(checkpoint.context_free),
            in_flight=int(checkpoint.in_flight),
            views=pack(checkpoint.views),
            state=fold(checkpoint.state),
            salt=checkpoint.salt,
            external=None if checkpoint.external is None else pack(checkpoint.external),
            digest=checkpoint.digest,
        )

    def erase(self, lineage_seq: int, state_digest: bytes) -> None:
        self._session.send("erase_checkpoint", lineage_seq=lineage_seq, state_digest=state_digest)

    def get(self, lineage_seq: int) -> Checkpoint | None:
        rows = self._session.rows("checkpoint", lineage_seq=lineage_seq)
        return _to_checkpoint(rows[0]) if rows else None

    def all(self) -> Iterator[Checkpoint]:
        for row in self._session.stream("all_checkpoints"):
            yield _to_checkpoint(row)


def _to_checkpoint(row: Row) -> Checkpoint:
    (name, lineage_seq, turn, revision, branch, context_free, in_flight, views, state, salt, external) = row[:11]
    digest, state_digest = row[11:]
    place = f"checkpoint {lineage_seq}"
    return Checkpoint(
        name=name,
        lineage_seq=lineage_seq,
        turn=turn,
        revision=revision,
        branch=branch,
        context_free=bool(context_free),
        in_flight=bool(in_flight),
        views=unpack(views, tuple[CheckpointView, ...], place),
        state=b"" if state is None else unfold(state, place),
        salt=salt or b"",
        digest=digest,
        external=None if external is None else unpack(external, ExternalState, place),
        state_digest=state_digest,
    )
