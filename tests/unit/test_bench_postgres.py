"""Law: the section on PostgreSQL measures what it says and leaves nothing behind; nothing is timed here."""

import json
from pathlib import Path

import psycopg
import pytest

import strandline
from strandline.bench import corpus, postgres
from strandline.bench.raw_postgres import PLAIN, SAME, RawPostgres, SameTable
from strandline.bench.stage import Stage
from tests.unit.test_bench import built, run, stage  # noqa: F401  fixtures

pytestmark = pytest.mark.long


@pytest.fixture
def small(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:  # noqa: F811
    for name, value in (
        ("CLIENTS", 2),
        ("CLIENT_EVENTS", 2),
        ("LAST_CALLS", 2),
        ("LAST_EVENTS", 20),
        ("PROCESS_EVENTS", 2),
        ("ROUND_BATCHES", 1),
        ("ROUND_EVENTS", 2),
    ):
        monkeypatch.setattr(postgres, name, value)
    return stage


def schemas(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        names = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'strandline%'"
        return [name for (name,) in connection.execute(names).fetchall()]


def test_without_a_database_it_says_so(stage: Stage) -> None:  # noqa: F811
    assert postgres.postgres(stage) == []
    assert "--postgres URL" in stage.notes[0]


def test_the_command_measures_the_database_that_it_is_given(
    small: Stage, postgres_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--postgres", postgres_url, "--only", "postgres", "--events", "120", "--runs", "1", "--dir", str(tmp_path)]
    code, out = run(capsys, *words, "--reuse", "--json")
    report = json.loads(out)
    figures = report["figures"]
    assert code == 0
    assert {figure["section"] for figure in figures} == {"postgres"}
    assert {PLAIN, SAME} < {figure["who"] for figure in figures}
    assert [figure["mark"] is not None for figure in figures].count(True) == 5
    names = [(figure["what"], figure["who"], figure["events"]) for figure in figures]
    assert len(names) == len(set(names))
    assert schemas(postgres_url) == []


def test_raw_stores_each_body_once_in_order(postgres_url: str) -> None:
    raw = RawPostgres(postgres_url, "raw")
    raw.append(b"1", b"a")
    raw.append_many([b"2", b"3"], [b"b", b"c"])
    assert raw.last(2) == [b"2", b"3"]
    raw.close()


def test_the_same_table_is_filled_under_row_level_security(postgres_url: str) -> None:
    with strandline.open(postgres_url) as db:
        corpus.workflow(db).append(strandline.note("the first"))
    same = SameTable(postgres_url, "strandline", corpus.TENANT)
    same.append(b"1", b"\0a")
    same.append_many([b"2", b"3"], [b"\0b", b"\0c"])
    same.close()
    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute("SELECT seq, body FROM strandline.event WHERE seq > 1 ORDER BY seq").fetchall()
        assert rows == [(2, b"1"), (3, b"2"), (4, b"3")]
        assert connection.execute("SELECT revision FROM strandline.workflow").fetchall() == [(4,)]
    stranger = SameTable(postgres_url, "strandline", "nobody")
    stranger._tenant_id = 77
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        stranger.append(b"4", b"\0d")
    stranger.close()
