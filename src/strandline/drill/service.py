"""The service outside: buckets whose handles change with each call, a page to publish on, a summarizer that hangs.

`python -m strandline.drill.service` is the process; it says its port, and ends with its stdin. It counts every call.
`Remote` is how the others call it.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from strandline.drill.process import say

HOST: Final = "127.0.0.1"
CALL_TIMEOUT_S: Final = 60.0
HANG_WITHIN_S: Final = 30.0
HALF_MARK: Final = "HALF-DRAFT-5f3c"  # begins a summary that will not be finished, so that it can be looked for


class World:
    """What the service remembers."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls: Counter[str] = Counter()
        self.objects: dict[str, set[str]] = {}
        self.stalls = 0  # summaries to come that hang half-way
        self.stalled = threading.Event()
        self.released = threading.Event()

    def create(self) -> str:
        """Return a handle that was never given out before, whatever was asked."""
        digest = hashlib.sha256(f"bucket {len(self.objects) + 1}".encode()).hexdigest()
        handle = f"bucket-{digest[:6]}"
        self.objects[handle] = set()
        return handle


class Handler(BaseHTTPRequestHandler):
    """One call."""

    world: World

    def do_POST(self) -> None:
        """Create, publish, summarize; or prepare the summarizer."""
        sent = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or b"{}")
        world = self.world
        if self.path == "/stall":
            world.stalls = 1
            world.stalled.clear()
            world.released.clear()
            self._answer(200, {})
        elif self.path == "/release":
            world.released.set()
            self._answer(200, {})
        else:
            self._count("POST")
            if self.path == "/buckets":
                with world.lock:
                    handle = world.create()
                self._answer(201, {"bucket": handle, "region": sent.get("region")})
            elif self.path == "/summaries":
                self._summarize(sent["lines"])
            else:
                self._answer(200, {"accepted": True})

    def do_PUT(self) -> None:
        """Put an object into a bucket."""
        self._count("PUT")
        _, _, handle, name = self.path.split("/", 3)
        if handle in self.world.objects:
            self.world.objects[handle].add(name)
        self._answer(200 if handle in self.world.objects else 404, {})

    def do_GET(self) -> None:
        """Look at a bucket or an object, at the counts; or wait until the summarizer hangs."""
        if self.path == "/calls":
            self._answer(200, dict(self.world.calls))
        elif self.path == "/stalled":
            self._answer(200, {"stalled": self.world.stalled.wait(HANG_WITHIN_S)})
        else:
            self._count("GET")
            _, _, handle, *name = self.path.split("/", 3)
            held = self.world.objects.get(handle)
            found = held is not None and (not name or name[0] in held)
            self._answer(200 if found else 404, {"found": found})

    def _summarize(self, lines: Sequence[str]) -> None:
        """Stream a summary, line by line; one that is to hang gives its first half and then nothing."""
        with self.world.lock:
            hangs = self.world.stalls > 0
            self.world.stalls = 0
        self.send_response(200)
        self.end_headers()
        if hangs:
            self._stream({"line": HALF_MARK})
            for line in lines[: len(lines) // 2]:
                self._stream({"line": line})
            self.world.stalled.set()
            self.world.released.wait()
        for line in lines[len(lines) // 2 if hangs else 0 :]:
            self._stream({"line": line})
        self._stream({"finish": "stop"})

    def _stream(self, value: object) -> None:
        try:
            self.wfile.write(json.dumps(value).encode() + b"\n")
            self.wfile.flush()
        except OSError:  # nobody listens any more
            self.close_connection = True

    def _count(self, verb: str) -> None:
        with self.world.lock:
            self.world.calls[f"{verb} /{self.path.split('/')[1]}"] += 1

    def _answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the counts are the record."""


@dataclass(frozen=True, slots=True)
class Remote:
    """The service as a caller sees it."""

    port: int

    def create_bucket(self, arguments: dict[str, object]) -> dict[str, object]:
        """Ask for a bucket; each call gives another one."""
        return self._call("POST", "/buckets", arguments)[1]

    def put(self, bucket: str, name: str) -> int:
        """Put an object into a bucket, and return the status."""
        return self._call("PUT", f"/buckets/{bucket}/{name}")[0]

    def holds(self, bucket: str, name: str) -> bool:
        """Return whether an object lies in a bucket."""
        return self._call("GET", f"/buckets/{bucket}/{name}")[0] == http.client.OK

    def publish(self, what: dict[str, object]) -> dict[str, object]:
        """Publish: what can't be taken back."""
        return self._call("POST", "/releases", what)[1]

    def calls(self) -> dict[str, int]:
        """Return how often each kind of call came in."""
        return {name: int(str(times)) for name, times in self._call("GET", "/calls")[1].items()}

    def let_next_summary_hang(self) -> None:
        """Let the next summary stop half-way."""
        self._call("POST", "/stall")

    def wait_until_it_hangs(self) -> bool:
        """Wait until it has stopped, and return whether it did, within HANG_WITHIN_S."""
        return self._call("GET", "/stalled")[1]["stalled"] is True

    def release(self) -> None:
        """Let a summary that hangs be finished: too late."""
        self._call("POST", "/release")

    def summarize(self, lines: Sequence[str], *, timeout_s: float | None = None) -> Iterator[str]:
        """Yield the lines of a summary as they come.

        Raises:
            TimeoutError: nothing came for so long.
            ConnectionError: the stream ended without its end.
        """
        connection = http.client.HTTPConnection(HOST, self.port, timeout=timeout_s)
        try:
            connection.request("POST", "/summaries", json.dumps({"lines": list(lines)}))
            for received in connection.getresponse():
                value = json.loads(received)
                if "finish" in value:
                    return
                yield value["line"]
        finally:
            connection.close()
        raise ConnectionError("the stream of the summary ended before its end")

    def _call(self, verb: str, path: str, value: object = None) -> tuple[int, dict[str, object]]:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=CALL_TIMEOUT_S)
        try:
            connection.request(verb, path, json.dumps(value) if value is not None else None)
            answer = connection.getresponse()
            read: dict[str, object] = json.loads(answer.read())
            return answer.status, read
        finally:
            connection.close()


def main() -> None:
    """Serve until stdin ends."""
    Handler.world = World()
    server = ThreadingHTTPServer((HOST, 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say({"port": server.server_address[1]})
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
