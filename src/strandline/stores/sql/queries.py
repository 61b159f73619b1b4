"""Reads queries.sql: named statements with named parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One statement: its text with `:name` parameters, and the parameters in order of first appearance."""

    name: str
    text: str
    parameters: tuple[str, ...]


@cache
def load_queries() -> dict[str, Query]:
    """Return every statement of queries.sql by name."""
    text = resources.files(__package__).joinpath("queries.sql").read_text(encoding="utf-8")
    parts = _NAME.split(text)[1:]
    queries = {}
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        lines = [line for line in body.splitlines() if line.strip() and not line.lstrip().startswith("--")]
        statement = "\n".join(lines)
        parameters = tuple(dict.fromkeys(_PARAMETER.findall(statement)))
        queries[name] = Query(name=name, text=statement, parameters=parameters)
    return queries
