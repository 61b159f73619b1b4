"""Tools of an agent as effects: a decorator, and a set of tools that is called by a provider's call ids (C23)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping

from strandline.client.verbs import Verbs
from strandline.codec import encode_json, keyed_hex, storable
from strandline.engine.append import append
from strandline.engine.effect import effect
from strandline.engine.effect_rows import EffectRequest
from strandline.engine.flow import Run, Verb, is_awaited, run
from strandline.errors import InvalidInputError
from strandline.limits import FAILURE_CHARS_MAX
from strandline.model.case import ProbeAnswer
from strandline.model.constructors import tool_call, tool_result
from strandline.model.effect import KeyedProbe

Arguments = Mapping[str, object]
Tool = Callable[..., object]
ToolProbe = Callable[[Arguments], ProbeAnswer | Awaitable[ProbeAnswer]]
ToolText = Callable[[Arguments], str]


def with_arguments(call: Callable[..., object], *args: object, **kwargs: object) -> Callable[[], object]:
    """Return a call without arguments, awaited if the call is."""
    if not is_awaited(call):
        return lambda: call(*args, **kwargs)

    async def awaiting() -> object:
        answer = call(*args, **kwargs)
        return await answer if inspect.isawaitable(answer) else answer

    return awaiting


def about(probe: ToolProbe, arguments: Arguments) -> KeyedProbe:
    """Return the probe of a request: it looks for what was asked for, under whatever key."""
    look = with_arguments(probe, arguments)
    return KeyedProbe(lambda _: look())


def effect_decorator(
    verbs: Verbs,
    tool: str | None,
    key: ToolText | None,
    subject: ToolText | str | None,
    probe: ToolProbe | None,
    *,
    again: bool,
    awaited: bool,
) -> Callable[[Tool], Tool]:
    """Return a decorator by which a function runs as an effect; `awaited`: also one that is not is awaited then."""
    if tool is not None and not isinstance(tool, str):
        raise InvalidInputError("as_effect is called before it decorates: @workflow.as_effect()")
    for name, given in (("key", key), ("probe", probe)):
        if given is not None and not callable(given):
            raise InvalidInputError(f"{name} is a function of the arguments, not a {type(given).__name__}")

    def decorate(function: Tool) -> Tool:
        named = tool or function.__name__
        signature = inspect.signature(function)

        def verb(args: tuple[object, ...], kwargs: dict[str, object]) -> Verb[object]:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            arguments = dict(bound.arguments)
            request = EffectRequest(
                key=key(arguments) if key else f"{named}:{_digest(verbs, arguments)}",
                tool=named,
                args=arguments,
                run=with_arguments(function, *bound.args, **bound.kwargs),
                probe=about(probe, arguments) if probe else None,
                view=verbs._view,
                subject=subject(arguments) if callable(subject) else subject,
                again=again,
            )
            return _result(verbs, request)

        if awaited or is_awaited(function):

            @functools.wraps(function)
            async def awaiting(*args: object, **kwargs: object) -> object:
                from strandline.engine.aflow import arun  # brings asyncio, which a blocking program can do without

                return await arun(verb(args, kwargs), verbs._env.clock)

            return awaiting

        @functools.wraps(function)
        def blocking(*args: object, **kwargs: object) -> object:
            return run(verb(args, kwargs), verbs._env.clock)

        return blocking

    return decorate


def _digest(verbs: Verbs, arguments: Arguments) -> str:
    return keyed_hex(verbs._env.store.digest_key, encode_json(arguments))


def _result(verbs: Verbs, request: EffectRequest) -> Verb[object]:
    outcome = yield from effect(verbs._env, request)
    return outcome.result


def _check_fit(name: str, tool: Tool, args: Arguments) -> None:
    """Refuse arguments that the tool does not take: a model may invent them, and nothing has happened yet."""
    try:
        signature = inspect.signature(tool)
    except (TypeError, ValueError):
        return  # it tells none
    try:
        signature.bind(**args)
    except TypeError as error:
        raise InvalidInputError(f"the arguments don't fit the tool {name!r}: {error}; nothing ran") from error


class Toolset:
    """The tools of an agent, called by the provider's call ids; made by `Workflow.toolset`.

    A call id is the key of its effect: the same call, sent again after a crash, is not run again.
    """

    def __init__(
        self,
        verbs: Verbs,
        tools: Mapping[str, Tool],
        probes: Mapping[str, ToolProbe] | None,
        subjects: Mapping[str, ToolText] | None,
        reads: Collection[str],
    ) -> None:
        self._verbs = verbs
        self._tools = dict(tools)
        self._probes = dict(probes or {})
        self._subjects = dict(subjects or {})
        self._reads = frozenset([reads] if isinstance(reads, str) else reads)
        for where, names in (("probes", self._probes), ("subjects", self._subjects), ("reads", self._reads)):
            unknown = sorted(set(names) - self._tools.keys())
            if unknown:
                raise InvalidInputError(f"{where} names {unknown[0]!r}, which is none of the tools")
        for name, tool in self._tools.items():
            if not callable(tool):
                raise InvalidInputError(f"the tool {name!r} is a {type(tool).__name__}, which can't be called")

    def call(self, call_id: str, tool: str, args: Arguments, *, again: bool = False) -> object:
        """Call a tool with these arguments, and return its result; `again` as of `Workflow.effect`.

        Raises:
            InvalidInputError: no such tool, arguments that are no object or not those of the tool, a call id that is
                none; nothing ran.
            EffectUnknownError, EffectFailedError, IdempotencyConflictError: as of `Workflow.effect`.
        """
        return run(self._verb(call_id, tool, args, again), self._verbs._env.clock)

    async def acall(self, call_id: str, tool: str, args: Arguments, *, again: bool = False) -> object:
        """Call a tool as `call` does, for event loops: coroutine functions are awaited, others run in a thread."""
        from strandline.engine.aflow import arun  # brings asyncio, which a blocking program can do without

        return await arun(self._verb(call_id, tool, args, again), self._verbs._env.clock)

    def _verb(self, call_id: str, tool: str, args: Arguments, again: bool) -> Verb[object]:
        if tool not in self._tools:
            raise InvalidInputError(f"there is no tool {tool!r}; there are {', '.join(sorted(self._tools))}")
        if not isinstance(args, Mapping) or not all(isinstance(name, str) for name in args):
            raise InvalidInputError(f"the arguments of the tool {tool!r} are no JSON object")
        call = with_arguments(self._tools[tool], **args)
        if tool in self._reads:
            return self._read(call_id, tool, args, call)
        _check_fit(tool, self._tools[tool], args)
        probe, subject = self._probes.get(tool), self._subjects.get(tool)
        request = EffectRequest(
            key=call_id,
            tool=tool,
            args=dict(args),
            run=call,
            probe=about(probe, args) if probe else None,
            view=self._verbs._view,
            subject=subject(args) if subject else None,
            again=again,
        )
        return _result(self._verbs, request)

    def _read(self, call_id: str, tool: str, args: Arguments, call: Callable[[], object]) -> Verb[object]:
        """Run a tool that only reads, each time that it is called; the log gets its call and its result."""
        env = self._verbs._env
        append(env, [tool_call(call_id, tool, dict(args))])
        told = yield Run(call=call)
        error = told.error
        if error is None:
            try:
                append(env, [tool_result(call_id, told.value)])
            except InvalidInputError as refused:
                error = refused
            else:
                return told.value
        said = storable(f"{type(error).__name__}: {error}", FAILURE_CHARS_MAX)
        append(env, [tool_result(call_id, said, is_error=True)])
        raise error
