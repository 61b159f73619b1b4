"""Law (I19, I1–I3, I5, I13, I18): a commit may happen without its answer being seen: nothing is done twice or lost.

    python tests/crash/cuts.py --seed 1 --count 1000 [--json]

Each unit calls one verb on PostgreSQL through a proxy that breaks the connection at one of its commits, or at another
of its journeys to the server: before, while, and after the server has it; for good or for a moment; and again where it
is read what came of it. A verb then returns what it returns undisturbed, or raises StoreUnavailableError or
OutcomeUnknownError. Checked after each:

- what can be seen is what an undisturbed call shows after one of its commits: no half step;
- who got an answer finds all of it; who was told that nothing was written does not find all of it;
- the verb is called again, as its errors say (after OutcomeUnknownError not without a look, unless it has a key), until
  it answers: then answer and memory are those of one undisturbed call: nothing twice, nothing lost; what is done
  outside was done once; and `verify` finds nothing.

Unit i has the seed S+i. The ways to call a verb take turns of BLOCK units, each in an order of its own over all its
(commit, cut) and, every fifth unit, (journey, cut): so its whole table is walked through. Any unit is repeated alone by
its seed.

The server is started for this, in memory, and keeps what it acknowledged when it is killed, not when the machine dies.
The last line is one JSON object. Exit code 0: no violation; 1: violations; 2: it could not run.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from unittest.mock import patch

import psycopg

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

import strandline  # noqa: E402
from strandline.engine import search_index  # noqa: E402
from strandline.testing import SeededEntropy, VirtualClock  # noqa: E402
from strandline.testing.fakes import START_US  # noqa: E402
from tests.crash.cut_verbs import VERBS, Memory, Stand, Verb, begin, differences, see  # noqa: E402
from tests.crash.proxy import Cut, Proxy  # noqa: E402
from tools.servers import PostgresServer, ServerError, start_postgres  # noqa: E402

COMMIT_CUTS: Final = (
    Cut("ended before the commit", sends="nothing"),
    Cut("reset before the commit", sends="statements", resets=True),
    Cut("ended within the commit", sends="half"),
    Cut("reset once the commit was sent", sends="all", resets=True),
    Cut("ended once the commit was sent", sends="all"),
    Cut("ended before the answer", sends="all", waits=True),
    Cut("reset before the answer", sends="all", waits=True, resets=True),
    Cut("reset within the answer", sends="all", waits=True, passes="half", resets=True),
    Cut("stalled before the commit", stalls="before"),
    Cut("stalled before the answer", sends="all", waits=True, stalls="after"),
    Cut("the look at the pointer is cut, too", sends="all", waits=True, resets=True, then="answer"),
    Cut("the look at the pointer is cut while it is unknown", sends="all", resets=True, then="answer"),
    Cut("nobody answers any more, it happened", sends="all", waits=True, resets=True, then="gone"),
    Cut("nobody answers any more, it did not happen", sends="nothing", resets=True, then="gone"),
    Cut("only a standby answers, it happened", sends="all", waits=True, resets=True, then="reads"),
    Cut("only a standby answers, it did not happen", sends="nothing", resets=True, then="reads"),
    Cut("the server is killed", sends="all", kills=True),
)
JOURNEY_CUTS: Final = (
    Cut("the question is lost", sends="nothing", resets=True),
    Cut("half of the question is lost", sends="half"),
    Cut("the answer is lost", sends="all", waits=True, resets=True),
    Cut("nobody answers any more", sends="nothing", resets=True, then="gone"),
)
BLOCK: Final = 50  # units of one verb in a row: what it is called on takes a second to prepare
JOURNEY_EVERY: Final = 5  # the share of units that cut another journey than a commit
CALLS_MAX: Final = 4  # of a verb, until it answers
HUNG_S: Final = 60.0  # a call that takes longer waits for ever
CHUNK_EVENTS: Final = 8  # of the index of words: a small log has several
LEASE_ENDS_S: Final = 400.0  # by the clock of the test: what a call that failed holds is free again
TRUNCATED_EVERY: Final = 60  # resets: deleted rows stay in the tables, and nothing vacuums
STORY_CHARS_MAX: Final = 600
PLAIN: Final = "sslmode=disable&gssencmode=disable&options=-csynchronous_commit%3Don"
PATIENT, HASTY = "pool=4", "pool=4&idle_timeout_s=0.3&answer_timeout_s=1"

SNAPSHOT: Final = """
CREATE SCHEMA kept;
DO $$ DECLARE t record; BEGIN
    FOR t IN SELECT relname AS name FROM pg_class
        WHERE relnamespace = 'strandline'::regnamespace AND relkind = 'r' AND relname <> 'schema_migration'
    LOOP EXECUTE format('CREATE TABLE kept.%1$I AS TABLE strandline.%1$I', t.name); END LOOP;
