"""The proof of an erasure: the rows that are left are read again, and the files searched (C31)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from itertools import chain

from strandline.codec import decode_json, leaf_text
from strandline.engine.environment import Environment
from strandline.engine.erase_plan import ErasurePlan, said_by
from strandline.engine.erase_states import said_in_states
from strandline.engine.lineage import read_entries
from strandline.engine.reading import read_log
from strandline.limits import ERASURE_LISTED_MAX
from strandline.model.action import Permit
from strandline.model.case import Case
from strandline.model.due import DueCompaction
from strandline.model.effect import Effect
from strandline.model.erasure import FileScan
from strandline.model.event import Envelope
from strandline.ports import ScrubbedStore, Transaction

_ELSEWHERE = (
    "the server keeps old versions of rows until VACUUM, and its write-ahead log, replicas and backups until they are "
    "recycled: docs/retention.md says what to do"
)


def prove(env: Environment, plan: ErasurePlan) -> FileScan:
    """Let the store search its files for what was erased, and write them anew where they hold it."""
    store = env.store
    if isinstance(store, ScrubbedStore):
        return store.scrub(plan.needles)
    note = _ELSEWHERE if store.path is not None else "the store is in memory, and has no files"
    return FileScan(files={}, searched_for=0, found=0, note=note)


def left_in(env: Environment, plan: ErasurePlan) -> tuple[str, ...]:
    """Return where the rows of the store still repeat what was erased, read through every facet: what is never erased,
    such as a name, a subject, or why somebody decided. Events that were not erased are told apart from this.
    """
    found: dict[str, None] = {}
    for here in [loss.env for loss in plan.losses.values()] or [env]:
        with here.read() as tx:
            for place, said in _rows(tx, here.scope.workflow):
                if plan.traces.repeated_by(said):
                    found[f"{place} of {here.scope.workflow!r}"] = None
                if len(found) >= ERASURE_LISTED_MAX:
                    return tuple(found)
    return tuple(found)


def _rows(tx: Transaction, workflow: str) -> Iterator[tuple[str, str]]:
    """Yield what each row says beside the bodies of events, with its place."""
    head = tx.log.head()
    for event in read_log(tx, 1, head.revision, workflow):
        names = [getattr(event.envelope, field) for field in Envelope._fields]
        said = [text for text in (*names, event.actor, event.audience, event.key) if isinstance(text, str)]
        yield f"envelope of event {event.seq}", "\n".join(said)
    for number in range(1, head.summary_no + 1):
        summary = tx.summaries.get(number)
        if summary is not None:
            yield f"summary {number}", f"{summary.anchors_text}\n{summary.ledger_text}"
            yield from ((f"segment {s.head.segment_id!r}", s.text) for s in summary.segments)
    for candidate in tx.jobs.all_candidates():
        for attempt in tx.jobs.attempts(candidate.candidate_id):
            yield f"attempt {attempt.attempt_id!r}", "\n".join(said_by(attempt))
    for made in tx.checkpoints.all():
        if not made.erased:
            place = f"checkpoint {made.lineage_seq}"
            yield place, leaf_text(decode_json(made.state, place))
    yield from said_in_states(tx)
    for entry in read_entries(tx, workflow):
        said = [entry.op_key, entry.name or "", entry.by or "", entry.why or "", leaf_text(dict(entry.detail))]
        yield f"lineage {entry.lineage_seq}", "\n".join(said)
    yield from ((f"foreign summary {s.key!r}", s.text) for s in tx.summaries.foreign())
    rows: Iterable[tuple[str, Case | Effect | Permit | DueCompaction]] = chain(
        ((f"case {case.case_id!r}", case) for case in tx.cases.all()),
        ((f"effect {effect.key!r}", effect) for effect in tx.effects.all()),
        ((f"permit {permit.permit_id!r}", permit) for permit in tx.permits.all()),
        ((f"due compaction of view {due.view!r}", due) for due in tx.due.all()),
    )
    yield from ((place, "\n".join(str(getattr(row, field.name)) for field in fields(row))) for place, row in rows)
