"""Recall: the verbatim events that hold a reference, with their provenance (C4); and the manifest (I9)."""

from __future__ import annotations

from itertools import islice

from strandline.codec import encode_text, read_body
from strandline.engine.environment import Environment, check_whole
from strandline.engine.reading import abandoned_of, find_view, read_summary
from strandline.engine.retrieve import divergences, sighted_events
from strandline.engine.watching import watched
from strandline.errors import InvalidInputError
from strandline.limits import RECALL_HITS_MAX
from strandline.model.outcome import RecallHit
from strandline.model.summary import Manifest


@watched("recall")
def recall(env: Environment, ref: str, view: str, limit: int = RECALL_HITS_MAX) -> list[RecallHit]:
    """Return the events that hold the reference, newest first, at most `limit`; [] when none does.

    Those that a rewind abandoned are among them, and say so.

    Raises:
        InvalidInputError: an empty reference, or a limit outside 1..RECALL_HITS_MAX.
        CorruptRecordError: an event is not what was written, or the index names one that does not hold it (I4).
    """
    if not isinstance(ref, str) or not ref:
        raise InvalidInputError("recall needs a reference: text that is not empty")
    encode_text(ref, "the reference")
    check_whole("limit", limit)
    if not 1 <= limit <= RECALL_HITS_MAX:
        raise InvalidInputError(f"a limit of {limit} lies outside 1..{RECALL_HITS_MAX}")
    with env.read() as tx:
        reader = find_view(tx, view, str(env.scope))
        instead = divergences(tx, [ref], reader).get(ref)
        found = sighted_events(tx, ref, reader, tx.log.head().revision, env.scope.workflow)
        left = abandoned_of(tx)
        return [
            RecallHit(
                seq=event.seq,
                kind=event.kind,
                actor=event.actor,
                text=read_body(event)[0],
                declared=declared,
                abandoned=event.seq in left,
                instead=instead,
            )
            for event, declared in islice(found, limit)
        ]


@watched("manifest")
def read_manifest(env: Environment, view: str) -> Manifest:
    """Return the view's manifest: what the summary does not hold verbatim."""
    with env.read() as tx:
        head = find_view(tx, view, str(env.scope))
        read_summary(tx, head, texts_only=True)
        dropped = tx.summaries.manifest(head.summary_no) if head.summary_no else []
        return Manifest(generation=head.generation, dropped=tuple(dropped))
