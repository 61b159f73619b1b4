"""Make a Celery app, or add the tasks to one that is there."""

from __future__ import annotations

import atexit
import logging
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import strandline
from strandline import DueKey
from strandline.integrations.celery import wakeups
from strandline.integrations.celery.pgmq import install_pgmq
from strandline.integrations.celery.process import Door
from strandline.integrations.celery.settings import (
    COMPACT_TASK,
    PGMQ,
    QUEUE,
    SWEEP_ENTRY,
    SWEEP_TASK,
    TASK_OPTIONS,
    app_settings,
    broker_url_of,
    masked,
)
from strandline.integrations.extra import needs_extra
from strandline.limits import SWEEP_INTERVAL_S
from strandline.summarizers.named import check_summarizer_name, summarizer_factory

if TYPE_CHECKING:
    from celery import Celery

log = logging.getLogger(__name__)


def make_app(db_url: str, broker_url: str, summarizer: str | None = None, *, name: str = "strandline") -> Celery:
    """Return a Celery app whose workers compact what is due, and whose beat sends it.

    Nothing is connected to: that is for its workers to do, each process for itself.

    Args:
        db_url: the store, as for `strandline.open`; processes share it, so it is no ":memory:".
        broker_url: "redis://…" or "valkey://…", or "pgmq://user@host:port/database" for a queue on PostgreSQL.
        summarizer: "package.module:factory", a function without arguments that returns what `compact` takes; each
            process calls it once. Or "openai:MODEL", "anthropic:MODEL". None: the extractive one.
        name: of the app.

    Raises:
        InvalidInputError: an argument that can't be, or the extra is not installed.
    """
    with needs_extra("the Celery integration", "celery"):
        from celery import Celery
    app = Celery(name, set_as_current=False)
    app.conf.update(app_settings(broker_url_of(broker_url)))
    register(app, db_url, summarizer)
    return app


def register(app: Celery, db_url: str, summarizer: str | None = None) -> None:
    """Add the two tasks and the sweep's entry in beat's schedule to an app. Its settings stay as they are.

    `strandline doctor --celery --app module:app` says which of them lose messages.

    Args:
        app: a Celery app.
        db_url, summarizer: as for `make_app`.

    Raises:
        InvalidInputError: an argument that can't be, or the extra is not installed.
    """
    if not isinstance(db_url, str) or db_url in ("", ":memory:"):
        raise strandline.InvalidInputError(f"workers are processes: they can't share the store {db_url!r}")
    if summarizer is not None:
        check_summarizer_name(summarizer)
    door = Door(db_url, summarizer)
    _add_tasks(app, door)
    _add_signals(app, door)


def _add_tasks(app: Celery, door: Door) -> None:
    def compact(tenant: str, workflow: str, view: str, due_us: int) -> None:
        """Compact one view, if it is still due. What becomes of it stands in the store."""
        key = DueKey(tenant=tenant, workflow=workflow, view=view, due_us=due_us)
        db, summarizer = door.open()
        try:
            done = db.run_due(key, summarizer)
            log.info("%s: %s %s", key, done.result, done.reason)
        finally:
            _refill(app, db)

    def sweep() -> None:
        """Send again what is due and nobody works on."""
        db, _ = door.open()
        wakeups.sweep(app, db)

    # Nothing here may ask for the app's settings: they may be given later.
    options = {**TASK_OPTIONS, "shared": False, "throws": (strandline.StrandlineError,)}
    app.task(compact, name=COMPACT_TASK, **options)
    app.task(sweep, name=SWEEP_TASK, **options)
    entry = app.signature(SWEEP_TASK)
    app.add_periodic_task(SWEEP_INTERVAL_S, entry, name=SWEEP_ENTRY, queue=QUEUE, expires=SWEEP_INTERVAL_S)


def _refill(app: Celery, db: strandline.Strandline) -> None:
    """Send what is due where no message waits: who has emptied the queue fills it, and needs no beat for it."""
    try:
        wakeups.sweep(app, db, when_fewer=1)
    except Exception as error:  # noqa: BLE001  the compaction is done; what is due is sent by the next sweep
        log.warning("what is due was not sent, the next sweep will: %s: %s", type(error).__name__, error)


def _add_signals(app: Celery, door: Door) -> None:
    from celery import signals

    def prepare(**_: object) -> None:
        url = str(app.conf.broker_url or "")
        if urlsplit(url).scheme != PGMQ:
            return
        try:
            install_pgmq(url)
        except strandline.InvalidInputError as error:
            sys.exit(f"strandline: {masked(url)}: {error.message}. {error.hint}")
        except Exception as error:  # noqa: BLE001  the broker's connection tries again; a traceback says no more
            said = str(error).strip().partition("\n")[0]
            log.warning("%s: PGMQ can't be looked for: %s: %s", masked(url), type(error).__name__, said)

    def check(**_: object) -> None:
        try:
            if door.summarizer is not None:
                summarizer_factory(door.summarizer)
            strandline.open(door.db_url).close()  # migrates and imports once, before a pool of processes forks
        except strandline.InvalidInputError as error:
            sys.exit(f"strandline: {error.message}")  # else every task would fail on it
        except strandline.StrandlineError as error:
            log.warning("the store can't be opened now, each task will try: %s", error)

    def close(**_: object) -> None:
        # A pool of connections to PostgreSQL that is left open holds the interpreter up, 5 s for each of its threads.
        door.close()
        app.pool.force_close_all()

    signals.worker_init.connect(check, weak=False)
    for signal in (signals.worker_init, signals.beat_init):
        signal.connect(prepare, weak=False)
    for signal in (signals.worker_process_shutdown, signals.worker_shutdown):
        signal.connect(close, weak=False)
    atexit.register(close)
