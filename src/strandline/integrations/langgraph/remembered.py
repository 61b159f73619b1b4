"""What a saver knows of states that it saved or read: so that it saves, and reads again, only what is new.

It holds messages as their fields, which it alone has in hand: who reads gets messages made from them, and changes to
one of those, or to one that was saved, are seen when the next state is compared with what is held. Other values it
holds as the bytes that stand in the store.
"""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, repeat, takewhile
from operator import attrgetter
from typing import Final, TypeGuard

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol

from strandline import StateValue
from strandline.integrations.langgraph.values import decode, encode, part
from strandline.limits import REMEMBERED_PARTS_MAX

_UNCHANGING: Final = frozenset({str, int, float, bool, type(None), bytes})
_RUN: Final = 64  # messages that are compared at once
_SHAPES_MAX: Final = 256  # classes of messages, by which of their fields are set
_FIELDS: Final = attrgetter("__dict__")
_EXTRA: Final = attrgetter("__pydantic_extra__")
_NONE: Final[dict[str, object]] = {}  # instead of each empty one that is held: it is never changed, nor handed out
_NEW: Final = object.__new__
_SET: Final = object.__setattr__


@dataclass(frozen=True, slots=True)
class Shape:
    """What many messages have in common."""

    kind: type[BaseMessage]
    empty: tuple[str, ...]  # the fields that hold an empty dict
    changeable: tuple[str, ...]  # the other fields whose values can be changed in place
    named: frozenset[str]  # the fields that were set


_shape: Final = lru_cache(_SHAPES_MAX)(Shape)
_NAMED: Final = attrgetter("named")


@dataclass(frozen=True, slots=True)
class Run:
    """Some messages in a row, by their fields, of which nobody else has those that can be changed.

    What is compared stands in rows: thousands of messages are compared at each step, and what that takes is to reach
    them, so a run is short enough to be at hand until it is done, and holds as few objects as can be.
    """

    shapes: tuple[Shape, ...]
    kinds: tuple[type[BaseMessage], ...]
    fields: tuple[dict[str, object], ...]
    extras: tuple[dict[str, object] | None, ...]  # fields that a message's class does not name

    @classmethod
    def of(cls, messages: Sequence[BaseMessage], like: Sequence[BaseMessage]) -> Run:
        """Take messages that nobody else has; a text that stands in one of those that are like them is there once."""
        fields = tuple(map(_held, map(_FIELDS, messages), map(_FIELDS, like)))
        extras = tuple(extra or (extra if extra is None else _NONE) for extra in map(_EXTRA, messages))
        return cls(tuple(map(_shape_of, messages, fields)), tuple(map(type, messages)), fields, extras)

    def __add__(self, more: Run) -> Run:
        return Run(
            self.shapes + more.shapes, self.kinds + more.kinds, self.fields + more.fields, self.extras + more.extras
        )

    def part(self, first: int, behind: int) -> Run:
        """Return the run of those from `first` on, before `behind`."""
        some = slice(first, behind)
        return Run(self.shapes[some], self.kinds[some], self.fields[some], self.extras[some])

    def same(self, items: Sequence[object]) -> int:
        """Return how many items at the beginning are these messages, as they were."""
        if (
            tuple(map(type, items)) == self.kinds
            and _equal(tuple(map(_FIELDS, items)), self.fields)
            and _equal(tuple(map(_EXTRA, items)), self.extras)
        ):
            return len(self.kinds)
        rows = zip(items, self.kinds, self.fields, self.extras, strict=False)
        return sum(1 for _ in takewhile(lambda row: _is_same(*row), rows))

    def made(self) -> list[BaseMessage]:
        """Make the messages anew: they share nothing with the held ones that can be changed.

        As pydantic makes a model that it does not validate, each of its slots for all messages in turn: thousands are
        made when a state is read, and a loop in the interpreter would be most of what that takes.
        """
        messages: list[BaseMessage] = list(map(_NEW, self.kinds))
        for name, values in (
            ("__dict__", map(_fresh_fields, self.shapes, self.fields)),
            ("__pydantic_extra__", map(fresh, self.extras)),
            ("__pydantic_fields_set__", map(set, map(_NAMED, self.shapes))),
            ("__pydantic_private__", repeat(None)),
        ):
            deque(map(_SET, messages, repeat(name), values), maxlen=0)
        return messages


def _fresh_fields(shape: Shape, held: dict[str, object]) -> dict[str, object]:
    fields = held.copy()
    for name in shape.empty:
        fields[name] = {}
    for name in shape.changeable:
        fields[name] = fresh(held[name])
    return fields


def _is_same(item: object, kind: type[BaseMessage], fields: object, extra: object) -> bool:
    return type(item) is kind and _equal(_FIELDS(item), fields) and _equal(_EXTRA(item), extra)


@dataclass(frozen=True, slots=True)
class History:
    """A list of messages in runs, of which all but the last are full: one that grew shares the full ones."""

    runs: tuple[Run, ...] = ()

    def __len__(self) -> int:
        return sum(len(run.kinds) for run in self.runs)

    def grown(self, first: int, more: Run) -> History:
        """Return the list of the first messages of this one, and more behind them."""
        full, left = divmod(first, _RUN)
        last = self.runs[full].part(0, left) + more if left else more
        cut = range(0, len(last.kinds), _RUN)
        return History(self.runs[:full] + tuple(last.part(at, at + _RUN) for at in cut))

    def same(self, items: Sequence[object]) -> int:
        """Return how many items at the beginning of a list are these messages, as they were."""
        first = 0
        for run in self.runs:
            same = run.same(items[first : first + len(run.kinds)])
            first += same
            if same < len(run.kinds):
                break
        return first

    def made(self) -> list[BaseMessage]:
        """Make the messages anew."""
        return list(chain.from_iterable(run.made() for run in self.runs))


