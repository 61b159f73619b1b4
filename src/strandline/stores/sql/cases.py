"""The case facet."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.codec import pack, unpack
from strandline.model.case import Case, CaseKind, CaseState
from strandline.stores.sql.session import Row, Session, check_seal, seal


class SqlCases:
    """`ports.CaseFacet` over SQL. Columns are what is looked for; the case itself is the record."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, case: Case) -> None:
        self._session.send("add_case", **self._row(case))

    def settle(self, case: Case) -> bool:
        row = self._row(case)
        kept = {name: row[name] for name in ("case_id", "state", "record", "row_digest")}
        return self._session.run("settle_case", **kept) == 1

    def get(self, case_id: str) -> Case | None:
        return self._first(self._session.rows("case", case_id=case_id))

    def open_one(self, identity: str) -> Case | None:
        return self._first(self._session.rows("open_case", identity=identity))

    def count_of(self, identity: str) -> int:
        count: int = self._session.rows("count_cases_of", identity=identity)[0][0]
        return count

    def blocking(self, view: str, summary_no: int) -> Case | None:
        return self._first(self._session.rows("blocking_case", view=view, summary_no=summary_no))

    def of_kind(self, kind: CaseKind, state: CaseState) -> list[Case]:
        rows = self._session.rows("cases_of_kind", kind=kind.value, state=state.value)
        return [self._to_case(row) for row in rows]

    def all(self) -> Iterator[Case]:
        for row in self._session.stream("all_cases"):
            yield self._to_case(row)

    def count(self) -> int:
        count: int = self._session.rows("count_cases")[0][0]
        return count

    def erase(self, case: Case) -> None:
        row = self._row(case)
        self._session.send("erase_case", **{name: row[name] for name in ("case_id", "record", "row_digest")})

    def _first(self, rows: list[Row]) -> Case | None:
        return self._to_case(rows[0]) if rows else None

    def _row(self, case: Case) -> dict[str, object]:
        row: dict[str, object] = {
            "case_id": case.case_id,
            "identity": case.identity,
            "kind": case.kind.value,
            "state": case.state.value,
            "blocking": int(case.blocking),
            "view": case.view,
            "summary_no": case.summary_no,
            "opened_us": case.opened_us,
            "record": pack(case),
        }
        return row | {"row_digest": seal(self._session, "case_file", list(row.values()))}

    def _to_case(self, row: Row) -> Case:
        check_seal(self._session, "case_file", row, row[0])
        return unpack(row[-2], Case, f"case_file {row[0]!r}")
