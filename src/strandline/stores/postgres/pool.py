"""The connections of one process. A thread takes one for a transaction and gives it back; it makes a new one where
none is free and fewer than `pool` are out.

No thread works behind it: a connection is made by who needs it, who gets the server's own error; and a process that
forks has nothing to leave behind but connections, which its child neither uses nor closes.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from strandline.errors import InvalidInputError, StoreUnavailableError
from strandline.limits import (
    POSTGRES_CONNECTION_AGE_S,
    STORE_BUSY_TIMEOUT_S,
)
from strandline.stores.postgres.clock import ServerClock
from strandline.stores.postgres.place import Place
from strandline.stores.postgres.wire import Connection, Wire

_INHERITED: list[object] = []  # connections of a parent process: their end would end the parent's
_LIBPQ: Final = {  # a server that went away without a word is noticed; the URL may say otherwise
    "application_name": "strandline",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


def connect(place: Place) -> Connection:
    """Make a connection. It begins no transaction by itself, and sends whole numbers as 64 bits whatever their size.

    Raises:
        InvalidInputError: libpq can't read the URL.
        psycopg.OperationalError: as the server or the network says.
    """
    try:
        told = psycopg.conninfo.conninfo_to_dict(place.conninfo)
    except psycopg.ProgrammingError as error:
        raise InvalidInputError(f"{place.shown}: {place.hide(str(error).strip())}") from None
    options = _LIBPQ | {"connect_timeout": max(2, round(place.connect_timeout_s))} | told | {"client_encoding": "utf8"}
    connection: Connection = psycopg.connect(**options, autocommit=True)  # type: ignore[arg-type]
    connection.prepare_threshold = 0 if place.prepare else None
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_dumper(int, Int8BinaryDumper)  # the last one is used where either would do
    return connection


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A connection, and when it was made."""

    wire: Wire
    born_s: float


class Pool:
    """Free connections, the newest used first."""

    def __init__(self, place: Place, clock: ServerClock) -> None:
        self._place = place
        self._clock = clock
        self._closed = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(self._place.pool)
        self._free: list[Link] = []

    def take(self) -> Link:
        """Return a connection that is in no transaction.

        Raises:
            StoreUnavailableError: closed, or none was given back within STORE_BUSY_TIMEOUT_S.
            psycopg.OperationalError: a new one could not be made.
        """
        if os.getpid() != self._process:
            _INHERITED.append(self._free)
            self._begin_anew()
        if self._closed:
            raise StoreUnavailableError(f"{self._place.shown}: the store is closed", hint="Open it again.")
        if not self._slots.acquire(timeout=STORE_BUSY_TIMEOUT_S):
            what = f"all {self._place.pool} connections of the pool were in use for {STORE_BUSY_TIMEOUT_S:g} s"
            hint = "End transactions sooner, use fewer threads, or raise pool in the URL."
            raise StoreUnavailableError(f"{self._place.shown}: {what}; nothing was written", hint=hint)
        try:
            return self._free_one() or self._new_one()
        except BaseException:
            self._slots.release()
            raise

    def _free_one(self) -> Link | None:
        now_s = self._clock.monotonic_s()
        while True:
            with self._lock:
                if not self._free:
                    return None
                link = self._free.pop()
            if not link.wire.connection.closed and now_s - link.born_s < POSTGRES_CONNECTION_AGE_S:
                return link
            link.wire.connection.close()

    def _new_one(self) -> Link:
        wire = Wire(connect(self._place), prepare=self._place.prepare, answer_timeout_s=self._place.answer_timeout_s)
        try:
            self._clock.ask(wire)
        except BaseException:
            wire.connection.close()
            raise
        return Link(wire, self._clock.monotonic_s())

    def give(self, link: Link) -> None:
        """Take a connection back; one that is broken, or in the middle of something, is closed."""
        if os.getpid() != self._process:
            _INHERITED.append(link)
            return
        connection = link.wire.connection
        idle = not connection.closed and connection.info.transaction_status is TransactionStatus.IDLE
        with self._lock:
            kept = idle and not self._closed
            if kept:
                self._free.append(link)
        if not kept:
            connection.close()
        self._slots.release()

    def forget_free(self) -> None:
        """Close the free ones: what broke one may have broken all."""
        with self._lock:
            free, self._free = self._free, []
        for link in free:
            link.wire.connection.close()

    def close(self) -> None:
        """Close the free connections, and each other one when it is given back."""
        self._closed = True
        if os.getpid() == self._process:
            self.forget_free()
