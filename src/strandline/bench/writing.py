"""Appends: one event, a hundred at once, several clients, several processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice

import strandline
from strandline.bench import corpus
from strandline.bench.child import Writer, writers
from strandline.bench.figures import SPEED_OF_OURS, SPEED_OF_THIS, Figure, Line, Mark, compare
from strandline.bench.raw import KEYED, PLAIN, Raw
from strandline.bench.rounds import Prepare, Timing, Work, contest, cpus, walls
from strandline.bench.stage import Stage

OURS = "Strandline"
ROUND_EVENTS = 100  # of single appends in a round
BATCH_EVENTS = 100
ROUND_BATCHES = 10
CLIENTS = 8
CLIENT_EVENTS = 40
PROCESSES = 4
PROCESS_EVENTS = 100

SINGLE_MARK = Mark(at_least=0.85)
BATCH_MARK = Mark(at_least=0.70)
CLIENTS_MARK = Mark(at_least=2.5)

Texts = Sequence[tuple[str, str]]  # of each event its key and its text
Do = Callable[[Texts], None]


def append(stage: Stage) -> list[Figure]:
    """Measure durable appends to a workflow of each size."""
    figures = []
    for size in stage.sizes:
        stage.say(f"appends to {size:,} events")
        figures += _appends_at(stage, size)
    return figures


def _appends_at(stage: Stage, size: int) -> list[Figure]:
    plain = Raw(stage.raw_corpus(size, keyed=False))
    keyed = Raw(stage.raw_corpus(size, keyed=True), keyed=True)
    with strandline.open(stage.corpus(size)) as db:
        singly = {PLAIN: _each(plain), KEYED: _each(keyed)}
        one, hundred = contest_of_appends(stage, db, "x", singly, {PLAIN: _many(plain), KEYED: _many(keyed)})
    plain.close()
    keyed.close()
    one_line = Line(section="append", what="one event of 1 KB, durable", unit="µs", events=size)
    hundred_line = Line(section="append", what="100 events of 1 KB at once, durable", unit="µs", events=size)
    return [
        *both_times(one_line, one, 1e6 / ROUND_EVENTS, SINGLE_MARK),
        *both_times(hundred_line, hundred, 1e6 / ROUND_BATCHES, BATCH_MARK),
    ]


def contest_of_appends(
    stage: Stage, db: strandline.Strandline, prefix: str, singly: Mapping[str, Do], at_once: Mapping[str, Do]
) -> tuple[dict[str, list[Timing]], dict[str, list[Timing]]]:
    """Let Strandline append beside others: ROUND_EVENTS events one by one, then ROUND_BATCHES batches."""
    wf = corpus.workflow(db)
    fresh = fresh_texts(f"{prefix}{wf.basis().revision}")

    def ours(texts: Texts) -> None:
        for key, text in texts:
            wf.append(strandline.message("assistant", text, key=key))

    def ours_at_once(texts: Texts) -> None:
        for batch in batches(texts):
            wf.append([strandline.message("assistant", text, key=key) for key, text in batch])

    def held(rivals: Mapping[str, Do], ours: Do, events: int) -> dict[str, list[Timing]]:
        return contest({who: after(fresh, events, do) for who, do in {OURS: ours, **rivals}.items()}, stage.runs)

    return held(singly, ours, ROUND_EVENTS), held(at_once, ours_at_once, ROUND_BATCHES * BATCH_EVENTS)


def both_times(line: Line, taken: dict[str, list[Timing]], scale: float, mark: Mark) -> list[Figure]:
    """Return the figures of elapsed time, which the mark is set for, and of processor time."""
    busy = Line(section=line.section, what=f"{line.what}: processor time", unit=line.unit, events=line.events)
    return [
        *compare(line, walls(taken, scale), SPEED_OF_OURS, marks={PLAIN: mark}),
        *compare(busy, cpus(taken, scale), SPEED_OF_OURS),
    ]


def fresh_texts(prefix: str) -> Callable[[int], Texts]:
    """Return what makes so many texts, with keys that nobody has."""
    numbers = count()
    return lambda amount: [(f"{prefix}-{number}", corpus.text_of(number)) for number in islice(numbers, amount)]


def after(fresh: Callable[[int], Texts], amount: int, do: Callable[[Texts], None]) -> Prepare:
    """Make the texts first, untimed; then do."""

    def prepare() -> Work:
        texts = fresh(amount)
        return lambda: do(texts)

    return prepare


def batches(texts: Texts) -> list[Texts]:
    """Part texts into batches."""
    return [texts[first : first + BATCH_EVENTS] for first in range(0, len(texts), BATCH_EVENTS)]


def _each(raw: Raw) -> Callable[[Texts], None]:
    def do(texts: Texts) -> None:
        for key, text in texts:
            raw.append(text.encode(), key)

    return do


def _many(raw: Raw) -> Callable[[Texts], None]:
    def do(texts: Texts) -> None:
        for batch in batches(texts):
            raw.append_many([text.encode() for _, text in batch], [key for key, _ in batch])

    return do


def clients(stage: Stage) -> list[Figure]:
    """Measure several threads, then several processes, that append to one workflow at once."""
    stage.say(f"{CLIENTS} threads and {PROCESSES} processes at once")
    return [*_threads(stage), *_processes(stage)]


def _threads(stage: Stage) -> list[Figure]:
    fresh = fresh_texts("x")
    path = stage.fresh("raw-clients")
    connections = [Raw(path, keyed=True, shared=True) for _ in range(CLIENTS)]
    with strandline.open(stage.fresh("clients")) as db, ThreadPoolExecutor(CLIENTS) as pool:
        wf = corpus.workflow(db)

        def ours(texts: Texts) -> None:
            for key, text in texts:
                wf.append(strandline.message("assistant", text, key=key))

        def together(does: Sequence[Callable[[Texts], None]]) -> Prepare:
            def prepare() -> Work:
                shares = [fresh(CLIENT_EVENTS) for _ in does]
                return lambda: list(pool.map(lambda do, texts: do(texts), does, shares))

            return prepare

        many = f"{CLIENTS} threads"
        own = contest({"1 thread": together([ours]), many: together([ours] * CLIENTS)}, stage.runs)
        does = [_each(raw) for raw in connections]
        raws = contest({"1 thread": together(does[:1]), many: together(does)}, stage.runs)
    for raw in connections:
        raw.close()
    amounts = {"1 thread": CLIENT_EVENTS, many: CLIENTS * CLIENT_EVENTS}
    return [
        *scaled(f"{OURS}, one store", {who: walls(own, 1e6 / n)[who] for who, n in amounts.items()}, many, True),
        *scaled(f"{KEYED}; own connections", {who: walls(raws, 1e6 / n)[who] for who, n in amounts.items()}, many),
    ]


def _processes(stage: Stage) -> list[Figure]:
    figures = []
    labels = count()
    for who in (OURS, KEYED):
        path = stage.fresh("processes")
        many = f"{PROCESSES} processes"

        def together(group: Sequence[Writer]) -> Prepare:
            def work() -> None:
                for writer in group:
                    writer.tell(f"p{next(labels)} {PROCESS_EVENTS}")
                for writer in group:
                    writer.wait()

            return lambda: work

        with writers(path, [who] * PROCESSES) as started:
            taken = contest({"1 process": together(started[:1]), many: together(started)}, stage.runs)
        amounts = {"1 process": PROCESS_EVENTS, many: PROCESSES * PROCESS_EVENTS}
        figures += scaled(who, {name: walls(taken, 1e6 / n)[name] for name, n in amounts.items()}, many)
    return figures


def scaled(
    who: str, values: dict[str, list[float]], many: str, marked: bool = False, *, section: str = "clients"
) -> list[Figure]:
    """Return how much faster many are than one."""
    line = Line(section=section, what=f"one event of 1 KB, durable: {who}", unit="µs")
    return compare(line, values, SPEED_OF_THIS, marks={many: CLIENTS_MARK} if marked else {})
