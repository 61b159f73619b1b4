"""What a segment is made from: read from the log in pages, checked, counted, shown to the summarizer and judged.

No more of the log is held at once than what is shown at once (C10): of all else there are digests, sizes, and what the
sightings of references add up to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final

from strandline.codec import decode_sightings, source_digest
from strandline.engine.environment import Environment
from strandline.engine.plan_job import Job
from strandline.engine.reading import (
    abandoned_of,
    newest_seen,
    read_live,
    read_one,
    to_source,
    visible,
    with_references,
)
from strandline.errors import ContextOverflowError, CorruptRecordError
from strandline.limits import CITED_EVENTS_MAX
from strandline.model.candidate import Draft, FailureClass, SegmentJob, Verdict, Violation
from strandline.model.event import Event, EventKind, SourceEvent
from strandline.model.segment import Segment
from strandline.ports import Transaction
from strandline.rules.ledger import Tally
from strandline.rules.partition import Part, halved_window, partition
from strandline.rules.rendering import segment_label
from strandline.rules.updates import stale_references
from strandline.rules.validation import VIOLATIONS_MAX, invented_refs, validate

EMPTY_SOURCE: Final = b""
_APPROVAL_LABEL: Final = re.compile(rf"^\[(\d{{1,12}})\] [^\s/]{{0,200}}/{EventKind.APPROVAL}:", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the references of the events that one compaction is made from add up to."""

    new: Tally  # of the events that it adds, on top of the base's ledger
    again: Tally  # of those that the base covers, and that are read again
    stale: set[str] = field(default_factory=set)  # those that stand in replaced statements only: no ledger carries them


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What one segment is made from: events, or older segments' texts for the first of them."""

    job: SegmentJob
    parts: tuple[Part, ...]  # what is shown at once
    events: tuple[SourceEvent, ...]  # of the only part; of several each is read when it is shown
    prior: tuple[str, ...]
    event_count: int
    source_tokens: int
    source_digest: bytes
    label: str  # the line that the segment begins with
    draft_tokens: int  # what the draft may take: the job's budget without the label


def read_material(
    env: Environment, tx: Transaction, job: Job, part: SegmentJob, window_tokens: int | None, shown: Shown
) -> Material:
    """Read what a segment is made from: check it, split it to fit the window, and add its references to `shown`.

    Raises:
        CorruptRecordError: an event, or an older segment, is not what its digest says (I7).
        ContextOverflowError: it does not fit the window (C10).
    """
    older = {s.head.segment_id: s for s in job.base.segments} if job.base else {}
    prior = [older[segment_id] for segment_id in part.from_segments]
    raw_from = prior[-1].head.through_seq + 1 if prior else part.from_seq
    digests = _SourceDigests(older.values(), part)
    for event in visible(job.view, read_live(tx, part.from_seq, raw_from - 1, env.scope.workflow)):
        digests.take(event)
    held: list[Event] = []  # while it may be the only part
    known: dict[int, SourceEvent] = {}
    taken = count = 0

    def sizes() -> Iterator[tuple[int, int]]:
        nonlocal taken, count
        for event, source in _events(env, tx, job, raw_from, part.through_seq):
            digests.take(event)
            tally = shown.new if event.seq > job.view.watermark else shown.again
            tally.see(event.seq, event.kind, decode_sightings(event.sightings))
            count += 1
            taken += source.tokens
            if window_tokens is None or taken <= window_tokens:
                held.append(event)
                known[event.seq] = source
            elif held:
                held.clear()
                known.clear()
            yield event.seq, source.tokens

    prior_tokens = sum(env.counter.count(segment.text) for segment in prior)
    parts = partition(sizes(), prior_tokens=prior_tokens, window_tokens=window_tokens)
    label = segment_label(part.from_seq, part.through_seq)
    events = tuple(with_references(tx, held, env.counter, known)[0]) if len(parts) == 1 else ()
    shown.stale.update(stale_references(events))
    return Material(
        job=part,
        parts=tuple(parts),
        events=_shown(env, events),
        prior=tuple(segment.text for segment in prior),
        event_count=count + sum(segment.event_count for segment in prior),
        source_tokens=taken + sum(segment.head.source_tokens for segment in prior),
        source_digest=digests.whole(),
        label=label,
        draft_tokens=part.budget_tokens - env.part_tokens(label),
    )


def smaller_windows(
    env: Environment, tx: Transaction, job: Job, window_tokens: int | None, halvings: int
) -> list[int | None] | None:
    """Return, for each segment, the window in which its source is shown in smaller parts than in the summarizer's own.
    One that can't be split stays as it is; None: none of them can.
    """
    windows: list[int | None] = []
    split = False
    for part in job.plan.jobs:
        parts = read_material(env, tx, job, part, window_tokens, Shown(new=Tally(), again=Tally())).parts
        window = halved_window(parts, halvings)
        try:
            smaller = read_material(env, tx, job, part, window, Shown(new=Tally(), again=Tally())).parts
        except ContextOverflowError:  # one event, or the older texts beside it, is larger than that
            smaller = parts
        splits = len(smaller) > len(parts)
        split = split or splits
        windows.append(window if splits else window_tokens)
    return windows if split else None


