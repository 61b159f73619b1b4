"""Run a due compaction: take its row under a fence, compact, settle the row. A wake-up may come twice or late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from strandline.codec import encode_text, storable
from strandline.engine.cases import open_case
from strandline.engine.compact import compact
from strandline.engine.environment import Environment, check_whole
from strandline.engine.flow import Verb
from strandline.engine.plan_job import Background, Order
from strandline.engine.reading import find_view
from strandline.engine.watching import watched_flow
from strandline.errors import InvalidInputError, StrandlineError
from strandline.limits import FAILURE_CHARS_MAX, NAME_CHARS_MAX, SWEEP_ROWS_MAX
from strandline.model.case import CaseKind, CaseState
from strandline.model.due import DueCompaction, DueKey, DueResult, DueRun
from strandline.model.outcome import CompactionOutcome
from strandline.ports import AsyncSummarizer, Clock, Store, Summarizer, Transaction
from strandline.ports.occurrences import DueRunTold
from strandline.rules.queueing import Ending, busy_us, died_too_often, ending_by, ending_of, give_back, settle, take
from strandline.rules.triggers import ran

_DIED = "whoever ran it ended without a word, as often as it was begun (DUE_RUNS_MAX)"


@dataclass(frozen=True, slots=True, kw_only=True)
class DueOrder:
    """Which due compaction is to be run, by whom, and with what."""

    key: DueKey
    worker: str
    summarizer: Summarizer | AsyncSummarizer
    deadline_s: float | None
    last_resort: Summarizer | None = None  # as of `Order`


def sweep(store: Store, clock: Clock, limit: int, per_tenant: int) -> list[DueKey]:
    """Return what is due, of all tenants; as `Store.due`.

    Raises:
        InvalidInputError: a number outside 1..SWEEP_ROWS_MAX.
    """
    for name, value in (("limit", limit), ("per_tenant", per_tenant)):
        check_whole(name, value)
        if value is None or not 1 <= value <= SWEEP_ROWS_MAX:
            raise InvalidInputError(f"{name} {value} lies outside 1..{SWEEP_ROWS_MAX}")
    return store.due(clock.now_us(), limit, per_tenant)


@watched_flow("run_due")
def run_due(env: Environment, order: DueOrder) -> Verb[DueRun]:
    """Run what is due; return at once where it is not due, or somebody runs it.

    Whatever an error says about the job stands in its row afterwards.

    Raises:
        StoreUnavailableError, OutcomeUnknownError: the row could not be settled; when its lease ends, it is due again.
        CorruptRecordError: the row is not what was written.
    """
    encode_text(order.worker, "worker")
    if not 0 < len(order.worker) <= NAME_CHARS_MAX:
        raise InvalidInputError(f"the worker's name has {len(order.worker)} characters, not 1..{NAME_CHARS_MAX}")
    taken = _take(env, order)
    if isinstance(taken, DueRun):
        if taken.result is DueResult.FAILED:
            view, result = order.key.view, taken.result.value
            env.emit("due_run", DueRunTold(view=view, result=result, runs=taken.runs, case_id=taken.case_id))
        return taken
    outcome: CompactionOutcome | None = None
    try:
        outcome = yield from compact(env, _order(order, taken))
        ending = ending_of(outcome, runs=taken.runs, jitter=env.entropy.fraction())
    except StrandlineError as error:
        ending = ending_by(error, runs=taken.runs, jitter=env.entropy.fraction())
    except Exception as error:
        _settle(env, order, taken, ending_by(error, runs=taken.runs, jitter=env.entropy.fraction()), None)
        raise
    except BaseException:
        _replace(env, taken, lambda tx, row: give_back(row, env.clock.now_us()))
        raise
    return _settle(env, order, taken, ending, outcome)


def _order(order: DueOrder, taken: DueCompaction) -> Order:
    return Order(
        view=taken.view,
        budget=taken.budget,
        summarizer=order.summarizer,
        strict=taken.strict,
        through=None,
        when_tokens=taken.when_tokens,
        deadline_s=order.deadline_s,
        background=Background(run=taken.runs, fence=taken.fence),
        last_resort=order.last_resort,
    )


def _take(env: Environment, order: DueOrder) -> DueCompaction | DueRun:
    """Take the row under the workflow's lock, or say why not; who finds it taken writes nothing."""
    key = order.key
    with env.read() as tx:
        row = tx.due.get(key.view)
    now = env.clock.now_us()
    if row is None or not row.offered(now):
        return _not_run(key, row, now)
    with env.write() as tx:
        row, now = tx.due.get(key.view), env.clock.now_us()
        if row is None or not row.offered(now):
            return _not_run(key, row, now)
        view = find_view(tx, key.view, str(env.scope))
        if view.leased(now):
            again_us = busy_us(view.lease_until_us, now)
            tx.due.settle(replace(row, worker=None, lease_until_us=0, due_us=again_us), fence=row.fence)
            return DueRun(
                key=key,
                result=DueResult.BUSY,
                reason=f"another compaction holds view {view.name!r}",
                due_us=again_us,
                runs=row.runs,
            )
        given_up = died_too_often(row)
        if given_up is not None:
            case = open_case(
                env, tx, CaseKind.DEAD_LETTER, view=view, reason=_DIED, subject=view.name, detail={"worker": row.worker}
            )
            ended = replace(settle(row, given_up, now), case_id=case.case_id)
            settled = ran(ended, began=row.watch, tokens_after=None, now_us=now)
            tx.due.settle(settled, fence=row.fence)
            return DueRun(
                key=key,
                result=given_up.result,
                reason=given_up.text,
                due_us=settled.due_us,
                runs=row.runs,
                case_id=case.case_id,
            )
        taken = take(row, order.worker, now)
        tx.due.settle(taken, fence=row.fence)
        return taken


