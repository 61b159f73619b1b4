"""The values of saved states as nodes: what is new of them is kept, and what is kept is read back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from strandline.codec import NodeDigests, decode_varints, encode_varints
from strandline.errors import CorruptRecordError
from strandline.limits import STATE_BLOCK_NODES
from strandline.model.state import HeldValue, Part, StateNode, StateValue
from strandline.ports import Transaction
from strandline.rules.states import levels_of, loose_from

PART: Final = 0  # the level of parts


def keep_values(tx: Transaction, key: bytes, values: Sequence[StateValue]) -> list[HeldValue]:
    """Keep what is new of some values, and return each as the numbers of its nodes.

    From the top level down, only what hangs under a block that is not known is looked for: of a list that grew, a few
    nodes of each level. A part that was erased is found by its digest, and so is not kept again (C31).
    """
    return _Keeping(tx, key, values).run()


class _Keeping:
    def __init__(self, tx: Transaction, key: bytes, values: Sequence[StateValue]) -> None:
        self._tx = tx
        self._values = values
        digests = NodeDigests(key)
        parts = ([digests.part(part.kind, part.data) for part in value.parts] for value in values)
        self._trees = [levels_of(known, digests.block) for known in parts]
        self._known: dict[bytes, int] = {}

    def run(self) -> list[HeldValue]:
        height = max(map(len, self._trees), default=0)
        missing = [dict[bytes, tuple[int, int]]()]  # above the top level
        for level in reversed(range(height)):
            missing.append(self._look(level, missing[-1].values()))
        self._add(list(reversed(missing[1:])))
        return [
            HeldValue(
                value.many,
                tuple(tuple(self._known[digest] for digest in nodes[loose_from(nodes) :]) for nodes in tree),
            )
            for value, tree in zip(self._values, self._trees, strict=True)
        ]

    def _look(self, level: int, above: Iterable[tuple[int, int]]) -> dict[bytes, tuple[int, int]]:
        """Look for nodes of a level: those in no block, and those under blocks that are missing. Return the missing
        ones, each with a place where it stands: which tree, and where in its level.
        """
        places: dict[bytes, tuple[int, int]] = {}
        for number, tree in enumerate(self._trees):
            if level < len(tree):
                for at in range(loose_from(tree[level]), len(tree[level])):
                    places.setdefault(tree[level][at], (number, at))
        for number, at in above:
            for below in range(at * STATE_BLOCK_NODES, (at + 1) * STATE_BLOCK_NODES):
                places.setdefault(self._trees[number][level][below], (number, below))
        self._known |= self._tx.nodes.find(places)
        return {digest: place for digest, place in places.items() if digest not in self._known}

    def _add(self, missing: Sequence[dict[bytes, tuple[int, int]]]) -> None:
        new: list[StateNode] = []
        first_id = self._tx.log.head().state_nodes + 1
        for level, places in enumerate(missing):
            for digest, (number, at) in places.items():
                self._known[digest] = first_id + len(new)
                kind, data = self._content(level, number, at)
                new.append(StateNode(self._known[digest], level, kind, data, digest))
        add_nodes(self._tx, new)

    def _content(self, level: int, number: int, at: int) -> tuple[str, bytes]:
        if level == PART:
            part = self._values[number].parts[at]
            return part.kind, part.data
        below = self._trees[number][level - 1][at * STATE_BLOCK_NODES : (at + 1) * STATE_BLOCK_NODES]
        return "", encode_varints(self._known[digest] for digest in below)


def extend_value(tx: Transaction, key: bytes, held: HeldValue, after: int, parts: Sequence[Part]) -> HeldValue:
    """Keep a list that is the first parts of a kept one and new ones behind them.

    Only nodes that no block holds are touched: of each level, as many as one block holds at most.

    Args:
        tx: open for writing.
        key: of digests.
        held: the kept list.
        after: how many of its parts come first, at most all.
        parts: the new ones.
    """
    digits, name = _first(tx, held, after), NodeDigests(key)
    digests = [name.part(part.kind, part.data) for part in parts]
    new = _numbered(tx, [(PART, part.kind, part.data, digest) for part, digest in zip(parts, digests, strict=True)])
    level, known = PART, dict(zip(new, digests, strict=True))
    while new:
        nodes = [*(digits[level] if level < len(digits) else ()), *new]
        full = loose_from(nodes)
        old = {node for node in nodes[:full] if node not in known}
        known |= {node.node_id: node.digest for node in read_nodes(tx, old, level)}
        blocks = [nodes[at : at + STATE_BLOCK_NODES] for at in range(0, full, STATE_BLOCK_NODES)]
        joined = [name.block(level + 1, [known[node] for node in block]) for block in blocks]
        digits[level : level + 1] = [nodes[full:]]
        level += 1
        made = [(level, "", encode_varints(block), digest) for block, digest in zip(blocks, joined, strict=True)]
        new = _numbered(tx, made)
        known = dict(zip(new, joined, strict=True))
    return HeldValue(True, tuple(map(tuple, digits)))


def count_parts(held: HeldValue) -> int:
    """Return how many parts a value has."""
    return sum(len(nodes) * STATE_BLOCK_NODES**level for level, nodes in enumerate(held.digits))


def _first(tx: Transaction, held: HeldValue, count: int) -> list[list[int]]:
    """Return the nodes of a list's first parts, level by level: the block that reaches too far is opened."""
    first: list[list[int]] = [[] for _ in held.digits]
    ahead = [(level, node) for level, nodes in enumerate(held.digits) for node in reversed(nodes)]
    while count:
        level, node = ahead.pop()
        if count >= STATE_BLOCK_NODES**level:
            first[level].append(node)
            count -= STATE_BLOCK_NODES**level
        else:
            (block,) = read_nodes(tx, {node}, level)
            ahead += [(level - 1, inner) for inner in reversed(nodes_in(block))]
    while len(first) > 1 and not first[-1]:
        first.pop()
    return first


