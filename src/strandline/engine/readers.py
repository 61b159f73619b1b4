"""Readers of the log outside: how far each has come, so that nothing is erased that one still needs (C31)."""

from __future__ import annotations

from dataclasses import replace

from strandline.engine.environment import Environment, check_whole
from strandline.engine.watching import watched
from strandline.errors import CorruptRecordError, InvalidInputError
from strandline.limits import READERS_MAX
from strandline.model.erasure import Reader
from strandline.model.ids import check_name
from strandline.ports import Transaction


@watched("read_through")
def read_through(env: Environment, name: str, seq: int, *, finished: bool) -> Reader:
    """Say how far a reader has come; one that was not known is registered.

    Raises:
        TenantScopeError: no reader can have this name.
        InvalidInputError: he goes back, or ahead of the log, or there are READERS_MAX already; nothing was written.
    """
    check_name("reader", name)
    check_whole("seq", seq)
    with env.write() as tx:
        check_readers_whole(tx)
        head, there = tx.log.head(), tx.readers.get(name)
        least = there.seq if there is not None else 0
        if not least <= seq <= head.revision:
            raise InvalidInputError(
                f"reader {name!r} of {env.scope} has read through event {least}, and the log ends at {head.revision}: "
                f"{seq} lies outside; nothing was written",
                hint="Who begins anew takes another name.",
            )
        if there is None and head.readers >= READERS_MAX:
            raise InvalidInputError(f"{env.scope} has {READERS_MAX} readers, which is the most allowed")
        reader = Reader(name=name, seq=seq, finished=finished, seen_us=env.clock.now_us())
        tx.readers.put(reader)
        if there is None:
            tx.log.set_head(replace(head, readers=head.readers + 1))
    return reader


@watched("readers")
def list_readers(env: Environment) -> list[Reader]:
    """Return the readers of the workflow by name."""
    with env.read() as tx:
        check_readers_whole(tx)
        return tx.readers.all()


def needing(tx: Transaction, last_seq: int) -> list[Reader]:
    """Return the readers that have not finished, and have not read through an event."""
    check_readers_whole(tx)
    return [reader for reader in tx.readers.all() if not reader.finished and reader.seq < last_seq]


def check_readers_whole(tx: Transaction) -> None:
    """Check that no reader is missing.

    Raises:
        CorruptRecordError: one is.
    """
    counted, known = len(tx.readers.all()), tx.log.head().readers
    if counted != known:
        raise CorruptRecordError(f"{counted} readers are stored, and {known} were known", place="reader_watermark")
