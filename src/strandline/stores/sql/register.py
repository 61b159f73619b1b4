"""The register facet: facts as intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from strandline.errors import CorruptRecordError
from strandline.model.register import Fact, FactKey, FactKind, FactState
from strandline.stores.sql.session import Row, Session, check_seal, seal


class SqlRegister:
    """`ports.RegisterFacet` over SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def standing(self, kind: FactKind, subject: str) -> list[Fact]:
        rows = self._session.rows("facts_standing", kind=kind.value, subject=subject)
        return [self._to_fact(row) for row in sorted(rows)]

    def open_calls(self) -> list[Fact]:
        return [self._to_fact(row) for row in sorted(self._session.rows("open_calls"))]

    def as_of(self, seq: int) -> list[Fact]:
        return [self._to_fact(row) for row in self._session.rows("facts_as_of", seq=seq)]

    def begin(self, facts: Sequence[Fact]) -> None:
        self._session.run_many("begin_fact", [self._to_row(fact) for fact in facts])

    def end(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            ended = self._session.run(
                "end_fact",
                from_seq=fact.from_seq,
                ordinal=fact.ordinal,
                through_seq=fact.through_seq,
                row_digest=self._to_row(fact)[-1],
            )
            if not ended:
                place = f"register_fact {fact.from_seq}.{fact.ordinal}"
                raise CorruptRecordError("the fact is missing", place=place)

    def newest(self, kind: FactKind, subject: str, through_seq: int | None = None) -> Fact | None:
        rows = self._session.rows("facts_of", subject=subject, kind=kind.value)
        if through_seq is not None:
            rows = [row for row in rows if row[0] <= through_seq]
        return self._to_fact(max(rows)) if rows else None

    def count_standing(self) -> int:
        count: int = self._session.rows("count_standing")[0][0]
        return count

    def all(self) -> Iterator[Fact]:
        for row in self._session.stream("all_facts"):
            yield self._to_fact(row)

    def _to_row(self, fact: Fact) -> Row:
        values = (
            fact.from_seq,
            fact.ordinal,
            fact.key.kind.value,
            fact.key.subject,
            fact.key.holder,
            fact.state.value,
            fact.source_seq,
            fact.through_seq,
            fact.lane,
            fact.audience,
            fact.expires_us,
        )
        return (*values, seal(self._session, "register_fact", values))

    def _to_fact(self, row: Row) -> Fact:
        from_seq, ordinal, kind, subject, holder, state, source_seq, through_seq, lane, audience, expires_us, _ = row
        check_seal(self._session, "register_fact", row, (from_seq, ordinal))
        return Fact(
            key=FactKey(kind=FactKind(kind), subject=subject, holder=holder),
            state=FactState(state),
            source_seq=source_seq,
            from_seq=from_seq,
            ordinal=ordinal,
            through_seq=through_seq,
            lane=lane,
            audience=audience,
            expires_us=expires_us,
        )
