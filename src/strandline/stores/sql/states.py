"""The facets of saved states: lines, versions, and the nodes of their values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from strandline.codec import fold, keyed_number, pack, unfold, unpack
from strandline.errors import CorruptRecordError
from strandline.model.state import HeldValue, HeldWrite, StateLine, StateNode, StateRow, StateStatus
from strandline.stores.sql.rows import pack_key, unpack_key
from strandline.stores.sql.session import Row, Session, check_seal, seal

DIGESTS_AT_ONCE: Final = 16  # as many as the statement find_nodes takes
_GAP_MAX: Final = 8  # numbers between two nodes that are read with them: a statement more costs more than these
_NO_DIGEST: Final = b""
_LINE: Final = ("number", "name", "saved", "newest")
_STATE: Final = (
    "number",
    "line",
    "state_id",
    "status",
    "position",
    "previous",
    "parent",
    "run",
    "held",
    "meta",
    "writes",
)


class SqlStates:
    """`ports.StateFacet` over SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def line(self, name: str) -> StateLine | None:
        rows = self._session.rows("state_line", name=name)
        return self._to_line(rows[0]) if rows else None

    def lines(self) -> list[StateLine]:
        return [self._to_line(row) for row in self._session.rows("all_state_lines")]

    def count_lines(self) -> int:
        count: int = self._session.rows("count_state_lines")[0][0]
        return count

    def put_line(self, line: StateLine) -> None:
        values = (line.number, line.name, line.saved, line.newest)
        digest = seal(self._session, "state_line", values)
        self._session.send("set_state_line", **dict(zip(_LINE, values, strict=True)), row_digest=digest)

    def get(self, line: int, state_id: str) -> StateRow | None:
        rows = self._session.rows("saved_state", line=line, state_id=pack_key(state_id))
        return self._to_state(rows[0]) if rows else None

    def put(self, row: StateRow) -> None:
        values = (
            row.number,
            row.line,
            pack_key(row.state_id),
            row.status.value,
            row.position,
            row.previous,
            None if row.parent is None else pack_key(row.parent),
            row.run,
            fold(pack(row.values)),
            fold(row.meta),
            fold(pack(row.writes)),
        )
        digest = seal(self._session, "saved_state", values)
        self._session.send("set_saved_state", **dict(zip(_STATE, values, strict=True)), row_digest=digest)

    def page(self, through: int, limit: int, line: int | None = None) -> list[StateRow]:
        if line is None:
            rows = self._session.rows("newest_states", through=through, limit=limit)
        else:
            rows = self._session.rows("newest_states_of_line", line=line, through=through, limit=limit)
        return [self._to_state(row) for row in rows]

    def all(self) -> Iterator[StateRow]:
        for row in self._session.stream("all_saved_states"):
            yield self._to_state(row)

    def count(self) -> int:
        count: int = self._session.rows("count_saved_states")[0][0]
        return count

    def _to_line(self, row: Row) -> StateLine:
        number, name, saved, newest, _ = row
        check_seal(self._session, "state_line", row, name)
        return StateLine(number=number, name=name, saved=saved, newest=newest)

    def _to_state(self, row: Row) -> StateRow:
        number, line, state_id, status, position, previous, parent, run, held, meta, writes, _ = row
        check_seal(self._session, "saved_state", row, number)
        place = f"saved_state {number}"
        return StateRow(
            number=number,
            line=line,
            state_id=unpack_key(state_id),
            status=StateStatus(status),
            position=position,
            previous=previous,
            parent=None if parent is None else unpack_key(parent),
            run=run,
            values=unpack(unfold(held, place), tuple[tuple[str, HeldValue], ...], place),
            meta=unfold(meta, place),
            writes=unpack(unfold(writes, place), tuple[HeldWrite, ...], place),
        )


class SqlNodes:
    """`ports.NodeFacet` over SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._place = ",".join(map(str, session.ids))

    def find(self, digests: Collection[bytes]) -> dict[bytes, int]:
        found: dict[bytes, int] = {}
        wanted = iter(digests)
        while some := list(islice(wanted, DIGESTS_AT_ONCE)):
            some += [_NO_DIGEST] * (DIGESTS_AT_ONCE - len(some))
            rows = self._session.rows("find_nodes", **{f"d{i}": digest for i, digest in enumerate(some, 1)})
            found |= {bytes(digest): node_id for digest, node_id in rows}
        return found

    def add(self, nodes: Sequence[StateNode]) -> None:
        self._session.run_many("add_node", [self._to_row(node) for node in nodes])

    def get(self, node_ids: Collection[int]) -> dict[int, StateNode]:
        wanted, found = set(node_ids), {}
        for first, last in _spans(sorted(wanted), _GAP_MAX):
            for row in self._session.stream("nodes", from_id=first, through_id=last):
                if row[0] in wanted:
                    found[row[0]] = self._to_node(row)
        return found

    def ids(self) -> list[int]:
        return [node_id for (node_id,) in self._session.rows("node_ids")]

    def all(self) -> Iterator[StateNode]:
        for row in self._session.stream("all_nodes"):
            yield self._to_node(row)

    def erase(self, node_ids: Collection[int]) -> None:
        for node in self.get(node_ids).values():
            *_, proof = self._to_row(StateNode(node.node_id, node.level, node.kind, None, node.digest))
            self._session.send("erase_node", node_id=node.node_id, proof=proof)

    def drop(self, node_ids: Collection[int]) -> None:
        for first, last in _spans(sorted(node_ids), gap=0):
            self._session.send("drop_nodes", from_id=first, through_id=last)

    def _to_row(self, node: StateNode) -> Row:
        body = None if node.data is None else fold(node.data)
        values = (node.node_id, node.level, node.kind, body, node.digest)
        return (*values, self._proof(*values))

    def _to_node(self, row: Row) -> StateNode:
        node_id, level, kind, body, digest, proof = row
        if self._proof(node_id, level, kind, body, digest) != proof:
            raise CorruptRecordError("the row does not match its digest", place=f"state_node {node_id}")
        data = None if body is None else unfold(body, f"state_node {node_id}")
        return StateNode(node_id, level, kind, data, digest)

    def _proof(self, node_id: int, level: int, kind: str, body: bytes | None, digest: bytes) -> int:
        """Return the keyed number of a row: a load checks each of its parts, and JSON would take most of its time."""
        erased = int(body is None)
        told = f"{self._place},{node_id},{level},{erased},{len(digest)},{len(kind)},{kind}".encode()
        return keyed_number(self._session.digest_key, b"sl.state_node", told + digest + (body or b""))


def _spans(numbers: Iterable[int], gap: int) -> Iterator[tuple[int, int]]:
    """Yield sorted numbers as closed ranges; at most `gap` other numbers lie between two of a range."""
    first = last = None
    for number in numbers:
        if first is None or last is None:
            first = last = number
        elif number - last <= gap + 1:
            last = number
        else:
            yield first, last
            first = last = number
    if first is not None and last is not None:
        yield first, last
