"""What a graph holds, as values of a saved state, and back.

A list is kept element by element: a history that grows by one message then costs one message. A delta channel's
snapshot is such a list, too, and a task's write of messages has the same bytes as the messages in the channel, so each
stands in the store once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from strandline import CorruptRecordError, Part, StateValue

_CHECKPOINT = b"langgraph "  # before the rest of a checkpoint: a workflow may hold other states, too
_SNAPSHOT = "snapshot:"  # before the kind of each part of a delta channel's snapshot
_SMALL = (bool, int, float, type(None))  # a list of such, as of a vector's numbers, is one part


def encode(serde: SerializerProtocol, value: object) -> StateValue:
    """Serialise a value: a list by its elements, anything else as one part."""
    if isinstance(value, _DeltaSnapshot) and value.value and by_elements(value.value):
        return StateValue(tuple(part(serde, item, _SNAPSHOT) for item in value.value), many=True)
    if by_elements(value):
        return StateValue(tuple(part(serde, item) for item in value), many=True)
    return StateValue((part(serde, value),))


def by_elements(value: object) -> TypeGuard[list[object]]:
    """Tell whether a value is a list that is kept element by element."""
    return type(value) is list and not any(type(item) in _SMALL for item in value)


def part(serde: SerializerProtocol, value: object, prefix: str = "") -> Part:
    """Serialise one value into one part."""
    kind, data = serde.dumps_typed(value)
    return Part(kind=prefix + kind, data=data)


def decode(serde: SerializerProtocol, value: StateValue) -> object:
    """Return the value that was serialised."""
    if not value.many:
        return serde.loads_typed((value.parts[0].kind, value.parts[0].data))
    items = [serde.loads_typed((held.kind.removeprefix(_SNAPSHOT), held.data)) for held in value.parts]
    return _DeltaSnapshot(items) if value.parts and value.parts[0].kind.startswith(_SNAPSHOT) else items


def encode_rest(serde: SerializerProtocol, checkpoint: Checkpoint, metadata: CheckpointMetadata) -> bytes:
    """Serialise what a checkpoint says beside its channels' values, with its metadata."""
    rest = {name: value for name, value in checkpoint.items() if name != "channel_values"}
    kind, data = serde.dumps_typed([rest, metadata])
    return _CHECKPOINT + kind.encode() + b"\n" + data


def is_checkpoint(meta: bytes) -> bool:
    """Tell whether a saver saved the state that says this; the store's items and other guests' states are others."""
    return meta.startswith(_CHECKPOINT)


def decode_rest(serde: SerializerProtocol, meta: bytes, place: str) -> tuple[Checkpoint, CheckpointMetadata]:
    """Return a checkpoint without its values, and its metadata.

    Raises:
        CorruptRecordError: it is not what a saver writes.
    """
    kind, _, data = meta.removeprefix(_CHECKPOINT).partition(b"\n")
    found = serde.loads_typed((kind.decode(), data)) if is_checkpoint(meta) else None
    if not isinstance(found, Sequence) or len(found) != 2:
        raise CorruptRecordError("no checkpoint of LangGraph", place=place)
    return found[0], found[1]
