"""Saved states: what a framework saves of itself, in lines of immutable versions; and the same for an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence

from strandline.client.verbs import in_thread
from strandline.engine.copy_states import copy_states
from strandline.engine.delete_states import delete_states, prune_states
from strandline.engine.environment import Environment
from strandline.engine.load_state import find_positions, list_lines, list_states, load_state, read_usage
from strandline.engine.save_state import save_states, write_state
from strandline.limits import STATES_PAGE
from strandline.model.state import NewState, Saved, SavedState, StatesUsage, StateValue, StateWrite


class States:
    """The saved states of a workflow: lines of versions that are never overwritten, each value kept once.

    They say what a framework saved of itself, not what the memory holds: the log stays the truth, and erasure reaches
    both (C31). A fork has none of its parent's.
    """

    def __init__(self, env: Environment) -> None:
        self._env = env

    def save(
        self,
        state_id: str,
        values: Mapping[str, StateValue],
        *,
        meta: bytes = b"",
        line: str = "",
        parent: str | None = None,
        kept: Collection[str] = (),
        run: str | None = None,
        seen: int | None = None,
        beside: Collection[tuple[str, str]] = (),
        writes: Sequence[StateWrite] = (),
    ) -> Saved:
        """Save a state: all of it, durably, or nothing.

        Args:
            state_id: unique in its line. The same content again is answered as before, with `created=False`.
            values: by name. Parts that are known are not stored again.
            meta: what the framework says of it; at most STATE_META_BYTES_MAX.
            line: which chain of states it belongs to.
            parent: the state of the line that it goes on from; None: it begins.
            kept: names whose values are those of the parent.
            run: what `Tenant.delete_states` may delete it by.
            seen: `SavedState.seen` of what the writer has read last, 0 where that was nothing: then it is refused if
                somebody else has saved in the line since, unless the parent is the newest one. None: not checked.
            beside: states of other lines that it comes with, by line and id: it is refused if one of them was deleted.
            writes: what tasks wrote behind it before it was saved. What stands there already, stays.

        Raises:
            InvalidInputError: what can't be kept; nothing was written.
            StateConflictError: unknown or deleted parent, one beside it was deleted, the id is taken or was deleted,
                or the line has moved on; nothing was written.
            StoreUnavailableError, OutcomeUnknownError: see their hints; repeating it is safe.
        """
        new = NewState(
            state_id=state_id,
            line=line,
            parent=parent,
            values=dict(values),
            kept=tuple(kept),
            meta=meta,
            run=run,
            seen=seen,
            beside=tuple(beside),
            writes=tuple(writes),
        )
        return save_states(self._env, [new])[0]

    def save_all(self, states: Sequence[NewState]) -> Sequence[Saved]:
        """Save several states, durably, in one transaction: all of them, or none. The answers come in their order.

        Args:
            states: of any lines, at most STATES_AT_ONCE_MAX; one may name an earlier one as its parent.

        Raises:
            InvalidInputError, StateConflictError, StoreUnavailableError, OutcomeUnknownError: as of `save`.
        """
        return tuple(save_states(self._env, tuple(states)))

    def write(
        self,
        state_id: str,
        writes: Sequence[StateWrite],
        *,
        line: str = "",
        replace: bool | Collection[int] = False,
        ahead: bool = True,
    ) -> bool:
        """Keep what tasks wrote behind a state, all of it or nothing. Return whether it is kept.

        Args:
            state_id: the state.
            writes: each is named by its task and index.
            line: of the state.
            replace: let the new one stand where one of its name is there already, instead of the old one: True, or the
                indexes of which that is to be so.
            ahead: keep them also if the state is not saved yet, since frameworks race.

        Raises:
            InvalidInputError: what can't be kept, or more than STATE_WRITES_MAX behind one state.
            StateConflictError: the state was deleted. Nothing was written.
        """
        return write_state(self._env, state_id, line, writes, replaces=replace, ahead=ahead)

    def load(
        self,
        state_id: str | None = None,
        *,
        line: str = "",
        values: bool | Collection[str] = True,
        erased: bool = False,
    ) -> SavedState | None:
        """Return a saved state; None: there is none, or it was deleted.

        Args:
            state_id: which; None: the newest of the line, by position, never by a clock.
            line: where.
            values: with values and writes; with the values of these names, and writes; or False: without both.
            erased: also one of which a part was erased, with what is left; `SavedState.erased` says so.

        Raises:
            StateErasedError: a part of it was erased.
            CorruptRecordError: it, or a part of it, is missing or not what was written.
        """
        return load_state(self._env, state_id, line, values=values, erased=erased)

    def list(
        self,
        *,
        line: str | None = None,
        before: int | None = None,
        limit: int | None = None,
        values: bool | Collection[str] = True,
    ) -> Iterator[SavedState]:
        """Yield saved states, the newest first, page by page; of an erased one, what is left.

        Args:
            line: of this one; None: of all.
            before: those with a lower position.
            limit: at most so many.
            values: with values and writes; with the values of these names, and writes; or False: without both.
        """
        return list_states(self._env, line, before, limit, values=values)

    def lines(self) -> Sequence[str]:
        """Return the names of the lines that hold a state, in the order in which they began."""
        return list_lines(self._env)

    def positions(self, state_id: str, *, line: str | None = None) -> Mapping[str, int]:
        """Return by line at which position a state of this id was saved, also of one that was deleted since.

        Args:
            state_id: the state.
            line: where to look; None: in all, one after the other.

        Raises:
            CorruptRecordError: none is there, and one is missing.
        """
        return find_positions(self._env, state_id, line)

    def usage(self) -> StatesUsage:
        """Return what each line holds, and what all values take. It reads every part."""
        return read_usage(self._env)

    def delete(self) -> int:
        """Delete all of them, and return how many. Their ids stay, so that no late write brings one back.

        Raises:
            ErasureRefusedError: a legal hold covers the workflow; nothing was deleted.
        """
        return delete_states(self._env)

    def prune(self, keep: str | Collection[tuple[str, str]] = "latest", *, through: int | None = None) -> int:
        """Delete all but some, and return how many.

        Args:
            keep: "latest": the newest of each line; or these, each by line and id.
            through: the position up to which some are deleted; None: whatever there is. Who chose from what he
                read what to keep, names the newest position that he saw.

        Raises:
            InvalidInputError: neither.
            ErasureRefusedError: a legal hold covers the workflow; nothing was deleted.
        """
        return prune_states(self._env, keep, through)

    def copy_to(self, workflow: str) -> int:
        """Copy them to another workflow of the tenant, under the same ids, and return how many were not there.

        Raises:
            StateConflictError: one of the ids is taken there by another content, or was deleted, or a line holds
                there a state that it has not here; nothing was written.
        """
        return copy_states(self._env, workflow)


class AsyncStates:
    """`States` for an event loop: each call runs in a thread. What is cancelled while it writes is settled there."""

    def __init__(self, states: States) -> None:
        self._states = states

    async def save(
        self,
        state_id: str,
        values: Mapping[str, StateValue],
        *,
        meta: bytes = b"",
        line: str = "",
        parent: str | None = None,
        kept: Collection[str] = (),
        run: str | None = None,
        seen: int | None = None,
        beside: Collection[tuple[str, str]] = (),
        writes: Sequence[StateWrite] = (),
    ) -> Saved:
        """As `States.save`."""
        return await in_thread(
            self._states.save,
            state_id,
            values,
            meta=meta,
            line=line,
            parent=parent,
            kept=kept,
            run=run,
            seen=seen,
            beside=beside,
            writes=writes,
        )

    async def save_all(self, states: Sequence[NewState]) -> Sequence[Saved]:
        """As `States.save_all`."""
        return await in_thread(self._states.save_all, states)

    async def write(
        self,
        state_id: str,
        writes: Sequence[StateWrite],
        *,
        line: str = "",
        replace: bool | Collection[int] = False,
        ahead: bool = True,
    ) -> bool:
        """As `States.write`."""
        return await in_thread(self._states.write, state_id, writes, line=line, replace=replace, ahead=ahead)

    async def load(
        self,
        state_id: str | None = None,
        *,
        line: str = "",
        values: bool | Collection[str] = True,
        erased: bool = False,
    ) -> SavedState | None:
        """As `States.load`."""
        return await in_thread(self._states.load, state_id, line=line, values=values, erased=erased)

    async def list(
        self,
        *,
        line: str | None = None,
        before: int | None = None,
        limit: int | None = None,
        values: bool | Collection[str] = True,
    ) -> AsyncIterator[SavedState]:
        """As `States.list`."""
        left = limit
        while left is None or left > 0:
            most = STATES_PAGE if left is None else min(left, STATES_PAGE)
            found = await in_thread(self._page, line, before, most, values)
            for state in found:
                yield state
            if len(found) < most:
                return
            before, left = found[-1].position, None if left is None else left - len(found)

    def _page(
        self, line: str | None, before: int | None, most: int, values: bool | Collection[str]
    ) -> Sequence[SavedState]:
        return tuple(self._states.list(line=line, before=before, limit=most, values=values))

    async def lines(self) -> Sequence[str]:
        """As `States.lines`."""
        return await in_thread(self._states.lines)

    async def positions(self, state_id: str, *, line: str | None = None) -> Mapping[str, int]:
        """As `States.positions`."""
        return await in_thread(self._states.positions, state_id, line=line)

    async def usage(self) -> StatesUsage:
        """As `States.usage`."""
        return await in_thread(self._states.usage)

    async def delete(self) -> int:
        """As `States.delete`."""
        return await in_thread(self._states.delete)

    async def prune(self, keep: str | Collection[tuple[str, str]] = "latest", *, through: int | None = None) -> int:
        """As `States.prune`."""
        return await in_thread(self._states.prune, keep, through=through)

    async def copy_to(self, workflow: str) -> int:
        """As `States.copy_to`."""
        return await in_thread(self._states.copy_to, workflow)
