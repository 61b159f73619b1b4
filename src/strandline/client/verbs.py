"""What the verbs of a workflow share, in whatever module they stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from strandline.engine.environment import Environment
from strandline.engine.read_context import Context
from strandline.errors import InvalidInputError
from strandline.model.event import Basis
from strandline.model.ids import DEFAULT_VIEW
from strandline.ports import AsyncSummarizer, Summarizer
from strandline.summarizers import ExtractiveSummarizer

T = TypeVar("T")
P = ParamSpec("P")


class Verbs:
    """The ports and the workflow that a verb is about, and the view that it reads."""

    _env: Environment
    _view: str


def basis_of(basis: Context | Basis | None, view: str) -> Basis | None:
    """Return the basis of a context, or the basis itself.

    Raises:
        InvalidInputError: neither; or another view's, where not `main` is asked.
    """
    if basis is None:
        return None
    if isinstance(basis, Context):
        basis = basis.basis
    if not isinstance(basis, Basis):
        raise InvalidInputError(f"basis is a Context or a Basis, not a {type(basis).__name__}")
    if view not in (DEFAULT_VIEW, basis.view):
        raise InvalidInputError(f"a basis of view {basis.view!r}, given to view {view!r}; nothing was written")
    return basis


def deadline_of(summarizer: Summarizer | AsyncSummarizer, deadline_s: float) -> float | None:
    """Return the seconds for one draft; the extractive summarizer only computes, and has no deadline."""
    return None if isinstance(summarizer, ExtractiveSummarizer) else deadline_s


def last_resort_of(fallback: bool) -> Summarizer | None:
    """Return what drafts in the place of a summarizer that says what the log does not; None: nothing does.

    Raises:
        InvalidInputError: neither True nor False.
    """
    if not isinstance(fallback, bool):
        raise InvalidInputError(f"fallback is True or False, not {fallback!r}")
    return ExtractiveSummarizer() if fallback else None


async def in_thread(call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a call in a thread and await it."""
    import asyncio  # a tenth of the start-up time, which a blocking program can do without

    return await asyncio.to_thread(call, *args, **kwargs)
