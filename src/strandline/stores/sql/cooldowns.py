"""The cooldown facet: how a summarizer answered the compactions of the tenant."""

from __future__ import annotations

from typing import Final

from strandline.model.cooldown import Cooldown
from strandline.stores.sql.session import Row, Session, check_seal, seal

_COLUMNS: Final = ("summarizer", "failures", "failed_us", "answered_us", "until_us", "steps")


class SqlCooldowns:
    """`ports.CooldownFacet` over SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get(self, summarizer: str) -> Cooldown | None:
        rows = self._session.rows("cooldown", summarizer=summarizer)
        return self._checked(rows[0]) if rows else None

    def others(self, summarizer: str, limit: int) -> list[Cooldown]:
        return [_to_cooldown(row) for row in self._session.rows("other_cooldowns", summarizer=summarizer, limit=limit)]

    def put(self, cooldown: Cooldown) -> None:
        row: dict[str, object] = {name: getattr(cooldown, name) for name in _COLUMNS}
        digest = seal(self._session, "cooldown", list(row.values()))
        changed_us = max(cooldown.failed_us, cooldown.answered_us)
        self._session.send("set_cooldown", **row, changed_us=changed_us, row_digest=digest)

    def all(self) -> list[Cooldown]:
        return [self._checked(row) for row in self._session.rows("all_cooldowns")]

    def _checked(self, row: Row) -> Cooldown:
        check_seal(self._session, "cooldown", row, row[0])
        return _to_cooldown(row)


def _to_cooldown(row: Row) -> Cooldown:
    return Cooldown(**dict(zip(_COLUMNS, row, strict=False)))
