"""Which items of a store a search means: by namespace, by filter, by words. Pure; the same answers as stock stores'."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence

from langgraph.store.base import Item, ListNamespacesOp, MatchCondition

from strandline import InvalidInputError

_ANY_LABEL = "*"
_NUMBERS: dict[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_EQUALITY: dict[str, Callable[[object, object], bool]] = {"$eq": operator.eq, "$ne": operator.ne}


def in_namespace(namespace: tuple[str, ...], prefix: tuple[str, ...]) -> bool:
    """Tell whether a namespace is this one, or lies under it."""
    return namespace[: len(prefix)] == tuple(prefix)


def namespaces_of(found: Iterable[tuple[str, ...]], op: ListNamespacesOp) -> list[tuple[str, ...]]:
    """Return the namespaces that are asked for, each once, in order."""
    fitting = {name for name in found if all(_fits(name, condition) for condition in op.match_conditions or ())}
    return sorted({name[: op.max_depth] for name in fitting})


def _fits(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    if condition.match_type not in {"prefix", "suffix"}:
        raise InvalidInputError(f'a condition is of type "prefix" or "suffix", not {condition.match_type!r}')
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in (_ANY_LABEL, label) for label, wanted in zip(part, path, strict=True))


def matches(value: object, wanted: Mapping[str, object]) -> bool:
    """Tell whether a value has what a filter wants; one that is compared by size must be a number.

    Raises:
        InvalidInputError: an operator that is none.
    """
    held = value if isinstance(value, Mapping) else {}
    return all(_is(held.get(name), want) for name, want in wanted.items())


def _is(value: object, want: object) -> bool:
    if isinstance(want, Mapping):
        if any(str(name).startswith("$") for name in want):
            return all(_compares(value, str(name), bound) for name, bound in want.items())
        return isinstance(value, Mapping) and matches(value, want)
    if isinstance(want, (list, tuple)):
        return (
            isinstance(value, (list, tuple))
            and len(value) == len(want)
            and all(_is(one, other) for one, other in zip(value, want, strict=True))
        )
    return value == want


def _compares(value: object, name: str, bound: object) -> bool:
    if name in _EQUALITY:
        return _EQUALITY[name](value, bound)
    if name not in _NUMBERS:
        raise InvalidInputError(f"{name!r} is no operator of a filter; there are {', '.join([*_EQUALITY, *_NUMBERS])}")
    if isinstance(value, (int, float)) and isinstance(bound, (int, float)):
        return _NUMBERS[name](value, bound)
    return False


def ranked(items: Sequence[Item], query: str) -> list[tuple[Item, float]]:
    """Return items with the share of a query's words that stand in each, the highest first; equals keep their order."""
    words = set(query.casefold().split())
    scored = [(item, _share(words, json.dumps(item.value, ensure_ascii=False, default=str))) for item in items]
    return sorted(scored, key=lambda pair: -pair[1])


def _share(words: set[str], text: str) -> float:
    found = text.casefold()
    return sum(word in found for word in words) / len(words) if words else 0.0
