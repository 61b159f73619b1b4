"""What every verb works with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from strandline.codec import encode_text
from strandline.engine.ancestry import compose
from strandline.errors import InvalidInputError
from strandline.limits import CASE_TEXT_CHARS_MAX
from strandline.model.ids import Scope
from strandline.ports import Clock, Entropy, Hook, Store, TokenCounter, Transaction
from strandline.rules.commands import command_line
from strandline.rules.reference_rules import BUILT_IN, References

PART_JOINT: Final = "\n\n"  # between the parts of a context that is read as one text


def check_whole(name: str, value: int | None) -> None:
    """Refuse a number that is none.

    Raises:
        InvalidInputError: neither None nor a whole number.
    """
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise InvalidInputError(f"{name} is a whole number, not {value!r}")


def check_author(by: object, why: object) -> None:
    """Refuse a decision that does not say who made it, and why.

    Raises:
        InvalidInputError: no text, nobody, more than CASE_TEXT_CHARS_MAX, or what UTF-8 can't hold.
    """
    for name, text in (("by", by), ("why", why)):
        if not isinstance(text, str):
            raise InvalidInputError(f"{name} is a text, not {text!r}")
        if len(text) > CASE_TEXT_CHARS_MAX:
            raise InvalidInputError(f"{name} has {len(text)} characters; at most {CASE_TEXT_CHARS_MAX} are allowed")
        encode_text(text, name)
    if not str(by).strip():
        raise InvalidInputError("by is empty; say who decides")


def part_tokens(counter: TokenCounter, text: str) -> int:
    """Return the tokens of a part of a context, with what parts it from the next; of no text, none."""
    return counter.count(text + PART_JOINT) if text else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The ports, and the workflow that the verb is about."""

    store: Store
    clock: Clock
    entropy: Entropy
    counter: TokenCounter
    scope: Scope
    hooks: tuple[Hook, ...] = ()
    references: References = BUILT_IN

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open one snapshot of the workflow; a fork's holds its inherited past (C22)."""
        with self.store.read(self.scope) as tx:
            yield compose(tx)

    @contextmanager
    def write(self, *, joins: bool = True) -> Iterator[Transaction]:
        """Open a writing transaction on the workflow, as `Store.write`; a fork's holds its inherited past (C22)."""
        with self.store.write(self.scope, joins=joins) as tx:
            yield compose(tx)

    def command(self, words: str) -> str | None:
        """Return a command line on this workflow, as it can be typed; None where no command can open the store."""
        store, scope = self.store.path, self.scope
        return store and command_line(words, store=store, tenant=scope.tenant, workflow=scope.workflow)

    def part_tokens(self, text: str) -> int:
        """Return the tokens of a part of a context, with what parts it from the next; of no text, none."""
        return part_tokens(self.counter, text)

    def emit(self, name: str, details: Mapping[str, object]) -> None:
        """Tell the hooks, after the commit. A hook that raises changes nothing (DESIGN §2)."""
        for hook in self.hooks:
            try:
                hook.emit(name, details)
            except Exception:  # noqa: BLE001  what watches the memory must not be able to harm it
                continue
