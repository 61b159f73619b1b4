"""Send wake-ups: no more than wait in fair turn, and none that a job depends on."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import strandline
from strandline import DueKey
from strandline.integrations.celery.settings import COMPACT_TASK, PGMQ, QUEUE
from strandline.limits import BROKER_PAUSE_S, SWEEP_ROWS_PER_TENANT, WAKEUPS_WAITING_MAX

if TYPE_CHECKING:
    from celery import Celery

log = logging.getLogger(__name__)


def task_id_of(key: DueKey) -> str:
    """Return the id of the task of a job: the same each time that it is sent, another when it is due anew."""
    words = "".join(f"{len(word)}:{word}" for word in (key.tenant, key.workflow, key.view, str(key.due_us)))
    return hashlib.sha256(words.encode()).hexdigest()[:32]


def waiting(app: Celery) -> int:
    """Return how many messages wait in the broker for a worker to take them."""
    from kombu.exceptions import ChannelError

    with app.connection_or_acquire() as connection:
        channel = connection.default_channel
        if connection.transport.driver_type == PGMQ:
            # those that a worker has taken are in the table, too
            return int(channel.pgmq.metrics(channel.canonical_queue_name(QUEUE)).queue_visible_length)
        try:
            return int(channel.queue_declare(QUEUE, passive=True).message_count)
        except ChannelError:
            return 0  # an empty list is not there


def send(app: Celery, keys: Iterable[DueKey]) -> int:
    """Send a wake-up for each job, and return how many there were. The same job has the same task id."""
    sent = 0
    with app.producer_or_acquire() as producer:
        for key in keys:
            words = (key.tenant, key.workflow, key.view, key.due_us)
            app.tasks[COMPACT_TASK].apply_async(words, task_id=task_id_of(key), queue=QUEUE, producer=producer)
            sent += 1
    return sent


def sweep(app: Celery, db: strandline.Strandline, *, when_fewer: int = WAKEUPS_WAITING_MAX) -> int:
    """Send what is due, tenants in turn, and return how much was sent.

    Args:
        app: whose tasks and broker.
        db: the store that says what is due.
        when_fewer: do nothing unless fewer messages wait than this.
    """
    held = waiting(app)
    return send(app, db.sweep(WAKEUPS_WAITING_MAX - held)) if held < min(when_fewer, WAKEUPS_WAITING_MAX) else 0


class WakeUps:
    """A hook for `strandline.open`: what is asked for with `compact_later` need not wait for the next sweep.

    Nothing depends on it. While the broker does not answer, or holds as many messages as may wait, none is sent: the
    job stands in the store, and the sweep takes tenants in turn.

    Args:
        app: made by `make_app`, or registered.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._quiet_until_s = 0.0

    def emit(self, name: str, details: Mapping[str, object]) -> None:
        """Send a wake-up for a job that is due now."""
        if name != "due" or time.monotonic() < self._quiet_until_s:
            return
        try:
            key = DueKey(
                tenant=str(details["tenant"]),
                workflow=str(details["workflow"]),
                view=str(details["view"]),
                due_us=int(str(details["due_us"])),
            )
            # What is due later is for the sweep; and one tenant alone makes no more wait than its share of a sweep.
            if key.due_us <= time.time_ns() // 1_000 and waiting(self._app) < SWEEP_ROWS_PER_TENANT:
                send(self._app, [key])
        except Exception as error:  # noqa: BLE001  whatever the broker's driver raises: the job is safe in the store
            self._quiet_until_s = time.monotonic() + BROKER_PAUSE_S
            log.warning("no wake-up was sent, the sweep will send it: %s: %s", type(error).__name__, error)
