"""Fail when a module or a function has grown too large to be held in the head.

A module over MODULE_LINES_MAX lines or a function over FUNCTION_LINES_MAX lines fails; a module over MODULE_LINES_NOTE
lines is named, because it wants a reason.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

MODULE_LINES_NOTE = 300
MODULE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70


def long_functions(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, int]]:
    """Yield each function longer than FUNCTION_LINES_MAX with its length in lines, from `def` to its last line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield node, lines


def examine(path: Path) -> tuple[list[str], list[str]]:
    """Return the notes and the failures of one module."""
    source = path.read_text(encoding="utf-8")
    notes, failures = [], []
    lines = len(source.splitlines())
    if lines > MODULE_LINES_MAX:
        failures.append(f"{path}: {lines} lines, at most {MODULE_LINES_MAX} are allowed")
    elif lines > MODULE_LINES_NOTE:
        notes.append(f"{path}: {lines} lines, more than {MODULE_LINES_NOTE} wants a reason")
    failures += [
        f"{path}:{function.lineno}: {function.name} has {length} lines, at most {FUNCTION_LINES_MAX} are allowed"
        for function, length in long_functions(ast.parse(source, filename=str(path)))
    ]
    return notes, failures


def main(roots: list[str]) -> int:
    """Examine every module under the roots, print what was found, and return the exit code."""
    paths = sorted(path for root in roots for path in Path(root).rglob("*.py"))
    if not paths:
        print(f"no modules found under {', '.join(roots) or 'nothing'}", file=sys.stderr)
        return 2
    failed = False
    for path in paths:
        notes, failures = examine(path)
        for note in notes:
            print(f"note: {note}")
        for failure in failures:
            print(f"error: {failure}", file=sys.stderr)
        failed = failed or bool(failures)
    print(f"{len(paths)} modules examined")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
