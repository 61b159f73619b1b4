"""Laws of the architecture that need nothing but the source text.

1. The functional core (model, rules, errors, limits) imports the standard library and itself only, none of the modules
   that reach a clock, chance or the outside world, and calls nothing that reads, writes or asks for the time.
   Checked on the syntax tree, so that an import inside a function or under TYPE_CHECKING counts too.
2. The files that install the project name no package registry: where packages come from is the machine's business.
   Checked on the text.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "strandline"

PURE = ("errors", "limits", "model", "rules")
MAY_IMPORT = {
    "errors": {"errors"},
    "limits": {"limits"},
    "model": {"errors", "limits", "model"},
    "rules": {"errors", "limits", "model", "rules"},
}
IMPURE_MODULES = {
    "asyncio",
    "concurrent",
    "ctypes",
    "importlib",
    "io",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "shutil",
    "socket",
    "sqlite3",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "uuid",
}
IMPURE_CALLS = {"__import__", "breakpoint", "eval", "exec", "input", "open", "print"}
CLOCK_METHODS = {"now", "today", "utcnow"}

LOCKS = ("requirements.lock", "bench/requirements.lock")
INSTALLING_FILES = ("Makefile", "pyproject.toml", "bench/requirements.in", ".ci/run", *LOCKS)
REGISTRY_URL = re.compile(r"https?://\S*(?:pypi|pythonhosted|simple|index|registry)", re.IGNORECASE)
SOURCE_OPTION = re.compile(r"^\s*(?:-i|-f|--index-url|--extra-index-url|--find-links|--trusted-host)\b", re.MULTILINE)


def modules_of(layer: str) -> list[Path]:
    file = PACKAGE / f"{layer}.py"
    return [file] if file.exists() else sorted((PACKAGE / layer).rglob("*.py"))


def imports_of(path: Path, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the absolute dotted name of everything that a module imports."""
    package = ("strandline", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join([*base, *([node.module] if node.module else [])])
            if origin == "strandline":  # `from strandline import errors` names a layer, not the package's front door
                yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, origin


def impure_import(layer: str, name: str) -> str | None:
    """Say why a pure layer may not import the name; None when it may."""
    top, _, rest = name.partition(".")
    if top == "strandline":
        return None if rest.split(".")[0] in MAY_IMPORT[layer] else f"imports {name}, which lies above it or beside it"
    if top in IMPURE_MODULES:
        return f"imports {name}, which reaches outside"
    return None if top in sys.stdlib_module_names else f"imports {name}, which is third-party"


def impure_calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each call that does I/O or reads the wall clock."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            yield node.lineno, node.func.id
        elif isinstance(node.func, ast.Attribute) and node.func.attr in CLOCK_METHODS:
            yield node.lineno, f".{node.func.attr}"


@pytest.mark.parametrize("layer", PURE)
def test_the_functional_core_is_pure(layer: str) -> None:
    paths = modules_of(layer)
    assert paths, f"strandline.{layer} has no module: this law would hold of nothing"
    faults = []
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        where = path.relative_to(ROOT)
        faults += [
            f"{where}:{line}: {why}" for line, name in imports_of(path, tree) if (why := impure_import(layer, name))
        ]
        faults += [f"{where}:{line}: calls {name}" for line, name in impure_calls(tree)]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("import sqlite3", "reaches outside"),
        ("def f():\n    from os import path", "reaches outside"),
        ("import msgspec", "third-party"),
        ("from strandline import codec", "above it"),
        ("from ..engine import compact", "above it"),
        ("from strandline.model import ids", None),
        ("from . import planning", None),
        ("import dataclasses", None),
    ],
)
def test_the_import_law_bites(source: str, fault: str | None) -> None:
    ((_, name),) = imports_of(PACKAGE / "rules" / "sample.py", ast.parse(source))
    why = impure_import("rules", name)
    assert (why is None) if fault is None else (why is not None and fault in why)


@pytest.mark.parametrize("name", INSTALLING_FILES)
def test_no_registry_is_named(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not REGISTRY_URL.findall(text)
    assert not SOURCE_OPTION.findall(text)


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_records_versions_and_hashes_only(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert "://" not in text
    requirements = re.split(r"\n(?=\S)", "\n".join(line for line in text.splitlines() if "#" not in line).strip())
    assert len(requirements) > 1
    for requirement in requirements:
        assert re.match(r"[a-z0-9._-]+==[^\s;]+", requirement), f"not pinned by version: {requirement!r}"
        assert "--hash=sha256:" in requirement, f"not pinned by hash: {requirement!r}"