END $$;
CREATE TABLE kept.numbers AS SELECT schemaname, sequencename, last_value FROM pg_sequences
    WHERE schemaname = 'strandline';
CREATE FUNCTION kept.restore() RETURNS void LANGUAGE plpgsql AS $$ DECLARE t record; some boolean; BEGIN
    FOR t IN SELECT relname AS name FROM pg_class WHERE relnamespace = 'kept'::regnamespace AND relkind = 'r'
        AND relname <> 'numbers'
    LOOP
        EXECUTE format('DELETE FROM strandline.%1$I', t.name);
        EXECUTE format('INSERT INTO strandline.%1$I OVERRIDING SYSTEM VALUE TABLE kept.%1$I', t.name);
    END LOOP;
    PERFORM setval(format('%I.%I', schemaname, sequencename)::regclass, coalesce(last_value, 1), last_value IS NOT NULL)
        FROM kept.numbers;
END $$;
"""
FINGERPRINT: Final = """
DO $$ BEGIN EXECUTE (SELECT $v$CREATE VIEW kept.fingerprint AS SELECT md5(string_agg(rows, '|')) AS rows FROM ($v$ ||
    string_agg(format($v$SELECT %1$L || coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '') AS rows
        FROM strandline.%1$I t$v$, relname), ' UNION ALL ' ORDER BY relname) || ') AS each' FROM pg_class
    WHERE relnamespace = 'kept'::regnamespace AND relkind = 'r' AND relname <> 'numbers'); END $$
"""
TRUNCATE: Final = """
DO $$ BEGIN EXECUTE (SELECT 'TRUNCATE ' || string_agg('strandline.' || quote_ident(relname), ', ') FROM pg_class
    WHERE relnamespace = 'kept'::regnamespace AND relkind = 'r' AND relname <> 'numbers'); END $$
