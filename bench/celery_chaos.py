"""Kill workers, the broker and the database under due compactions, and count what became of each.

    python -m bench.celery_chaos --broker valkey|pgmq [--jobs 500] [--workers 3] [--kill-every-s 2] [--seed N] [--json]

It starts its own servers: PostgreSQL for the state, which keeps acknowledged commits whatever dies, and the broker, a
Valkey that keeps nothing on disk or a queue on the same PostgreSQL. While workers compact, one of them is killed with
-9 every few seconds and replaced; when a third is done the broker is killed and started again, when two thirds are done
PostgreSQL is. At the end each compaction must have been activated exactly once, no candidate promoted twice, no event
missing. The exit code is 1 where that is not so, or where it took longer than --within-s.

What a killed worker ran is run again when its lease ends, after LEASE_TTL_S; --lease-s takes another one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

import strandline
from bench.celery_stage import CeleryProcess, Stage
from strandline.limits import LEASE_TTL_S
from tools.servers import PostgresServer, ValkeyServer, start_postgres, start_valkey

EVENTS = 14
BUDGET = 200
TENANTS = 5
AWAY_S = 1.0  # how long a killed server stays away
POLL_S = 0.25
TOLD_EACH = 10  # compactions
STORE_ERRORS = (strandline.StoreUnavailableError, strandline.OutcomeUnknownError)


@dataclass(slots=True, kw_only=True)
class Counts:
    """What happened, and what became of the jobs."""

    broker: str
    store: str
    jobs: int
    workers: int
    kill_every_s: float
    lease_s: float
    seed: int
    workers_started: int = 0
    workers_killed: int = 0
    broker_killed: int = 0
    postgres_killed: int = 0
    runs: int = 0
    activated_once: int = 0
    activated_never: int = 0
    activated_more_than_once: int = 0
    promoted_twice: int = 0
    still_due: int = 0
    events_expected: int = 0
    events_found: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0
    within_s: float = 0.0

    @property
    def violations(self) -> list[str]:
        """What must not be, in words."""
        found = {
            "compactions were never activated": self.activated_never,
            "compactions were activated more than once": self.activated_more_than_once,
            "candidates were promoted more than once": self.promoted_twice,
            "compactions are still due": self.still_due,
            "events are missing or too many": abs(self.events_expected - self.events_found),
            "problems were found by verify": len(self.problems),
            "seconds too long": max(0, round(self.seconds - self.within_s)),
        }
        return [f"{number} {what}" for what, number in found.items() if number]


class Chaos:
    """One run."""

    def __init__(self, asked: argparse.Namespace, folder: Path) -> None:
        self.asked, self.folder = asked, folder
        self.chance = random.Random(asked.seed)
        self.counts = Counts(
            broker=asked.broker,
            store=asked.store,
            jobs=asked.jobs,
            workers=asked.workers,
            kill_every_s=asked.kill_every_s,
            lease_s=asked.lease_s or LEASE_TTL_S,
            seed=asked.seed,
            within_s=asked.within_s,
        )
        self.postgres = start_postgres(durable=True) if "postgres" in (asked.store, asked.broker_on) else None
        self.valkey = start_valkey() if asked.broker == "valkey" else None
        self.crew: list[CeleryProcess] = []
        self.done = 0

    def stage(self) -> Stage:
        """Return the Celery processes over the two servers."""
        store = str(self.folder / "store.db")
        if self.asked.store == "postgres":
            assert self.postgres is not None
            store = self.postgres.create_database("strandline")
        if self.valkey is not None:
            broker = self.valkey.url()
        else:
            assert self.postgres is not None
            broker = "pgmq" + self.postgres.create_database("broker").removeprefix("postgresql")
        settings = {"DRAFT_S": self.asked.draft_s, "SWEEP_S": self.asked.sweep_s}
        if self.asked.lease_s:
            settings["LEASE_S"] = self.asked.lease_s
        return Stage(store, broker, self.folder, **settings)

    def run(self) -> Counts:
        """Fill the store, let the workers work and die, and count."""
        stage = self.stage()
        with stage, strandline.open(stage.store_url) as db:
            pending = self.fill(db)
            tell(self.asked, f"{len(pending)} compactions are due")
            begun = time.monotonic()
            stage.beat()
            for _ in range(self.asked.workers):
                self.hire(stage)
            self.let_die(stage, pending, begun)
            self.counts.seconds = round(time.monotonic() - begun, 1)
            for process in stage.started:
                process.stop()
            self.judge(db)
        return self.counts

    def fill(self, db: strandline.Strandline) -> list[strandline.Workflow]:
        """Make the workflows, and ask for a compaction of each."""
        made = []
        for number in range(self.asked.jobs):
            workflow = db.tenant(f"tenant-{number % TENANTS}").workflow(f"job-{number}")
            notes = [f"job-{number}: step {n}, see logs/{number}/{n}.txt" for n in range(EVENTS)]
            workflow.append([strandline.note(text, key=f"step-{n}") for n, text in enumerate(notes)])
            workflow.compact_later(BUDGET)
            made.append(workflow)
        self.counts.events_expected = EVENTS * len(made)
        return made

    def hire(self, stage: Stage) -> None:
        """Start a worker; it is not waited for."""
        self.crew.append(stage.worker(concurrency=self.asked.concurrency))
        self.counts.workers_started += 1

    def let_die(self, stage: Stage, pending: list[strandline.Workflow], begun: float) -> None:
        """Let workers and servers be killed until nothing is pending, or the time is over."""
        over, done = threading.Event(), itertools.count(1)
        killer = threading.Thread(target=self.kill_often, args=(stage, over), name="killer")
        killer.start()
        servers = [("broker", self.valkey or self.postgres, 1 / 3), ("postgres", self.postgres, 2 / 3)]
        try:
            while pending and time.monotonic() - begun < self.asked.within_s:
                workflow = pending.pop(0)
                if is_pending(workflow):
                    pending.append(workflow)
                    time.sleep(POLL_S / len(pending))
                    continue
                self.done = next(done)
                if self.done % TOLD_EACH == 0 or not pending:
                    tell(self.asked, f"{self.done} done, {self.counts.workers_killed} workers killed")
                while servers and self.done >= self.asked.jobs * servers[0][2]:
                    self.kill_server(*servers.pop(0)[:2])
        finally:
            over.set()
            killer.join()

    def kill_often(self, stage: Stage, over: threading.Event) -> None:
        """Kill a worker every few seconds, or each time that so many compactions are done."""
        each, killed_at = self.asked.kill_each, 0
        while not over.wait(POLL_S if each else self.asked.kill_every_s):
            if not each or self.done - killed_at >= each:
                killed_at = self.done
                self.kill_one(stage)

    def kill_one(self, stage: Stage) -> None:
        """Kill a worker, whatever it is at, and start another."""
        victim = self.chance.choice(self.crew)
        victim.kill()
        self.crew.remove(victim)
        self.counts.workers_killed += 1
        self.hire(stage)

    def kill_server(self, name: str, server: PostgresServer | ValkeyServer | None) -> None:
        """Kill a server, and start it again on the same port."""
        if server is None:
            return
        tell(self.asked, f"the {name} is killed")
        server.kill()
        time.sleep(AWAY_S)
        server.start()
        if name == "broker":
            self.counts.broker_killed += 1
        else:
            self.counts.postgres_killed += 1

    def judge(self, db: strandline.Strandline) -> None:
        """Count what became of the jobs, and prove the store."""
        counts, promoted = self.counts, Counter[str]()
        for number in range(self.asked.jobs):
            workflow = db.tenant(f"tenant-{number % TENANTS}").workflow(f"job-{number}")
            (row,) = workflow.due()
            counts.runs += row.fence
            counts.still_due += row.due_us is not None
            activated = [entry for entry in workflow.lineage() if entry.kind == "compaction"]
            promoted.update(str(entry.detail["summary_id"]).rpartition(".")[0] for entry in activated)
            counts.activated_never += not activated
            counts.activated_once += len(activated) == 1
            counts.activated_more_than_once += len(activated) > 1
        counts.promoted_twice = sum(times > 1 for times in promoted.values())
        report = db.verify()
        counts.events_found = report.events
        counts.problems = [str(problem) for problem in report.problems]

    def close(self) -> None:
        """Stop the servers."""
        for server in (self.postgres, self.valkey):
            if server is not None:
                server.stop()


def is_pending(workflow: strandline.Workflow) -> bool:
    """Tell whether a compaction is still due, or can't be told."""
    try:
        return any(row.due_us is not None for row in workflow.due())
    except STORE_ERRORS:
        return True


