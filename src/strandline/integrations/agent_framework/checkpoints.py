"""Checkpoint storage: each checkpoint is a saved state in the line of its workflow definition, newest by position."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from agent_framework import WorkflowCheckpoint, WorkflowCheckpointException
from agent_framework._workflows._checkpoint_encoding import decode_checkpoint_value, encode_checkpoint_value

from strandline import Part, SavedState, StateValue, Tenant

_VALUES: Final = ("messages", "state", "pending_request_info_events", "metadata")  # the rest is small, and names it
_DEPTH: Final = 4  # of what is kept part by part: state, executors, one executor, one of its fields
_JSON: Final = "json"

Path = tuple[str, ...]


class StrandlineCheckpointStorage:
    """A checkpoint storage of the Agent Framework over the saved states of a workflow.

    Values are encoded as the framework's own storages do it, and each part of them is kept once. The newest checkpoint
    is the one that was saved last, whatever clocks say; if it is damaged that is an error, and no older one stands in.
    Every call runs the blocking verbs in a thread. One that is cancelled lets the write in progress settle.
    """

    def __init__(self, tenant: Tenant, workflow: str, *, allowed_checkpoint_types: Collection[str] = ()) -> None:
        """Take the tenant, and the name of the workflow that holds the checkpoints.

        Args:
            tenant: whose (I21).
            workflow: one for each run that is resumed by itself.
            allowed_checkpoint_types: "module:qualname" of what may be restored beside the framework's own types.
        """
        self._tenant = tenant
        self._workflow = tenant.workflow(workflow)
        self._allowed = frozenset(allowed_checkpoint_types)

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Save a checkpoint, durably and as one. The same again is one.

        Raises:
            WorkflowCheckpointException: it can't be encoded, or could not be restored; nothing was written.
            StateConflictError: its id holds another content or was deleted, or the checkpoint before it is not here.
        """
        encoded = self._encoded(checkpoint)
        values = {json.dumps(path): value for name in _VALUES for path, value in _parts((name,), encoded.pop(name))}
        await asyncio.to_thread(
            self._workflow.states.save,
            checkpoint.checkpoint_id,
            values,
            meta=_bytes(encoded),
            line=checkpoint.workflow_name,
            parent=checkpoint.previous_checkpoint_id,
            run=self._run(checkpoint.checkpoint_id),
        )
        return checkpoint.checkpoint_id

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """Return a checkpoint.

        Raises:
            WorkflowCheckpointException: there is none of this id.
            CorruptRecordError: it, or a part of it, is missing or not what was written (I4).
            StateErasedError: a part of it was erased.
        """
        found = await asyncio.to_thread(self._find, checkpoint_id)
        if found is None:
            raise WorkflowCheckpointException(f"No checkpoint found with ID {checkpoint_id}")
        return self._decoded(found)

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """Return the checkpoints of a workflow definition, the oldest first.

        Raises:
            CorruptRecordError, StateErasedError: as of `load`.
        """
        ids = await self.list_checkpoint_ids(workflow_name=workflow_name)
        return [await self.load(checkpoint_id) for checkpoint_id in ids]

    async def delete(self, checkpoint_id: str) -> bool:
        """Delete a checkpoint; False: there is none. Its id stays, so that no late write brings it back.

        Raises:
            ErasureRefusedError: a legal hold covers the workflow; nothing was deleted.
        """
        deleted = await asyncio.to_thread(self._tenant.delete_states, [self._run(checkpoint_id)])
        return sum(deleted.values()) > 0

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """Return the checkpoint that was saved last, by its position; None: there is none.

        Raises:
            CorruptRecordError, StateErasedError: as of `load`; no older one stands in for it.
        """
        found = await asyncio.to_thread(lambda: self._workflow.states.load(line=workflow_name))
        return None if found is None else self._decoded(found)

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        """Return the ids of a workflow definition's checkpoints, the oldest first."""
        newest_first = await asyncio.to_thread(
            lambda: list(self._workflow.states.list(line=workflow_name, values=False))
        )
        return [state.state_id for state in reversed(newest_first)]

    def _find(self, checkpoint_id: str) -> SavedState | None:
        states = self._workflow.states
        found = (states.load(checkpoint_id, line=line) for line in states.lines())
        return next((state for state in found if state is not None), None)

    def _run(self, checkpoint_id: str) -> str:
        """Return what a checkpoint alone bears, so that it can be deleted by it."""
        return f"{self._workflow.name}/{checkpoint_id}"

    def _encoded(self, checkpoint: WorkflowCheckpoint) -> dict[str, Any]:
        try:
            encoded: dict[str, Any] = encode_checkpoint_value(checkpoint.to_dict())
            decode_checkpoint_value(encoded, allowed_types=self._allowed)
        except WorkflowCheckpointException:
            raise
        except Exception as error:
            raise WorkflowCheckpointException(
                f"the checkpoint {checkpoint.checkpoint_id!r} could not be restored, and was not saved: {error}"
            ) from error
        return encoded

    def _decoded(self, state: SavedState) -> WorkflowCheckpoint:
        encoded: dict[str, Any] = json.loads(state.meta)
        for path, value in state.values.items():
            _put(encoded, json.loads(path), _value(value))
        return WorkflowCheckpoint.from_dict(decode_checkpoint_value(encoded, allowed_types=self._allowed))


def _parts(path: Path, value: object) -> Iterator[tuple[Path, StateValue]]:
    """Yield what is kept by itself: of an object each member, of a list each element."""
    if isinstance(value, Mapping) and value and len(path) < _DEPTH:
        for name, inner in value.items():
            yield from _parts((*path, name), inner)
    elif isinstance(value, list):
        yield path, StateValue(tuple(Part(kind=_JSON, data=_bytes(item)) for item in value), many=True)
    else:
        yield path, StateValue((Part(kind=_JSON, data=_bytes(value)),))


def _value(value: StateValue) -> object:
    parts = [json.loads(part.data) for part in value.parts]
    return parts if value.many else parts[0]


def _put(root: dict[str, Any], path: list[str], value: object) -> None:
    *outer, name = path
    for step in outer:
        root = root.setdefault(step, {})
    root[name] = value


def _bytes(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