def _numbered(tx: Transaction, nodes: Sequence[tuple[int, str, bytes, bytes]]) -> list[int]:
    """Return the numbers of nodes, given by level, kind, bytes and digest; those that are not there are added."""
    known = dict(tx.nodes.find({digest for *_, digest in nodes})) if nodes else {}
    first_id, new = tx.log.head().state_nodes + 1, list[StateNode]()
    for level, kind, data, digest in nodes:
        if digest not in known:
            known[digest] = first_id + len(new)
            new.append(StateNode(known[digest], level, kind, data, digest))
    add_nodes(tx, new)
    return [known[digest] for *_, digest in nodes]


def add_nodes(tx: Transaction, new: Sequence[StateNode]) -> None:
    """Add nodes, which are numbered behind the highest that the head knows."""
    if new:
        tx.nodes.add(new)
        tx.log.set_head(replace(tx.log.head(), state_nodes=new[-1].node_id))


class ValueReader:
    """Reads values back, each node once."""

    def __init__(self, tx: Transaction, held: Collection[HeldValue]) -> None:
        self._blocks: dict[int, list[int]] = {}
        self._parts: dict[int, Part | None] = {}  # None: erased
        for level, wanted in _by_level(tx, held, self._blocks):
            if level == PART:
                nodes = read_nodes(tx, wanted, level)
                self._parts = {n.node_id: None if n.data is None else Part(kind=n.kind, data=n.data) for n in nodes}

    def parts_of(self, held: HeldValue) -> list[int]:
        """Return the numbers of a value's parts, in order."""
        nodes: list[int] = []
        for level in reversed(held.digits):
            nodes = [inner for block in nodes for inner in self._blocks[block]] + list(level)
        return nodes

    def value(self, held: HeldValue) -> tuple[StateValue, bool]:
        """Return a value, and whether all of it is there: erased parts are left out."""
        parts = [self._parts[node] for node in self.parts_of(held)]
        left = tuple(part for part in parts if part is not None)
        return StateValue(left, held.many), len(left) == len(parts)


def nodes_of(tx: Transaction, held: Collection[HeldValue]) -> set[int]:
    """Return the numbers of all nodes that some values are made of; no part is read."""
    return {node for _, wanted in _by_level(tx, held, {}) for node in wanted}


def _by_level(
    tx: Transaction, held: Collection[HeldValue], blocks: dict[int, list[int]]
) -> Iterator[tuple[int, set[int]]]:
    """Yield the nodes of some values level by level, the parts last; `blocks` is told what each block holds."""
    below: set[int] = set()
    for level in reversed(range(max((len(value.digits) for value in held), default=0))):
        wanted = below.union(*(value.digits[level] for value in held if level < len(value.digits)))
        yield level, wanted
        inner = {node.node_id: nodes_in(node) for node in read_nodes(tx, wanted, level)} if level > PART else {}
        blocks |= inner
        below = {node for nodes in inner.values() for node in nodes}


def read_nodes(tx: Transaction, node_ids: Collection[int], level: int) -> Iterator[StateNode]:
    """Yield nodes of a level.

    Raises:
        CorruptRecordError: one is missing, or stands on another level (I4).
    """
    found = tx.nodes.get(node_ids) if node_ids else {}
    for node_id in sorted(node_ids):
        node = found.get(node_id)
        if node is None or node.level != level:
            raise CorruptRecordError(f"no node of level {level} is there", place=f"state_node {node_id}")
        yield node


def nodes_in(block: StateNode) -> list[int]:
    """Return the numbers of the nodes that a block holds.

    Raises:
        CorruptRecordError: it does not hold as many as a block does.
    """
    inner = decode_varints(block.data or b"")
    if len(inner) != STATE_BLOCK_NODES:
        raise CorruptRecordError(f"a block of {len(inner)} nodes", place=f"state_node {block.node_id}")
    return inner
