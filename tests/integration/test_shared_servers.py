"""Laws of the fixtures: each test has a database of its own, and a run has one server of each kind."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

pytestmark = pytest.mark.long

SUITE = """
import os
from pathlib import Path
import psycopg, pytest

@pytest.mark.parametrize("turn", range(4))
def test_one(postgres_url, valkey_url, turn):
    with psycopg.connect(postgres_url) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
        assert tables == (0,)
        connection.execute("CREATE TABLE mine (value INT)")
        (server,) = connection.execute("SHOW port").fetchone()
    with Path(os.environ["SEEN"]).open("a") as seen:
        print(server, valkey_url.rpartition("/")[0], file=seen)

@pytest.mark.parametrize("postgres_version", [7], indirect=True)
def test_of_a_version_that_is_not_here(postgres_url):
    pass
"""


@pytest.mark.parametrize("turn", [1, 2])
def test_a_database_is_new_for_each_test(postgres_url: str, turn: int) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.info.server_version // 10_000 == 18
        connection.execute("CREATE TABLE mine (value INT)")


@pytest.mark.parametrize("postgres_version", [15], indirect=True)
def test_a_version_can_be_asked_for(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.info.server_version // 10_000 == 15


@pytest.mark.parametrize("turn", [1, 2])
def test_valkey_is_empty_for_each_test(valkey_url: str, turn: int) -> None:
    address, _, number = valkey_url.removeprefix("redis://").rpartition("/")
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port))) as connection:
        for line, answer in ((f"SELECT {number}", b"+OK\r\n"), ("DBSIZE", b":0\r\n"), ("SET one 1", b"+OK\r\n")):
            connection.sendall(f"{line}\r\n".encode())
            assert connection.recv(64) == answer


def run(tmp_path: Path, root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a suite of its own with the fixtures of this one."""
    suite = tmp_path / "test_suite.py"
    suite.write_text(SUITE)
    (tmp_path / "conftest.py").write_text("from tests.conftest import *")
    command = [sys.executable, "-m", "pytest", "-c", str(root / "pyproject.toml"), str(suite)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "STRANDLINE", "CI"))}
    return subprocess.run(
        [*command, "-q", "-p", "no:cacheprovider", *arguments],
        cwd=root,
        env=kept | {"SEEN": str(tmp_path / "seen")} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_workers_share_one_server_of_each_kind(tmp_path: Path, request) -> None:
    ran = run(tmp_path, request.config.rootpath, "-n", "2")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "PostgreSQL 7 is not installed: apt-get install postgresql-7" in ran.stdout
    seen = (tmp_path / "seen").read_text().splitlines()
    assert len(seen) == 4
    assert len(set(seen)) == 1


def test_in_ci_a_version_that_is_not_here_is_a_failure_and_an_existing_server_is_used(
    tmp_path: Path, request, postgres_server_url: str
) -> None:
    ran = run(tmp_path, request.config.rootpath, "-n", "0", CI="true", STRANDLINE_TEST_PG_URL=postgres_server_url)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "4 passed, 1 error" in ran.stdout
    assert "PostgreSQL 7 is not installed: apt-get install postgresql-7" in ran.stdout
    port = postgres_server_url.rpartition("/")[0].rpartition(":")[2]
    assert {line.split()[0] for line in (tmp_path / "seen").read_text().splitlines()} == {port}
