"""Read saved states: the newest of a line, one by its id, or all of them page by page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from strandline.codec import encode_text
from strandline.engine.environment import Environment, check_whole
from strandline.engine.state_values import PART, ValueReader
from strandline.engine.watching import watched
from strandline.errors import CorruptRecordError, InvalidInputError, StateErasedError
from strandline.limits import STATES_PAGE
from strandline.model.state import (
    LineUsage,
    SavedState,
    StateLine,
    StateRow,
    StateStatus,
    StatesUsage,
    StateWrite,
)
from strandline.ports import Transaction

SAVED: Final = frozenset({StateStatus.SAVED, StateStatus.ERASED})


@watched("load_state")
def load_state(
    env: Environment, state_id: str | None, line: str, *, values: bool | Collection[str], erased: bool
) -> SavedState | None:
    """Return a saved state, or the newest one of a line by its position; None: there is none.

    Raises:
        InvalidInputError: nothing can bear such a name.
        StateErasedError: some of what it held was erased, and what is left was not asked for.
        CorruptRecordError: what would have to be read is missing, or is not what was written (I4).
    """
    _check_names(line=line, state_id=state_id)
    with env.read() as tx:
        there = find_line(tx, line)
        row = None if there is None else _find(tx, there, state_id)
        if row is None or there is None:
            return None
        state = next(_shown(tx, [row], {there.number: there}, values=values))
    if state.erased and not erased:
        raise StateErasedError(
            f"some of what the state {state.state_id!r} of line {line!r} held was erased",
            line=line,
            state_id=state.state_id,
        )
    return state


def _check_names(**names: object) -> None:
    """Refuse names that a store can't look for; what is merely too long is not there."""
    for what, name in names.items():
        if name is None:
            continue
        if not isinstance(name, str) or "\0" in name:
            raise InvalidInputError(f"{what} is a text without NUL, not {name!r}")
        encode_text(name, what)


def _find(tx: Transaction, line: StateLine, state_id: str | None) -> StateRow | None:
    if state_id is None:
        return newest_row(tx, line)
    row = tx.states.get(line.number, state_id)
    if row is None:
        check_states_whole(tx)
        return None
    return row if row.status in SAVED else None


