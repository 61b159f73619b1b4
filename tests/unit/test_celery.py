"""Law (C35): the app is what its settings say, bad arguments are refused before anything runs, and `doctor` names each
setting that loses messages.
"""

import json
import os
import sys
import types
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from celery import Celery, signals
from typer.testing import CliRunner

import strandline
from strandline import DueKey
from strandline.cli.app import app as command_line
from strandline.integrations.celery import WakeUps, make_app, register
from strandline.integrations.celery import wakeups as wakeups_module
from strandline.integrations.celery.diagnosis import diagnose_celery
from strandline.integrations.celery.process import Door
from strandline.integrations.celery.settings import COMPACT_TASK, QUEUE, SWEEP_TASK, broker_url_of, masked
from strandline.integrations.celery.wakeups import task_id_of
from strandline.limits import (
    BROKER_VISIBILITY_S,
    COMPACTION_TASK_KILLED_S,
    COMPACTION_TASK_S,
    LEASE_TTL_S,
    SUMMARIZER_DEADLINE_S,
    SWEEP_INTERVAL_S,
    SWEEP_LATE_S,
    SWEEP_ROWS_PER_TENANT,
    WAKEUPS_WAITING_MAX,
)
from strandline.model.diagnosis import Check, CheckStatus, Trouble
from strandline.summarizers import ExtractiveSummarizer
from strandline.summarizers.named import summarizer_factory
from tools.servers import ValkeyServer, start_valkey

NOBODY = "redis://127.0.0.1:1/0"
OK, WARN, FAIL = CheckStatus.OK, CheckStatus.WARN, CheckStatus.FAIL


