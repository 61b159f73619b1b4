"""The servers that tests ask for: one of each kind for a whole run, shared by its workers.

With workers (`pytest -n 2`) their controller starts the servers before the first worker, and tells each where they are;
without, the first test that asks starts one. They end with the run, also when it is killed (`tools/servers.py`).

| fixture | gives |
| --- | --- |
| `postgres_url` | a new, empty database of the test's own |
| `postgres_store_url` | a database with the store's tables, without rows; cheaper, for tests that keep the schema |
| `postgres_version` | 18, or the test's own: `parametrize("postgres_version", [18, 15], indirect=True)` |
| `store_url` | an empty store of each of STORE_KINDS in turn |
| `valkey_url` | an empty database of a Valkey server, the worker's own |
| `llmock` | a server that plays models, the worker's own, without a script and with no request seen |

`STRANDLINE_TEST_PG_URL` names an existing server, to be used instead of PostgreSQL 18: a superuser's URL. PostgreSQL 18
is never missing, since a wheel brings it. PostgreSQL 15 is Debian's: where it isn't installed, its tests are skipped
and say so by name; with CI=true they fail.
"""

import itertools
import json
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import psycopg
import pytest
from psycopg import sql

import strandline
from tools.servers import (
    LlmockServer,
    PostgresServer,
    ValkeyServer,
    missing_postgres,
    start_llmock,
    start_postgres,
    start_valkey,
)

POSTGRES_VERSIONS = (18, 15)
STORE_KINDS = ("memory", "sqlite", "postgres-18", "postgres-15")
EXISTING_URL = "STRANDLINE_TEST_PG_URL"
KEPT_TABLES = ["store_meta", "schema_migration"]  # what opening a store writes
EMPTIED_BEFORE_TRUNCATE = 50  # times; deleted rows stay on disk, and no vacuum runs
CONNECT_TIMEOUT_S = 10

EMPTY = """
DO $$ DECLARE t record; BEGIN
    FOR t IN SELECT oid::regclass AS name FROM pg_class
        WHERE relnamespace = 'strandline'::regnamespace AND relkind = 'r' AND relname <> ALL({kept})
    LOOP EXECUTE 'DELETE FROM ' || t.name; END LOOP;
END $$
"""
TRUNCATE = """
DO $$ BEGIN
    EXECUTE (SELECT 'TRUNCATE ' || string_agg(oid::regclass::text, ', ') FROM pg_class
        WHERE relnamespace = 'strandline'::regnamespace AND relkind = 'r' AND relname <> ALL({kept}));
END $$
"""

_numbers = itertools.count(1)
_running: list[PostgresServer | ValkeyServer] = []  # of this process, to be stopped at its end


def _postgres(version: int) -> str:
    """Start a server and return its URL, or `error: …` with why it can't be started."""
    if version == POSTGRES_VERSIONS[0] and EXISTING_URL in os.environ:
        return os.environ[EXISTING_URL]
    missing = missing_postgres(version)
    return f"error: {missing}" if missing else _started(lambda: start_postgres(version))


def _started(start: Callable[[], PostgresServer | ValkeyServer]) -> str:
    try:
        _running.append(start())
    except Exception as error:  # noqa: BLE001 - told by each test that asks for the server
        return f"error: {error!r}"
    return _running[-1].url()


STARTS: dict[str, Callable[[], str]] = {
    **{f"postgres {version}": lambda version=version: _postgres(version) for version in POSTGRES_VERSIONS},
    "valkey": lambda: _started(start_valkey),
}


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """Start the servers when the first worker is made, all at once, and tell each worker where they are."""
    shared = node.config.stash.setdefault(_SHARED, {})
    if not shared:
        with ThreadPoolExecutor() as pool:
            shared.update(zip(STARTS, pool.map(lambda start: start(), STARTS.values()), strict=True))
    node.workerinput["servers"] = shared


def pytest_unconfigure() -> None:
    """Stop what this process has started."""
    while _running:
        _running.pop().stop()


_SHARED = pytest.StashKey[dict[str, str]]()


