"""What a saver knows of states that it saved or read: so that it saves, and reads again, only what is new.

It holds messages as their fields, which it alone has in hand: who reads gets messages made from them, and changes to
one of those, or to one that was saved, are seen when the next state is compared with what is held. Other values it
holds as the bytes that stand in the store.
"""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TypeGuard

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol

from strandline import StateValue
from strandline.integrations.langgraph.values import decode, encode, part
from strandline.limits import REMEMBERED_PARTS_MAX

_UNCHANGING = frozenset({str, int, float, bool, type(None), bytes})
_FIELDS = attrgetter("__dict__")
_EXTRA = attrgetter("model_extra")


@dataclass(frozen=True, slots=True)
class HeldMessage:
    """A message by its fields, of which nobody else has those that can be changed."""

    kind: type[BaseMessage]
    fields: dict[str, object]
    extra: dict[str, object] | None  # fields that its class does not name
    named: set[str]  # of those that were set
    copies: tuple[tuple[str, Callable[[], object]], ...]  # what makes those anew that can be changed in place

    @classmethod
    def of(cls, message: BaseMessage, like: BaseMessage | None = None) -> HeldMessage:
        """Take a message that nobody else has; with the texts of one that is like it, so that each is there once."""
        texts = {} if like is None else like.__dict__
        fields = {
            name: texts[name] if type(value) is str and texts.get(name) == value else value
            for name, value in message.__dict__.items()
        }
        copies = tuple((name, copier(value)) for name, value in fields.items() if type(value) not in _UNCHANGING)
        return cls(type(message), fields, message.model_extra, message.model_fields_set, copies)

    def made(self) -> BaseMessage:
        """Make the message anew, by the protocol by which pydantic's models are pickled."""
        fields = self.fields.copy()
        for name, copy_of_it in self.copies:
            fields[name] = copy_of_it()
        message = self.kind.__new__(self.kind)
        message.__setstate__(
            {
                "__dict__": fields,
                "__pydantic_extra__": copy.deepcopy(self.extra) if self.extra else {},
                "__pydantic_fields_set__": self.named.copy(),
                "__pydantic_private__": None,
            }
        )
        return message


def copier(value: object) -> Callable[[], object]:
    """Return what makes a value anew, so that the two share nothing that can be changed."""
    if (type(value) is list and all(type(item) in _UNCHANGING for item in value)) or (
        type(value) is dict and all(type(item) in _UNCHANGING for item in value.values())
    ):
        return value.copy
    return partial(copy.deepcopy, value)


@dataclass(frozen=True, slots=True)
class History:
    """A list of messages; what is compared of them stands in rows, since thousands of them are compared at a time."""

    messages: tuple[HeldMessage, ...]
    kinds: tuple[type[BaseMessage], ...]
    fields: tuple[dict[str, object], ...]
    extras: tuple[dict[str, object] | None, ...]

    @classmethod
    def of(cls, messages: tuple[HeldMessage, ...]) -> History:
        """Take messages."""
        return cls(
            messages,
            tuple(held.kind for held in messages),
            tuple(held.fields for held in messages),
            tuple(held.extra for held in messages),
        )

    def __add__(self, messages: Sequence[HeldMessage]) -> History:
        more = History.of(tuple(messages))
        return History(
            self.messages + more.messages,
            self.kinds + more.kinds,
            self.fields + more.fields,
            self.extras + more.extras,
        )

    def first(self, count: int) -> History:
        """Return the list of the first messages."""
        if count == len(self.messages):
            return self
        return History(self.messages[:count], self.kinds[:count], self.fields[:count], self.extras[:count])

    def same(self, items: Sequence[BaseMessage]) -> int:
        """Return how many messages at the beginning of a list are these, as they were."""
        begun = items[: len(self.messages)]
        rows = (
            (self.kinds, tuple(map(type, begun))),
            (self.fields, tuple(map(_FIELDS, begun))),
            (self.extras, tuple(map(_EXTRA, begun))),
        )
        return min(_same(old, new) for old, new in rows)


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
        return 1 + sum(len(one.messages) if isinstance(one, History) else len(one.parts) for one in held)


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
        """Hold nothing of a thread any more."""
        with self._lock:
            for name in [name for name in self._known if name[0] == thread]:
                self._drop(name)

    def _drop(self, name: tuple[str, str]) -> None:
        known = self._known.pop(name, None)
        self._weight -= known.weight() if known is not None else 0


# ------------------------------------------------------------------------------------------ save and read with it


def grown(serde: SerializerProtocol, value: object, before: Held | None) -> tuple[StateValue, Held]:
    """Return a value as it is saved behind a state whose value is held, and as it is held from then on.

    What is held of a message is what a reader will get, not what the graph has in hand.
    """
    if are_messages(value):
        old = before if isinstance(before, History) else History.of(())
        same = old.same(value)
        parts = tuple(part(serde, item) for item in value[same:])
        new = [serde.loads_typed((one.kind, one.data)) for one in parts]
        if not new or are_messages(new):
            held = [HeldMessage.of(message, item) for message, item in zip(new, value[same:], strict=True)]
            return StateValue(parts, many=True, after=same), old.first(same) + held
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
    return History.of(tuple(map(HeldMessage.of, items))) if are_messages(items) else value


def shown(serde: SerializerProtocol, held: Held) -> object:
    """Return a held value as a graph gets it: its own."""
    if isinstance(held, History):
        return [message.made() for message in held.messages]
    return decode(serde, held)