@pytest.fixture(scope="module")
def valkey() -> Iterator[ValkeyServer]:
    """A server whose settings may be changed."""
    with start_valkey() as server:
        yield server


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = tmp_path / "store.db"
    strandline.open(path, durability="normal").close()
    return str(path)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module that apps and summarizers are named in."""
    made = types.ModuleType("celery_app_of_a_test")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


# ---------------------------------------------------------------------------------------------------- the app


def test_the_app_s_tasks_are_settled_late_and_never_repeated_by_celery() -> None:
    app = make_app("store.db", NOBODY)
    for name in (COMPACT_TASK, SWEEP_TASK):
        task = app.tasks[name]
        assert (task.acks_late, task.reject_on_worker_lost, task.ignore_result) == (True, True, True)
        assert (task.acks_on_failure, task.acks_on_timeout, task.max_retries) == (True, True, 0)
        assert (task.soft_time_limit, task.time_limit) == (COMPACTION_TASK_S, COMPACTION_TASK_KILLED_S)
    assert app.conf.task_default_queue == QUEUE
    assert app.conf.worker_prefetch_multiplier == 1
    assert app.conf.result_backend is None
    (entry,) = app.conf.beat_schedule.values()
    assert (entry["task"], entry["schedule"], entry["options"]["queue"]) == (SWEEP_TASK, SWEEP_INTERVAL_S, QUEUE)
    assert set(app.tasks) - {COMPACT_TASK, SWEEP_TASK} == {name for name in app.tasks if name.startswith("celery.")}


def test_the_bounds_fit_into_each_other() -> None:
    assert SUMMARIZER_DEADLINE_S < LEASE_TTL_S < COMPACTION_TASK_S < COMPACTION_TASK_KILLED_S < BROKER_VISIBILITY_S
    assert SWEEP_ROWS_PER_TENANT < WAKEUPS_WAITING_MAX
    assert SWEEP_INTERVAL_S < SWEEP_LATE_S


def test_to_register_leaves_the_app_s_settings_as_they_are() -> None:
    app = Celery("mine", broker="redis://localhost/3", set_as_current=False)
    app.conf.beat_schedule = {"mine": {"task": "mine", "schedule": 60.0}}
    before = {name: app.conf[name] for name in app.conf}
    register(app, "store.db")
    assert {COMPACT_TASK, SWEEP_TASK} <= set(app.tasks)
    assert set(app.conf.beat_schedule) == {"mine", "strandline-sweep"}
    after = {name: app.conf[name] for name in app.conf}
    assert {name for name in after if after[name] != before[name]} <= {"beat_schedule"}
    assert app.tasks[COMPACT_TASK].acks_late


def test_settings_may_be_given_after_the_tasks() -> None:
    app = Celery("mine", set_as_current=False)
    register(app, "store.db")
    app.conf.update(broker_url=NOBODY, task_default_queue="mine")
    assert app.connection_for_write().hostname == "127.0.0.1"
    assert {COMPACT_TASK, SWEEP_TASK} <= set(app.tasks)
    assert app.tasks[COMPACT_TASK].acks_late
    assert "strandline-sweep" in app.conf.beat_schedule


def test_the_tasks_stay_with_their_app() -> None:
    make_app("store.db", NOBODY)
    assert COMPACT_TASK not in Celery("other", set_as_current=False).tasks


@pytest.mark.parametrize("url", ["", "amqp://ann:secret@host/", "redis", "store.db", "postgresql://host/db", None])
def test_a_broker_of_another_kind_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(strandline.InvalidInputError, match="redis://") as caught:
        make_app("store.db", url)
    assert "secret" not in str(caught.value)


def test_valkey_is_what_kombu_calls_redis() -> None:
    assert broker_url_of("valkey://host:1/2") == "redis://host:1/2"
    assert masked("redis://ann:se@cret@host:1/2") == "redis://ann@host:1/2"


@pytest.mark.parametrize("url", ["", ":memory:", None])
def test_a_store_that_processes_can_t_share_is_refused(url: str) -> None:
    with pytest.raises(strandline.InvalidInputError, match="share"):
        make_app(url, NOBODY)


@pytest.mark.parametrize("name", ["", "module", "module:", ":factory", "a:b:c", 7])
def test_a_summarizer_is_named_by_module_and_factory(name: str) -> None:
    with pytest.raises(strandline.InvalidInputError, match=r"package\.module:factory"):
        make_app("store.db", NOBODY, name)


def test_a_summarizer_that_is_not_there_is_refused_by_name(module: types.ModuleType) -> None:
    module.made = ExtractiveSummarizer  # type: ignore[attr-defined]
    module.value = 7  # type: ignore[attr-defined]
    assert isinstance(summarizer_factory(f"{module.__name__}:made")(), ExtractiveSummarizer)
    for name, reason in {
        "nowhere:made": "nowhere",
        f"{module.__name__}:none": "none",
        f"{module.__name__}:value": "int",
    }.items():
        with pytest.raises(strandline.InvalidInputError, match=reason):
            summarizer_factory(name)


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "celery", None)
    with pytest.raises(strandline.InvalidInputError, match="celery") as caught:
        make_app("store.db", NOBODY)
    assert 'pip install "/path/to/the/checkout[celery]"' in caught.value.hint


def test_a_process_opens_its_store_once_and_a_fork_opens_its_own(store: str) -> None:
    door = Door(store, None)
    first, _ = door.open()
    assert door.open()[0] is first
    door._pid = 1  # as a child sees it: what is open belongs to another process
    own, _ = door.open()
    assert own is not first
    door.close()
    door.close()
    first.close()


# ----------------------------------------------------------------------------------------------------- wake-ups


def test_a_job_has_one_task_id_each_time_that_it_is_due() -> None:
    key = DueKey(tenant="a", workflow="b", view="main", due_us=1)
    assert task_id_of(key) == task_id_of(DueKey(tenant="a", workflow="b", view="main", due_us=1, priority=9))
    others = [
        DueKey(tenant="a", workflow="b", view="main", due_us=2),
        DueKey(tenant="a", workflow="bm", view="ain", due_us=1),
        DueKey(tenant="a/b", workflow="main", view="main", due_us=1),
        DueKey(tenant="a", workflow="b/main", view="main", due_us=1),
    ]
    assert len({task_id_of(each) for each in [key, *others]}) == len(others) + 1


@pytest.mark.parametrize(
    ("held", "delay_s", "sent"), [(0, 0, 1), (SWEEP_ROWS_PER_TENANT, 0, 0), (0, 60, 0)], ids=["room", "full", "later"]
)
def test_asking_wakes_a_worker_unless_enough_wait_or_it_is_due_later(
    store: str, monkeypatch: pytest.MonkeyPatch, held: int, delay_s: float, sent: int
) -> None:
    keys: list[DueKey] = []
    monkeypatch.setattr(wakeups_module, "waiting", lambda app: held)
    monkeypatch.setattr(wakeups_module, "send", lambda app, found: keys.extend(found))
    with strandline.open(store, hooks=[WakeUps(make_app(store, NOBODY))]) as db:
        workflow = db.tenant("acme").workflow("w")
        workflow.append(strandline.note("a note"))
        row = workflow.compact_later(delay_s=delay_s)
        assert [(key.tenant, key.workflow, key.view, key.due_us) for key in keys] == [
            ("acme", "w", "main", row.due_us)
        ] * sent


def test_a_broker_that_is_away_is_not_asked_again_at_once(
    store: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = []

    def waiting(app: Celery) -> int:
        asked.append(app)
        raise ConnectionError("away")

    monkeypatch.setattr(wakeups_module, "waiting", waiting)
    with strandline.open(store, hooks=[WakeUps(make_app(store, NOBODY))]) as db:
        workflow = db.tenant("acme").workflow("w")
        workflow.append(strandline.note("a note"))
        for _ in range(3):
            assert workflow.compact_later().due_us is not None
    assert len(asked) == 1
    assert [record.message for record in caplog.records] == [
        "no wake-up was sent, the sweep will send it: ConnectionError: away"
    ]


# ------------------------------------------------------------------------------------------------------- doctor


def look(store: str, app: str | None = None, broker: str | None = None) -> dict[str, Check]:
    found = {check.name: check for check in diagnose_celery(store, app, broker)}
    for check in found.values():
        assert bool(check.advice) == (check.status is not OK), check
        assert (check.trouble is not None) == (check.status is FAIL), check
    return found


def statuses(found: dict[str, Check]) -> dict[str, CheckStatus]:
    return {name: check.status for name, check in found.items() if check.status is not OK}


def test_our_own_app_loses_nothing_but_what_its_broker_does(store: str, valkey: ValkeyServer) -> None:
    assert statuses(look(store, broker=valkey.url())) == {"broker disk": WARN}
    assert statuses(look(store, broker=valkey.url().replace("redis", "valkey"))) == {"broker disk": WARN}


def test_an_app_with_celery_s_own_settings_is_told_what_it_loses(
    store: str, module: types.ModuleType, valkey: ValkeyServer
) -> None:
    module.app = Celery("bare", broker=valkey.url(), set_as_current=False)  # type: ignore[attr-defined]
    found = look(store, f"{module.__name__}:app")
    assert statuses(found) == {
        "tasks": FAIL, "restoring": WARN, "prefetch": WARN, "publishing": WARN, "beat": FAIL, "broker disk": WARN
    }  # fmt: skip


@pytest.mark.parametrize(
    ("task", "settings", "wrong"),
    [
        ({"acks_late": False}, {}, {"acknowledgement": FAIL}),
        ({"reject_on_worker_lost": False}, {}, {"acknowledgement": FAIL}),
        ({"acks_on_failure": False}, {}, {"failing tasks": WARN}),
        ({"time_limit": BROKER_VISIBILITY_S}, {}, {"redelivery": FAIL}),
        (
            {},
            {"broker_transport_options": {"visibility_timeout": 60}},
            {"redelivery": FAIL, "restoring": WARN, "publishing": WARN},
        ),
        ({}, {"worker_prefetch_multiplier": 4}, {"prefetch": WARN}),
        ({}, {"beat_schedule": {}}, {"beat": FAIL}),
    ],
)  # fmt: skip
def test_each_setting_that_loses_messages_is_named(
    store: str,
    module: types.ModuleType,
    valkey: ValkeyServer,
    task: dict[str, object],
    settings: dict[str, object],
    wrong: dict[str, CheckStatus],
) -> None:
    app = make_app(store, valkey.url())
    for name, value in task.items():
        setattr(app.tasks[COMPACT_TASK], name, value)
    assert app.conf.beat_schedule  # settled before it is changed
    app.conf.update(settings)
    module.app = app  # type: ignore[attr-defined]
    assert statuses(look(store, f"{module.__name__}:app")) == {**wrong, "broker disk": WARN}


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"maxmemory-policy": "allkeys-lru"}, {"broker memory": FAIL, "broker disk": WARN}),
        ({"save": "60 1"}, {"broker disk": WARN}),
        ({"appendonly": "yes"}, {}),
    ],
)
def test_a_broker_that_drops_messages_is_told(
    store: str, valkey: ValkeyServer, settings: dict[str, str], wrong: dict[str, CheckStatus]
) -> None:
    import redis

    with redis.Redis.from_url(valkey.url()) as client:
        before = {name: client.config_get(name)[name] for name in settings}
        for name, value in settings.items():
            client.config_set(name, value)
        try:
            assert statuses(look(store, broker=valkey.url())) == wrong
        finally:
            for name, value in before.items():
                client.config_set(name, value)


def test_a_broker_that_does_not_answer_is_a_failure(store: str) -> None:
    for url in ("redis://ann:secret@127.0.0.1:1/0", "pgmq://ann:secret@127.0.0.1:1/db"):
        check = look(store, broker=url)["broker"]
        assert (check.status, check.trouble) == (FAIL, Trouble.UNAVAILABLE)
        assert "secret" not in check.value


def test_a_queue_on_postgresql_is_looked_at(store: str, postgres_url: str) -> None:
    from strandline.integrations.celery.pgmq import install_pgmq

    url = "pgmq" + postgres_url.removeprefix("postgresql")
    assert statuses(look(store, broker=url)) == {"broker": WARN}
    assert install_pgmq(url)
    assert not install_pgmq(url)
    assert statuses(look(store, broker=url)) == {}


def test_who_may_not_install_the_queue_is_told_what_works(
    store: str, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A schema of the user's own is not enough for PGMQ's SQL; a database of its own is."""
    from strandline.integrations.celery.pgmq import install_pgmq

    user, other = f"queue_user_{os.getpid()}", f"queue_{os.getpid()}"
    host = urlsplit(postgres_url).netloc.rpartition("@")[2]
    url = f"pgmq://{user}@{host}{urlsplit(postgres_url).path}"
    with closing(psycopg.connect(postgres_url, autocommit=True)) as connection:
        connection.execute(f"CREATE ROLE {user} LOGIN")
        try:
            for statement in ("SELECT 1", f"CREATE SCHEMA pgmq AUTHORIZATION {user}"):
                connection.execute(statement)
                check = look(store, broker=url)["broker"]
                assert (check.status, check.trouble) == (FAIL, Trouble.UNAVAILABLE)
                with pytest.raises(strandline.InvalidInputError, match="not installed") as refused:
                    install_pgmq(url)
                assert refused.value.hint == check.advice
            app = make_app(store, url)
            with pytest.raises(SystemExit, match="CREATE DATABASE queue OWNER"):
                signals.beat_init.send(app)
            connection.execute(f'CREATE DATABASE {other} OWNER "{user}"')
            assert install_pgmq(f"pgmq://{user}@{host}/{other}")
            assert statuses(look(store, broker=f"pgmq://{user}@{host}/{other}")) == {}
        finally:
            connection.execute(f"DROP DATABASE IF EXISTS {other} WITH (FORCE)")
            connection.execute(f"DROP OWNED BY {user} CASCADE")
            connection.execute(f"DROP ROLE {user}")
    app.conf.broker_url = "pgmq://dana:s3cret@127.0.0.1:1/queue"
    signals.beat_init.send(app)
    assert "PGMQ can't be looked for" in caplog.text
    assert "s3cret" not in caplog.text
    assert "Traceback" not in caplog.text