@pytest.fixture(scope="session")
def servers(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Give what returns the URL of a server by its name, starting it when there is no controller that did."""
    known: dict[str, str] = getattr(request.config, "workerinput", {}).get("servers", {})

    def url(name: str) -> str:
        if name not in known:
            known[name] = STARTS[name]()
        if known[name].startswith("error: "):
            raise RuntimeError(known[name].removeprefix("error: "))
        return known[name]

    return url


@pytest.fixture(scope="session")
def worker(request: pytest.FixtureRequest) -> str:
    """Give a name that no other worker of this run has, nor of another run on the same server."""
    return f"{getattr(request.config, 'workerinput', {}).get('workerid', 'gw0')}_{os.getpid()}"


def _connect(url: str) -> psycopg.Connection:
    return psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S)


def _of_database(url: str, name: str) -> str:
    """Return the URL with another database."""
    address, _, query = url.partition("?")
    return f"{address.rpartition('/')[0]}/{name}" + (f"?{query}" if query else "")


@pytest.fixture
def postgres_version(request: pytest.FixtureRequest) -> int:
    return getattr(request, "param", POSTGRES_VERSIONS[0])


@pytest.fixture(scope="session")
def postgres_servers(servers: Callable[[str], str]) -> Callable[[int], str]:
    """Give what returns the superuser's URL of a version's server; one that is not installed is told by name."""

    def url(version: int) -> str:
        missing = None if version == POSTGRES_VERSIONS[0] else missing_postgres(version)
        if missing:
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
        return servers(f"postgres {version}")

    return url


@pytest.fixture
def postgres_server_url(postgres_version: int, postgres_servers: Callable[[int], str]) -> str:
    return postgres_servers(postgres_version)


@pytest.fixture
def postgres_url(postgres_server_url: str, worker: str) -> Iterator[str]:
    """Give a new, empty database."""
    name = f"strandline_{worker}_{next(_numbers)}"
    with _connect(postgres_server_url) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} STRATEGY file_copy").format(sql.Identifier(name)))
        yield _of_database(postgres_server_url, name)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def postgres_stores(worker: str, postgres_servers: Callable[[int], str]) -> Iterator[Callable[[int], str]]:
    """Give what returns this worker's database with the tables of a store, emptied, for a version."""
    made: dict[str, tuple[str, psycopg.Connection]] = {}  # by server: the URL, and a superuser's connection

    def url(version: int) -> str:
        server = postgres_servers(version)
        if server not in made:
            name = f"strandline_{worker}_store"
            with _connect(server) as connection:
                connection.execute(sql.SQL("CREATE DATABASE {} STRATEGY file_copy").format(sql.Identifier(name)))
            strandline.open(_of_database(server, name)).close()
            made[server] = _of_database(server, name), _connect(_of_database(server, name))
        _empty(made[server][1])
        return made[server][0]

    yield url
    for server, (store, connection) in made.items():
        connection.close()
        with _connect(server) as connection:
            name = sql.Identifier(store.partition("?")[0].rpartition("/")[2])
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def _empty(connection: psycopg.Connection) -> None:
    """Disconnect everybody else, and remove all rows but those that opening a store writes."""
    connection.execute(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    statement = EMPTY if next(_numbers) % EMPTIED_BEFORE_TRUNCATE else TRUNCATE
    with connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")  # no trigger, no foreign key
        connection.execute(sql.SQL(statement).format(kept=sql.Literal(KEPT_TABLES)))


@pytest.fixture
def postgres_store_url(postgres_version: int, postgres_stores: Callable[[int], str]) -> str:
    """Give a database with the store's tables, all empty, to which nobody else is connected."""
    return postgres_stores(postgres_version)


@pytest.fixture(params=STORE_KINDS)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give an empty store of each kind; `parametrize("store_url", KINDS, indirect=True)` for some of them."""
    if request.param == "memory":
        return ":memory:"
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return request.getfixturevalue("postgres_stores")(int(request.param.removeprefix("postgres-")))


@pytest.fixture
def valkey_url(servers: Callable[[str], str], request: pytest.FixtureRequest) -> str:
    """Give an empty database of Valkey; workers have one each."""
    worker = getattr(request.config, "workerinput", {}).get("workerid", "gw0")
    address, _, _ = servers("valkey").rpartition("/")
    number = int(worker.removeprefix("gw"))
    host, _, port = address.removeprefix("redis://").partition(":")
    with socket.create_connection((host, int(port)), CONNECT_TIMEOUT_S) as connection:
        for line in (f"SELECT {number}", "FLUSHDB"):
            connection.sendall(f"{line}\r\n".encode())
            answer = connection.recv(64)
            assert answer == b"+OK\r\n", answer
    return f"{address}/{number}"


class Llmock:
    """The server that plays models, as a test sees it."""

    def __init__(self, server: LlmockServer) -> None:
        self.openai_url, self.anthropic_url = f"{server.url()}/v1", f"{server.url()}/anthropic"
        self._control = f"{server.url()}/_llmock"

    def script(self, *behaviors: dict[str, Any]) -> None:
        """Say what the next requests get."""
        self._ask("POST", "scenario", {"behaviors": behaviors})

    def requests(self) -> list[dict[str, Any]]:
        """Return what was asked since the test began."""
        return self._ask("GET", "requests")["requests"]

    def reset(self) -> None:
        self._ask("POST", "reset")

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(f"{self._control}/{path}", data, method=method), timeout=CONNECT_TIMEOUT_S) as answer:
            return json.load(answer)


@pytest.fixture(scope="session")
def llmock_server() -> Iterator[Llmock]:
    with start_llmock() as server:
        yield Llmock(server)


@pytest.fixture
def llmock(llmock_server: Llmock) -> Llmock:
    llmock_server.reset()
    return llmock_server
