"""PostgreSQL: durable appends, several clients, the newest events; beside psycopg in the same run on the same server.

Each is measured with row-level security and the chain on, at the size of a run that is nearest to SIZE_EVENTS.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count

import strandline
from strandline.bench import corpus
from strandline.bench.child import OWN_WORKFLOW, Writer, writers
from strandline.bench.figures import SPEED_OF_OURS, Figure, Line, Mark, compare
from strandline.bench.raw_postgres import PLAIN, SAME, RawPostgres, SameTable
from strandline.bench.rounds import Prepare, Work, contest, cpus, walls
from strandline.bench.stage import Stage
from strandline.bench.writing import (
    CLIENT_EVENTS,
    CLIENTS,
    OURS,
    PROCESS_EVENTS,
    ROUND_BATCHES,
    ROUND_EVENTS,
    Texts,
    batches,
    contest_of_appends,
    fresh_texts,
    scaled,
)

SIZE_EVENTS = 100_000
LAST_EVENTS = 200
LAST_CALLS = 20
MARK = Mark(at_least=0.85)
LAST_MARK = Mark(at_least=0.25)  # at most four times the time of reading the bytes
SECTION = "postgres"


def postgres(stage: Stage) -> list[Figure]:
    """Measure PostgreSQL, where a database was named."""
    if stage.postgres is None:
        stage.notes.append("PostgreSQL was not measured: `--postgres URL` names a database.")
        return []
    size = stage.near(SIZE_EVENTS)
    path = stage.corpus(size)
    with _schemas(stage.postgres, ("store", "same", "raw")) as urls:
        for name in ("store", "same"):
            stage.say(f"copying {size:,} events into PostgreSQL")
            strandline.copy_store(path, urls[name])
        raw = RawPostgres(stage.postgres, _schema("raw"))
        for first in range(0, corpus.length(size), corpus.BATCH_EVENTS):
            raw.append_many(corpus.bodies(first, min(corpus.BATCH_EVENTS, corpus.length(size) - first)), ())
        same = SameTable(stage.postgres, _schema("same"), corpus.TENANT)
        figures = [*_last(stage, urls["store"], raw, size), *_appends(stage, urls["store"], raw, same, size)]
        raw.close()
        same.close()
        return [*figures, *_threads(stage, urls["store"]), *_processes(stage, urls["store"])]


def _schema(name: str) -> str:
    return f"strandline_bench_{os.getpid()}_{name}"


@contextmanager
def _schemas(url: str, names: Sequence[str]) -> Iterator[dict[str, str]]:
    """Name stores in schemas of their own, and drop these at the end."""
    import psycopg

    sign = "&" if "?" in url else "?"
    try:
        yield {name: f"{url}{sign}schema={_schema(name)}" for name in names}
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            for name in names:
                connection.execute(f'DROP SCHEMA IF EXISTS "{_schema(name)}" CASCADE')


def _last(stage: Stage, url: str, raw: RawPostgres, size: int) -> list[Figure]:
    stage.say(f"the last {LAST_EVENTS} of {size:,} events on PostgreSQL")
    with strandline.open(url) as db:
        wf = corpus.workflow(db)
        newest = wf.basis().revision
        wanted = min(LAST_EVENTS, newest)
        competitors: dict[str, Prepare] = {
            OURS: lambda: lambda: wf.events(newest - wanted + 1, newest),
            PLAIN.partition(":")[0]: lambda: lambda: raw.last(wanted),
        }
        taken = contest(competitors, stage.runs, LAST_CALLS)
    line = Line(section=SECTION, what=f"read the last {LAST_EVENTS} events, checked", unit="µs", events=size)
    return [
        *compare(line, walls(taken, 1e6), SPEED_OF_OURS, marks={PLAIN.partition(":")[0]: LAST_MARK}),
        *_busy(line, cpus(taken, 1e6)),
    ]


def _appends(stage: Stage, url: str, raw: RawPostgres, same: SameTable, size: int) -> list[Figure]:
    stage.say(f"appends to {size:,} events on PostgreSQL")
    with strandline.open(url) as db:
        singly = {PLAIN: _each(raw), SAME: _each(same)}
        one, hundred = contest_of_appends(stage, db, "pg", singly, {PLAIN: _many(raw), SAME: _many(same)})
    one_line = Line(section=SECTION, what="one event of 1 KB, durable", unit="µs", events=size)
    hundred_line = Line(section=SECTION, what="100 events of 1 KB at once, durable", unit="µs", events=size)
    return [
        *compare(one_line, walls(one, 1e6 / ROUND_EVENTS), SPEED_OF_OURS, marks={PLAIN: MARK, SAME: MARK}),
        *_busy(one_line, cpus(one, 1e6 / ROUND_EVENTS)),
        *compare(hundred_line, walls(hundred, 1e6 / ROUND_BATCHES), SPEED_OF_OURS, marks={SAME: MARK}),
        *_busy(hundred_line, cpus(hundred, 1e6 / ROUND_BATCHES)),
    ]


def _each(raw: RawPostgres | SameTable) -> Callable[[Texts], None]:
    def do(texts: Texts) -> None:
        for key, text in texts:
            raw.append(text.encode(), key.encode())

    return do


def _many(raw: RawPostgres | SameTable) -> Callable[[Texts], None]:
    def do(texts: Texts) -> None:
        for batch in batches(texts):
            raw.append_many([text.encode() for _, text in batch], [key.encode() for key, _ in batch])

    return do


def _busy(line: Line, values: dict[str, list[float]]) -> list[Figure]:
    """Return the figures of this process' own processor time; the server's is not in it."""
    what = f"{line.what}: processor time of the client"
    return compare(Line(section=SECTION, what=what, unit=line.unit, events=line.events), values, SPEED_OF_OURS)


def _threads(stage: Stage, url: str) -> list[Figure]:
    stage.say(f"{CLIENTS} threads on {CLIENTS} workflows of PostgreSQL")
    fresh = fresh_texts("t")
    with strandline.open(url) as db, ThreadPoolExecutor(CLIENTS) as pool:
        flows = [db.tenant(corpus.TENANT).workflow(f"thread-{number}") for number in range(CLIENTS)]

        def fill(wf: strandline.Workflow, texts: Texts) -> None:
            for key, text in texts:
                wf.append(strandline.message("assistant", text, key=key))

        def together(chosen: Sequence[strandline.Workflow]) -> Prepare:
            def prepare() -> Work:
                shares = [fresh(CLIENT_EVENTS) for _ in chosen]
                return lambda: list(pool.map(fill, chosen, shares))

            return prepare

        many = f"{CLIENTS} threads"
        taken = contest({"1 thread": together(flows[:1]), many: together(flows)}, stage.runs)
    amounts = {"1 thread": CLIENT_EVENTS, many: CLIENTS * CLIENT_EVENTS}
    values = {who: walls(taken, 1e6 / events)[who] for who, events in amounts.items()}
    return scaled(f"{OURS}, a workflow each", values, many, section=SECTION)


def _processes(stage: Stage, url: str) -> list[Figure]:
    stage.say(f"{CLIENTS} processes on {CLIENTS} workflows of PostgreSQL")
    labels = count()

    def together(group: Sequence[Writer]) -> Prepare:
        def work() -> None:
            for writer in group:
                writer.tell(f"p{next(labels)} {PROCESS_EVENTS}")
            for writer in group:
                writer.wait()

        return lambda: work

    many = f"{CLIENTS} processes"
    with writers(url, [f"{OURS}{OWN_WORKFLOW}process-{number}" for number in range(CLIENTS)]) as started:
        taken = contest({"1 process": together(started[:1]), many: together(started)}, stage.runs)
    amounts = {"1 process": PROCESS_EVENTS, many: CLIENTS * PROCESS_EVENTS}
    values = {who: walls(taken, 1e6 / events)[who] for who, events in amounts.items()}
    return scaled(f"{OURS}, a workflow each", values, many, True, section=SECTION)
