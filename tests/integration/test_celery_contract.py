"""Law (C26, C35): whatever a broker does with a message, each due compaction is activated once, and none is lost.

The same contract for both brokers, with real worker processes. A message is a wake-up: it may be lost, doubled, late,
or never be sent. The worker's lease is shortened (`bench/celery_app.py`), else a killed one's would be waited for.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import strandline
from bench.celery_stage import Stage, wait_until
from strandline.integrations.celery import WakeUps, make_app
from strandline.integrations.celery.settings import SWEEP_TASK
from strandline.integrations.celery.wakeups import send, sweep, waiting
from strandline.limits import BROKER_PAUSE_S, SWEEP_ROWS_PER_TENANT, WAKEUPS_WAITING_MAX
from tools.servers import PostgresServer, ValkeyServer, start_postgres, start_valkey

pytestmark = pytest.mark.long

EVENTS = 14
BUDGET = 200
LEASE_S = 2
DONE_WITHIN_S = 30.0
BROKER_GONE_S_MAX = 15.0  # that who asks for a compaction may wait for a broker that is away
BACKLOG = 200


class Play:
    """A broker, a store, the app and a client of it, and the Celery processes."""

    def __init__(self, broker: str, folder: Path) -> None:
        self.server: PostgresServer | ValkeyServer = start_valkey() if broker == "valkey" else start_postgres()
        url = self.server.url()
        if broker == "pgmq":
            url = "pgmq" + self.server.create_database("broker").removeprefix("postgresql")
        store = str(folder / "store.db")
        self.stage = Stage(store, url, folder, LEASE_S=LEASE_S)
        self.app = make_app(store, url)
        self.hook = WakeUps(self.app)
        self.db = strandline.open(store, durability="normal")
        self.waking = strandline.open(store, durability="normal", hooks=[self.hook])
        self._worker = self.stage.worker().wait_ready()  # it installs PGMQ, where that is the broker

    def worker(self):
        """Return a worker that runs."""
        if not self._worker.running:
            self._worker = self.stage.worker().wait_ready()
        return self._worker

    def workflow(self, name: str, tenant: str = "acme", *, wake: bool = False) -> strandline.Workflow:
        """Return a workflow that has something to compact; `wake`: asking for it tells the workers."""
        db = self.waking if wake else self.db
        workflow = db.tenant(tenant).workflow(name)
        workflow.append([strandline.note(f"{name}: step {n}, see logs/{name}/{n}.txt") for n in range(EVENTS)])
        return workflow

    def sweep(self) -> None:
        """Send what beat sends."""
        self.app.tasks[SWEEP_TASK].apply_async()

    def close(self) -> None:
        self.stage.__exit__(None, None, None)
        for db in (self.db, self.waking):
            db.close()
        self.app.pool.force_close_all()
        self.server.stop()


@pytest.fixture(scope="module", params=["valkey", "pgmq"])
def play(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    play = Play(request.param, tmp_path_factory.mktemp(request.param))
    try:
        yield play
    finally:
        play.close()


def settled(workflow: strandline.Workflow) -> bool:
    return all(row.due_us is None for row in workflow.due())


def done_once(workflow: strandline.Workflow, deadline_s: float = DONE_WITHIN_S) -> None:
    """Wait until nothing is due, and see that it was activated exactly once, with no event missing."""
    wait_until(lambda: settled(workflow), f"{workflow!r} is compacted", deadline_s)
    (row,) = workflow.due()
    assert row.outcome == "activated"
    assert row.worker is None
    activated = [entry for entry in workflow.lineage() if entry.kind == "compaction"]
    assert [entry.generation for entry in activated] == [1]
    report = workflow.verify()
    assert report.ok
    assert report.events == EVENTS


def test_asking_wakes_a_worker_without_a_sweep(play: Play) -> None:
    play.worker()
    workflow = play.workflow("woken", wake=True)
    workflow.compact_later(BUDGET)
    done_once(workflow)
    assert "Sweep" not in play.worker().text


def test_the_sweep_sends_what_no_message_told(play: Play) -> None:
    play.worker()
    workflow = play.workflow("swept")
    workflow.compact_later(BUDGET)
    play.sweep()
    done_once(workflow)


def test_a_message_that_comes_many_times_is_run_once(play: Play) -> None:
    play.worker()
    workflow = play.workflow("doubled")
    workflow.compact_later(BUDGET)
    (key,) = [key for key in play.db.sweep() if key.workflow == "doubled"]
    send(play.app, [key] * 10)
    done_once(workflow)
    send(play.app, [key])  # and long after
    wait_until(lambda: waiting(play.app) == 0, "the messages are taken")
    assert [text for text in play.stage.drafted() if text.startswith("doubled:")] == [
        "doubled: step 0, see logs/doubled/0.txt"
    ]
    done_once(workflow)


def test_a_worker_killed_within_a_task_loses_nothing(play: Play) -> None:
    worker = play.worker()
    workflow = play.workflow("killed")
    play.stage.gate.touch()
    workflow.compact_later(BUDGET)
    play.sweep()
    wait_until(lambda: any(text.startswith("killed:") for text in play.stage.drafted()), "the draft is begun")
    worker.kill()
    play.stage.gate.unlink()
    play.worker()

    def swept() -> bool:
        sweep(play.app, play.db)
        return settled(workflow)

    wait_until(swept, "the lease is over, and another worker is done")
    done_once(workflow)
    (row,) = workflow.due()
    assert row.fence == 2  # two runs


def test_within_a_tenant_the_higher_priority_is_run_first(play: Play) -> None:
    play.worker()
    workflows = {}
    play.stage.gate.touch()
    plug = play.workflow("plug", tenant="other")
    plug.compact_later(BUDGET)
    play.sweep()
    wait_until(lambda: any(text.startswith("plug:") for text in play.stage.drafted()), "the worker is busy")
    for priority in (1, 9, 5):
        workflows[priority] = play.workflow(f"priority-{priority}")
        workflows[priority].compact_later(BUDGET, priority=priority)
    play.sweep()
    play.stage.gate.unlink()
    for workflow in workflows.values():
        done_once(workflow)
    order = [text.partition(":")[0] for text in play.stage.drafted() if text.startswith("priority-")]
    assert order == ["priority-9", "priority-5", "priority-1"]


def test_what_is_asked_for_while_the_broker_is_away_is_done_when_it_is_back(play: Play) -> None:
    worker = play.worker()
    earlier = play.workflow("lost")
    play.stage.gate.touch()
    earlier.compact_later(BUDGET)
    play.sweep()
    wait_until(lambda: any(text.startswith("lost:") for text in play.stage.drafted()), "the draft is begun")
    play.server.kill()
    try:
        later, last = play.workflow("away", wake=True), play.workflow("still-away", wake=True)
        begun = time.monotonic()
        later.compact_later(BUDGET)
        assert time.monotonic() - begun < BROKER_GONE_S_MAX
        begun = time.monotonic()
        last.compact_later(BUDGET)  # it is not asked again so soon
        assert time.monotonic() - begun < BROKER_PAUSE_S / 5
    finally:
        play.server.start()
        play.stage.gate.unlink()

    def swept() -> bool:
        sweep(play.app, play.db)
        return all(map(settled, (earlier, later, last)))

    wait_until(swept, "the worker has found the broker again", 2 * DONE_WITHIN_S)
    for workflow in (earlier, later, last):
        done_once(workflow)
    assert worker.running


def test_a_tenant_with_one_job_does_not_wait_behind_another_s_backlog(play: Play) -> None:
    """Measured: the small tenant's job is begun after at most what waits in the broker, however long the backlog is."""
    play.worker()
    for number in range(BACKLOG):
        workflow = play.waking.tenant("big").workflow(f"big-{number}")
        workflow.append([strandline.note(f"big-{number}: step {n}") for n in range(EVENTS)])
        workflow.compact_later(BUDGET)
    before = len(play.stage.drafted())
    workflow = play.workflow("small", tenant="small", wake=True)
    workflow.compact_later(BUDGET)
    assert waiting(play.app) <= WAKEUPS_WAITING_MAX
    done_once(workflow)
    order = [text.partition(":")[0] for text in play.stage.drafted()][before:]
    assert order.index("small") <= WAKEUPS_WAITING_MAX
    assert SWEEP_ROWS_PER_TENANT < WAKEUPS_WAITING_MAX


def test_a_pool_of_threads_works_on_one_open_store(tmp_path: Path, valkey_url: str) -> None:
    store = str(tmp_path / "store.db")
    with (
        Stage(store, valkey_url, tmp_path, DRAFT_S=0.05) as stage,
        strandline.open(store, durability="normal", hooks=[WakeUps(make_app(store, valkey_url))]) as db,
    ):
        worker = stage.worker(pool="threads", concurrency=4).wait_ready()
        workflows = [db.tenant("acme").workflow(f"w{number}") for number in range(8)]
        for workflow in workflows:
            workflow.append([strandline.note(f"{workflow.name}: step {n}") for n in range(EVENTS)])
            workflow.compact_later(BUDGET)
        for workflow in workflows:
            done_once(workflow)
        assert worker.stop() < DONE_WITHIN_S
        assert "ERROR" not in worker.text
