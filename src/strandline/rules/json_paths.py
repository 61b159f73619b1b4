"""JSON paths: which values of decoded JSON a user names. A small part of RFC 9535, and what it selects.

`$` is the root and may be left out. Steps: `.name`, `["any name"]`, `[0]`, `[*]` and `.*` for all items, `..name` for
the name at any depth. The work of a path is at most its steps times the size of the JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from strandline.errors import InvalidInputError
from strandline.rules.references import EMBEDDED_JSON_DEPTH_MAX, embedded_json

JSON_PATH_STEPS_MAX: Final = 32
JSON_PATH_CHARS_MAX: Final = 1_000

ALL: Final = ("all", "")
DEEP: Final = ("deep", "")
Path = tuple[tuple[str, str | int], ...]
"""Steps: ("name", a key), ("index", a number), ALL, DEEP."""

_STEP: Final = re.compile(
    r"(?P<deep>\.\.)(?=[A-Za-z_*\[])|(?P<all>\.?\*|\[\*\])|\[(?P<index>[0-9]{1,9})\]"
    r'|\.?(?P<name>[A-Za-z_][A-Za-z0-9_-]*)|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]'
)


def parse_path(name: str, text: str) -> Path:
    """Return the steps of a path.

    Raises:
        InvalidInputError: it has another form; with the place.
    """
    if len(text) > JSON_PATH_CHARS_MAX:
        raise InvalidInputError(f"JSON path {name!r} has {len(text)} characters; at most {JSON_PATH_CHARS_MAX}")
    steps: list[tuple[str, str | int]] = []
    at = 1 if text.startswith("$") else 0
    first = at == 0
    while at < len(text):
        match = _STEP.match(text, at)
        bare = match is not None and match["name"] is not None and text[at] != "."
        if match is None or (bare and not first and (not steps or steps[-1] != DEEP)):
            raise InvalidInputError(
                f"JSON path {name!r}: {text!r} can't be read at character {at}, {text[at : at + 10]!r}; "
                'the steps are .name, ["name"], [0], [*], .* and ..name'
            )
        steps.append(_step(match))
        at, first = match.end(), False
    if not steps or len(steps) > JSON_PATH_STEPS_MAX:
        raise InvalidInputError(f"JSON path {name!r} has {len(steps)} steps, not 1 to {JSON_PATH_STEPS_MAX}")
    return tuple(steps)


def _step(match: re.Match[str]) -> tuple[str, str | int]:
    if match["deep"]:
        return DEEP
    if match["all"]:
        return ALL
    if match["index"]:
        return "index", int(match["index"])
    try:
        return "name", match["name"] or str(json.loads(match["quoted"]))
    except ValueError as error:
        raise InvalidInputError(f"JSON path: {match['quoted']} is no JSON string: {error}") from error


def select(path: Path, root: object) -> list[object]:
    """Return the values that a path names, in document order."""
    found = [root]
    for kind, what in path:
        if kind == "deep":
            found = list(_descendants(found))
        elif kind == "all":
            found = [inner for item in found for inner in _items(item)]
        elif kind == "name":
            found = [item[what] for item in found if isinstance(item, Mapping) and what in item]
        else:
            index = int(what)
            found = [item[index] for item in found if isinstance(item, list | tuple) and index < len(item)]
    return found


def json_roots(value: object) -> Iterator[object]:
    """Yield a value, and each JSON text among its strings, decoded; a text that is JSON throughout counts as that."""
    todo: list[tuple[object, int]] = [(value, 0)]
    yield value
    while todo:
        item, depth = todo.pop()
        if isinstance(item, str):
            inner = embedded_json(item) if depth < EMBEDDED_JSON_DEPTH_MAX else None
            if inner is not None:
                yield inner
                todo.append((inner, depth + 1))
        else:
            todo.extend((inner, depth) for inner in reversed(_items(item)))


def _items(item: object) -> list[object]:
    if isinstance(item, Mapping):
        return list(item.values())
    return list(item) if isinstance(item, list | tuple) else []


def _descendants(roots: list[object]) -> Iterator[object]:
    """Yield items with all that lies below them, each object and list once."""
    done: set[int] = set()
    todo = list(reversed(roots))
    while todo:
        item = todo.pop()
        if isinstance(item, Mapping | list | tuple):
            if id(item) in done:
                continue
            done.add(id(item))
            todo.extend(reversed(_items(item)))
        yield item
