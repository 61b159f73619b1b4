"""Delta channels: LangGraph stores their writes, and now and then a snapshot; a value is read along the parents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, DeltaChannelHistory, writes_sort_key

from strandline import SavedState, StateErasedError, StateValue, StateWrite

Load = Callable[[str], SavedState | None]
Decode = Callable[[StateValue], object]


def ancestors(state: SavedState, load: Load) -> Iterator[SavedState]:
    """Yield the states that a state was made from, the nearest first.

    Raises:
        StateErasedError: one of them was deleted. LangGraph's own walk would end there, and take the rest for empty.
    """
    named = state.parent
    while named is not None:
        found = load(named)
        if found is None:
            said = f"checkpoint {named!r} was deleted, and {state.state_id!r} needs it for what its delta channels hold"
            raise StateErasedError(said, line=state.line, state_id=state.state_id)
        yield found
        named = found.parent


def in_order(writes: Sequence[StateWrite]) -> list[StateWrite]:
    """Return the writes of one superstep in the order in which the graph applied them."""
    return sorted(writes, key=lambda write: writes_sort_key(write.path, write.task, write.index))


def history_of(
    state: SavedState, channels: Sequence[str], load: Load, decode: Decode
) -> dict[str, DeltaChannelHistory]:
    """Return for each channel its writes, oldest first, since the nearest ancestor that holds a value of it."""
    found: dict[str, DeltaChannelHistory] = {name: {"writes": []} for name in channels}
    open_channels = set(channels)
    for ancestor in ancestors(state, load) if channels else ():
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


def needed_by(state: SavedState, checkpoint: Checkpoint, metadata: CheckpointMetadata, load: Load) -> set[str]:
    """Return the ids of those ancestors without which a state's delta channels can't be read.

    Its metadata counts the steps since the last snapshot of each delta channel; one that was stored here has no count.
    """
    counted = set(metadata.get("counters_since_delta_snapshot") or {})
    open_channels = counted & checkpoint["channel_versions"].keys() - state.values.keys()
    needed: set[str] = set()
    for ancestor in ancestors(state, load) if open_channels else ():
        needed.add(ancestor.state_id)
        open_channels -= ancestor.values.keys()
        if not open_channels:
            break
    return needed