"""


@dataclass(frozen=True)
class Cell:
    """One place of a verb, and what happens there."""

    crossing: int
    at_commit: bool
    cut: Cut

    def __str__(self) -> str:
        return f"at {'commit' if self.at_commit else 'journey'} {self.crossing}: {self.cut.name}"


@dataclass(frozen=True)
class Sight:
    """What can be seen of a store, and what is wrong with it."""

    memory: Memory
    problems: Sequence[str]


class Dice:
    """Randomness that begins anew with each call of a verb: the same call writes the same bytes."""

    def __init__(self) -> None:
        self.throw_anew(of=1)

    def throw_anew(self, *, of: int) -> None:
        self._dice = SeededEntropy(of)

    def salt(self) -> bytes:
        return self._dice.salt()

    def fraction(self) -> float:
        return self._dice.fraction()


class Scene:
    """One way to call a verb, in a database of its own that is put back to its beginning before each call."""

    def __init__(self, verb: Verb, server: PostgresServer, proxy: Proxy, name: str) -> None:
        self.verb = verb
        self._server, self._proxy, self._name = server, proxy, name
        self.clock, self._dice = VirtualClock(), Dice()
        server.create_database(name, "empty")
        self._opened: dict[str, strandline.Strandline] = {}
        self.observer = strandline.open(server.url(name), clock=self.clock, entropy=self._dice)
        stand = Stand(self.observer)
        begin(stand)
        verb.prepare(stand)
        self._superuser: psycopg.Connection | None = None
        self._resets = 0
        self._seen: dict[str, Sight] = {}
        self._run(SNAPSHOT)
        self._run(FINGERPRINT)
        self._record()
        self.cells = [Cell(number, True, cut) for number in range(1, self.commits + 1) for cut in COMMIT_CUTS]
        self.cells += [Cell(number, False, cut) for number in range(1, self.journeys + 1) for cut in JOURNEY_CUTS]

    def _record(self) -> None:
        """Call it undisturbed, and keep what is seen after each commit, and the answer."""
        self.steps: list[Memory] = [self.look().memory]
        for _ in range(2):  # the second one finds the connection, and what is prepared on it
            self.reset()
            stand = Stand(self.subject(hasty=False))
            self._proxy.arm(None)
            self.answer = self.verb.call(stand)
            self.runs = stand.runs
        self.commits, self.journeys = self._proxy.commits, self._proxy.journeys
        self.reset()
        with self._proxy.watched(lambda _: self.steps.append(self.look().memory)):
            self.verb.call(Stand(self.subject(hasty=False)))
        if self.commits == 0 or self.steps[-1] != self.look().memory:
            raise SystemExit(f"{self.verb.name}: {self.commits} commits, and the last one is not its end")

    def subject(self, *, hasty: bool) -> strandline.Strandline:
        """Return the store behind the proxy, which has been used: its ids are known, a connection is free."""
        options = HASTY if hasty else PATIENT
        if options not in self._opened:
            url = f"postgresql://postgres@127.0.0.1:{self._proxy.port}/{self._name}?{PLAIN}&{options}"
            self._opened[options] = strandline.open(url, clock=self.clock, entropy=self._dice)
        with suppress(strandline.StoreUnavailableError):  # on a machine at work the hasty one may be too hasty
            Stand(self._opened[options]).wf.basis()
        return self._opened[options]

    def reset(self) -> None:
        """Put every row back. What the stores know of workflows that were made since is no longer so."""
        self._resets += 1
        for db in (self.observer, *self._opened.values()):
            db.store._ids.clear()
        self.clock.jump_to(START_US)
        self._dice.throw_anew(of=2)
        self._settle()
        truncate = f"{TRUNCATE};" if self._resets % TRUNCATED_EVERY == 0 else ""
        self._run(f"SET session_replication_role = replica; {truncate} SELECT kept.restore()")

    def look(self) -> Sight:
        """Return what can be seen now. The same bytes in all tables are read and verified once."""
        self._settle()
        rows = self._run("SELECT rows FROM kept.fingerprint")
        if rows not in self._seen:
            self.observer.store._ids.clear()
            problems = [f"verify: {problem.place}: {problem.reason}" for problem in self.observer.verify().problems]
            self._seen[rows] = Sight(see(self.observer), problems)
        return self._seen[rows]

    def same(self, seen: Memory, other: Memory) -> bool:
        """Tell whether two memories are the same, but for what may be otherwise when the verb was called again."""
        names = {name for name in {**seen, **other} if name.rpartition(" ")[2] not in self.verb.otherwise}
        return all(seen.get(name) == other.get(name) for name in names)

    def _settle(self) -> None:
        """Wait until what a broken connection left behind on the server has ended."""
        self._run("SELECT 1 FROM strandline.workflow FOR UPDATE")

    def _run(self, statements: str) -> str:
        """Run statements as the superuser; with a new connection where the server was killed meanwhile."""
        for _ in range(2):
            if self._superuser is None or self._superuser.closed:
                url, kept = self._server.url(self._name), "-c synchronous_commit=on"  # else a kill undoes a reset
                self._superuser = psycopg.connect(url, autocommit=True, options=kept)
            try:
                cursor = self._superuser.execute(statements)
            except psycopg.OperationalError:
                self._superuser.close()
            else:
                return str(cursor.fetchone()[0]) if cursor.description else ""
        raise SystemExit(f"the server does not answer to the superuser: {self._server.log}")

    def close(self) -> None:
        for each in (*self._opened.values(), self.observer):
            each.close()
        if self._superuser is not None:
            self._superuser.close()


@dataclass
class Unit:
    """One call that is cut, and those after it."""

    scene: Scene
    cell: Cell
    faults: list[str] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    met: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    at: int = 0  # the step that was seen last; nothing goes back behind it


class Trial:
    """Draws units, and runs them."""

    def __init__(self, verbs: Sequence[Verb] = VERBS) -> None:
        self._verbs = verbs
        self._scenes: dict[str, Scene] = {}
        self._patched = ExitStack()
        self._server = start_postgres()
        self._proxy: Proxy | None = None
        try:
            self._patched.enter_context(patch.object(search_index, "SEARCH_CHUNK_EVENTS", CHUNK_EVENTS))
            strandline.open(self._server.create_database("empty")).close()
            self._proxy = Proxy(self._server.port, self._restart)
        except BaseException:
            self.close()
            raise

    def _restart(self) -> None:
        self._server.kill()
        self._server.start()

    def close(self) -> None:
        for scene in self._scenes.values():
            scene.close()
        if self._proxy is not None:
            self._proxy.close()
        self._patched.close()
        self._server.stop()

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def draw(self, seed: int) -> tuple[Scene, Cell]:
        """Return what the unit of this seed is."""
        block, within = divmod(seed, BLOCK)
        turn, place = divmod(block, len(self._verbs))
        order = list(self._verbs)
        random.Random(f"verbs {turn}").shuffle(order)
        scene = self.scene(order[place])
        journeys, commits = divmod(turn * BLOCK + within, JOURNEY_EVERY)  # that were cut before, since the last journey
        at_commit = commits < JOURNEY_EVERY - 1
        cells = [cell for cell in scene.cells if cell.at_commit is at_commit]
        before = journeys * (JOURNEY_EVERY - 1) + commits if at_commit else journeys
        passed, number = divmod(before, len(cells))
        random.Random(f"{scene.verb.name} {passed}").shuffle(cells)
        return scene, cells[number]

    def scene(self, verb: Verb) -> Scene:
        if verb.name not in self._scenes:
            assert self._proxy is not None
            self._scenes[verb.name] = Scene(verb, self._server, self._proxy, f"cut_{len(self._scenes)}")
        return self._scenes[verb.name]

    def run(self, scene: Scene, cell: Cell) -> Unit:
        """Call the verb, cut, call it again until it answers, and look."""
        assert self._proxy is not None
        unit = Unit(scene, cell)
        scene.reset()
        stand = Stand(scene.subject(hasty=bool(cell.cut.stalls)))
        self._proxy.arm(cell.cut, cell.crossing, at_commit=cell.at_commit)
        for number in range(CALLS_MAX):
            answered = self._call(unit, stand, number)
            self._proxy.arm(None)
            if answered or unit.faults:
                break
            stand.db = scene.subject(hasty=False)  # that it was hasty made its point
            scene.clock.advance(LEASE_ENDS_S)
        else:
            unit.faults.append(f"no answer after {CALLS_MAX} calls")
        self._check_end(unit, stand)
        if self._proxy.error is not None:
            raise self._proxy.error
        return unit

    def _call(self, unit: Unit, stand: Stand, number: int) -> bool:
        """Call once; tell whether it is done."""
        assert self._proxy is not None
        scene, proxy = unit.scene, self._proxy
        unit.calls += 1
        hung = threading.Event()

        def end_hung() -> None:
            hung.set()
            proxy.drop()

        watchdog = threading.Timer(HUNG_S, end_hung)
        watchdog.start()
        answer: object = None
        error: BaseException | None = None
        try:
            answer = scene.verb.call(stand)
        except strandline.StrandlineError as raised:
            error = raised
        except Exception as raised:  # noqa: BLE001  a finding
            error = raised
        watchdog.cancel()
        if number == 0:
            unit.met["cuts"] += proxy.struck
            unit.met["commits cut"] += proxy.struck and unit.cell.at_commit
            unit.met["landed"] += proxy.landed is True
        name = "answered" if error is None else type(error).__name__
        unit.met[name if number == 0 else f"again {name}"] += 1
        unit.story.append(f"call {number + 1}: {f'returned {answer!r}' if error is None else f'{name}: {error}'}")
        if hung.is_set():
            unit.faults.append(f"it still waited after {HUNG_S} s")
        return self._judge(unit, answer, error)

    def _judge(self, unit: Unit, answer: object, error: BaseException | None) -> bool:
        scene = unit.scene
        memory = scene.look().memory
        last = len(scene.steps) - 1
        places = [number for number, step in enumerate(scene.steps) if step == memory]
        ends = memory == scene.steps[last]
        if error is None:
            if answer != scene.answer:
                unit.faults.append(f"it returned {answer!r}, undisturbed {scene.answer!r}")
            if not ends and (unit.calls == 1 or not scene.same(memory, scene.steps[last])):
                unit.faults.append(f"it answered, and differs in: {differences(memory, scene.steps[last])}")
            return True
        if not isinstance(error, strandline.StoreUnavailableError | strandline.OutcomeUnknownError):
            unit.faults.append("an error of another kind")
            return False
        if not places:
            nearest = min(scene.steps, key=lambda step: len(differences(memory, step)))
            unit.faults.append(f"a half step; it differs in: {differences(memory, nearest)}")
        elif places[-1] < unit.at:
            unit.faults.append("it went back behind what was seen before")
        else:
            unit.at = places[0]
        changes = scene.steps[0] != scene.steps[last]
        if isinstance(error, strandline.OutcomeUnknownError):
            return ends and changes and not scene.verb.keyed
        if ends and changes and places[0] > 0 and not scene.verb.keyed:
            unit.faults.append("told that nothing was written, and all of it is there")
        return False

    def _check_end(self, unit: Unit, stand: Stand) -> None:
        scene = unit.scene
        sight = scene.look()
        memory = sight.memory
        if not unit.faults and not scene.same(memory, scene.steps[-1]):
            unit.faults.append(f"in the end it differs in: {differences(memory, scene.steps[-1])}")
        if stand.runs != scene.runs:
            unit.faults.append(f"outside was done {stand.runs}, undisturbed {scene.runs}")
        unit.faults += sight.problems


@dataclass
class Counts:
    """What was done, and what was met."""

    count: int = 0
    violations: int = 0
    stories: list[str] = field(default_factory=list)  # that nobody has taken yet
    detail: Counter[str] = field(default_factory=Counter)


def cut(trial: Trial, seed: int, count: int) -> Iterator[Counts]:
    """Run `count` units from a seed on; yield what was met so far after each."""
    counts = Counts()
    for number in range(seed, seed + count):
        scene, cell = trial.draw(number)
        unit = trial.run(scene, cell)
        counts.count += 1
        counts.detail += unit.met
        counts.detail[f"verb {scene.verb.verb}"] += unit.met["cuts"]
        counts.detail[f"cut {cell.cut.name}"] += unit.met["cuts"]
        if unit.faults:
            counts.violations += 1
            counts.stories.append(story_of(number, unit))
        yield counts


def story_of(seed: int, unit: Unit) -> str:
    told = [line[:STORY_CHARS_MAX] for line in (*unit.story, *(f"VIOLATION: {fault}" for fault in unit.faults))]
    command = f"python tests/crash/cuts.py --seed {seed} --count 1"
    return "\n  ".join([f"{unit.scene.verb.name}, {unit.cell}", *told, f"again: {command}"])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Cut the connection to PostgreSQL where it hurts.")
    parser.add_argument("--seed", type=int, default=1, help="of the first unit; the next has the next (1)")
    parser.add_argument("--count", type=int, default=200, help="how many units (200)")
    parser.add_argument(
        "--json", action="store_true", help="taken as by the other programmes; the last line is JSON with or without it"
    )
    options = parser.parse_args(arguments)
    if sys.platform != "linux":
        sys.stderr.write("it needs Linux: the server's programs come in a wheel for it\n")
        return 2
    begun = time.perf_counter()
    counts = Counts()
    try:
        with Trial() as trial:
            for counts in cut(trial, options.seed, options.count):
                sys.stderr.write(f"\r{counts.count} cuts, {counts.violations} violations")
                while counts.stories:
                    sys.stdout.write(f"{counts.stories.pop(0)}\n")
                    sys.stdout.flush()
    except ServerError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stderr.write("\n")
    told = {
        "count": counts.count,
        "violations": counts.violations,
        "seconds": round(time.perf_counter() - begun, 1),
        "detail": dict(sorted(counts.detail.items())),
    }
    sys.stdout.write(json.dumps(told) + "\n")
    return 1 if counts.violations else 0


if __name__ == "__main__":
    sys.exit(main())
