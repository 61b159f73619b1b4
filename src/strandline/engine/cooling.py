"""The rows by which a summarizer that does not answer is left alone, by every process on the store (C14)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from strandline.engine.environment import Environment
from strandline.errors import CorruptRecordError
from strandline.limits import COOLDOWN_ROWS_MAX
from strandline.model.cooldown import Cooldown, Cooling
from strandline.ports import Transaction
from strandline.rules.cooling import answered, cools_until_us, failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A summarizer was called: a draft that can't be used is an answer, too."""

    summarizer: str
    answered: bool
    retry_after_s: float | None = None


def cooldowns_of(tx: Transaction, summarizer: str) -> list[Cooldown]:
    """Return the tenant's rows on a summarizer, the workflow's own first."""
    own, others = _read(tx, summarizer)
    return others if own is None else [own, *others]


def record_call(env: Environment, tx: Transaction, called: Called) -> None:
    """Write down that a summarizer did not answer; or that it did, where it had not before."""
    own, others = _read(tx, called.summarizer)
    row, now = own or Cooldown(summarizer=called.summarizer), env.clock.now_us()
    after = (
        answered(row, others, now)
        if called.answered
        else failed(row, others, now_us=now, retry_after_s=called.retry_after_s)
    )
    if after is not None:
        _put(tx, own, after)


def list_cooldowns(envs: Iterable[Environment]) -> list[Cooling]:
    """Return the summarizers of a tenant that nobody calls now, by name; given its workflows."""
    rows: dict[str, list[Cooldown]] = {}
    now = 0
    for env in envs:
        now = env.clock.now_us()
        with env.read() as tx:
            for row in read_cooldowns(tx):
                rows.setdefault(row.summarizer, []).append(row)
    found = ((name, cools_until_us(of_name, now), of_name) for name, of_name in sorted(rows.items()))
    return [
        Cooling(summarizer=name, until_us=until, failures=sum(row.failures for row in of_name))
        for name, until, of_name in found
        if until is not None
    ]


def read_cooldowns(tx: Transaction) -> list[Cooldown]:
    """Return the workflow's rows, and check that none is missing.

    Raises:
        CorruptRecordError: one is missing or not what was written.
    """
    rows, written = tx.cooldowns.all(), tx.log.head().cooldowns
    if len(rows) != written:
        raise CorruptRecordError(f"{len(rows)} are stored, {written} were written", place="cooldown")
    return rows


def _read(tx: Transaction, summarizer: str) -> tuple[Cooldown | None, list[Cooldown]]:
    own = tx.cooldowns.get(summarizer) if tx.log.head().cooldowns else None
    return own, tx.cooldowns.others(summarizer, COOLDOWN_ROWS_MAX)


def _put(tx: Transaction, there: Cooldown | None, row: Cooldown) -> None:
    tx.cooldowns.put(row)
    if there is None:
        head = tx.log.head()
        tx.log.set_head(replace(head, cooldowns=head.cooldowns + 1))
