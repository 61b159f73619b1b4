"""Save a state, or what was written behind one: one transaction, and nothing is ever overwritten."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from strandline.codec import encode_text
from strandline.engine.environment import Environment, check_whole
from strandline.engine.load_state import find_line, newest_id
from strandline.engine.state_values import count_parts, extend_value, keep_values
from strandline.engine.watching import watched
from strandline.errors import InvalidInputError, StateConflictError
from strandline.limits import (
    KEY_CHARS_MAX,
    STATE_META_BYTES_MAX,
    STATE_PART_BYTES_MAX,
    STATE_PARTS_MAX,
    STATE_VALUES_MAX,
    STATE_WRITES_MAX,
    STATES_AT_ONCE_MAX,
)
from strandline.model.state import (
    HeldValue,
    HeldWrite,
    NewState,
    Part,
    Saved,
    StateLine,
    StateRow,
    StateStatus,
    StateValue,
    StateWrite,
)
from strandline.ports import Transaction
from strandline.rules.states import StateRefusal, merge_writes, refuse_save, same_content


@watched("save_state")
def save_states(env: Environment, new: Sequence[NewState]) -> list[Saved]:
    """Save states in one transaction: all of them, or none (I3, I14).

    Raises:
        InvalidInputError: what can't be kept.
        StateConflictError: unknown or deleted parent, an id that is taken or was deleted, or the line moved on.
        CorruptRecordError: what would have to be read is not what was written. Nothing was written.
    """
    _check_all(new)
    if not new:
        return []  # who saves nothing waits for no other writer
    with env.write() as tx:
        return [_save_in(tx, env, one) for one in new]


def _save_in(tx: Transaction, env: Environment, new: NewState) -> Saved:
    """Save a state in a transaction that is open."""
    line = tx.states.line(new.line)  # a missing one is looked for by who reads: each new line would count them all
    there = tx.states.get(line.number, new.state_id) if line else None
    parent = tx.states.get(line.number, new.parent) if line and new.parent is not None else None
    known = there is not None and there.status in (StateStatus.SAVED, StateStatus.ERASED)
    refusal = None if known else refuse_save(line, there, new.parent, parent, new.seen)
    if not known and _any_deleted(tx, new.beside):
        refusal = StateRefusal.DELETED
    if refusal is not None:
        raise refused(tx, new.line, new.state_id, refusal, new.parent)
    gone = parent is None or parent.status is StateStatus.DELETED
    held = tuple(sorted(_values_of(tx, env.store.digest_key, new, there if known and gone else parent).items()))
    row = StateRow(number=0, line=0, state_id=new.state_id, parent=new.parent, run=new.run, values=held, meta=new.meta)
    saved = put_state(tx, new.line, row)
    if new.writes:
        write_in(tx, env, new.state_id, new.line, new.writes, replaces=False, ahead=False)
    return saved


def put_state(tx: Transaction, line_name: str, new: StateRow) -> Saved:
    """Give a state, or a tombstone of a copy, its row and its position; the same content again changes nothing.

    Raises:
        StateConflictError: its id is that of another content, or was deleted.
    """
    line = tx.states.line(line_name) or _new_line(tx, line_name)
    there = tx.states.get(line.number, new.state_id)
    buried = new.status is StateStatus.DELETED
    if there is not None and there.status is not StateStatus.AWAITED:
        if buried:
            return Saved(position=there.position or 0, created=False)
        if there.status is StateStatus.DELETED:
            raise refused(tx, line_name, new.state_id, StateRefusal.DELETED)
        if there.status is StateStatus.SAVED and not same_content(there, new):  # what is erased can't be compared
            raise refused(tx, line_name, new.state_id, StateRefusal.TAKEN)
        return Saved(position=there.position or 0, created=False)
    head = tx.log.head()
    position = head.state_positions + 1
    row = replace(
        new,
        number=there.number if there is not None else head.states + 1,
        line=line.number,
        status=StateStatus.SAVED if new.status is StateStatus.AWAITED else new.status,
        position=position,
        previous=line.saved,
        writes=merge_writes(there.writes if there is not None else (), new.writes, replace_known=False),
    )
    tx.states.put(row)
    tx.states.put_line(replace(line, saved=position, newest=line.newest if buried else position))
    count_change(tx, states=max(head.states, row.number), state_positions=position)
    return Saved(position=position, created=not buried)


def _any_deleted(tx: Transaction, places: Sequence[tuple[str, str]]) -> bool:
    """Tell whether one of these states, by line and id, was deleted."""
    found = ((tx.states.line(line), state_id) for line, state_id in places)
    rows = (tx.states.get(line.number, state_id) for line, state_id in found if line is not None)
    return any(row is not None and row.status is StateStatus.DELETED for row in rows)


@watched("write_state")
def write_state(
    env: Environment,
    state_id: str,
    line: str,
    writes: Sequence[StateWrite],
    *,
    replaces: bool | Collection[int],
    ahead: bool,
) -> bool:
    """Keep what tasks wrote behind a state, with `ahead` also if it is not saved yet. Tell whether it is kept.

    Raises:
        InvalidInputError: what can't be kept.
        StateConflictError: the state was deleted. Nothing was written.
    """
    check_texts(line=line, state_id=state_id)
    _check_writes(state_id, writes)
    with env.write() as tx:
        return write_in(tx, env, state_id, line, writes, replaces=replaces, ahead=ahead)


def write_in(
    tx: Transaction,
    env: Environment,
    state_id: str,
    line: str,
    writes: Sequence[StateWrite],
    *,
    replaces: bool | Collection[int],
    ahead: bool,
) -> bool:
    """Keep writes in a transaction that is open."""
    there_line = tx.states.line(line)
    row = tx.states.get(there_line.number, state_id) if there_line else None
    if row is not None and row.status is StateStatus.DELETED:
        raise refused(tx, line, state_id, StateRefusal.DELETED)
    if row is None:
        if not ahead:
            return False
        there_line = there_line or _new_line(tx, line)
        number = tx.log.head().states + 1
        row = StateRow(number=number, line=there_line.number, state_id=state_id, status=StateStatus.AWAITED)
    known = {(write.task, write.index) for write in row.writes}
    stands = {name for name in known if not (replaces if isinstance(replaces, bool) else name[1] in replaces)}
    wanted = [write for write in writes if (write.task, write.index) not in stands]
    held = keep_values(tx, env.store.digest_key, [write.value for write in wanted])
    new = [HeldWrite(w.task, w.index, w.channel, w.path, value) for w, value in zip(wanted, held, strict=True)]
    merged = merge_writes(row.writes, new, replace_known=True)
    _check_behind(state_id, len(merged))
    if merged != row.writes:
        tx.states.put(replace(row, writes=merged))
        count_change(tx, states=max(tx.log.head().states, row.number))
    return True


def count_change(tx: Transaction, *, states: int | None = None, state_positions: int | None = None) -> None:
    """Count a change of saved states: a head that is alike means rows that are."""
    head = tx.log.head()
    counted = replace(
        head,
        states=head.states if states is None else states,
        state_positions=head.state_positions if state_positions is None else state_positions,
        state_changes=head.state_changes + 1,
    )
    tx.log.set_head(counted)


def _new_line(tx: Transaction, name: str) -> StateLine:
    head = tx.log.head()
    line = StateLine(number=head.state_lines + 1, name=name)
    tx.states.put_line(line)
    tx.log.set_head(replace(head, state_lines=line.number))
    return line


def _values_of(tx: Transaction, key: bytes, new: NewState, parent: StateRow | None) -> dict[str, HeldValue]:
    """Return all values of a new state as they are kept: the parent's own, its lists with more behind, and new ones."""
    there = dict(parent.values) if parent is not None else {}
    grown = {name: value for name, value in new.values.items() if value.after}
    for name in (*new.kept, *grown):
        if name not in there:
            raise InvalidInputError(f"the parent {new.parent!r} does not hold {name!r}; nothing was written")
    for name, value in grown.items():
        if not there[name].many or count_parts(there[name]) < value.after:
            raise InvalidInputError(
                f"{name!r} begins with {value.after:,} parts of the parent's, which has fewer; nothing was written"
            )
    whole = {name: value for name, value in new.values.items() if not value.after}
    return (
        {name: there[name] for name in new.kept}
        | {name: extend_value(tx, key, there[name], value.after, value.parts) for name, value in grown.items()}
        | dict(zip(whole, keep_values(tx, key, list(whole.values())), strict=True))
    )


