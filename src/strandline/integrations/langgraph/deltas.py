"""Delta channels: LangGraph stores their writes, and now and then a snapshot; a value is read along the parents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, DeltaChannelHistory, writes_sort_key

from strandline import SavedState, StateErasedError, States, StateValue, StateWrite

Decode = Callable[[StateValue], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ancestry:
    """What a walk along the parents reads of a line: page by page, since a parent mostly was saved just before."""

    states: States
    line: str
    erased: bool = False  # also what is left of an erased one

    def of(self, state: SavedState, channels: Collection[str]) -> Iterator[SavedState]:
        """Yield the states that a state was made from, the nearest first, with their values of some channels.

        Raises:
            StateErasedError: one of them was deleted, or erased. LangGraph's own walk would end there, and take the
                rest for empty.
        """
        older = self._before(state, channels)
        while state.parent is not None:
            found = next(older, None)
            if found is None or found.state_id != state.parent or (found.erased and not self.erased):
                found = self.states.load(state.parent, line=self.line, values=channels, erased=self.erased)
                if found is None:
                    raise StateErasedError(
                        f"checkpoint {state.parent!r} was deleted, and {state.state_id!r} needs it for what its delta "
                        "channels hold",
                        line=self.line,
                        state_id=state.state_id,
                    )
                older = self._before(found, channels)
            yield found
            state = found

    def _before(self, state: SavedState, channels: Collection[str]) -> Iterator[SavedState]:
        return self.states.list(line=self.line, before=state.position, values=channels)


def in_order(writes: Sequence[StateWrite]) -> list[StateWrite]:
    """Return the writes of one superstep in the order in which the graph applied them."""
    return sorted(writes, key=lambda write: writes_sort_key(write.path, write.task, write.index))


def history_of(
    state: SavedState, channels: Sequence[str], ancestry: Ancestry, decode: Decode
) -> dict[str, DeltaChannelHistory]:
    """Return for each channel its writes, oldest first, since the nearest ancestor that holds a value of it."""
    found: dict[str, DeltaChannelHistory] = {name: {"writes": []} for name in channels}
    open_channels = set(channels)
    for ancestor in ancestry.of(state, channels) if channels else ():
        for write in reversed(in_order(ancestor.writes)):
            if write.channel in open_channels:
                found[write.channel]["writes"].append((write.task, write.channel, decode(write.value)))
        for name in open_channels & ancestor.values.keys():
            found[name]["seed"] = decode(ancestor.values[name])
            open_channels.discard(name)
        if not open_channels:
            break
    for history in found.values():
        history["writes"].reverse()
    return found


def needed_by(state: SavedState, checkpoint: Checkpoint, metadata: CheckpointMetadata, ancestry: Ancestry) -> set[str]:
    """Return the ids of those ancestors without which a state's delta channels can't be read.

    Its metadata counts the steps since the last snapshot of each delta channel; one that was stored here has no count.
    """
    counted = set(metadata.get("counters_since_delta_snapshot") or {})
    open_channels = counted & checkpoint["channel_versions"].keys() - state.values.keys()
    needed: set[str] = set()
    for ancestor in ancestry.of(state, tuple(open_channels)) if open_channels else ():
        needed.add(ancestor.state_id)
        open_channels -= ancestor.values.keys()
        if not open_channels:
            break
    return needed
