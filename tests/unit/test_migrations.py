"""Law (C26): a store is brought up to date step by step; what an older process can't live with waits until it is asked
for, and a version that needs it says so instead of going on without it.
"""

import pytest

import strandline
from strandline.errors import SchemaVersionError, StoreUnavailableError
from strandline.stores.migrate import Migration, due, read_migrations


def step(number, *, post=False):
    return Migration(number=number, name=f"step_{number}", text=f"-- {number}", post=post)


def applied(*steps):
    return {each.number: each.checksum for each in steps}


FIRST, SECOND, LATER, NEXT = step(1), step(2), step(3, post=True), step(4)


def test_what_is_pending_is_due_but_for_what_waits():
    assert due([FIRST, SECOND, LATER], {}) == [FIRST, SECOND]
    assert due([FIRST, SECOND, LATER], applied(FIRST, SECOND)) == []
    assert due([FIRST, SECOND, LATER], applied(FIRST, SECOND), post=True) == [LATER]
    assert due([FIRST, SECOND, LATER], {}, post=True) == [FIRST, SECOND, LATER]


def test_a_version_that_needs_what_waits_says_so():
    with pytest.raises(StoreUnavailableError, match="waits until it is asked for") as refused:
        due([FIRST, SECOND, LATER, NEXT], applied(FIRST, SECOND))
    assert "strandline migrate --post" in refused.value.hint
    assert due([FIRST, SECOND, LATER, NEXT], applied(FIRST, SECOND), post=True) == [LATER, NEXT]
    assert due([FIRST, SECOND, LATER, NEXT], applied(FIRST, SECOND, LATER)) == [NEXT]


def test_a_newer_store_and_a_changed_step_are_refused():
    with pytest.raises(SchemaVersionError):
        due([FIRST], applied(FIRST, SECOND))
    with pytest.raises(StoreUnavailableError, match="not the one of this version"):
        due([FIRST, SECOND], {1: b"another"})


def test_files_are_told_apart_by_their_names(tmp_path):
    for name in ("0001_a.sql", "0002_b.pre.sql", "0003_c.post.sql", "README.md", "0004_d.later.sql"):
        (tmp_path / name).write_text("SELECT 1;")
    found = read_migrations(tmp_path)
    assert [(each.number, each.name, each.post) for each in found] == [(1, "a", False), (2, "b", False), (3, "c", True)]
    (tmp_path / "0002_b.pre.sql").unlink()
    with pytest.raises(StoreUnavailableError, match="gap"):
        read_migrations(tmp_path)


def test_what_is_up_to_date_stays_as_it_is(tmp_path):
    from strandline.client.opening import migrate_store

    path = tmp_path / "s.db"
    with pytest.raises(StoreUnavailableError, match="no such store"):
        migrate_store(str(path), post=True)
    strandline.open(path).close()
    before = path.read_bytes()
    migrate_store(str(path), post=True)
    assert path.read_bytes() == before