def test_old_versions_are_a_failure(store: str, valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from strandline.integrations.celery import diagnosis

    monkeypatch.setattr(diagnosis, "version", lambda name: {"celery": "5.7.0", "kombu": "5.6.9"}[name])
    check = look(store, broker=valkey.url())["celery"]
    assert check.status is FAIL
    assert "kombu 5.7" in check.advice


def test_what_nobody_has_taken_tells_that_nobody_sweeps(
    store: str, valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with strandline.open(store) as db:
        workflow = db.tenant("acme").workflow("w")
        workflow.append(strandline.note("a note"))
        workflow.compact_later()
    assert look(store, broker=valkey.url())["due"].status is OK
    monkeypatch.setattr("strandline.integrations.celery.diagnosis.SWEEP_LATE_S", 0.0)
    check = look(store, broker=valkey.url())["due"]
    assert check.status is WARN
    assert check.measured["due"] == 1


def test_the_command_adds_these_checks_to_those_of_the_store(store: str, valkey: ValkeyServer) -> None:
    words = ["doctor", "--store", store, "--celery", "--broker"]
    done = CliRunner().invoke(command_line, [*words, valkey.url(), "--json"])
    value = json.loads(done.stdout)
    assert (done.exit_code, value["ok"]) == (0, True)
    assert {"permissions", "acknowledgement", "broker"} <= {check["name"] for check in value["checks"]}
    gone = CliRunner().invoke(command_line, [*words, NOBODY])
    assert gone.exit_code == 7


@pytest.mark.parametrize(
    "words",
    [
        ["--celery"],
        ["--app", "a:b"],
        ["--broker", NOBODY],
        ["--celery", "--app", "nowhere:app"],
        ["--celery", "--app", "json"],
        ["--celery", "--app", "json:dumps"],
        ["--celery", "--broker", "amqp://host"],
    ],
)
def test_what_can_t_be_looked_at_is_a_usage_error(store: str, words: list[str]) -> None:
    assert CliRunner().invoke(command_line, ["doctor", "--store", store, *words]).exit_code == 2
