"""The reader facet: who reads the log outside, and how far each has come."""

from __future__ import annotations

from strandline.model.erasure import Reader
from strandline.stores.sql.session import Row, Session, check_seal, seal


class SqlReaders:
    """`ports.ReaderFacet` over SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get(self, name: str) -> Reader | None:
        rows = self._session.rows("reader", name=name)
        return self._to_reader(rows[0]) if rows else None

    def put(self, reader: Reader) -> None:
        values = (reader.name, reader.seq, int(reader.finished), reader.seen_us)
        row = dict(zip(("name", "seq", "finished", "seen_us"), values, strict=True))
        self._session.send("set_reader", **row, row_digest=seal(self._session, "reader_watermark", values))

    def all(self) -> list[Reader]:
        return [self._to_reader(row) for row in self._session.rows("all_readers")]

    def _to_reader(self, row: Row) -> Reader:
        name, seq, finished, seen_us, _ = row
        check_seal(self._session, "reader_watermark", row, name)
        return Reader(name=name, seq=seq, finished=bool(finished), seen_us=seen_us)
