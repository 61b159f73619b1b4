"""The verbs about actions outside: effects and guards (C23, C24)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from strandline.client.tools import Tool, ToolProbe, Toolset, ToolText, effect_decorator
from strandline.client.verbs import Verbs, basis_of
from strandline.engine.effect import effect
from strandline.engine.effect_rows import EffectRequest, list_effects, read_args
from strandline.engine.flow import Verb
from strandline.engine.flow import run as drive
from strandline.engine.guard import guard, list_permits
from strandline.engine.read_context import Context
from strandline.model.action import ActionNeed, Permit
from strandline.model.effect import Effect, EffectOutcome, KeyedProbe
from strandline.model.event import Basis


class ActionVerbs(Verbs):
    """A part of `Workflow`."""

    def effect(
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
        """Run a tool call with consequences outside once, and give its recorded result ever after (I18).

        It appends its own call and result.

        Args:
            key: names the effect in the workflow and its forks: what has the same key is done once.
            tool: the tool's name.
            args: its arguments, any JSON value.
            run: does it, without an argument; what it returns, any JSON value, is recorded. EffectFailedError says that
                it did not happen; any other exception leaves the outcome unknown.
            probe: tells, without an argument, whether it happened: EffectDone(result), EffectNeverHappened() or
                EffectCantTell(). It is asked only when the outcome is unknown. A KeyedProbe is told the key that it is
                asked about; only such a one is believed that the same request never happened under another key (I18).
            subject: what it is done to; two effects of one tool and subject are the same request in other words.
            again: run it although the same request is in doubt under another key, or was likely run before a recovery.
            permit: of `guard`, for the action that bears the tool's name; it is checked again and used up in the
                transaction that records the intent (I20).
            basis: the context from which it was decided on; None: the current one.
            actor: who does it.
            refs: references that its call declares.
            audience: who may read its call, and so its result; None: everyone.

        Raises:
            EffectUnknownError: it may have happened; a case is open, and nothing ran. Or it was done, and the view may
                not read its result.
            EffectFailedError: as `run` raised it.
            IdempotencyConflictError: the key was used for another tool or with other arguments; nothing ran.
            ActionDeniedError: the permit can't be used; nothing ran.
            InvalidInputError: no key, no tool, no JSON; the message says whether it ran.
        """
        return drive(
            self._effect(key, tool, args, run, probe, subject, again, permit, basis, actor, refs, audience),
            self._env.clock,
        )

    def _effect(
        self,
        key: str,
        tool: str,
        args: object,
        run: Callable[[], object],
        probe: Callable[[], object] | KeyedProbe | None,
        subject: str | None,
        again: bool,
        permit: Permit | str | None,
        basis: Context | Basis | None,
        actor: str,
        refs: Sequence[str],
        audience: str | None = None,
    ) -> Verb[EffectOutcome]:
        request = EffectRequest(
            key=key,
            tool=tool,
            args=args,
            run=run,
            probe=probe,
            view=self._view,
            subject=subject,
            again=again,
            permit=permit,
            basis=basis_of(basis, self._view),
            actor=actor,
            refs=refs,
            audience=audience,
        )
        return effect(self._env, request)

    def effects(self, keys: Collection[str] | None = None) -> list[Effect]:
        """Return the effects of the workflow and of its forks, by the time of their intent.

        Args:
            keys: only those that bear one of these, in their order.

        Raises:
            CorruptRecordError: one is missing or damaged.
        """
        return list_effects(self._env, self._view, keys)

    def effect_args(self, key: str) -> object:
        """Return the arguments that an effect was asked for with, by whomever of the family; None if they were erased.

        Args:
            key: of the effect; it is the `subject` of a case about one.

        Raises:
            InvalidInputError: no effect has this key.
            CorruptRecordError: its row or its call is missing or damaged.
        """
        return read_args(self._env, key, self._view)

    def as_effect(
        self,
        tool: str | None = None,
        key: ToolText | None = None,
        subject: ToolText | str | None = None,
        probe: ToolProbe | None = None,
        *,
        again: bool = False,
    ) -> Callable[[Tool], Tool]:
        """Make a function an effect: each call of it runs once, and returns the recorded result ever after.

        Args:
            tool: the tool's name; None: the function's.
            key: the effect's key, of the arguments by name; None: tool and digest of the arguments, so that the same
                arguments are run once.
            subject: as of `effect`; or a function of the arguments by name.
            probe: as of `effect`, of the arguments by name.
            again: as of `effect`: each key is run, whatever asked for the same under another one.
        """
        return effect_decorator(self, tool, key, subject, probe, again=again, awaited=False)

    def toolset(
        self,
        tools: Mapping[str, Tool],
        *,
        probes: Mapping[str, ToolProbe] | None = None,
        subjects: Mapping[str, ToolText] | None = None,
        reads: Collection[str] = (),
    ) -> Toolset:
        """Return the tools of an agent, to be called by the provider's call ids; each call is an effect.

        Args:
            tools: functions by the name of their tool; they are called with the arguments by name.
            probes: of some of them: tell, of the arguments by name, whether the call happened.
            subjects: of some of them: what it is done to, of the arguments by name.
            reads: the tools that change nothing: they run each time, and are only logged.

        Raises:
            InvalidInputError: a tool that can't be called, or a name that is none of the tools'.
        """
        return Toolset(self, tools, probes, subjects, reads)

    def guard(
        self,
        action: str,
        needs: Sequence[ActionNeed],
        *,
        by: str = "",
        basis: Context | Basis | None = None,
        dry_run: bool = False,
    ) -> Permit:
        """Decide by durable facts whether an action may be done, and record the decision (I20).

        Args:
            action: what is to be done.
            needs: what must hold: `approved`, `resolved`, `no_open_issue`, `in_force`, `not_in_force`.
            by: who acts; an approval by the same name does not count.
            basis: the context from which the action was decided on; None: the current one.
            dry_run: decide, and record nothing; the permit has no id, and no effect can use it.

        Raises:
            ActionDeniedError: a need is not met; it says which and why, and the denial is recorded.
            InvalidInputError: no action, no need, a basis that never was.
        """
        found = basis_of(basis, self._view)
        return guard(self._env, action, needs, by=by, basis=found, view=self._view, dry_run=dry_run)

    def permits(self) -> list[Permit]:
        """Return every decision about an action, granted and denied, the oldest first; with those of forks."""
        return list_permits(self._env, self._view)
