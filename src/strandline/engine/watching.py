"""Let the hooks watch a verb while it runs, and tell them how it ended (C27); without hooks it is called as it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from strandline.engine.environment import Environment
from strandline.engine.flow import Verb

P = ParamSpec("P")
R = TypeVar("R")


def watched(
    operation: str,
) -> Callable[[Callable[Concatenate[Environment, P], R]], Callable[Concatenate[Environment, P], R]]:
    """Let a verb be watched under this name."""

    def watch(verb: Callable[Concatenate[Environment, P], R]) -> Callable[Concatenate[Environment, P], R]:
        @wraps(verb)
        def run(env: Environment, /, *args: P.args, **kwargs: P.kwargs) -> R:
            if not env.hooks:
                return verb(env, *args, **kwargs)
            with env.operation(operation):
                return verb(env, *args, **kwargs)

        return run

    return watch


def watched_flow(
    operation: str,
) -> Callable[[Callable[Concatenate[Environment, P], Verb[R]]], Callable[Concatenate[Environment, P], Verb[R]]]:
    """Let a verb that waits be watched under this name, from its first step to its last."""

    def watch(verb: Callable[Concatenate[Environment, P], Verb[R]]) -> Callable[Concatenate[Environment, P], Verb[R]]:
        def through(env: Environment, steps: Verb[R]) -> Verb[R]:
            with env.operation(operation):
                return (yield from steps)

        @wraps(verb)
        def run(env: Environment, /, *args: P.args, **kwargs: P.kwargs) -> Verb[R]:
            steps = verb(env, *args, **kwargs)
            return through(env, steps) if env.hooks else steps

        return run

    return watch