def list_states(
    env: Environment, line: str | None, before: int | None, limit: int | None, *, values: bool | Collection[str]
) -> Iterator[SavedState]:
    """Yield saved states, of one line or of all, the newest first; each page is read in a snapshot of its own.

    Raises:
        InvalidInputError: `before` or `limit` is no number, or no line can bear such a name.
        CorruptRecordError: one is missing, or is not what was written (I4).
    """
    _check_names(line=line)
    for name, number in (("before", before), ("limit", limit)):
        check_whole(name, number)
        if number is not None and number < 0:
            raise InvalidInputError(f"{name} is 0 or more, not {number}")
    left, after = limit, _Place(through=None if before is None else before - 1, is_state=False)
    while left is None or left > 0:
        most = STATES_PAGE if left is None else min(left, STATES_PAGE)
        found, after = _read_page(env, line, after, most, values)
        yield from found
        left = None if left is None else left - len(found)
        if after.through == 0:
            return


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a page begins: a position, None for the newest; and whether a state of the line must stand there."""

    through: int | None
    is_state: bool


@watched("list_states")
def _read_page(
    env: Environment, line: str | None, place: _Place, most: int, values: bool | Collection[str]
) -> tuple[list[SavedState], _Place]:
    """Return states from a place on, and where the next page begins; at 0: there is none."""
    with env.read() as tx:
        there = None if line is None else find_line(tx, line)
        if line is not None and there is None:
            return [], _Place(through=0, is_state=False)
        last = tx.log.head().state_positions if there is None else there.saved
        through = last if place.through is None else min(last, place.through)
        rows = tx.states.page(through, STATES_PAGE, None if there is None else there.number)
        is_known = place.is_state or there is None or through == last
        if not is_known:
            check_states_whole(tx)  # no state of the line above says which one comes first
        next_one = check_page(rows, through if is_known else None, there)
        kept = [row for row in rows if row.status in SAVED]
        if len(kept) >= most:
            kept = kept[:most]
            next_one = before_it(kept[-1], there)
        lines = {one.number: one for one in ([there] if there is not None else tx.states.lines())}
        return list(_shown(tx, kept, lines, values=values)), _Place(through=next_one, is_state=True)


@watched("state_lines")
def list_lines(env: Environment) -> list[str]:
    """Return the names of the lines that hold a saved state, in the order in which they began."""
    with env.read() as tx:
        check_lines_whole(tx)
        return [line.name for line in tx.states.lines() if line.newest]


@watched("state_positions")
def find_positions(env: Environment, state_id: str, line: str | None) -> dict[str, int]:
    """Return by line, of one or of all, where a state of this id was saved, also if it was deleted since.

    Raises:
        InvalidInputError: nothing can bear such a name.
        CorruptRecordError: none was, and one is missing (I4).
    """
    _check_names(state_id=state_id, line=line)
    with env.read() as tx:
        named = None if line is None else tx.states.line(line)
        lines = tx.states.lines() if line is None else [] if named is None else [named]
        found = ((one.name, tx.states.get(one.number, state_id)) for one in lines)
        places = {name: row.position for name, row in found if row is not None and row.position is not None}
        if not places:
            check_lines_whole(tx)
            check_states_whole(tx)
        return places


@watched("state_usage")
def read_usage(env: Environment) -> StatesUsage:
    """Return what the lines of the workflow hold, and what their values take. It reads all of them.

    Raises:
        CorruptRecordError: one is missing, or is not what was written (I4).
    """
    with env.read() as tx:
        check_lines_whole(tx)
        check_states_whole(tx)
        counts = Counter(row.line for row in tx.states.all() if row.status in SAVED)
        lines = [(line, newest_id(tx, line)) for line in tx.states.lines()]
        sizes = [len(node.data or b"") for node in tx.nodes.all() if node.level == PART]
    return StatesUsage(
        lines=tuple(
            LineUsage(name=line.name, states=counts[line.number], newest=newest, position=line.newest)
            for line, newest in lines
            if newest is not None
        ),
        parts=len(sizes),
        part_bytes=sum(sizes),
    )


# ------------------------------------------------------------------------------------------ what several verbs read


def find_line(tx: Transaction, name: str) -> StateLine | None:
    """Return a line, or None.

    Raises:
        CorruptRecordError: there is none of this name, and one is missing.
    """
    line = tx.states.line(name)
    if line is None:
        check_lines_whole(tx)
    return line


def newest_row(tx: Transaction, line: StateLine) -> StateRow | None:
    """Return the newest state of a line that was not deleted.

    Raises:
        CorruptRecordError: it is not where the line says (I4): nothing older slips into its place.
    """
    if not line.newest:
        return None
    row = next(iter(tx.states.page(line.newest, 1, line.number)), None)
    if row is None or row.position != line.newest or row.status is StateStatus.DELETED:
        raise CorruptRecordError("the newest state is missing", place=f"state_line {line.name!r}")
    return row


def newest_id(tx: Transaction, line: StateLine) -> str | None:
    """Return the id of the newest state of a line."""
    row = newest_row(tx, line)
    return None if row is None else row.state_id


def check_lines_whole(tx: Transaction) -> None:
    """Check that no line is missing.

    Raises:
        CorruptRecordError: one is.
    """
    known = tx.log.head().state_lines
    counted = tx.states.count_lines() if known else 0
    if counted != known:
        raise CorruptRecordError(f"{counted} lines are stored, and {known} were known", place="state_line")


def check_states_whole(tx: Transaction) -> None:
    """Check that no row of a saved state is missing.

    Raises:
        CorruptRecordError: one is.
    """
    counted, known = tx.states.count(), tx.log.head().states
    if counted != known:
        raise CorruptRecordError(f"{counted} states are stored, and {known} were known", place="saved_state")


def check_page(rows: Sequence[StateRow], expected: int | None, line: StateLine | None) -> int:
    """Check that no state is missing among rows that were read, the newest first, and return the position behind them.

    Args:
        rows: of a line, or of all.
        expected: where the first one must stand; None: nobody knows.
        line: whose rows they are; None: of all lines.

    Raises:
        CorruptRecordError: one is: positions have no gap, and each state of a line names the one before it.
    """
    for row in rows:
        if expected is not None and row.position != expected:
            raise CorruptRecordError("it is missing", place=f"saved_state at position {expected}")
        expected = before_it(row, line)
    if expected and len(rows) < STATES_PAGE:
        raise CorruptRecordError("it is missing", place=f"saved_state at position {expected}")
    return expected or 0


def before_it(row: StateRow, line: StateLine | None) -> int:
    """Return the position before a state, in its line or, with None, among all; 0: it is the first."""
    return (row.position or 1) - 1 if line is None else row.previous


def _shown(
    tx: Transaction, rows: Sequence[StateRow], lines: dict[int, StateLine], *, values: bool | Collection[str]
) -> Iterator[SavedState]:
    """Yield rows as a reader sees them."""
    asked = [[(name, value) for name, value in row.values if _is_asked(name, values)] for row in rows]
    writes = [row.writes if values is not False else () for row in rows]
    held = [value for named in asked for _, value in named] + [w.value for wrote in writes for w in wrote]
    reader = ValueReader(tx, held)
    lineage_seq = tx.log.head().lineage_seq
    for row, named, behind in zip(rows, asked, writes, strict=True):
        line = lines.get(row.line)
        if line is None:
            raise CorruptRecordError("its line is not there", place=f"saved_state {row.number}")
        read = {name: reader.value(value) for name, value in named}
        wrote = [(write, *reader.value(write.value)) for write in behind]
        whole = row.status is StateStatus.SAVED and all(one for _, one in read.values()) and all(w[2] for w in wrote)
        yield SavedState(
            state_id=row.state_id,
            line=line.name,
            position=row.position or 0,
            parent=row.parent,
            values={name: value for name, (value, _) in read.items() if value.many or value.parts},
            meta=row.meta,
            run=row.run,
            writes=tuple(
                StateWrite(task=w.task, index=w.index, channel=w.channel, path=w.path, value=value)
                for w, value, _ in wrote
                if value.many or value.parts
            ),
            seen=line.saved,
            lineage_seq=lineage_seq,
            erased=not whole,
        )


def _is_asked(name: str, values: bool | Collection[str]) -> bool:
    return values if isinstance(values, bool) else name in values
