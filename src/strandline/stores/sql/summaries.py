"""The summary facet: summaries, segments, changes of the manifest, foreign summaries."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from strandline.codec import decode_json, encode_json, fold, pack, unfold, unpack
from strandline.errors import CorruptRecordError
from strandline.model.outcome import ForeignSummary
from strandline.model.segment import Segment, SegmentHead
from strandline.model.summary import Anchor, DroppedRef, LedgerEntry, ManifestEntry, Summary
from strandline.stores.sql.manifest import decode_changes, encode_changes
from strandline.stores.sql.refs import SqlRefs
from strandline.stores.sql.session import Row, Session, check_seal, seal

_TEXT: Final = 9  # places in the rows of `segment` and `summary`: text, salt; anchors, ledger and their texts; salt
_ANCHORS: Final = 13
_SUMMARY_SALT: Final = 18


@dataclass(frozen=True, slots=True)
class _Link:
    """What one summary changed in the manifest of its base."""

    base_no: int
    generation: int
    changes: list[DroppedRef]


class SqlSummaries:
    """`ports.SummaryFacet` over SQL."""

    def __init__(self, session: Session, refs: SqlRefs) -> None:
        self._session = session
        self._refs = refs

    def add(self, summary: Summary, dropped: Sequence[DroppedRef]) -> None:
        for segment in summary.segments:
            if not self._session.rows("segment_exists", segment_id=segment.head.segment_id):
                self._session.send("add_segment", **self._segment_row(segment))
        self._session.send("add_summary", **self._summary_row(summary))
        values = (summary.summary_no, summary.base_no, summary.generation, fold(encode_changes(dropped)))
        self._session.send(
            "add_changes",
            summary_no=summary.summary_no,
            base_no=summary.base_no,
            generation=summary.generation,
            changes=values[-1],
            row_digest=seal(self._session, "dropped_ref", values),
        )

    def get(self, summary_no: int, *, texts_only: bool = False) -> Summary | None:
        rows = self._session.rows("summary", summary_no=summary_no)
        return self._to_summary(rows[0], texts_only=texts_only) if rows else None

    def by_id(self, summary_id: str) -> Summary | None:
        rows = self._session.rows("summary_no", summary_id=summary_id)
        return self.get(rows[0][0]) if rows else None

    def changes(self, summary_no: int) -> list[DroppedRef]:
        link = self._link(summary_no)
        return link.changes if link else []

    def manifest(self, summary_no: int) -> list[ManifestEntry]:
        dropped = [(change, at) for change, at in self._newest_changes(summary_no) if change.dropped]
        texts = self._refs.texts(change.ref_id for change, _ in dropped)
        entries = [
            ManifestEntry(
                ref=texts.get(change.ref_id),
                ref_id=change.ref_id,
                last_seq=change.last_seq,
                generation_dropped=generation,
                reason=change.reason,
            )
            for change, generation in dropped
        ]
        return sorted(entries, key=lambda entry: (-entry.last_seq, entry.ref_id))

    def dropped_by(self, summary_no: int, ref_ids: Collection[int]) -> dict[int, int]:
        wanted = set(ref_ids)
        return {
            change.ref_id: generation
            for change, generation in self._newest_changes(summary_no, wanted)
            if change.dropped
        }

    def _newest_changes(self, summary_no: int, wanted: set[int] | None = None) -> Iterator[tuple[DroppedRef, int]]:
        """Yield of each reference the newest change along the chain of bases, with the generation that it became."""
        met: set[int] = set()
        while summary_no and (wanted is None or met < wanted):
            link = self._link(summary_no)
            if link is None:
                return
            for change in link.changes:
                if change.ref_id not in met and (wanted is None or change.ref_id in wanted):
                    met.add(change.ref_id)
                    yield change, link.generation
            summary_no = link.base_no

    def _link(self, summary_no: int) -> _Link | None:
        """Return a summary's own changes; None at a summary that is not there.

        Raises:
            CorruptRecordError: the summary is there, its changes are not.
        """
        rows = self._session.rows("changes", summary_no=summary_no)
        if not rows:
            if self._session.rows("summary", summary_no=summary_no):
                raise CorruptRecordError("the changes of the manifest are missing", place=f"dropped_ref {summary_no}")
            return None
        _, base_no, generation, changes, _ = rows[0]
        check_seal(self._session, "dropped_ref", rows[0], summary_no)
        return _Link(base_no, generation, decode_changes(unfold(changes, f"dropped_ref {summary_no}")))

    def add_foreign(self, summaries: Sequence[ForeignSummary]) -> int:
        added = 0
        for summary in summaries:
            values = (
                summary.key,
                summary.through_seq,
                fold(summary.text.encode()),
                encode_json(summary.detail),
            )
            added += self._session.run(
                "add_foreign",
                key=summary.key,
                through_seq=summary.through_seq,
                text=values[2],
                detail=values[3],
                row_digest=seal(self._session, "foreign_summary", values),
            )
        return added

    def foreign(self) -> list[ForeignSummary]:
        found = []
        for row in self._session.rows("foreign"):
            key, through_seq, text, detail, _ = row
            check_seal(self._session, "foreign_summary", row, key)
            place = f"foreign_summary {key!r}"
            found.append(
                ForeignSummary(
                    key=key,
                    through_seq=through_seq,
                    text=_text(text, place),
                    detail=decode_json(detail, place),
                    erased=text is None,
                )
            )
        return found

    def erase(self, summary_nos: Collection[int], segment_ids: Collection[str]) -> None:
        for number in summary_nos:
            values = list(self._session.rows("summary", summary_no=number)[0][:-1])
            values[_ANCHORS : _ANCHORS + 4] = [None] * 4
            values[_SUMMARY_SALT] = None
            digest = seal(self._session, "summary", values)
            self._session.send("erase_summary", summary_no=number, row_digest=digest)
        for segment_id in segment_ids:
            values = list(self._session.rows("segment", segment_id=segment_id)[0][:-1])
            values[_TEXT : _TEXT + 2] = [None] * 2
            digest = seal(self._session, "segment", values)
            self._session.send("erase_segment", segment_id=segment_id, row_digest=digest)

    def erase_foreign(self, keys: Collection[str]) -> None:
        for row in self._session.rows("foreign"):
            key, through_seq, _, detail, _ = row
            if key in keys:
                digest = seal(self._session, "foreign_summary", (key, through_seq, None, detail))
                self._session.send("erase_foreign", key=key, row_digest=digest)

    def _segment_row(self, segment: Segment) -> dict[str, object]:
        head = segment.head
        row: dict[str, object] = {
            "segment_id": head.segment_id,
            "from_seq": head.from_seq,
            "through_seq": head.through_seq,
            "event_count": segment.event_count,
            "level": head.level,
            "depth": head.depth,
            "tokens": head.tokens,
            "source_tokens": head.source_tokens,
            "source_digest": segment.source_digest,
            "text": fold(segment.text.encode()),
            "salt": segment.salt,
            "text_digest": segment.text_digest,
            "ref_ids": fold(pack(segment.ref_ids)),
            "made_by": segment.made_by,
        }
        return row | {"row_digest": seal(self._session, "segment", list(row.values()))}

    def _segment(self, segment_id: str, *, texts_only: bool) -> Segment:
        rows = self._session.rows("segment", segment_id=segment_id)
        if not rows:
            raise CorruptRecordError("the segment is missing", place=f"segment {segment_id!r}")
        return self._to_segment(rows[0], texts_only=texts_only)

    def _to_segment(self, row: Row, *, texts_only: bool) -> Segment:
        segment_id, from_seq, through_seq, event_count, level, depth, tokens, source_tokens = row[:8]
        source_digest, text, salt, text_digest, ref_ids, made_by, _ = row[8:]
        check_seal(self._session, "segment", row, segment_id)
        place = f"segment {segment_id!r}"
        return Segment(
            head=SegmentHead(
                segment_id=segment_id,
                from_seq=from_seq,
                through_seq=through_seq,
                level=level,
                depth=depth,
                tokens=tokens,
                source_tokens=source_tokens,
            ),
            event_count=event_count,
            source_digest=source_digest,
            text=_text(text, place),
            salt=salt or b"",
            text_digest=text_digest,
            ref_ids=() if texts_only else unpack(unfold(ref_ids, place), tuple[int, ...], place),
            made_by=made_by,
        )

    def _summary_row(self, summary: Summary) -> dict[str, object]:
        row: dict[str, object] = {
            "summary_no": summary.summary_no,
            "summary_id": summary.summary_id,
            "view": summary.view,
            "base_no": summary.base_no,
            "generation": summary.generation,
            "compactions": summary.compactions,
            "watermark": summary.watermark,
            "event_count": summary.event_count,
            "source_digest": summary.source_digest,
            "depth": summary.depth,
            "tokens": summary.tokens,
            "token_counter": summary.token_counter,
            "segments": fold(pack([segment.head.segment_id for segment in summary.segments])),
            "anchors": fold(pack(summary.anchors)),
            "ledger": fold(pack(summary.ledger)),
            "anchors_text": fold(summary.anchors_text.encode()),
            "ledger_text": fold(summary.ledger_text.encode()),
            "ref_ids": fold(pack(summary.ref_ids)),
            "salt": summary.salt,
            "text_digest": summary.text_digest,
            "refs_seen": summary.refs_seen,
            "dropped_count": summary.dropped_count,
            "manifest_digest": summary.manifest_digest,
            "revision": summary.revision,
        }
        return row | {"row_digest": seal(self._session, "summary", list(row.values()))}

    def _to_summary(self, row: Row, *, texts_only: bool) -> Summary:
        (summary_no, summary_id, view, base_no, generation, compactions, watermark, event_count, source) = row[:9]
        (depth, tokens, counter, segments, anchors, ledger, anchors_text, ledger_text, ref_ids) = row[9:18]
        (salt, text_digest, refs_seen, dropped_count, manifest_digest, revision, _) = row[18:]
        check_seal(self._session, "summary", row, summary_no)
        place, erased = f"summary {summary_no}", salt is None
        return Summary(
            summary_no=summary_no,
            summary_id=summary_id,
            view=view,
            base_no=base_no,
            generation=generation,
            compactions=compactions,
            watermark=watermark,
            event_count=event_count,
            source_digest=source,
            depth=depth,
            tokens=tokens,
            token_counter=counter,
            segments=tuple(
                self._segment(segment_id, texts_only=texts_only)
                for segment_id in unpack(unfold(segments, place), list[str], place)
            ),
            anchors=() if texts_only or erased else unpack(unfold(anchors, place), tuple[Anchor, ...], place),
            ledger=() if texts_only or erased else unpack(unfold(ledger, place), tuple[LedgerEntry, ...], place),
            anchors_text=_text(anchors_text, place),
            ledger_text=_text(ledger_text, place),
            ref_ids=() if texts_only else unpack(unfold(ref_ids, place), tuple[int, ...], place),
            salt=salt or b"",
            text_digest=text_digest,
            refs_seen=refs_seen,
            dropped_count=dropped_count,
            manifest_digest=manifest_digest,
            revision=revision,
        )


def _text(folded: bytes | None, place: str) -> str:
    """Return a text as it was; "" once it is erased."""
    return "" if folded is None else unfold(folded, place).decode()
