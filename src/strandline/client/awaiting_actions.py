"""`action_verbs` for event loops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from strandline.client.action_verbs import ActionVerbs
from strandline.client.tools import Tool, ToolProbe, Toolset, ToolText, effect_decorator
from strandline.client.verbs import in_thread
from strandline.engine.read_context import Context
from strandline.model.action import ActionNeed, Permit
from strandline.model.effect import Effect, EffectOutcome, KeyedProbe
from strandline.model.event import Basis


class AsyncActionVerbs:
    """A part of `AsyncWorkflow`."""

    _workflow: ActionVerbs

    async def effect(
        self,
        key: str,
        tool: str,
        args: object,
        run: Callable[[], object],
        probe: Callable[[], object] | KeyedProbe | None = None,
        *,
        subject: str | None = None,
        again: bool = False,
        permit: Permit | str | None = None,
        basis: Context | Basis | None = None,
        actor: str = "",
        refs: Sequence[str] = (),
        audience: str | None = None,
    ) -> EffectOutcome:
        """As `Workflow.effect`; coroutine functions are awaited, others run in a thread.

        When the call is cancelled, the outcome counts as unknown.
        """
        workflow = self._workflow
        verb = workflow._effect(key, tool, args, run, probe, subject, again, permit, basis, actor, refs, audience)
        from strandline.engine.aflow import arun  # brings asyncio, which a blocking program can do without

        return await arun(verb, workflow._env.clock)

    async def effects(self, keys: Collection[str] | None = None) -> list[Effect]:
        """As `Workflow.effects`."""
        return await in_thread(self._workflow.effects, keys)

    async def effect_args(self, key: str) -> object:
        """As `Workflow.effect_args`."""
        return await in_thread(self._workflow.effect_args, key)

    def as_effect(
        self,
        tool: str | None = None,
        key: ToolText | None = None,
        subject: ToolText | str | None = None,
        probe: ToolProbe | None = None,
        *,
        again: bool = False,
    ) -> Callable[[Tool], Tool]:
        """As `Workflow.as_effect`; what is decorated is awaited, also a function that was not."""
        return effect_decorator(self._workflow, tool, key, subject, probe, again=again, awaited=True)

    def toolset(
        self,
        tools: Mapping[str, Tool],
        *,
        probes: Mapping[str, ToolProbe] | None = None,
        subjects: Mapping[str, ToolText] | None = None,
        reads: Collection[str] = (),
    ) -> Toolset:
        """As `Workflow.toolset`; await `Toolset.acall`."""
        return self._workflow.toolset(tools, probes=probes, subjects=subjects, reads=reads)

    async def guard(
        self,
        action: str,
        needs: Sequence[ActionNeed],
        *,
        by: str = "",
        basis: Context | Basis | None = None,
        dry_run: bool = False,
    ) -> Permit:
        """As `Workflow.guard`."""
        return await in_thread(self._workflow.guard, action, needs, by=by, basis=basis, dry_run=dry_run)

    async def permits(self) -> list[Permit]:
        """As `Workflow.permits`."""
        return await in_thread(self._workflow.permits)
