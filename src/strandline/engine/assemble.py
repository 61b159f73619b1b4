"""From drafts to a summary: segments, anchors, ledger, manifest; all but the drafts is ours (I9, I10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain

from strandline.codec import record_digest, source_digest, text_digest
from strandline.engine.environment import PART_JOINT, Environment
from strandline.engine.plan_job import Job
from strandline.engine.reading import read_log, visible, with_references
from strandline.errors import CorruptRecordError
from strandline.limits import LEDGER_CALLS_SHARE
from strandline.model.candidate import Draft, SegmentJob, Verdict
from strandline.model.event import Event, SourceEvent
from strandline.model.segment import Segment, SegmentHead
from strandline.model.summary import DroppedRef, Summary
from strandline.ports import Transaction
from strandline.rules.anchors import render_older_calls
from strandline.rules.ledger import score, select
from strandline.rules.manifest import change_manifest
from strandline.rules.planning import ledger_tokens
from strandline.rules.rendering import segment_label
from strandline.rules.validation import invented_refs, validate
from strandline.rules.verbatim import verbatim_subset

EMPTY_SOURCE = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What one segment is made from: the events in full, or older segments' texts for the first of them."""

    job: SegmentJob
    events: tuple[SourceEvent, ...]  # shown to the summarizer
    prior: tuple[str, ...]
    event_count: int
    source_tokens: int
    source_digest: bytes
    ref_ids: Mapping[str, int]  # of the references of `events`
    label: str  # the line that the segment begins with
    draft_tokens: int  # what the draft may take: the job's budget without the label


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A summary that is ready to be stored, without its number, and its changes of the manifest."""

    summary: Summary
    changes: tuple[DroppedRef, ...]


def read_material(env: Environment, tx: Transaction, job: Job, part: SegmentJob) -> Material:
    """Read what a segment is made from.

    Raises:
        CorruptRecordError: an event, or an older segment, is not what its digest says (I7).
    """
    older = {s.head.segment_id: s for s in job.base.segments} if job.base else {}
    prior = [older[segment_id] for segment_id in part.from_segments]
    raw_from = prior[-1].head.through_seq + 1 if prior else part.from_seq
    covered = job.view.watermark
    events = list(
        visible(
            job.view,
            chain(
                read_log(tx, raw_from, min(part.through_seq, covered), env.scope.workflow),
                (event for event in job.tail if max(raw_from, covered + 1) <= event.seq <= part.through_seq),
            ),
        )
    )
    known = {source.seq: source for source in job.sources}
    sources, ref_ids = with_references(tx, events, env.counter, known)
    if not prior:
        _check_sources(older.values(), part, events)
        digest = source_digest(EMPTY_SOURCE, (event.body_digest for event in events))
    else:
        digest = source_digest(EMPTY_SOURCE, _digests_of(tx, job, part, events, env.scope.workflow))
    label = segment_label(part.from_seq, part.through_seq)
    return Material(
        label=label,
        draft_tokens=part.budget_tokens - env.part_tokens(label),
        job=part,
        events=tuple(sources),
        prior=tuple(segment.text for segment in prior),
        event_count=len(events) + sum(segment.event_count for segment in prior),
        source_tokens=sum(s.tokens for s in sources) + sum(segment.head.source_tokens for segment in prior),
        source_digest=digest,
        ref_ids=ref_ids,
    )


def _digests_of(tx: Transaction, job: Job, part: SegmentJob, events: Sequence[Event], workflow: str) -> Iterable[bytes]:
    """Return the body digests of the whole range, though only its end is shown in full."""
    through = events[0].seq - 1 if events else part.through_seq
    for event in visible(job.view, read_log(tx, part.from_seq, through, workflow)):
        yield event.body_digest
    for event in events:
        yield event.body_digest


def _check_sources(older: Iterable[Segment], part: SegmentJob, events: Sequence[Event]) -> None:
    """Compare the events that are read again with the digests of the segments that were made from them (I7)."""
    for segment in older:
        head = segment.head
        if part.from_seq <= head.from_seq and head.through_seq <= part.through_seq:
            covered = [e.body_digest for e in events if head.from_seq <= e.seq <= head.through_seq]
            if source_digest(EMPTY_SOURCE, covered) != segment.source_digest:
                raise CorruptRecordError(
                    "the events are not those that it was made from", place=f"segment {head.segment_id!r}"
                )


def judge(env: Environment, tx: Transaction, job: Job, material: Material, draft: Draft) -> Verdict:
    """Validate one draft against what it was made from (I5, I10)."""
    found = list(env.references.of_text(draft.text)) if draft.text.strip() else []
    known = _covered(tx, tx.refs.find(found), job.plan.watermark)
    source_texts = [*(event.text for event in material.events), *material.prior]
    return validate(
        draft,
        budget_tokens=material.draft_tokens,
        tokens=env.counter.count(draft.text),
        events=material.events,
        prior=material.prior,
        unknown_refs=invented_refs(draft.text, known, source_texts, env.references),
        facts=job.facts.anchors,
    )


def _covered(tx: Transaction, ref_ids: Mapping[str, int], watermark: int) -> dict[str, int]:
    """Return those of the references that an event at or before the watermark holds."""
    return {text: ref_id for text, ref_id in ref_ids.items() if tx.refs.sightings(ref_id, watermark, 1)}


def assemble(
    env: Environment, tx: Transaction, job: Job, attempt_id: str, materials: Sequence[Material], drafts: Sequence[Draft]
) -> Assembled:
    """Put a summary together."""
    return _Assembly(env, tx, job, attempt_id, materials).build(drafts)


class _Assembly:
    def __init__(
        self, env: Environment, tx: Transaction, job: Job, attempt_id: str, materials: Sequence[Material]
    ) -> None:
        self._env = env
        self._tx = tx
        self._job = job
        self._attempt_id = attempt_id
        self._materials = materials
        base = job.base
        base_watermark = job.view.watermark
        shown = [event for material in materials for event in material.events]
        self._new = [event for event in shown if event.seq > base_watermark]
        self._reread = [event for event in shown if event.seq <= base_watermark]
        self._ids = {text: ref_id for material in materials for text, ref_id in material.ref_ids.items()}
        self._added: dict[int, int] = {}
        for event in self._new:
            for ref in (*event.declared, *event.extracted):
                self._added[self._ids[ref]] = event.seq
        self._base_standing = standing_refs(base) if base else frozenset()
        self._texts = {ref_id: text for text, ref_id in self._ids.items()}
        self._texts |= tx.refs.texts((self._base_standing | job.facts.ref_ids) - self._texts.keys())

    def build(self, drafts: Sequence[Draft]) -> Assembled:
        env, job, plan = self._env, self._job, self._job.plan
        base = job.base
        segments = self._segments(drafts)
        segment_tokens = sum(segment.head.tokens for segment in segments)
        standing = {ref_id for segment in segments for ref_id in segment.ref_ids}
        anchor_refs = self._standing_in(job.facts.text)
        budget = ledger_tokens(plan.budget, segments=segment_tokens, anchors=job.facts.tokens, tail=job.tail_tokens)
        entries = score(base.ledger if base else (), self._new, self._ids)
        known = {entry.ref_id for entry in entries}
        entries += [e for e in score((), self._reread, self._ids) if e.ref_id not in known]
        calls_text = render_older_calls(job.facts.older_calls, int(budget * LEDGER_CALLS_SHARE), env.counter.count)
        ledger, refs_text = select(
            entries,
            standing=standing | anchor_refs,
            budget_tokens=budget - env.part_tokens(calls_text) - env.counter.count(PART_JOINT),
            count=env.counter.count,
        )
        ledger_text = "\n".join(text for text in (calls_text, refs_text) if text)
        own_refs = anchor_refs | self._standing_in(ledger_text) | {entry.ref_id for entry in ledger}
        standing |= own_refs
        change = change_manifest(
            base_standing=self._base_standing,
            base_seen=base.refs_seen if base else 0,
            base_dropped=base.dropped_count if base else 0,
            added=self._added,
            seen_before=self._seen_before(standing),
            standing=standing,
            last_seq=self._last_seq(standing),
        )
        salt = env.entropy.salt()
        summary = Summary(
            summary_no=0,  # given when it is stored
            summary_id=self._attempt_id,
            view=job.view.name,
            base_no=plan.base_summary_no,
            generation=plan.base_generation + 1,
            compactions=plan.compactions,
            watermark=plan.watermark,
            event_count=sum(segment.event_count for segment in segments),
            source_digest=source_digest(EMPTY_SOURCE, (segment.source_digest for segment in segments)),
            depth=max((segment.head.depth for segment in segments), default=0),
            tokens=segment_tokens + job.facts.tokens + env.part_tokens(ledger_text),
            token_counter=env.counter.name,
            segments=tuple(segments),
            anchors=job.facts.anchors,
            ledger=tuple(ledger),
            anchors_text=job.facts.text,
            ledger_text=ledger_text,
            ref_ids=tuple(sorted(own_refs)),
            salt=salt,
            text_digest=text_digest(salt, job.facts.text, ledger_text),
            refs_seen=change.refs_seen,
            dropped_count=change.dropped_count,
            manifest_digest=record_digest(change.changes),
            revision=plan.revision,
        )
        return Assembled(summary=summary, changes=change.changes)

    def _segments(self, drafts: Sequence[Draft]) -> list[Segment]:
        older = {s.head.segment_id: s for s in self._job.base.segments} if self._job.base else {}
        segments = [older[head.segment_id] for head in self._job.plan.kept]
        for number, (material, draft) in enumerate(zip(self._materials, drafts, strict=True)):
            salt = self._env.entropy.salt()
            part = material.job
            text = material.label + draft.text
            segments.append(
                Segment(
                    head=SegmentHead(
                        segment_id=f"{self._attempt_id}.{number}",
                        from_seq=part.from_seq,
                        through_seq=part.through_seq,
                        level=part.level,
                        depth=part.depth,
                        tokens=self._env.part_tokens(text),
                        source_tokens=material.source_tokens,
                    ),
                    event_count=material.event_count,
                    source_digest=material.source_digest,
                    text=text,
                    salt=salt,
                    text_digest=text_digest(salt, text),
                    ref_ids=tuple(sorted(self._standing_in(text))),
                    made_by=self._attempt_id,
                )
            )
        return sorted(segments, key=lambda segment: segment.head.from_seq)

    def _standing_in(self, text: str) -> set[int]:
        """Return the covered references that stand verbatim in a text.

        Asked are those of the events that were read, those that stood in the base, and those that the extractor finds
        in the text. A reference of another event that the text holds by chance is reported as dropped: the manifest
        may name too many, never too few (I9).
        """
        if not text:
            return set()
        strangers = [ref for ref in self._env.references.of_text(text) if ref not in self._ids]
        for ref, ref_id in _covered(self._tx, self._tx.refs.find(strangers), self._job.plan.watermark).items():
            self._texts.setdefault(ref_id, ref)
        by_text = {ref: ref_id for ref_id, ref in self._texts.items()}
        return {by_text[ref] for ref in verbatim_subset(by_text, text)}

    def _seen_before(self, standing: Set[int]) -> frozenset[int]:
        """Return those references that an event covered by the base holds."""
        watermark = self._job.view.watermark
        if watermark == 0:
            return frozenset()
        asked = self._added.keys() | standing
        return frozenset(ref_id for ref_id in asked if self._tx.refs.sightings(ref_id, watermark, 1))

    def _last_seq(self, standing: Set[int]) -> dict[int, int]:
        """Return the newest covered sighting of the references that no newly covered event holds."""
        found = {}
        for ref_id in (self._base_standing | standing) - self._added.keys():
            seqs = self._tx.refs.sightings(ref_id, self._job.plan.watermark, 1)
            found[ref_id] = seqs[0][0] if seqs else 0
        return found


def standing_refs(summary: Summary) -> frozenset[int]:
    """Return the references that stand verbatim in a summary."""
    return frozenset(summary.ref_ids).union(*(segment.ref_ids for segment in summary.segments))
