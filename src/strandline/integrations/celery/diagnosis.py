"""Say of an app and its broker which settings lose messages: what `strandline doctor --celery` adds."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import strandline
from strandline.errors import InvalidInputError
from strandline.integrations.celery.app import make_app
from strandline.integrations.celery.settings import COMPACT_TASK, PGMQ, SWEEP_TASK, masked
from strandline.integrations.extra import needs_extra
from strandline.limits import (
    BROKER_RESTORE_INTERVAL_S,
    BROKER_TIMEOUT_S,
    BROKER_VISIBILITY_S,
    SWEEP_LATE_S,
    SWEEP_ROWS,
)
from strandline.model.diagnosis import Check, Trouble, failed, passed, warned

if TYPE_CHECKING:
    from celery import Celery

OLDEST: Final = {"celery": (5, 7), "kombu": (5, 7)}
AGAIN: Final = "The sweep sends it again; other tasks of the app have no sweep."


def diagnose_celery(store: str, app: str | None = None, broker: str | None = None) -> list[Check]:
    """Return what a look at an app and its broker finds, in order; nothing is sent or changed.

    Args:
        store: the URL of the store, for the app that `make_app` makes where none is named.
        app: "package.module:app".
        broker: another broker than the app's; without an app: that of `make_app`.

    Raises:
        InvalidInputError: neither is named, an app that can't be imported, a broker of an unknown kind.
    """
    with needs_extra("the Celery integration", "celery"):
        import celery  # noqa: F401
    if app is None and broker is None:
        raise InvalidInputError("name the app, as --app package.module:app, or the broker, as --broker URL")
    found = _app_of(app) if app is not None else make_app(store, str(broker))
    url = broker or str(found.conf.broker_url or "")
    if urlsplit(url).scheme == "valkey":
        url = "redis" + url.removeprefix("valkey")
    checks = [_versions(), _tasks(found)]
    if COMPACT_TASK in found.tasks:
        checks += [_acknowledgement(found), _exceptions(found)]
    checks += [*_redelivery(found, url), _prefetch(found), _publishing(found), _schedule(found), *_server(url)]
    return [*checks, _due(store)]


def _app_of(name: str) -> Celery:
    from celery import Celery

    module, parted, attribute = name.partition(":")
    if not (module and parted and attribute):
        raise InvalidInputError(f"an app is named as 'package.module:app', not {name!r}")
    try:
        found: object = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InvalidInputError(f"the app {name!r} can't be imported: {error}") from error
    if not isinstance(found, Celery):
        raise InvalidInputError(f"{name!r} is {type(found).__name__}, no Celery app")
    return found


def _versions() -> Check:
    said = {name: version(name) for name in OLDEST}
    value = ", ".join(f"{name} {found}" for name, found in said.items())
    old = [name for name, least in OLDEST.items() if tuple(map(int, said[name].split(".")[:2])) < least]
    if old:
        least = " and ".join(f"{name} {'.'.join(map(str, OLDEST[name]))}" for name in old)
        advice = f"Install {least} or newer: older ones lose what a dead worker held, or look for it too seldom."
        return failed("celery", value, advice, Trouble.UNSAFE, **said)
    return passed("celery", value, **said)


def _tasks(app: Celery) -> Check:
    missing = [name for name in (COMPACT_TASK, SWEEP_TASK) if name not in app.tasks]
    if missing:
        advice = "Call `register(app, db_url)` where the app is made: nothing compacts what is due."
        return failed("tasks", f"missing: {', '.join(missing)}", advice, Trouble.UNSAFE)
    return passed("tasks", f"{COMPACT_TASK}, {SWEEP_TASK}")


def _own(app: Celery, option: str) -> object:
    """Return an option of the task, or that of the app where the task has none."""
    value = getattr(app.tasks[COMPACT_TASK], option, None)
    return value if value is not None else app.conf.get(f"task_{option}")


def _acknowledgement(app: Celery) -> Check:
    late, back = bool(_own(app, "acks_late")), bool(_own(app, "reject_on_worker_lost"))
    value = f"{'late' if late else 'early'}, {'given back' if back else 'kept'} when the worker is lost"
    measured = {"acks_late": late, "reject_on_worker_lost": back}
    if not late:
        advice = f"Set acks_late: a message is gone before its task has run, and with the worker it is lost. {AGAIN}"
        return failed("acknowledgement", value, advice, Trouble.UNSAFE, **measured)
    if not back:
        advice = f"Set reject_on_worker_lost: the message of a killed process counts as done, and is lost. {AGAIN}"
        return failed("acknowledgement", value, advice, Trouble.UNSAFE, **measured)
    return passed("acknowledgement", value, **measured)


def _exceptions(app: Celery) -> Check:
    both = app.conf.get("task_acks_on_failure_or_timeout")
    settled = [
        bool(both if (own := _own(app, option)) is None else own) for option in ("acks_on_failure", "acks_on_timeout")
    ]
    if not all(settled):
        advice = "Set acks_on_failure and acks_on_timeout: what fails each time would be delivered for ever."
        return warned("failing tasks", "delivered again at once", advice)
    return passed("failing tasks", "settled: the store says when the next run is due")


def _redelivery(app: Celery, url: str) -> Iterator[Check]:
    options: Mapping[str, object] = app.conf.broker_transport_options or {}
    scheme = urlsplit(url).scheme
    usual = 1_800 if scheme == PGMQ else 3_600  # of kombu
    visible_s = _number(options.get("visibility_timeout"), usual)
    limits = [_number(getattr(task, "time_limit", None) or app.conf.task_time_limit, 0) for task in app.tasks.values()]
    own = app.tasks.get(COMPACT_TASK)
    longest_s = max(limits) if own is None else max(*limits, _number(own.time_limit, 0))
    value = f"after {visible_s:,.0f} s; the longest task may take {longest_s:,.0f} s"
    measured = {"visibility_timeout_s": visible_s, "longest_task_s": longest_s}
    if visible_s <= longest_s:
        enough_s = max(BROKER_VISIBILITY_S, int(longest_s * 2))
        advice = (
            f"Set broker_transport_options['visibility_timeout'] above it, say to {enough_s}: "
            "a task that runs for longer is delivered again while it runs."
        )
        yield failed("redelivery", value, advice, Trouble.UNSAFE, **measured)
    else:
        yield passed("redelivery", value, **measured)
    if scheme == PGMQ:
        return
    interval_s = options.get("unacked_restore_interval")
    throttle = _number(options.get("unacked_restore_throttle"), 10)
    if interval_s is None:  # then kombu's: every 10 s, and only every tenth time
        advice = (
            f"Set broker_transport_options['unacked_restore_interval'] (to {BROKER_RESTORE_INTERVAL_S}) and "
            "['unacked_restore_throttle'] = 1: what a dead worker held is looked for now and then only."
        )
        yield warned("restoring", f"every {10 * throttle:g} s, as kombu has it", advice)
    else:
        yield passed("restoring", f"every {_number(interval_s, 10) * throttle:g} s")


def _number(value: object, default: float) -> float:
    return float(value) if isinstance(value, int | float | str) and value != "" else float(default)


def _prefetch(app: Celery) -> Check:
    multiplier = app.conf.worker_prefetch_multiplier
    value = f"{multiplier} for each process"
    if multiplier != 1:
        advice = "Set worker_prefetch_multiplier = 1: what one worker holds, no other one runs."
        return warned("prefetch", value, advice, multiplier=multiplier)
    return passed("prefetch", value, multiplier=multiplier)


def _publishing(app: Celery) -> Check:
    tries = (app.conf.broker_transport_options or {}).get("max_retries")
    if tries is None:
        advice = "Set broker_transport_options['max_retries']: who sends while the broker is away waits for very long."
        return warned("publishing", "without a bound while the broker is away", advice)
    return passed("publishing", f"{tries} further tries while the broker is away")


def _schedule(app: Celery) -> Check:
    entries = [entry for entry in (app.conf.beat_schedule or {}).values() if entry.get("task") == SWEEP_TASK]
    if not entries:
        advice = f"Let beat send {SWEEP_TASK} every few seconds: else what the broker loses is never compacted."
        return failed("beat", f"{SWEEP_TASK} is not in its schedule", advice, Trouble.UNSAFE)
    return passed("beat", f"sends {SWEEP_TASK} every {entries[0]['schedule']} s, while a beat process runs")


def _due(store: str) -> Check:
    """Tell by what is due whether anybody sweeps and works."""
    try:
        with strandline.open(store, create=False) as db:
            keys = db.sweep(SWEEP_ROWS)
    except strandline.StrandlineError as error:
        return warned("due", f"can't be told: {type(error).__name__}", "See what stands above about the store.")
    if not keys:
        return passed("due", "nothing waits", due=0)
    late_s = max(0.0, time.time() - min(key.due_us for key in keys) / 1_000_000)
    value = f"{len(keys)}{' or more' if len(keys) == SWEEP_ROWS else ''} wait, the oldest for {late_s:,.0f} s"
    if late_s > SWEEP_LATE_S:
        advice = "Start a beat and a worker, or more workers: nobody has taken it since. Their logs say why."
        return warned("due", value, advice, due=len(keys), late_s=round(late_s))
    return passed("due", value, due=len(keys), late_s=round(late_s))


# ------------------------------------------------------------------------------------------------------- the server


def _server(url: str) -> Iterator[Check]:
    scheme = urlsplit(url).scheme
    if scheme == PGMQ:
        yield _pgmq(url)
    elif scheme in ("redis", "rediss"):
        yield from _redis(url)
    else:
        advice = "Redis, Valkey and PostgreSQL (pgmq://) are the brokers that are tested."
        yield warned("broker", f"{scheme or 'none'}: not looked at", advice)


def _gone(url: str, error: Exception) -> Check:
    advice = "Start it, or correct its URL. What is due stands in the store until then."
    value = f"{masked(url)} does not answer: {type(error).__name__}: {str(error).strip().splitlines()[0]}"
    return failed("broker", value, advice, Trouble.UNAVAILABLE)


def _pgmq(url: str) -> Check:
    import psycopg

    from strandline.integrations.celery.pgmq import look_at

    try:
        there, advice = look_at(url)
    except psycopg.Error as error:
        return _gone(url, error)
    if not there:
        value = f"{masked(url)} answers, without PGMQ's SQL"
        if advice is not None:
            return failed("broker", value, advice, Trouble.UNAVAILABLE)
        return warned("broker", value, "The first worker or beat installs it.")
    return passed("broker", f"{masked(url)} answers; its messages are as durable as the database")


def _redis(url: str) -> Iterator[Check]:
    import redis

    client = redis.Redis.from_url(url, socket_timeout=BROKER_TIMEOUT_S, socket_connect_timeout=BROKER_TIMEOUT_S)
    try:
        with client:
            info = {**client.info("server"), **client.info("memory"), **client.info("persistence")}
            saves = _config(client, "save")
    except redis.RedisError as error:
        yield _gone(url, error)
        return
    name = "Valkey" if "valkey_version" in info else "Redis"
    number = info.get("valkey_version") or info.get("redis_version")
    yield passed("broker", f"{masked(url)} answers: {name} {number}")
    policy = str(info.get("maxmemory_policy", "noeviction"))
    limit = int(info.get("maxmemory", 0))
    if policy != "noeviction":
        advice = f"Set maxmemory-policy noeviction: when its memory is full, this one drops messages. {AGAIN}"
        yield failed("broker memory", f"{policy}, maxmemory {limit:,}", advice, Trouble.UNSAFE, policy=policy)
    else:
        yield passed("broker memory", f"{policy}, maxmemory {limit:,}", policy=policy)
    if not int(info.get("aof_enabled", 0)) and not saves:
        advice = f"Set appendonly yes: when it restarts, every message is lost. {AGAIN}"
        yield warned("broker disk", "nothing is written to disk", advice)
    elif not int(info.get("aof_enabled", 0)):
        advice = f"Set appendonly yes: when it dies, messages since the last snapshot are lost. {AGAIN}"
        yield warned("broker disk", f"snapshots only: {saves}", advice)
    else:
        yield passed("broker disk", "append-only file")


def _config(client: object, name: str) -> str:
    """Return a setting of the server; a managed one may not tell."""
    import redis

    try:
        return str(client.config_get(name).get(name, ""))  # type: ignore[attr-defined]
    except redis.RedisError:
        return "not told"
