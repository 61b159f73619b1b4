"""The view facet: pointers, fences, leases."""

from __future__ import annotations

from strandline.codec import decode_json, encode_json
from strandline.model.view import ViewHead
from strandline.stores.sql.session import Row, Session, check_seal, seal

_COLUMNS = (
    "view_id",
    "name",
    "audiences",
    "audience_version",
    "budget",
    "generation",
    "summary_no",
    "watermark",
    "moved_lineage_seq",
    "fence",
    "lease_attempt",
    "lease_until_us",
)


class SqlViews:
    """`ports.ViewFacet` over SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get(self, name: str) -> ViewHead | None:
        rows = self._session.rows("view", name=name)
        return self._to_view(rows[0]) if rows else None

    def all(self) -> list[ViewHead]:
        return [self._to_view(row) for row in self._session.rows("all_views")]

    def put(self, head: ViewHead) -> None:
        row = self._to_row(head)
        if not self._session.run("set_view", **row):
            self._session.send("add_view", **row)  # a view that is there with another pointer: the key refuses it

    def move_pointer(self, head: ViewHead, *, base_generation: int, fence: int, attempt_id: str) -> bool:
        row = self._to_row(head)
        moved = self._session.run(
            "move_pointer", **row, base_generation=base_generation, owner_fence=fence, attempt_id=attempt_id
        )
        return moved == 1

    def shift_pointer(self, head: ViewHead, *, base_generation: int) -> bool:
        row = self._to_row(head)
        if self.get(head.name) is None:
            return base_generation == 0 and self._session.run("add_view", **row) == 1
        return self._session.run("shift_pointer", **row, base_generation=base_generation) == 1

    def _to_row(self, head: ViewHead) -> dict[str, object]:
        audiences = None if head.audiences is None else sorted(head.audiences)
        row = {name: getattr(head, name) for name in _COLUMNS} | {"audiences": encode_json(audiences)}
        return row | {"row_digest": seal(self._session, "view_head", list(row.values()))}

    def _to_view(self, row: Row) -> ViewHead:
        check_seal(self._session, "view_head", row, row[1])
        values = dict(zip(_COLUMNS, row, strict=False))
        audiences = decode_json(values["audiences"], f"view_head {row[1]!r}")
        return ViewHead(**{**values, "audiences": None if audiences is None else frozenset(audiences)})
