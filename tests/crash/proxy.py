"""A proxy before PostgreSQL that knows where a commit is, and breaks the connection there.

It reads the protocol (www.postgresql.org/docs/current/protocol-message-formats.html) as far as it needs: what a client
sends up to a Sync or a simple query is one *journey*, what the server answers up to ReadyForQuery is its answer. The
store sends several statements in a journey, the COMMIT last (ADR 37); it may be prepared once and executed by name ever
after, so prepared names are followed. Journeys are held until they are whole, and so are answers: they can be cut at
any byte of either.

One thread serves all connections. `arm` says what is to happen next; a test arms it while nobody is connected through
it, or all are idle.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

_LENGTH: Final = struct.Struct("!i")
_HEADER: Final = 5  # bytes: a letter, and the length without the letter
_PIECE: Final = 1 << 16
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: close() sends RST
_BACKLOG: Final = 64
_READ_ONLY: Final = b"options\0-c default_transaction_read_only=on\0"


@dataclass(frozen=True, slots=True)
class Cut:
    """What happens to one journey, and then to the connections that are made after it."""

    name: str
    sends: str = "nothing"  # of the journey: nothing, its statements but for the COMMIT, half of it, all of it
    waits: bool = False  # for the answer: then it surely happened
    passes: str = "nothing"  # of the answer: nothing, half of it
    resets: bool = False  # the connection by RST; else it is ended by FIN
    stalls: str = (
        ""  # before: the journey is held until the server has ended the connection; after: its answer for ever
    )
    then: str = ""  # the later connections: answer: the first answer of the next one is cut; gone: none is made;
    #                 reads: they only read, as on a standby
    kills: bool = False  # the server, once it has the journey; it is started again at once


@dataclass(slots=True, eq=False)
class Link:
    """One client's connection, and the one to the server that serves it."""

    client: socket.socket
    server: socket.socket
    asked: bytearray = field(default_factory=bytearray)  # of the client, not yet sent on
    answered: bytearray = field(default_factory=bytearray)  # of the server, not yet sent on
    started: bool = False  # the server was told who connects
    ready: bool = False  # and said that it is ready
    commits: set[bytes] = field(default_factory=set)  # names of prepared statements that are a COMMIT
    cut: Cut | None = None  # what happens to the answer to the journey that is on its way
    commit: int = 0  # which commit it is; 0: it is none
    closed: bool = False


