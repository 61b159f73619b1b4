"""What the stores of a folder hold: row by row, and as their users see it.

As users see it means: without what differs from run to run by law: ids that are drawn, times, fences, attempts.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Final, TypeVar

import strandline
from strandline.testing import SeededEntropy, VirtualClock

STORE: Final = "store.db"
BACKUP: Final = "backup.db"
TENANT: Final = "acme"
Answer = TypeVar("Answer")
WHOLE: Final = 1_000_000  # tokens: a budget in which every context fits

Tables = dict[str, str]  # file and table -> digest of the rows
Visible = dict[str, str]  # file, workflow and section -> digest of what is seen

_read: dict[str, tuple[str, list[str]]] = {}  # by digest of the pages: what `read_rows` answered


def read_rows(folder: Path) -> tuple[str, list[str]]:
    """Return a digest of all rows, and what SQLite finds wrong. The same pages are not read twice."""
    pages = [_on(folder / file, _pages) for file in _files(folder)]
    key = _digest([hashlib.sha256(image).digest() for image in pages])
    if key not in _read:
        _read[key] = _digest(read_tables(folder)), _damage(folder)
    return _read[key]


def _pages(connection: sqlite3.Connection) -> bytes:
    empty = connection.execute("PRAGMA page_count").fetchone() == (0,)
    return b"" if empty else connection.serialize()


def read_tables(folder: Path) -> Tables:
    """Return a digest of each table. A store without tables is not there."""
    tables: Tables = {}
    for file in _files(folder):
        tables |= {f"{file}: {name}": digest for name, digest in _on(folder / file, _digests).items()}
    return tables


def _digests(connection: sqlite3.Connection) -> Tables:
    schema = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    named = [name for name, sql in schema if sql is not None and sql.startswith("CREATE TABLE")]
    rows = {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in named}
    return {name: _digest(content) for name, content in rows.items()} | ({"schema": _digest(schema)} if schema else {})


def _damage(folder: Path) -> list[str]:
    found = [
        (file, _on(folder / file, lambda c: c.execute("PRAGMA integrity_check").fetchall())) for file in _files(folder)
    ]
    return [f"{file}: {problem}" for file, problems in found for (problem,) in problems if problem != "ok"]


def _files(folder: Path) -> list[str]:
    return [file for file in (STORE, BACKUP) if (folder / file).exists()]


def _on(file: Path, ask: Callable[[sqlite3.Connection], Answer]) -> Answer:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        return ask(connection)


def _digest(content: object) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


def look(folder: Path) -> tuple[Visible, list[str]]:
    """Return what is seen of each store, by any program that opens it, and what `verify` finds."""
    seen, problems = {}, []
    for file in (STORE, BACKUP):
        if (folder / file).exists():
            with strandline.open(folder / file, clock=VirtualClock(), entropy=SeededEntropy()) as db:
                problems += [f"{file}: {problem.place}: {problem.reason}" for problem in db.verify().problems]
                seen |= {f"{file}: {section}": _digest(content) for section, content in _sections(db.tenant(TENANT))}
    return seen, problems


def _sections(tenant: strandline.Tenant) -> Iterator[tuple[str, object]]:
    yield "retention", [(rule.name, rule.older_than_s, rule.by, rule.why) for rule in tenant.retention()]
    for name in tenant.workflows():
        for section, content in (*_memory(tenant.workflow(name)), *_register(tenant.workflow(name))):
            yield f"{name}: {section}", content


def _memory(workflow: strandline.Workflow) -> Iterator[tuple[str, object]]:
    yield "log", [(e.seq, e.kind, e.actor, e.text, e.declared, e.extracted, e.abandoned) for e in workflow.events()]
    for view in workflow.views():
        context = workflow.view(view.name).context(WHOLE)
        yield (
            f"context of {view.name}",
            (
                (view.budget, sorted(view.audiences or ()), context.revision, context.generation, context.watermark),
                [(part.kind, part.from_seq, part.through_seq, part.text) for part in context.parts],
            ),
        )
    yield "manifest", sorted((str(e.ref), e.last_seq, e.generation_dropped, e.reason) for e in workflow.manifest())
    yield (
        "lineage",
        [
            (entry.kind, entry.view, entry.generation, entry.name, entry.by, entry.why, entry.detail.get("turn"))
            for entry in workflow.lineage()
            if entry.kind != "fence"
        ],
    )


def _register(workflow: strandline.Workflow) -> Iterator[tuple[str, object]]:
    yield (
        "cases",
        [
            (
                case.kind,
                case.state,
                case.view,
                case.generation,
                case.reason,
                case.subject,
                case.missing_refs,
                case.answer,
            )
            for case in workflow.cases(include_answered=True)
        ],
    )
    yield "effects", sorted((effect.key, effect.tool, effect.state) for effect in workflow.effects())
    yield "permits", [(permit.action, permit.state, permit.consumed_by) for permit in workflow.permits()]
    yield "due", [(due.view, due.budget, due.wanted_us is None, due.due_us is None) for due in workflow.due()]
    yield "states", [_state(state) for state in workflow.states.list()]
    yield "holds", [(hold.name, hold.by, hold.why) for hold in workflow.holds()]
    yield "readers", [(reader.name, reader.seq, reader.finished) for reader in workflow.readers()]


def _state(state: strandline.SavedState) -> object:
    content = asdict(state)
    del content["seen"], content["lineage_seq"]
    return content
