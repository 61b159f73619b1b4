"""What a look at a store from outside asks of both databases: schema, digest key, content, leases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from strandline.codec import DIGEST_BYTES
from strandline.errors import SchemaVersionError, StoreUnavailableError, UnfinishedCopyError
from strandline.limits import DOCTOR_LEASES_SHOWN_MAX, LEASE_TTL_S
from strandline.model.diagnosis import Check, Trouble, failed, passed, warned
from strandline.model.ids import TENANT_RULES
from strandline.stores.migrate import Migration, pending
from strandline.stores.sql.session import Row
from strandline.stores.sql.transfer import COPY_MARK, DIGEST_KEY, refuse_unfinished

Ask = Callable[[str], list[Row]]
SECOND_US: Final = 1_000_000

_COUNTS: Final = f"""
SELECT (SELECT count(*) FROM tenant), (SELECT count(*) FROM workflow WHERE name <> '{TENANT_RULES}'),
    (SELECT coalesce(sum(revision), 0) FROM workflow), (SELECT coalesce(sum(live_events), 0) FROM workflow),
    (SELECT count(*) FROM attempt WHERE state = 'running'), (SELECT count(*) FROM candidate WHERE state = 'pending')
"""  # noqa: S608 - a constant
_LEASES: Final = """
SELECT t.name, w.name, v.name, v.lease_attempt, v.lease_until_us FROM view_head v
JOIN workflow w ON w.tenant_id = v.tenant_id AND w.workflow_id = v.workflow_id
JOIN tenant t ON t.tenant_id = v.tenant_id
WHERE v.lease_attempt IS NOT NULL ORDER BY v.lease_until_us
"""


def check_schema(migrations: list[Migration], applied: dict[int, bytes]) -> Check:
    """Check which migrations the store has."""
    newest, known = max(applied, default=0), len(migrations)
    measured = {"found": newest, "known": known}
    try:
        rest = pending(migrations, applied)
    except SchemaVersionError as error:
        return failed("schema", f"{newest}, known up to {known}", error.hint, Trouble.UNAVAILABLE, **measured)
    except StoreUnavailableError as error:
        return failed("schema", error.message, "Use the version that wrote it.", Trouble.UNAVAILABLE, **measured)
    if rest and rest[0].post:
        advice = "Once every process runs this version: `strandline migrate --post`."
        return warned("schema", f"{newest}, {rest[0].name} waits until it is asked for", advice, **measured)
    if rest:
        advice = "The next command migrates it; make a copy first."
        return warned("schema", f"{newest}, known up to {known}", advice, **measured)
    return passed("schema", f"{newest}, the newest that is known", **measured)


def check_meta(meta: Mapping[str, object], place: str) -> Iterator[Check]:
    """Check that the store has its digest key, and of a copy that it is whole."""
    key, mark = meta.get(DIGEST_KEY), meta.get(COPY_MARK)
    if isinstance(key, bytes) and len(key) == DIGEST_BYTES:
        yield passed("digest key", "there")
    else:
        advice = "Restore the store from a backup; nothing was changed."
        yield failed("digest key", "missing or damaged", advice, Trouble.CORRUPT)
    try:
        refuse_unfinished(mark if isinstance(mark, bytes) else None, place)
    except UnfinishedCopyError as error:
        yield failed("copy", f"of {error.source}, not finished", error.hint, Trouble.UNAVAILABLE)


def check_work(ask: Ask, now_us: int) -> Iterator[Check]:
    """Yield the checks of what is in the store and what goes on in it."""
    tenants, workflows, events, live, running, waiting = map(int, ask(_COUNTS)[0])  # a fork has its past, too
    value = f"tenants {tenants:,}, workflows {workflows:,}, events {events:,}"
    value += f", {events - live:,} of them abandoned" if events > live else ""
    yield passed("content", value, tenants=tenants, workflows=workflows, events=events, abandoned=events - live)
    yield _leases(ask(_LEASES), now_us)
    said = f"jobs pending {waiting:,}, attempts running {running:,}"
    yield passed("compactions", said, pending=waiting, running=running)


def _leases(rows: list[Row], now_us: int) -> Check:
    """A lease further ahead than its TTL counts as expired: a clock that jumped must not lock for ever (DESIGN §5)."""
    held, over, said = 0, 0, []
    for tenant, workflow, view, attempt, until_us in rows:
        left_s = (until_us - now_us) / SECOND_US
        if 0 < left_s <= LEASE_TTL_S:
            held += 1
            state = f"{left_s:.0f} s left"
        else:
            over += 1
            state = "expired" if left_s <= 0 else f"further ahead than {LEASE_TTL_S:.0f} s: counts as expired"
        said.append(f"{tenant}/{workflow} {view}, attempt {attempt[:12]}: {state}")
    value = "; ".join(said[:DOCTOR_LEASES_SHOWN_MAX]) or "none"
    more = f" and {len(said) - DOCTOR_LEASES_SHOWN_MAX:,} more" if len(said) > DOCTOR_LEASES_SHOWN_MAX else ""
    measured = {"held": held, "expired": over}
    if over:
        advice = "A compaction died. The next `strandline compact` of that workflow takes its place; nothing is lost."
        return warned("open leases", value + more, advice, **measured)
    return passed("open leases", value + more, **measured)