class Proxy:
    """Listens on a port of its own, and serves until it is closed.

    Args:
        port: of the server, on 127.0.0.1.
        restart: kills the server, and starts it again.
    """

    def __init__(self, port: int, restart: Callable[[], None] = lambda: None) -> None:
        self._target = ("127.0.0.1", port)
        self._restart = restart
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
        self.port: int = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._wakes, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._lock = threading.Lock()
        self._links: list[Link] = []
        self._ended = False
        self._seen: Callable[[int], None] | None = None
        self._arm(None, 0, at_commit=True)
        self.error: BaseException | None = None  # of the proxy itself: a fault of the test
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------------------------------ what is to happen

    def arm(self, cut: Cut | None, crossing: int = 0, *, at_commit: bool = True) -> None:
        """Cut the `crossing`th commit from now on, or the `crossing`th journey; None: cut nothing, only count."""
        with self._lock:
            self._arm(cut, crossing, at_commit=at_commit)

    def _arm(self, cut: Cut | None, crossing: int, *, at_commit: bool) -> None:
        self._cut, self._crossing, self._at_commit = cut, crossing, at_commit
        self.commits = self.journeys = 0
        self.struck = False  # it came to the crossing
        self.landed: bool | None = (
            None  # whether the server said that the commit that was cut happened; None: not known
        )
        self._later = ""

    @contextlib.contextmanager
    def watched(self, seen: Callable[[int], None]) -> Iterator[None]:
        """Call `seen` with the number of each commit, when the server has answered and the client does not know."""
        self._seen = seen
        try:
            yield
        finally:
            self._seen = None

    def drop(self) -> None:
        """End all connections: somebody waits for ever."""
        with self._lock:
            for link in list(self._links):
                self._close(link, resets=True)

    def close(self) -> None:
        """End it, with all connections."""
        self._ended = True
        self._wakes.send(b"x")
        self._thread.join()
        for link in list(self._links):
            self._close(link, resets=True)
        for each in (self._listener, self._wakes, self._woken):
            each.close()
        self._selector.close()

    # ------------------------------------------------------------------------------------------ serving

    def _serve(self) -> None:
        while not self._ended:
            for key, _ in self._selector.select():
                if key.fileobj is self._woken:
                    return
                with self._lock:
                    try:
                        if key.fileobj is self._listener:
                            self._accept()
                        elif not key.data.closed:
                            self._read(key.data, key.fileobj)
                    except OSError:  # the other side went away meanwhile
                        if key.data is not None:
                            self._close(key.data, resets=True)
                    except BaseException as error:  # told by whoever looks: it is no finding
                        self.error = error
                        raise

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        if self._later == "gone":
            _end(client, resets=True)
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            server = socket.create_connection(self._target)
        except OSError:
            _end(client, resets=True)
            return
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = Link(client, server)
        self._links.append(link)
        for each in (client, server):
            self._selector.register(each, selectors.EVENT_READ, link)

    def _read(self, link: Link, source: socket.socket) -> None:
        data = source.recv(_PIECE)
        if source is link.client:
            link.asked += data
            if not data:
                self._close(link, resets=False)
            elif not link.ready:
                self._introduce(link)
            else:
                while self._send_journey(link):
                    pass
        else:
            link.answered += data
            if not data:
                self._server_ended(link)
            else:
                self._send_answers(link)

    def _introduce(self, link: Link) -> None:
        """Pass on who connects. The server of a test trusts him and asks nothing back."""
        data = bytes(link.asked)
        link.asked.clear()
        if not link.started and self._later == "reads":
            data = data[4:-1] + _READ_ONLY + b"\0"
            data = _LENGTH.pack(len(data) + 4) + data
        link.started = True
        link.server.sendall(data)

    def _server_ended(self, link: Link) -> None:
        """The server ended the connection; what it said before goes to the client, unless that is cut."""
        cut = link.cut
        if cut is None and link.answered:
            link.client.sendall(link.answered)
        self._close(link, resets=cut is not None and cut.resets)

    # ------------------------------------------------------------------------------------------ journeys

    def _send_journey(self, link: Link) -> bool:
        """Send the next whole journey on, or cut it; tell whether there was one."""
        end, commit_at = self._find_journey(link)
        if not end or link.closed:
            return False
        journey = bytes(link.asked[:end])
        del link.asked[:end]
        self.journeys += 1
        link.commit = 0
        if commit_at is not None:
            self.commits += 1
            link.commit = self.commits
        cut = self._cut if self._strikes(link) else None
        if cut is not None:
            self.struck = True
            self._begin_cut(link, cut, journey, end if commit_at is None else commit_at)
        elif self._later == "answer":
            self._later = ""
            link.cut = _LOST_ANSWER
            link.server.sendall(journey)
        else:
            link.server.sendall(journey)
        return True

    def _strikes(self, link: Link) -> bool:
        if self._cut is None or self.struck:
            return False
        return link.commit == self._crossing if self._at_commit else self.journeys == self._crossing

    def _begin_cut(self, link: Link, cut: Cut, journey: bytes, commit_at: int) -> None:
        sent = {"nothing": 0, "statements": commit_at, "half": (commit_at + len(journey)) // 2, "all": len(journey)}
        link.cut = cut
        if cut.stalls == "before":
            self._await_end(link)
            sent["all"] = 0
        link.server.sendall(journey[: sent[cut.sends]])
        if cut.kills:
            self._restart()
        if not cut.waits and cut.stalls != "after":
            self._later = cut.then
            self._close(link, resets=cut.resets)

    def _await_end(self, link: Link) -> None:
        """Wait until the server has ended a transaction that asked nothing for too long; pass on what it says."""
        while data := link.server.recv(_PIECE):
            link.client.sendall(data)

    def _find_journey(self, link: Link) -> tuple[int, int | None]:
        """Return where the first whole journey ends, and where the COMMIT in it begins; 0: none is whole yet."""
        at, commit_at, asked = 0, None, link.asked
        prepared_at: int | None = None
        while len(asked) >= at + _HEADER:
            kind = asked[at : at + 1]
            end = at + 1 + _LENGTH.unpack_from(asked, at + 1)[0]
            if len(asked) < end:
                break
            if kind in (b"P", b"B", b"Q") and _is_commit(link, kind, bytes(asked[at + _HEADER : end])):
                if kind == b"P":  # it may be prepared now, and executed later
                    prepared_at = at
                else:
                    commit_at = at if prepared_at is None else prepared_at
            if kind in (b"S", b"Q", b"X"):
                return end, commit_at
            at = end
        return 0, None

    # ------------------------------------------------------------------------------------------ answers

    def _send_answers(self, link: Link) -> None:
        """Send whole answers on, or cut the one to the journey that is to be cut."""
        while not link.closed and (end := _answer_end(link.answered)):
            answer = bytes(link.answered[:end])
            del link.answered[:end]
            link.ready = True
            cut, commit = link.cut, link.commit
            link.commit = 0
            if commit and self._seen is not None:
                self._seen(commit)
            if cut is None:
                link.client.sendall(answer)
                continue
            if commit:
                self.landed = b"COMMIT\0" in answer
            if cut.stalls == "after":
                return  # the client waits, and the connection stands
            self._later = cut.then
            if cut.passes == "half":
                link.client.sendall(answer[: len(answer) // 2])
            self._close(link, resets=cut.resets)

    def _close(self, link: Link, *, resets: bool) -> None:
        if link.closed:
            return
        link.closed = True
        self._links.remove(link)
        for each in (link.client, link.server):
            self._selector.unregister(each)
            _end(each, resets=resets)


_LOST_ANSWER: Final = Cut("the next answer", sends="all", waits=True, resets=True)


def _is_commit(link: Link, kind: bytes, body: bytes) -> bool:
    """Tell whether a message prepares a COMMIT, or binds one; remember its name."""
    if kind == b"Q":
        return _commits(body)
    if kind == b"P":
        name, query, _ = body.split(b"\0", 2)
        link.commits.discard(name)
        if _commits(query):
            link.commits.add(name)
            return True
    if kind == b"B":
        _, name, _ = body.split(b"\0", 2)
        return name in link.commits
    return False


def _commits(query: bytes) -> bool:
    return query.strip(b"\0 ;").upper() in (b"COMMIT", b"END")


def _answer_end(answered: bytearray) -> int:
    """Return where the first whole answer ends: behind ReadyForQuery; 0: it is not whole yet."""
    at = 0
    while len(answered) >= at + _HEADER:
        end = at + 1 + _LENGTH.unpack_from(answered, at + 1)[0]
        if len(answered) < end:
            return 0
        if answered[at] == ord("Z"):
            return end
        at = end
    return 0


def _end(end: socket.socket, *, resets: bool) -> None:
    with contextlib.suppress(OSError):
        if resets:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    end.close()
