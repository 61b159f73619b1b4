"""The summary facet: summaries, segments, changes of the manifest, foreign summaries."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.codec import compress, decode_json, decompress, encode_json, pack, unpack
from strandline.errors import CorruptRecordError
from strandline.model.outcome import ForeignSummary
from strandline.model.segment import Segment, SegmentHead
from strandline.model.summary import Anchor, DroppedRef, LedgerEntry, ManifestEntry, Summary
from strandline.stores.sql.rows import DROP_CODES, DROP_REASONS
from strandline.stores.sql.session import Row, Session, check_seal, seal


class SqlSummaries:
    """`ports.SummaryFacet` over SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, summary: Summary, dropped: Sequence[DroppedRef]) -> None:
        for segment in summary.segments:
            if not self._session.rows("segment_exists", segment_id=segment.head.segment_id):
                self._session.run("add_segment", **self._segment_row(segment))
        self._session.run("add_summary", **self._summary_row(summary))
        for position, segment in enumerate(summary.segments):
            self._session.run(
                "add_summary_segment",
                summary_no=summary.summary_no,
                position=position,
                segment_id=segment.head.segment_id,
            )
        rows = [(d.ref_id, summary.summary_no, int(d.dropped), d.last_seq, DROP_CODES[d.reason]) for d in dropped]
        self._session.run_many("add_change", rows)

    def get(self, summary_no: int) -> Summary | None:
        rows = self._session.rows("summary", summary_no=summary_no)
        return self._to_summary(rows[0]) if rows else None

    def numbers(self) -> list[int]:
        return [number for (number,) in self._session.rows("summary_numbers")]

    def by_id(self, summary_id: str) -> Summary | None:
        rows = self._session.rows("summary_no", summary_id=summary_id)
        return self.get(rows[0][0]) if rows else None

    def changes(self, summary_no: int) -> list[DroppedRef]:
        return [
            DroppedRef(ref_id=ref_id, dropped=bool(dropped), last_seq=last_seq, reason=DROP_REASONS[reason])
            for ref_id, dropped, last_seq, reason in self._session.rows("changes", summary_no=summary_no)
        ]

    def manifest(self, summary_no: int) -> list[ManifestEntry]:
        entries = []
        for text, ref_id, last_seq, generation, reason, digest in self._session.rows("manifest", summary_no=summary_no):
            if digest is None:
                raise CorruptRecordError("the reference is missing", place=f"ref {ref_id}")
            check_seal(self._session, "ref", (ref_id, text, digest), ref_id)
            entries.append(
                ManifestEntry(
                    ref=text,
                    ref_id=ref_id,
                    last_seq=last_seq,
                    generation_dropped=generation,
                    reason=DROP_REASONS[reason],
                )
            )
        return entries

    def dropped_by(self, summary_no: int, ref_id: int) -> int | None:
        rows = self._session.rows("dropped_by", summary_no=summary_no, ref_id=ref_id)
        return rows[0][0] if rows and rows[0][1] else None

    def add_foreign(self, summaries: Sequence[ForeignSummary]) -> None:
        for summary in summaries:
            codec, text = compress(summary.text.encode())
            values = (summary.key, summary.through_seq, codec, text, encode_json(summary.detail))
            self._session.run(
                "add_foreign",
                key=summary.key,
                through_seq=summary.through_seq,
                codec=codec,
                text=text,
                detail=values[-1],
                row_digest=seal(self._session, "foreign_summary", values),
            )

    def foreign(self) -> list[ForeignSummary]:
        found = []
        for row in self._session.rows("foreign"):
            key, through_seq, codec, text, detail, _ = row
            check_seal(self._session, "foreign_summary", row, key)
            place = f"foreign_summary {key!r}"
            found.append(
                ForeignSummary(
                    key=key,
                    through_seq=through_seq,
                    text=decompress(codec, text, place).decode(),
                    detail=decode_json(detail, place),
                )
            )
        return found

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
            "text": segment.text.encode(),
            "salt": segment.salt,
            "text_digest": segment.text_digest,
            "ref_ids": pack(segment.ref_ids),
            "made_by": segment.made_by,
        }
        return row | {"row_digest": seal(self._session, "segment", list(row.values()))}

    def _to_segment(self, row: Row) -> Segment:
        segment_id, from_seq, through_seq, event_count, level, depth, tokens, source_tokens = row[:8]
        source_digest, text, salt, text_digest, ref_ids, made_by, _ = row[8:]
        check_seal(self._session, "segment", row, segment_id)
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
            text=text.decode(),
            salt=salt,
            text_digest=text_digest,
            ref_ids=unpack(ref_ids, tuple[int, ...], f"segment {segment_id!r}"),
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
            "anchors": pack(summary.anchors),
            "ledger": pack(summary.ledger),
            "anchors_text": summary.anchors_text.encode(),
            "ledger_text": summary.ledger_text.encode(),
            "ref_ids": pack(summary.ref_ids),
            "salt": summary.salt,
            "text_digest": summary.text_digest,
            "refs_seen": summary.refs_seen,
            "dropped_count": summary.dropped_count,
            "manifest_digest": summary.manifest_digest,
            "revision": summary.revision,
        }
        return row | {"row_digest": seal(self._session, "summary", list(row.values()))}

    def _to_summary(self, row: Row) -> Summary:
        (summary_no, summary_id, view, base_no, generation, compactions, watermark, event_count, source) = row[:9]
        (depth, tokens, counter, anchors, ledger, anchors_text, ledger_text, ref_ids) = row[9:17]
        (salt, text_digest, refs_seen, dropped_count, manifest_digest, revision, _) = row[17:]
        check_seal(self._session, "summary", row, summary_no)
        place = f"summary {summary_no}"
        segments = self._session.rows("summary_segments", summary_no=summary_no)
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
            segments=tuple(self._to_segment(segment) for segment in segments),
            anchors=unpack(anchors, tuple[Anchor, ...], place),
            ledger=unpack(ledger, tuple[LedgerEntry, ...], place),
            anchors_text=anchors_text.decode(),
            ledger_text=ledger_text.decode(),
            ref_ids=unpack(ref_ids, tuple[int, ...], place),
            salt=salt,
            text_digest=text_digest,
            refs_seen=refs_seen,
            dropped_count=dropped_count,
            manifest_digest=manifest_digest,
            revision=revision,
        )
