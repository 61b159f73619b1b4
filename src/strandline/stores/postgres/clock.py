"""The server's clock. Leases and expiry are judged by it, so that the machines' own clocks may be apart (DESIGN §5)."""

from __future__ import annotations

from strandline.ports import Clock
from strandline.stores.postgres.wire import Statement, Wire

_SECOND_US = 1_000_000
_ASK = Statement("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")


class ServerClock:
    """`ports.Clock` that shows the server's time: what it said, and the seconds that went by here since then.

    It is asked when a connection is made. What it shows is wrong by at most half of the time that the answer took.
    """

    def __init__(self, own: Clock) -> None:
        self._own = own
        self._ahead_us: int | None = None  # of this process's monotonic clock

    def ask(self, wire: Wire) -> None:
        """Ask the server."""
        before_s = self._own.monotonic_s()
        now_us = wire.ask([(_ASK, {})]).rows[0][0]
        self._ahead_us = int(now_us) - int((before_s + self._own.monotonic_s()) / 2 * _SECOND_US)

    def now_us(self) -> int:
        """Return the server's time; before it was asked, that of the machine."""
        if self._ahead_us is None:
            return self._own.now_us()
        return self._ahead_us + int(self._own.monotonic_s() * _SECOND_US)

    def monotonic_s(self) -> float:
        """Return seconds that never go back."""
        return self._own.monotonic_s()

    def sleep_s(self, seconds: float) -> None:
        """Wait."""
        self._own.sleep_s(seconds)