def _not_run(key: DueKey, row: DueCompaction | None, now: int) -> DueRun:
    if row is None or row.due_us is None:
        reason = "it was never asked for" if row is None else "it is done, or failed, and was not asked for since"
        return DueRun(key=key, result=DueResult.NOT_DUE, reason=reason)
    leased = row.leased(now)
    return DueRun(
        key=key,
        result=DueResult.LEASED if leased else DueResult.NOT_DUE,
        reason=f"worker {row.worker!r} runs it" if leased else f"it is due in {(row.due_us - now) / 1_000_000:,.1f} s",
        due_us=row.due_us,
        runs=row.runs,
        case_id=row.case_id,
    )


def _settle(
    env: Environment, order: DueOrder, taken: DueCompaction, ending: Ending, outcome: CompactionOutcome | None
) -> DueRun:
    """Settle the row of a run that ended; who was taken for dead meanwhile settles nothing."""
    kept = replace(ending, text=storable(env.references.secrets.redact(ending.text), FAILURE_CHARS_MAX))

    def settled_row(tx: Transaction, row: DueCompaction) -> DueCompaction:
        case = tx.cases.get(ending.case_id) if ending.case_id is not None else None
        parked = ending.result is DueResult.PARKED
        answered = parked and case is not None and case.state is CaseState.ANSWERED  # before it could wake this row
        now = env.clock.now_us()
        settled = settle(row, replace(kept, delay_s=0.0) if answered else kept, now)
        if ending.result not in (DueResult.DONE, DueResult.FAILED):
            return settled
        return ran(settled, began=taken.watch, tokens_after=outcome.tokens_after if outcome else None, now_us=now)

    row = _replace(env, taken, settled_row)
    settled = row is not None and row.fence == taken.fence
    told = DueRunTold(view=taken.view, result=ending.result.value, runs=taken.runs, case_id=ending.case_id)
    env.emit("due_run", told)
    return DueRun(
        key=order.key,
        result=ending.result,
        reason=ending.text if settled else f"another worker took it over meanwhile; {ending.text}",
        due_us=row.due_us if row else None,
        runs=taken.runs,
        outcome=outcome,
        case_id=ending.case_id,
    )


def _replace(
    env: Environment, taken: DueCompaction, change: Callable[[Transaction, DueCompaction], DueCompaction]
) -> DueCompaction | None:
    """Change the row that was taken, if it is still this worker's; return it as it stands then."""
    with env.write() as tx:
        row = tx.due.get(taken.view)
        if row is None:
            return None
        changed = change(tx, row)
        return changed if tx.due.settle(changed, fence=taken.fence) else row
