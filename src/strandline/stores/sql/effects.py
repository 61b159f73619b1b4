"""The facets of effects and permits."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.codec import pack, unpack
from strandline.model.action import Permit, PermitState
from strandline.model.effect import Effect, EffectState
from strandline.stores.sql.session import Row, Session, check_seal, seal


class SqlEffects:
    """`ports.EffectFacet` over SQL. Columns are what is looked for; the effect itself is the record."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, effect: Effect) -> None:
        self._session.send("add_effect", **self._row(effect))

    def settle(self, effect: Effect, *, expected: EffectState, attempt: int) -> bool:
        row = self._row(effect)
        return self._session.run("settle_effect", **row, expected=expected.value, known_attempt=attempt) == 1

    def get(self, key: str) -> Effect | None:
        rows = self._session.rows("effect", key=key)
        return self._to_effect(rows[0]) if rows else None

    def alike(self, fingerprint: str, limit: int) -> list[Effect]:
        rows = self._session.rows("effects_alike", fingerprint=fingerprint, limit=limit)
        return [self._to_effect(row) for row in rows]

    def in_doubt(self, fingerprint: str, limit: int) -> list[Effect]:
        rows = self._session.rows("effects_in_doubt", fingerprint=fingerprint, limit=limit)
        return [self._to_effect(row) for row in rows]

    def all(self) -> Iterator[Effect]:
        for row in self._session.stream("all_effects"):
            yield self._to_effect(row)

    def count(self) -> int:
        count: int = self._session.rows("count_effects")[0][0]
        return count

    def _row(self, effect: Effect) -> dict[str, object]:
        row: dict[str, object] = {
            "key": effect.key,
            "fingerprint": effect.fingerprint,
            "state": effect.state.value,
            "attempt": effect.attempt,
            "intended_us": effect.intended_us,
            "record": pack(effect),
        }
        return row | {"row_digest": seal(self._session, "effect", list(row.values()))}

    def _to_effect(self, row: Row) -> Effect:
        check_seal(self._session, "effect", row, row[0])
        return unpack(row[-2], Effect, f"effect {row[0]!r}")


class SqlPermits:
    """`ports.PermitFacet` over SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, permit: Permit) -> None:
        self._session.send("add_permit", **self._row(permit))

    def settle(self, permit: Permit, *, expected: PermitState) -> bool:
        return self._session.run("settle_permit", **self._row(permit), expected=expected.value) == 1

    def get(self, permit_id: str) -> Permit | None:
        rows = self._session.rows("permit", permit_id=permit_id)
        return self._to_permit(rows[0]) if rows else None

    def use(self, workflow: str, seq: int, permit_id: str) -> bool:
        digest = seal(self._session, "approval_use", (workflow, seq, permit_id))
        added = self._session.run("use_approval", workflow=workflow, seq=seq, permit_id=permit_id, row_digest=digest)
        return added == 1

    def used(self, workflow: str, seq: int) -> str | None:
        rows = self._session.rows("approval_use", workflow=workflow, seq=seq)
        return self._to_use(rows[0])[2] if rows else None

    def all(self) -> Iterator[Permit]:
        for row in self._session.stream("all_permits"):
            yield self._to_permit(row)

    def all_uses(self) -> Iterator[tuple[str, int, str]]:
        for row in self._session.stream("all_approval_uses"):
            yield self._to_use(row)

    def _row(self, permit: Permit) -> dict[str, object]:
        row: dict[str, object] = {
            "permit_id": permit.permit_id,
            "state": permit.state.value,
            "decided_us": permit.decided_us,
            "record": pack(permit),
        }
        return row | {"row_digest": seal(self._session, "permit", list(row.values()))}

    def _to_permit(self, row: Row) -> Permit:
        check_seal(self._session, "permit", row, row[0])
        return unpack(row[-2], Permit, f"permit {row[0]!r}")

    def _to_use(self, row: Row) -> tuple[str, int, str]:
        workflow, seq, permit_id, _ = row
        check_seal(self._session, "approval_use", row, (workflow, seq))
        return workflow, seq, permit_id
