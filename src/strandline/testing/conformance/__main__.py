"""Run the suite on a store or a summarizer, and say what it keeps.

    python -m strandline.testing.conformance package.module:factory                  a store
    python -m strandline.testing.conformance package.module:factory --summarizer     a summarizer

A store's factory is called with a path, and opens the same data under the same path, in any process; with `--volatile`
it is a store that keeps nothing, and each call makes an empty one. A summarizer's factory is called with nothing.
`--failing package.module:function` brings its model into trouble: called with a `Trouble`, it gives a summarizer, or
None where it can't.

Exit code 0: all that was asked is kept; 1: something is broken; 2: the suite could not be run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from strandline.errors import InvalidInputError
from strandline.testing.conformance.report import Report, run, shown


def find(name: str) -> Callable[..., object]:
    """Return the callable that `package.module:name` means.

    Raises:
        InvalidInputError: there is none.
    """
    module, _, path = name.partition(":")
    try:
        found: object = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInputError(f"{name!r} can't be found: {error}", hint="Give it as package.module:name.") from error
    if not callable(found):
        hint = "Name a function or a class."
        raise InvalidInputError(f"{name!r} can't be called: it is a {type(found).__name__}", hint=hint)
    return found


def try_out(name: str, factory: Callable[..., object], *, summarizer: bool) -> None:
    """Make one, so that a factory which makes none is told once, and not check by check.

    Raises:
        InvalidInputError: it fails, or makes nothing.
    """
    hint = "It is called with nothing, and makes a summarizer."
    if not summarizer:
        hint = "It is called with a path, and makes a store. For a summarizer add --summarizer."
    with tempfile.TemporaryDirectory(prefix="strandline-conformance-") as folder:
        try:
            made = factory() if summarizer else factory(str(Path(folder) / "store"))
        except Exception as error:
            raise InvalidInputError(f"{name!r} failed: {type(error).__name__}: {error}", hint=hint) from error
        if made is None:
            raise InvalidInputError(f"{name!r} made nothing: it returned None", hint=hint)
        if hasattr(made, "close"):
            made.close()


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for, print the report, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m strandline.testing.conformance", description="Say what a store or a summarizer keeps."
    )
    parser.add_argument("factory", metavar="package.module:factory")
    parser.add_argument("--summarizer", action="store_true", help="it makes a summarizer, not a store")
    parser.add_argument("--volatile", action="store_true", help="a store that keeps nothing when it is closed")
    parser.add_argument("--deterministic", action="store_true", help="a summarizer that claims to be")
    parser.add_argument("--failing", metavar="package.module:function", help="brings the summarizer into trouble")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args(arguments)
    sys.path.insert(0, str(Path.cwd()))
    try:
        factory = find(asked.factory)
        failing = find(asked.failing) if asked.failing else None
        try_out(asked.factory, factory, summarizer=asked.summarizer)
    except InvalidInputError as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)  # noqa: T201  the result of a command
        return 2
    with tempfile.TemporaryDirectory(prefix="strandline-conformance-") as folder:
        report = run(
            factory,
            Path(folder),
            summarizer=asked.summarizer,
            durable=not asked.volatile,
            deterministic=asked.deterministic,
            failing=failing,
        )
    print(json.dumps(report.as_json(), indent=1) if asked.json else shown(report))  # noqa: T201
    return _exit_code(report)


def _exit_code(report: Report) -> int:
    if not report.laws:
        return 2
    return int(any(law.broken for law in report.laws))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
