"""Say which extra is missing, instead of an ImportError from deep inside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from strandline.errors import InvalidInputError


@contextmanager
def needs_extra() -> Iterator[None]:
    """Name the extra where an import inside finds nothing.

    Raises:
        InvalidInputError: a package of the extra `celery` is not installed.
    """
    try:
        yield
    except ImportError as error:
        name = error.name or str(error)
        hint = 'Install what it needs: pip install "strandline[celery]"'
        raise InvalidInputError(f"the Celery integration needs {name}, which is not installed", hint=hint) from error
