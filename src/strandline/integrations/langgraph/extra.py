"""Say which extra is missing, instead of an ImportError from deep inside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from strandline.errors import InvalidInputError, extra_hint


@contextmanager
def needs_extra() -> Iterator[None]:
    """Name the extra where an import inside finds nothing.

    Raises:
        InvalidInputError: a package of the extra `langgraph` is not installed.
    """
    try:
        yield
    except ImportError as error:
        name = error.name or str(error)
        said = f"the LangGraph integration needs {name}, which is not installed"
        raise InvalidInputError(said, hint=extra_hint("langgraph")) from error
