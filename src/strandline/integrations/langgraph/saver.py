"""A LangGraph checkpointer on saved states (C34): a thread is a workflow, a namespace is a line, a checkpoint a state.

Each value is kept once, nothing is overwritten, and of two writers of one thread the second is refused.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from functools import partial

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from strandline import (
    InvalidInputError,
    SavedState,
    StateConflictError,
    StateErasedError,
    StateValue,
    StateWrite,
    Tenant,
)
from strandline.integrations.langgraph.address import Address, address_of, config_of, thread_of
from strandline.integrations.langgraph.deltas import Ancestry, history_of, in_order, needed_by
from strandline.integrations.langgraph.early import EarlyWrites
from strandline.integrations.langgraph.gate import Restore, check_restore, pass_gate
from strandline.integrations.langgraph.opened import Opened, check_tenant
from strandline.integrations.langgraph.place import basis_of
from strandline.integrations.langgraph.remembered import Held, KnownState, Remembered, grown, read, shown
from strandline.integrations.langgraph.values import decode, decode_rest, encode, encode_rest, is_checkpoint

FIRST_VERSION = "0" * 10
_STRATEGIES = ("keep_latest", "delete")


class StrandlineSaver(BaseCheckpointSaver[str]):
    """Keeps a graph's checkpoints in the store of one tenant. Its methods may be called from any thread.

    Each has an async twin of the same name with an "a" before it, which does the same in a thread.
    """

    def __init__(self, tenant: Tenant, *, restore: Restore = "strict", serde: SerializerProtocol | None = None) -> None:
        """Take a tenant of an open store.

        Args:
            tenant: whose threads these are; no call reaches another tenant's (I21).
            restore: what becomes of an older checkpoint that was made under a summary which is not the present one:
                "strict" refuses it, "warn" hands it over with a StaleStateWarning.
            serde: as of any checkpointer; None: LangGraph's own.

        Raises:
            InvalidInputError: no tenant, or another word as `restore`.
        """
        super().__init__(serde=serde)
        self.tenant = check_tenant(tenant)
        self.restore = check_restore(restore)
        self._remembered = Remembered()
        self._early = EarlyWrites(WRITES_IDX_MAP.values())

    @classmethod
    def from_conn_string(
        cls, url: str, *, tenant: str, restore: Restore = "strict", serde: SerializerProtocol | None = None
    ) -> Opened[StrandlineSaver]:
        """Open a store, and close it in the end: `with` or `async with … as saver`.

        Args:
            url: as of `strandline.open`: a path, "sqlite:///path", "postgresql://…", or ":memory:".
            tenant: its name.
            restore, serde: as of the class.
        """
        return Opened(url, lambda db: cls(db.tenant(tenant), restore=restore, serde=serde))

    # ------------------------------------------------------------------------------------------------------- read

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the newest checkpoint of a thread, or the one that the config names by its id; None: there is none.

        Newest is what was saved last, whatever a clock said. Its config carries what was seen of the line, so that who
        saves behind it is refused when somebody else did so before.

        Raises:
            CompactionLineageError: the lineage gate refuses it (`restore="strict"`).
            StateErasedError: some of what it held was erased.
            CorruptRecordError: what is stored is not what was saved.
        """
        address = address_of(config)
        found = self._read(address)
        if found is None:
            return None
        state, values = found
        basis = basis_of(values)
        if basis is not None:
            newest = address.state_id is None or state.position == state.seen
            pass_gate(self.tenant, basis, state.state_id, self.restore, newest=newest)
        return self._tuple(address.thread, state, values)

    def _read(self, address: Address) -> tuple[SavedState, dict[str, object]] | None:
        """Return a state and the values of its channels; what is remembered of them is not read again."""
        states = self.tenant.workflow(address.thread).states
        known = self._remembered.get(address.thread, address.line)
        state = states.load(address.state_id, line=address.line, values=() if known else True)
        if state is None:
            if address.state_id is None:
                self._remembered.begin(address.thread, address.line)
            return None
        if known is None or (known.state_id, known.lineage_seq) != (state.state_id, state.lineage_seq):
            state = states.load(state.state_id, line=address.line) if known else state
            if state is None:
                return None
            known = KnownState(
                state_id=state.state_id,
                versions=self._rest(state)[0]["channel_versions"],
                values={name: read(self.serde, value) for name, value in state.values.items()},
                lineage_seq=state.lineage_seq,
            )
            self._remembered.keep(address.thread, address.line, known)
        return state, {name: shown(self.serde, held) for name, held in known.values.items()}

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, object] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints of a thread, those saved last first, or thread by thread.

        The lineage gate is not asked, a history stays readable: of a checkpoint that lost a part to an erasure, what
        is left is shown. States that no saver saved are passed by.

        Args:
            config: of a thread, all its namespaces or one, or one checkpoint; None: all threads of the tenant.
            filter: what the metadata must say.
            before: only those saved before this one, which may be deleted since.
            limit: at most so many.

        Raises:
            InvalidInputError: `before` names a checkpoint that never was there, or the limit is below 0.
            StateErasedError: all that a checkpoint said was erased.
            CorruptRecordError: as of `get_tuple`.
        """
        if limit is not None and limit < 0:
            raise InvalidInputError(f"limit is 0 or more, not {limit}")
        if config is None and before is not None:
            raise InvalidInputError("`before` names a checkpoint of one thread, and config=None lists all threads")
        threads = self.tenant.state_workflows() if config is None else [address_of(config).thread]
        found = (item for thread in threads for item in self._of_thread(thread, config, filter or {}, before))
        return itertools.islice(found, limit)

    def _of_thread(
        self,
        thread: str,
        config: RunnableConfig | None,
        filter: Mapping[str, object],
        before: RunnableConfig | None,
    ) -> Iterator[CheckpointTuple]:
        named = (config or {}).get("configurable") or {}
        line, state_id = named.get("checkpoint_ns"), named.get("checkpoint_id")
        bound = self._bound(thread, before)
        own = bound[1] if bound is not None and line == bound[0] else None
        for state in self.tenant.workflow(thread).states.list(line=line, before=own):
            if state_id and state.state_id != state_id:
                continue
            if not is_checkpoint(state.meta):
                if state.erased:
                    said = f"all that checkpoint {state.state_id!r} of thread {thread!r} said was erased"
                    raise StateErasedError(said, line=state.line, state_id=state.state_id)
                continue
            _, metadata = self._rest(state)
            if bound is not None and not self._is_before(thread, state, metadata, bound):
                continue
            if all(metadata.get(name) == value for name, value in filter.items()):
                yield self._tuple(thread, state, {n: decode(self.serde, v) for n, v in state.values.items()})

    def _bound(self, thread: str, before: RunnableConfig | None) -> tuple[str, int] | None:
        """Return where the checkpoint stands, or stood, before which others are asked for: namespace and position.

        A run that replays asks with nothing but the id of its graph's checkpoint, which may just be being saved: then
        all that its subgraph has is before it.
        """
        named = (before or {}).get("configurable") or {}
        state_id = named.get("checkpoint_id")
        if not state_id:
            return None
        for place in self.tenant.workflow(thread).states.positions(state_id).items():
            return place
        if named.get("thread_id") is None:
            return None
        raise InvalidInputError(
            f"there never was a checkpoint {state_id!r} in thread {thread!r}, before which others were asked for"
        )

    def _is_before(self, thread: str, state: SavedState, metadata: CheckpointMetadata, bound: tuple[str, int]) -> bool:
        """Say whether a checkpoint came before another one. One of a subgraph came with the checkpoint of its graph
        that it names: a graph may save its own behind that of its subgraph, in the background.
        """
        line, position = bound
        graphs = (metadata.get("parents") or {}).get(line) if state.line != line else None
        places = {} if graphs is None else self.tenant.workflow(thread).states.positions(graphs, line=line)
        return places.get(line, state.position) < position

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return for each channel its writes since the nearest ancestor that holds its value, and that value.

        Raises:
            StateErasedError: an ancestor that is needed was deleted or erased.
            CorruptRecordError: as of `get_tuple`.
        """
        address = address_of(config)
        states = self.tenant.workflow(address.thread).states
        state = states.load(address.state_id, line=address.line, values=False)
        if state is None:
            return {name: {"writes": []} for name in channels}
        ancestry = Ancestry(states=states, line=address.line)
        return history_of(state, channels, ancestry, lambda value: decode(self.serde, value))

    def _rest(self, state: SavedState) -> tuple[Checkpoint, CheckpointMetadata]:
        return decode_rest(self.serde, state.meta, f"checkpoint {state.state_id!r}")

    def _tuple(self, thread: str, state: SavedState, values: dict[str, object]) -> CheckpointTuple:
        rest, metadata = self._rest(state)
        return CheckpointTuple(
            config=config_of(thread, state.line, state.state_id, state.seen),
            checkpoint={**rest, "channel_values": values},
            metadata=metadata,
            parent_config=None if state.parent is None else config_of(thread, state.line, state.parent),
            pending_writes=[
                (write.task, write.channel, decode(self.serde, write.value)) for write in in_order(state.writes)
            ],
        )

    # ------------------------------------------------------------------------------------------------------ write

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint behind the one that the config names: whole, or not at all.

        Raises:
            StateConflictError: its parent is not there or was deleted, or it has none and the checkpoint of its graph
                was; its id is that of another checkpoint; or somebody else has saved in the line since the config was
                read.
        """
        address = address_of(config)
        told = get_checkpoint_metadata(config, metadata)
        run = told.get("run_id")
        known, new, kept = self._grown(address, checkpoint)
        meta = encode_rest(self.serde, checkpoint, told)
        place = (address.thread, address.line, checkpoint["id"])
        beside = self._beside(address, told.get("parents") or {}) if address.state_id is None else ()
        with self._early.lock(place):
            try:
                saved = self.tenant.workflow(address.thread).states.save(
                    checkpoint["id"],
                    new,
                    meta=meta,
                    line=address.line,
                    parent=address.state_id,
                    kept=kept,
                    run=None if run is None else str(run),
                    seen=address.seen,
                    beside=beside,
                    writes=self._early.waiting(place),
                )
            except StateConflictError:
                self._early.forget(place)
                raise
            self._early.forget(place)
        self._remembered.keep(address.thread, address.line, known)
        return config_of(address.thread, address.line, checkpoint["id"], saved.position)

    def _grown(
        self, address: Address, checkpoint: Checkpoint
    ) -> tuple[KnownState, dict[str, StateValue], Sequence[str]]:
        """Return a checkpoint as it is known from then on, the values to be saved, and the names of the parent's own.

        A value is the parent's own where its channel has the same version: that is what a version says.
        """
        parent = self._remembered.get(address.thread, address.line)
        if parent is None or parent.state_id != address.state_id:
            parent = KnownState(state_id="", versions={}, values={}, lineage_seq=0)
        versions = checkpoint["channel_versions"]
        held: dict[str, Held] = {}
        new: dict[str, StateValue] = {}
        for name, value in checkpoint["channel_values"].items():
            if name in parent.values and name in versions and parent.versions.get(name) == versions[name]:
                held[name] = parent.values[name]
            else:
                new[name], held[name] = grown(self.serde, value, parent.values.get(name))
        known = KnownState(
            state_id=checkpoint["id"], versions=dict(versions), values=held, lineage_seq=parent.lineage_seq
        )
        return known, new, [name for name in held if name not in new]

    def _beside(self, address: Address, parents: Mapping[str, str]) -> Sequence[tuple[str, str]]:
        """Return what must not be deleted where a line begins: the checkpoints of its graphs, which it names.

        Those may still be to come, or be refused, while the run goes on. So where nothing is left of a graph, what was
        known of it last is asked for, too. A run that begins it anew has read that nothing is left.
        """
        states = self.tenant.workflow(address.thread).states
        named = [(line, state_id) for line, state_id in parents.items() if line != address.line]
        known = [(line, self._remembered.get(address.thread, line)) for line, _ in named]
        last = [(line, state.state_id) for line, state in known if state is not None]
        return named + [one for one in last if states.load(line=one[0], values=False, erased=True) is None]

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, object]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a task wrote behind a checkpoint: all of it, or nothing. What stands there already, stays.

        Errors, interrupts and what resumes them take the place of an earlier one. What comes before its checkpoint
        waits in this saver until that is saved.

        Raises:
            StateConflictError: the checkpoint was deleted.
        """
        address = address_of(config)
        if address.state_id is None:
            raise InvalidInputError("the config names no checkpoint that was written behind: checkpoint_id is missing")
        held = [
            StateWrite(
                task=task_id,
                index=WRITES_IDX_MAP.get(channel, index),
                channel=channel,
                path=task_path,
                value=encode(self.serde, value),
            )
            for index, (channel, value) in enumerate(writes)
        ]
        states, replaced = self.tenant.workflow(address.thread).states, WRITES_IDX_MAP.values()
        write = partial(states.write, address.state_id, line=address.line, replace=replaced)
        place = (address.thread, address.line, address.state_id)
        self._early.keep(place, held, lambda writes, ahead: write(writes, ahead=ahead))

    # ----------------------------------------------------------------------------------------------------- remove

    def delete_thread(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread; who still runs on one of them is refused when he saves."""
        self.tenant.workflow(thread_of(thread_id)).states.delete()
        self._remembered.forget(thread_of(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that these runs saved, in all threads of the tenant."""
        self.tenant.delete_states(runs=[str(run_id) for run_id in run_ids])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints of a thread, with their writes, into one that has none of its own.

        Raises:
            StateConflictError: it has, or had: what was deleted is not brought back.
        """
        self.tenant.workflow(thread_of(source_thread_id)).states.copy_to(thread_of(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints but the newest of each namespace ("keep_latest"), or all ("delete").

        What the newest needs for its delta channels stays, too.

        Raises:
            InvalidInputError: another strategy, or one name instead of several.
            StateErasedError: an ancestor that the newest needs was deleted already.
        """
        if isinstance(thread_ids, str) or strategy not in _STRATEGIES:
            said = "thread_ids is a list of names" if isinstance(thread_ids, str) else f"{strategy=}"
            raise InvalidInputError(f"{said}; a strategy is one of {', '.join(map(repr, _STRATEGIES))}")
        for thread in [thread_of(thread_id) for thread_id in thread_ids]:
            states = self.tenant.workflow(thread).states
            if strategy == "delete":
                states.delete()
            else:
                newest = next(states.list(limit=1, values=False), None)
                kept = [pair for line in states.lines() for pair in self._needed(thread, line)]
                states.prune(kept, through=newest.position if newest else 0)

    def _needed(self, thread: str, line: str) -> Sequence[tuple[str, str]]:
        """Return the newest checkpoint of a namespace and those that its delta channels are read from."""
        states = self.tenant.workflow(thread).states
        newest = states.load(line=line, erased=True)
        if newest is None:
            return []
        if not is_checkpoint(newest.meta):  # all of it was erased, or it is none: it needs nothing
            return [(line, newest.state_id)]
        checkpoint, metadata = self._rest(newest)
        needed = needed_by(newest, checkpoint, metadata, Ancestry(states=states, line=line, erased=True))
        return [(line, state_id) for state_id in (newest.state_id, *needed)]

    # ------------------------------------------------------------------------------------------------------ versions

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return the version of a channel after this one: digits, of which later ones sort higher.

        A thread that a stock saver began goes on with as many digits as that has.
        """
        digits = (current or FIRST_VERSION).partition(".")[0]
        return f"{int(digits) + 1:0{len(digits)}}"

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> BaseCheckpointSaver[str]:
        """Return this saver with more types that may be read; what was read without them is read again."""
        clone = super().with_allowlist(extra_allowlist)
        if isinstance(clone, StrandlineSaver) and clone is not self:
            clone._remembered = Remembered()
        return clone

    # ------------------------------------------------------------------------------------------------------ async

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple`."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, object] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (item := await asyncio.to_thread(next, found, None)) is not None:
            yield item

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """As `get_delta_channel_history`."""
        return await asyncio.to_thread(lambda: self.get_delta_channel_history(config=config, channels=channels))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `put`; cancelled, it may still be saved."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, object]], task_id: str, task_path: str = ""
    ) -> None:
        """As `put_writes`; cancelled, they may still be kept."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread`."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs`."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `copy_thread`."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `prune`."""
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))