def refused(
    tx: Transaction, line: str, state_id: str, refusal: StateRefusal, parent: str | None = None
) -> StateConflictError:
    """Return the error for a refusal: what, where, and what to do."""
    there = find_line(tx, line)
    newest = newest_id(tx, there) if there is not None else None
    message, hint = {
        StateRefusal.UNKNOWN_PARENT: (
            f"no state {parent!r} was saved in line {line!r}, which {state_id!r} names as its parent",
            "Save the parent first, or name the state that this one really goes on from.",
        ),
        StateRefusal.DELETED: (
            f"state {state_id!r} of line {line!r}, its parent or one beside it was deleted",
            "What was deleted is not brought back. Begin anew: without a parent, under a new id.",
        ),
        StateRefusal.TAKEN: (
            f"state {state_id!r} of line {line!r} was saved with another content",
            "A saved state is never changed: give the new one an id of its own.",
        ),
        StateRefusal.MOVED: (
            f"line {line!r} has moved on to {newest!r} since the writer of {state_id!r} read it",
            "Read the newest state and go on from it; or, to branch from an older one, read it now.",
        ),
    }[refusal]
    return StateConflictError(message, line=line, state_id=state_id, reason=refusal.value, newest=newest, hint=hint)


# ------------------------------------------------------------------------------------------ what may be kept