def tell(asked: argparse.Namespace, text: str) -> None:
    if not asked.quiet:
        print(text, file=sys.stderr, flush=True)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--broker", choices=("valkey", "pgmq"), required=True)
    parser.add_argument("--store", choices=("postgres", "sqlite"), default="postgres")
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=2, help="processes of each worker")
    parser.add_argument("--kill-every-s", type=float, default=2.0)
    parser.add_argument("--kill-each", type=int, default=0, help="kill after each N compactions, not by time")
    parser.add_argument("--draft-s", type=float, default=0.1, help="how long a draft takes")
    parser.add_argument("--sweep-s", type=float, default=2.0, help="how often beat sweeps")
    parser.add_argument("--lease-s", type=float, default=None, help=f"default: LEASE_TTL_S, {LEASE_TTL_S:g}")
    parser.add_argument("--within-s", type=float, default=1_800.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    asked.broker_on = "postgres" if asked.broker == "pgmq" else asked.broker
    asked.seed = random.SystemRandom().randrange(2**32) if asked.seed is None else asked.seed
    return asked


def main(arguments: list[str] | None = None) -> int:
    asked = parse(arguments)
    folder = Path(tempfile.mkdtemp(prefix="strandline-chaos-"))
    try:
        chaos = Chaos(asked, folder)
        try:
            counts = chaos.run()
        finally:
            chaos.close()
    finally:
        if asked.keep:
            print(f"the logs are in {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    shown = {**asdict(counts), "violations": counts.violations}
    if asked.json:
        print(json.dumps(shown))
    else:
        width = max(map(len, shown))
        for name, value in shown.items():
            print(f"{name.replace('_', ' '):<{width}}  {value if value != [] else 'none'}")
    return 1 if counts.violations else 0


if __name__ == "__main__":
    sys.exit(main())
