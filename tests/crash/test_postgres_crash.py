"""Law (I1–I3, I5, I13, I14, I19) on PostgreSQL: clients and server die at any instruction, under load, and come back.

The server is a durable one of the test's own. `kill9.py` kills a program with all its verbs; `load.py` only appends, in
many threads, while its server goes away and comes again. More kills: STRANDLINE_CRASH_KILLS=200, and
`python tests/crash/kill9.py --postgres server --kills 200`.
"""

import contextlib
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

import strandline
from strandline.engine.reading import read_log
from strandline.model.ids import Scope
from tests.crash.load import TENANT, WORKFLOW
from tools.servers import PostgresServer, start_postgres

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("STRANDLINE_CRASH_KILLS", "5"))
PROGRAM_KILLS = int(os.environ.get("STRANDLINE_CRASH_KILLS", "3"))  # each is a run of the program, and a look
ACKNOWLEDGED_BETWEEN = (15, 60)  # batches
THREADS = 4
HEARD_WITHIN_S = 120.0


class Load:
    """The program, whose acknowledgements are collected while it runs."""

    def __init__(self, url: str, name: str) -> None:
        self.acknowledged: dict[str, int] = {}
        self._more = threading.Condition()
        command = [sys.executable, str(Path(__file__).with_name("load.py")), url, name, str(THREADS)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout:
            if line.endswith("\n"):  # else it was cut by the kill
                key, seq = line.split()
                with self._more:
                    self.acknowledged[key] = int(seq)
                    self._more.notify()

    def wait_for(self, batches: int) -> None:
        """Wait until so many more are acknowledged."""
        with self._more:
            wanted = len(self.acknowledged) + batches
            heard = self._more.wait_for(lambda: len(self.acknowledged) >= wanted, HEARD_WITHIN_S)
        assert heard, f"no {batches} batches within {HEARD_WITHIN_S} s: {self.complaint()}"

    def complaint(self) -> str:
        return "it runs" if self._process.poll() is None else self._process.stderr.read()

    def kill(self) -> None:
        assert self._process.poll() is None, self.complaint()
        self.end()

    def end(self) -> None:
        """End it and let go of it, whatever became of it; once more does nothing."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()
        self._process.stderr.close()


@pytest.fixture
def server():
    with start_postgres(18, durable=True) as server:
        yield server


def test_what_was_acknowledged_survives_the_death_of_clients_and_server(server: PostgresServer) -> None:
    url = server.create_database("load")
    strandline.open(url).close()
    chance = random.Random(1)
    with contextlib.ExitStack() as ended:

        def begin(name: str) -> Load:
            load = Load(url, name)
            ended.callback(load.end)
            return load

        loads = [begin("a"), begin("b")]
        for number in range(KILLS):
            loads[-1].wait_for(chance.randint(*ACKNOWLEDGED_BETWEEN))
            if number % 2:
                loads[-1].kill()
                loads.append(begin(f"c{number}"))
            else:
                server.kill()
                server.start()
        for load in loads:
            if load in (loads[0], loads[-1]):
                load.wait_for(1)
                load.kill()
    told = {key: seq for load in loads for key, seq in load.acknowledged.items()}
    with strandline.open(url) as db:
        report = db.verify()
        with db.store.read(Scope(tenant=TENANT, workflow=WORKFLOW)) as tx:
            revision = tx.log.head().revision
            events = list(read_log(tx, 1, revision, WORKFLOW))
    assert report.ok, report.problems
    assert [event.seq for event in events] == list(range(1, revision + 1))
    seqs = {event.key: event.seq for event in events}
    assert len(seqs) == revision, "no key stands twice"
    assert {key: seqs.get(key) for key in told} == told
    said, noted = events[::2], events[1::2]
    assert [f"{event.key}/note" for event in said] == [event.key for event in noted], "each batch is there whole"
    unacknowledged = Counter(key.rsplit("-", 1)[0] for key in seqs if "/" not in key and key not in told)
    assert max(unacknowledged.values(), default=0) <= 1, "at most one of each thread"


@pytest.mark.parametrize("victim", ["client", "server"])
def test_a_killed_program_leaves_what_was_or_what_becomes(victim: str, request: pytest.FixtureRequest) -> None:
    program = str(Path(__file__).with_name("kill9.py"))
    command = [sys.executable, program, "--postgres", victim, "--kills", str(PROGRAM_KILLS), "--seed", "2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=request.config.rootpath, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2_000:]
    assert f"kills: {PROGRAM_KILLS} in" in done.stdout
    assert "violations: 0\n" in done.stdout