def read_part(env: Environment, tx: Transaction, job: Job, part: Part) -> tuple[SourceEvent, ...]:
    """Read again the events of one of several parts."""
    pairs = list(_events(env, tx, job, part.from_seq, part.through_seq))
    known = {source.seq: source for _, source in pairs}
    return _shown(env, with_references(tx, [event for event, _ in pairs], env.counter, known)[0])


def _shown(env: Environment, events: Iterable[SourceEvent]) -> tuple[SourceEvent, ...]:
    """Return events as a summarizer may see them, and as its draft is judged: without secrets (C12)."""
    secrets = env.references.secrets
    return tuple(
        event._replace(text=secrets.redact(event.text), payload=secrets.redact_json(event.payload)) for event in events
    )


def _events(
    env: Environment, tx: Transaction, job: Job, from_seq: int, through_seq: int
) -> Iterator[tuple[Event, SourceEvent]]:
    """Yield the events that the view may read, as they are stored and as a reader sees them, without references."""
    logged = min(through_seq, job.view.watermark) if job.tail else through_seq
    for event in visible(job.view, read_live(tx, from_seq, logged, env.scope.workflow)):
        yield event, to_source(event, env.counter)
    if job.tail:
        for event, source in zip(job.tail, job.sources, strict=True):
            if from_seq <= event.seq <= through_seq:
                yield event, source


class _SourceDigests:
    """Folds the body digests of a range, and compares them with those of the older segments in it (I7)."""

    def __init__(self, older: Iterable[Segment], part: SegmentJob) -> None:
        inside = (s for s in older if part.from_seq <= s.head.from_seq and s.head.through_seq <= part.through_seq)
        self._older = sorted(inside, key=lambda segment: segment.head.from_seq)
        self._whole = EMPTY_SOURCE
        self._own = EMPTY_SOURCE  # of the first of the older segments

    def take(self, event: Event) -> None:
        """Take the next event."""
        while self._older and event.seq > self._older[0].head.through_seq:
            self._check_first()
        self._whole = source_digest(self._whole, (event.body_digest,))
        if self._older:
            self._own = source_digest(self._own, (event.body_digest,))

    def whole(self) -> bytes:
        """Return the digest of the range.

        Raises:
            CorruptRecordError: the events that were read are not those that an older segment was made from.
        """
        while self._older:
            self._check_first()
        return self._whole

    def _check_first(self) -> None:
        segment = self._older.pop(0)
        if self._own != segment.source_digest:
            raise CorruptRecordError(
                "the events are not those that it was made from", place=f"segment {segment.head.segment_id!r}"
            )
        self._own = EMPTY_SOURCE


def judge(
    env: Environment,
    tx: Transaction,
    job: Job,
    material: Material,
    shown: Shown,
    events: Sequence[SourceEvent],
    draft: Draft,
) -> Verdict:
    """Validate the draft of a segment, or of one part of it, against the events that were shown (I5, I10)."""
    found = list(env.references.of_text(draft.text)) if draft.text.strip() else []
    known = covered_refs(env, tx, job, tx.refs.find(found), shown)
    told = [*events, *_cited(env, tx, job, material, draft)] if len(material.parts) > 1 else events
    exposed = list(islice(_exposed(env, draft), VIOLATIONS_MAX))
    if exposed:
        return Verdict(violations=tuple(exposed))
    return validate(
        draft,
        budget_tokens=material.draft_tokens,
        tokens=env.counter.count(draft.text),
        events=told,
        prior=material.prior,
        unknown_refs=invented_refs(
            draft.text, known, [*(event.text for event in told), *material.prior], env.references
        ),
        facts=job.facts.anchors,
    )


def _exposed(env: Environment, draft: Draft) -> Iterator[Violation]:
    """Yield a violation for each secret that a draft holds, in its text or in a claim; no detail repeats one (C12)."""
    claims = ((f"claim {number} of it", claim.text) for number, claim in enumerate(draft.claims, start=1))
    for where, text in chain([("it", draft.text)], claims):
        for secret in env.references.secrets.find(text):
            detail = f"{where} holds a secret ({secret.kind}) at characters {secret.start}..{secret.end}"
            yield Violation(failure=FailureClass.SEMANTIC, rule="secret", detail=detail)


def _cited(env: Environment, tx: Transaction, job: Job, material: Material, draft: Draft) -> list[SourceEvent]:
    """Return the events of the segment that the draft of a part calls approvals: they may stand in another part."""
    seqs = dict.fromkeys(int(label[1]) for label in _APPROVAL_LABEL.finditer(draft.text))
    left = abandoned_of(tx)
    inside = (seq for seq in seqs if material.job.from_seq <= seq <= material.job.through_seq and seq not in left)
    cited = (read_one(tx, seq, env.scope.workflow) for seq in islice(inside, CITED_EVENTS_MAX))
    return list(_shown(env, [to_source(event, env.counter) for event in visible(job.view, cited)]))


def covered_refs(
    env: Environment, tx: Transaction, job: Job, ref_ids: Mapping[str, int], shown: Shown | None = None
) -> dict[str, int]:
    """Return those of the references that an event at or before the watermark holds which the view may read; what was
    shown is covered.
    """
    left = abandoned_of(tx)
    return {
        text: ref_id
        for text, ref_id in ref_ids.items()
        if (shown is not None and (ref_id in shown.new or ref_id in shown.again))
        or newest_seen(tx, job.view, ref_id, job.plan.watermark, left, env.scope.workflow)
    }