def _shape_of(message: BaseMessage, fields: Mapping[str, object]) -> Shape:
    empty = tuple(name for name, value in fields.items() if value is _NONE)
    changeable = tuple(name for name, value in fields.items() if value is not _NONE and type(value) not in _UNCHANGING)
    return _shape(type(message), empty, changeable, frozenset(message.model_fields_set))


def _held(fields: Mapping[str, object], like: Mapping[str, object]) -> dict[str, object]:
    """Return fields with what others hold of the same."""
    held = dict(fields)
    for name, value in fields.items():
        if type(value) is str and type(like.get(name)) is str and like[name] == value:
            held[name] = like[name]
        elif type(value) is dict and not value:
            held[name] = _NONE
    return held


def fresh(value: object) -> object:
    """Return a value, or make it anew if it can be changed: the two share nothing that can be."""
    if value is _NONE:
        return {}
    if value is None or type(value) in _UNCHANGING:
        return value
    if type(value) is dict:
        return {name: fresh(one) for name, one in value.items()}
    if type(value) is list:
        return [fresh(one) for one in value]
    return copy.deepcopy(value)


Held = History | StateValue


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownState:
    """A saved state whose values are in hand."""

    state_id: str
    versions: Mapping[str, object]  # of its channels
    values: Mapping[str, Held]
    lineage_seq: int  # of the workflow when the oldest of the values was read; an erasure moves it (C31)

    def weight(self) -> int:
        """Return how many elements it holds."""
        held = self.values.values()
        return 1 + sum(len(one) if isinstance(one, History) else len(one.parts) for one in held)


class Remembered:
    """The state of each line that was saved or read last; the least used are forgotten. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], KnownState] = OrderedDict()
        self._weight = 0

    def get(self, thread: str, line: str) -> KnownState | None:
        """Return what is known of a line."""
        with self._lock:
            known = self._known.get((thread, line))
            if known is not None:
                self._known.move_to_end((thread, line))
            return known

    def keep(self, thread: str, line: str, known: KnownState) -> None:
        """Hold a state instead of the one that was held of its line."""
        with self._lock:
            self._drop((thread, line))
            self._known[thread, line] = known
            self._weight += known.weight()
            while self._weight > REMEMBERED_PARTS_MAX:
                self._drop(next(iter(self._known)))

    def forget(self, thread: str) -> None:
        """Hold of a thread that was deleted nothing but the ids: what comes behind one of them is late."""
        with self._lock:
            for name, known in [(name, known) for name, known in self._known.items() if name[0] == thread]:
                self._drop(name)
                self._known[name] = replace(known, versions={}, values={})
                self._weight += self._known[name].weight()

    def begin(self, thread: str, line: str) -> None:
        """Hold nothing of a line: who read it found nothing, and begins it."""
        with self._lock:
            self._drop((thread, line))

    def _drop(self, name: tuple[str, str]) -> None:
        known = self._known.pop(name, None)
        self._weight -= known.weight() if known is not None else 0


# ------------------------------------------------------------------------------------------ save and read with it


def grown(serde: SerializerProtocol, value: object, before: Held | None) -> tuple[StateValue, Held]:
    """Return a value as it is saved behind a state whose value is held, and as it is held from then on.

    What is held of a message is what a reader will get, not what the graph has in hand.
    """
    old = before if isinstance(before, History) else History()
    same = old.same(value) if type(value) is list else 0
    more = value[same:] if type(value) is list else []
    if are_messages(more) or (same and not more):
        parts = tuple(part(serde, item) for item in more)
        new = [serde.loads_typed((one.kind, one.data)) for one in parts]
        if are_messages(new) or not new:
            return StateValue(parts, many=True, after=same), old.grown(same, Run.of(new, more))
    whole = encode(serde, value)
    if not (whole.many and isinstance(before, StateValue) and before.many):
        return whole, whole
    same = _same(before.parts, whole.parts)
    return StateValue(whole.parts[same:], many=True, after=same), whole


def are_messages(value: object) -> TypeGuard[list[BaseMessage]]:
    """Tell whether a value is a list of messages, and not empty."""
    return type(value) is list and bool(value) and all(issubclass(kind, BaseMessage) for kind in set(map(type, value)))


def _same(old: Sequence[object], new: Sequence[object]) -> int:
    """Return how many elements two lists begin with that are equal."""
    most = min(len(old), len(new))
    if _equal(old[:most], new[:most]):
        return most
    return next((at for at in range(most) if not _equal(old[at], new[at])), most)


def _equal(old: object, new: object) -> bool:
    try:
        return bool(old == new)
    except Exception:  # noqa: BLE001  a tool's artifact may be an array, which answers no yes or no: it is saved again
        return False


def read(serde: SerializerProtocol, value: StateValue) -> Held:
    """Return a value that was read as it is held."""
    items = decode(serde, value) if value.many else None
    return History().grown(0, Run.of(items, items)) if are_messages(items) else value


def shown(serde: SerializerProtocol, held: Held) -> object:
    """Return a held value as a graph gets it: its own."""
    if isinstance(held, History):
        return held.made()
    return decode(serde, held)
