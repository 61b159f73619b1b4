"""The settings of the app, of its tasks and of its broker, and nothing that reaches a broker."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from strandline.errors import InvalidInputError
from strandline.limits import (
    BROKER_CONNECTIONS_MAX,
    BROKER_RESTORE_INTERVAL_S,
    BROKER_TIMEOUT_S,
    BROKER_TRIES_MAX,
    BROKER_VISIBILITY_S,
    COMPACTION_TASK_KILLED_S,
    COMPACTION_TASK_S,
)

COMPACT_TASK: Final = "strandline.compact"
SWEEP_TASK: Final = "strandline.sweep"
SWEEP_ENTRY: Final = "strandline-sweep"  # in beat's schedule
QUEUE: Final = "strandline"
PGMQ: Final = "pgmq"
REDIS_SCHEMES: Final = ("redis", "rediss", "valkey", "valkeys", "sentinel")
KNOWN_AS: Final = {"valkey": "redis", "valkeys": "rediss"}  # what kombu calls them

# Of each task: acknowledged when it has ended, given back when its process dies. An exception is no reason to deliver
# it again: the store's row says when the next run is due, and the sweep sends it.
TASK_OPTIONS: Final[dict[str, object]] = {
    "acks_late": True,
    "reject_on_worker_lost": True,
    "acks_on_failure": True,
    "acks_on_timeout": True,
    "ignore_result": True,
    "max_retries": 0,
    "soft_time_limit": COMPACTION_TASK_S,
    "time_limit": COMPACTION_TASK_KILLED_S,
    "serializer": "json",
}


def broker_url_of(url: str) -> str:
    """Return the URL of a broker as kombu reads it: `valkey://` is `redis://`.

    Raises:
        InvalidInputError: a broker of another kind; the contract is tested for these only.
    """
    scheme, parted, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
    if not parted or not rest or scheme not in (*REDIS_SCHEMES, PGMQ):
        known = ", ".join(f"{name}://" for name in (*REDIS_SCHEMES, PGMQ))
        raise InvalidInputError(f"{masked(str(url))!r} is no broker URL that is known here: {known}")
    return f"{KNOWN_AS.get(scheme, scheme)}://{rest}"


def masked(url: str) -> str:
    """Return a URL without its password."""
    head, at, tail = url.rpartition("@")
    scheme, parted, user = head.partition("://")
    return f"{scheme}{parted}{user.partition(':')[0]}{at}{tail}"


def transport_options(url: str) -> dict[str, object]:
    """Return what kombu is told about the broker, beside its URL."""
    bounded: dict[str, object] = {
        "visibility_timeout": BROKER_VISIBILITY_S,
        "max_retries": BROKER_TRIES_MAX,
        "interval_start": 0,
        "interval_step": 0.2,
        "interval_max": 1.0,
        "connect_retries_timeout": BROKER_TIMEOUT_S,
    }
    if urlsplit(url).scheme == PGMQ:
        return {
            **bounded,
            "conn_string": "postgresql" + url.removeprefix(PGMQ),  # else an environment variable would take its place
            "init_extension": False,  # the SQL comes with the package, see pgmq.py
            "pool_size": BROKER_CONNECTIONS_MAX,
            "pool_timeout": BROKER_TIMEOUT_S,
            "wait_time_seconds": 2,
            "polling_interval": 0.1,
        }
    return {
        **bounded,
        "unacked_restore_interval": BROKER_RESTORE_INTERVAL_S,
        "unacked_restore_throttle": 1,  # else only every tenth look is a look
        "socket_connect_timeout": BROKER_TIMEOUT_S,
        "socket_timeout": BROKER_TIMEOUT_S,
        "socket_keepalive": True,
        "retry_on_timeout": False,
    }


def app_settings(url: str) -> dict[str, object]:
    """Return the settings of an app of our own."""
    publishing = {"max_retries": BROKER_TRIES_MAX, "interval_start": 0, "interval_step": 0.2, "interval_max": 1.0}
    return {
        "broker_url": url,
        "broker_transport_options": transport_options(url),
        "broker_connection_retry_on_startup": True,
        "broker_connection_timeout": BROKER_TIMEOUT_S,
        "broker_connection_max_retries": None,  # a worker waits for its broker for as long as it takes
        "task_publish_retry": True,
        "task_publish_retry_policy": publishing,
        "task_default_queue": QUEUE,
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_ignore_result": True,
        "result_backend": None,
        "worker_prefetch_multiplier": 1,
        "worker_send_task_events": False,
        # On PostgreSQL each worker's mailbox would be tables that nobody drops.
        "worker_enable_remote_control": urlsplit(url).scheme != PGMQ,
        "beat_scheduler": "celery.beat:Scheduler",  # an interval needs no file to remember it
    }