def _check_all(new: Sequence[NewState]) -> None:
    """Refuse states that can't be kept, and more than are kept at once."""
    if len(new) > STATES_AT_ONCE_MAX:
        raise InvalidInputError(f"{len(new):,} states at once; at most {STATES_AT_ONCE_MAX:,}; nothing was written")
    for one in new:
        if not isinstance(one, NewState):
            raise InvalidInputError(f"{one!r} is no NewState; nothing was written")
        _check_new(one)
    _check_count([value for one in new for value in one.values.values()])


def _check_new(new: NewState) -> None:
    check_texts(line=new.line, state_id=new.state_id)
    for place in new.beside:
        if not isinstance(place, (tuple, list)) or len(place) != 2:
            raise InvalidInputError(f"beside is of pairs of line and id, not {place!r}; nothing was written")
        check_texts(line=place[0], state_id=place[1])
    for name, text in (("parent", new.parent), ("run", new.run)):
        if text is not None:
            check_texts(**{name: text})
    if not isinstance(new.meta, bytes) or len(new.meta) > STATE_META_BYTES_MAX:
        raise InvalidInputError(f"meta is bytes, at most {STATE_META_BYTES_MAX:,}; nothing was written")
    if new.kept and new.parent is None:
        raise InvalidInputError("kept names values of the parent, and no parent is named; nothing was written")
    twice = set(new.kept) & set(new.values)
    if twice:
        raise InvalidInputError(f"{min(twice)!r} is kept, and has a value of its own; nothing was written")
    if len(new.values) + len(new.kept) > STATE_VALUES_MAX:
        raise InvalidInputError(f"more than {STATE_VALUES_MAX:,} values of one state; nothing was written")
    for name, value in new.values.items():
        check_texts(name=name)
        _check_value(f"the value of {name!r}", value)
    check_whole("seen", new.seen)
    _check_writes(new.state_id, new.writes)


def _check_writes(state_id: str, writes: Sequence[StateWrite]) -> None:
    for write in writes:
        if not isinstance(write, StateWrite):
            raise InvalidInputError(f"{write!r} is no StateWrite; nothing was written")
        check_texts(task=write.task, channel=write.channel, line=write.path)
        check_whole("index", write.index)
        _check_value(f"the write of {write.task!r} to {write.channel!r}", write.value)
        if write.value.after:
            raise InvalidInputError(
                f"the write of {write.task!r} is whole, after={write.value.after}; nothing was written"
            )
    _check_behind(state_id, len(writes))
    _check_count([write.value for write in writes])


def _check_behind(state_id: str, count: int) -> None:
    if count > STATE_WRITES_MAX:
        raise InvalidInputError(f"{count:,} writes behind {state_id!r}; at most {STATE_WRITES_MAX:,} are allowed")


def _check_value(what: str, value: object) -> None:
    if not isinstance(value, StateValue) or not all(isinstance(part, Part) for part in value.parts):
        raise InvalidInputError(f"{what} is no StateValue of parts; nothing was written")
    check_whole("after", value.after)
    if value.after < 0 or (value.after and not value.many):
        raise InvalidInputError(f"{what}: after={value.after} is of lists, and 0 or more; nothing was written")
    if not value.many and len(value.parts) != 1:
        raise InvalidInputError(f"{what} has {len(value.parts)} parts, and is no list (many=True); nothing was written")
    for kind in {part.kind for part in value.parts}:
        check_texts(kind=kind)
    for part in value.parts:
        if not isinstance(part.data, bytes) or len(part.data) > STATE_PART_BYTES_MAX:
            raise InvalidInputError(f"{what}: a part is bytes, at most {STATE_PART_BYTES_MAX:,}; nothing was written")


def _check_count(values: Sequence[StateValue]) -> None:
    count = sum(len(value.parts) for value in values)
    if count > STATE_PARTS_MAX:
        raise InvalidInputError(
            f"{count:,} parts at once; at most {STATE_PARTS_MAX:,} are allowed; nothing was written"
        )


def check_texts(**texts: object) -> None:
    """Refuse names that are none: no text, too long, a NUL, what UTF-8 can't hold; and empty ones, but for a line's."""
    for what, text in texts.items():
        if not isinstance(text, str) or len(text) > KEY_CHARS_MAX or "\0" in text or (not text and what != "line"):
            least = 0 if what == "line" else 1
            raise InvalidInputError(
                f"{what} is a text of {least} to {KEY_CHARS_MAX} characters without NUL, not {text!r}; "
                "nothing was written"
            )
        encode_text(text, what)
