"""Law (C5, I21): rows of no workflow are found: no verb reads them, until a new workflow gets their number."""

import sqlite3
from contextlib import closing

import strandline


def test_rows_of_no_workflow_are_found(tmp_path):
    path = tmp_path / "store.db"
    with strandline.open(path, durability="normal") as db:
        db.tenant("acme").workflow("one").append(strandline.constraint("rule", "Never on Fridays."))
        assert db.verify().ok
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        row = connection.execute("SELECT * FROM register_fact").fetchone()
        names = [column[1] for column in connection.execute("PRAGMA table_info(register_fact)")]
        row = [2 if name == "workflow_id" else value for name, value in zip(names, row, strict=True)]
        connection.execute(f"INSERT INTO register_fact VALUES ({','.join('?' * len(row))})", row)
    with strandline.open(path, durability="normal") as db:
        (problem,) = db.verify().problems
    assert problem.reason == "table register_fact: rows of no workflow: 1"
