"""Export: the events of the log, page by page, as they stand (C2)."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.codec import decode_sightings
from strandline.engine.environment import Environment
from strandline.engine.reading import abandoned_of, find_view, read_log, visible
from strandline.limits import EXPORT_PAGE_EVENTS
from strandline.model.transcript import ExportedEvent
from strandline.rules.branches import Abandoned


def export_events(env: Environment, view: str, *, abandoned: bool = False) -> Iterator[ExportedEvent]:
    """Return the events that the view may read, up to the revision of now, each checked; what comes later is left out.

    Each page is a snapshot of its own: events never change, and what rewinds left behind is as of now.

    Args:
        env: the ports, and the workflow.
        view: whose window it is (I21).
        abandoned: those that rewinds left behind, too.

    Raises:
        TenantScopeError: no such view.
        CorruptRecordError: while iterating, at the first event that is not what was written (I4).
    """
    with env.read() as tx:
        find_view(tx, view, str(env.scope))
        revision, left = tx.log.head().revision, abandoned_of(tx)
    starts = range(1, revision + 1, EXPORT_PAGE_EVENTS)
    pages = (_page(env, view, first, min(revision, first + EXPORT_PAGE_EVENTS - 1), left) for first in starts)
    return (item for page in pages for item in page if abandoned or not item.abandoned)


def _page(env: Environment, view: str, first: int, last: int, left: Abandoned) -> list[ExportedEvent]:
    with env.read() as tx:
        reader = find_view(tx, view, str(env.scope))
        events = list(visible(reader, read_log(tx, first, last, env.scope.workflow)))
        declared = [[ref_id for ref_id, named in decode_sightings(event.sightings) if named] for event in events]
        texts = tx.refs.texts({ref_id for ref_ids in declared for ref_id in ref_ids})
    return [
        ExportedEvent(event, tuple(texts[ref_id] for ref_id in ref_ids if ref_id in texts), event.seq in left)
        for event, ref_ids in zip(events, declared, strict=True)
    ]
