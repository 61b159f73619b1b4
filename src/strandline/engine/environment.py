"""What every verb works with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Final, cast

from strandline.codec import encode_text
from strandline.engine.ancestry import compose
from strandline.engine.landing import read_back
from strandline.errors import (
    ContextOverflowError,
    CorruptRecordError,
    InvalidInputError,
    OutcomeUnknownError,
    StrandlineError,
)
from strandline.limits import CASE_TEXT_CHARS_MAX
from strandline.model.ids import Scope
from strandline.model.lineage import WorkflowHead
from strandline.ports import Clock, Entropy, Hook, Store, TokenCounter, Tracer, Transaction
from strandline.ports.occurrences import IncidentTold, OperationTold, OverflowTold
from strandline.rules.commands import command_line
from strandline.rules.reference_rules import BUILT_IN, References

PART_JOINT: Final = "\n\n"  # between the parts of a context that is read as one text
_UNWATCHED: Final = nullcontext()
_begun: ContextVar[float | None] = ContextVar("begun", default=None)  # when the verb began, by the monotonic clock


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
    hooks: Sequence[Hook] = ()  # of the whole store: one that comes later is told, too
    references: References = BUILT_IN

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open one snapshot of the workflow; a fork's holds its inherited past (C22)."""
        with self.store.read(self.scope) as tx:
            yield compose(tx)

    @contextmanager
    def write(self, *, joins: bool = True) -> Iterator[Transaction]:
        """Open a writing transaction on the workflow, as `Store.write`; a fork's holds its inherited past (C22).

        Where the answer to its commit is not seen, it is read back before anything is said (I19): what was committed
        is left normally.

        Raises:
            StoreUnavailableError: as `Store.write`; or the commit did not land.
            OutcomeUnknownError: nobody can tell whether it did, as `read_back`.
        """
        before: WorkflowHead | None = None
        after: WorkflowHead | None = None
        try:
            with self.store.write(self.scope, joins=joins) as tx:
                before = tx.log.head()
                yield compose(tx)
                after = tx.log.head()
        except OutcomeUnknownError as error:
            if before is None or after is None:  # it is not this transaction's
                raise
            read_back(self.store, self.scope, before, after, error)

    def command(self, words: str) -> str | None:
        """Return a command line on this workflow, as it can be typed; None where no command can open the store."""
        store, scope = self.store.path, self.scope
        return store and command_line(words, store=store, tenant=scope.tenant, workflow=scope.workflow)

    def part_tokens(self, text: str) -> int:
        """Return the tokens of a part of a context, with what parts it from the next; of no text, none."""
        return part_tokens(self.counter, text)

    def emit(self, name: str, details: Mapping[str, object]) -> None:
        """Tell the hooks, after the commit. A hook that raises changes nothing (DESIGN §2)."""
        if not self.hooks:
            return
        begun = _begun.get()
        elapsed_s = None if begun is None else round(self.clock.monotonic_s() - begun, 6)
        told = MappingProxyType({**self._where(), "elapsed_s": elapsed_s, **details})
        for hook in self.hooks:
            try:
                hook.emit(name, told)
            except Exception:  # noqa: BLE001  what watches the memory must not be able to harm it
                continue

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Let the hooks watch a phase while it runs; where there are none it costs nothing."""
        return self._watched(name) if self.hooks else _UNWATCHED

    @contextmanager
    def operation(self, name: str) -> Iterator[None]:
        """Let the hooks watch a verb: while it runs, and how it ended."""
        outer = _begun.set(self.clock.monotonic_s())
        try:
            with self._watched(name):
                try:
                    yield
                except BaseException as error:
                    self._emit_failure(name, error)
                    raise
                self.emit("operation", OperationTold(operation=name, error=None, case_id=None))
        finally:
            with suppress(ValueError):  # a verb that is thrown away ends in another context than its own
                _begun.reset(outer)

    def _watched(self, name: str) -> AbstractContextManager[None]:
        tracers = [hook for hook in self.hooks if hasattr(hook, "span")]
        return _spans(cast("list[Tracer]", tracers), name, MappingProxyType(self._where())) if tracers else _UNWATCHED

    def _emit_failure(self, operation: str, error: BaseException) -> None:
        damaged = error if isinstance(error, CorruptRecordError) else error.__cause__
        if isinstance(error, StrandlineError) and not error.told:
            error.told = True
            if isinstance(damaged, CorruptRecordError):
                self.emit("incident", IncidentTold(operation=operation, place=room_of(damaged.place), problems=1))
            if isinstance(error, ContextOverflowError):
                self.emit("overflow", OverflowTold(operation=operation, needed=error.needed, budget=error.budget))
        case_id = getattr(error, "case_id", None)
        self.emit("operation", OperationTold(operation=operation, error=type(error).__name__, case_id=case_id))

    def _where(self) -> dict[str, object]:
        return {"tenant": self.scope.tenant, "workflow": self.scope.workflow}


def room_of(place: str) -> str:
    """Return what kind of record a place names, without its number or name: a path is the store's."""
    room = place.partition(" ")[0]
    return room if room.isidentifier() else "store"


@contextmanager
def _spans(tracers: Sequence[Tracer], name: str, details: Mapping[str, object]) -> Iterator[None]:
    with ExitStack() as stack:
        for tracer in tracers:
            stack.push(_entered(tracer, name, details))
        yield


Exit = Callable[[type[BaseException] | None, BaseException | None, TracebackType | None], bool]


def _entered(tracer: Tracer, name: str, details: Mapping[str, object]) -> Exit:
    """Enter a span, and return what leaves it; what the tracer raises changes nothing."""
    try:
        span = tracer.span(name, details)
        span.__enter__()
    except Exception:  # noqa: BLE001  what watches the memory must not be able to harm it
        span = _UNWATCHED

    def leave(kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        with suppress(Exception):
            span.__exit__(kind, error, trace)
        return False  # what the verb raised goes on

    return leave
