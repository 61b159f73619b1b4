"""From drafts to a summary: segments, anchors, ledger, manifest; all but the drafts is ours (I9, I10)."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Container, Iterator, Sequence, Set
from dataclasses import dataclass
from heapq import merge
from itertools import groupby, islice

from strandline.codec import record_digest, source_digest, text_digest
from strandline.engine.environment import PART_JOINT, Environment
from strandline.engine.material import EMPTY_SOURCE, Material, Shown, covered_refs
from strandline.engine.plan_job import Job
from strandline.engine.reading import abandoned_of, newest_seen, newest_sighting
from strandline.limits import LEDGER_CALLS_SHARE, LEDGER_FOUND_SHARE, REFS_PAGE
from strandline.model.candidate import Draft
from strandline.model.segment import Segment, SegmentHead
from strandline.model.summary import DroppedRef, Summary
from strandline.ports import Transaction
from strandline.rules.anchors import render_older_calls, render_perhaps
from strandline.rules.branches import Abandoned
from strandline.rules.ledger import select
from strandline.rules.manifest import change_manifest
from strandline.rules.planning import ledger_tokens
from strandline.rules.verbatim import verbatim_subset


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A summary that is ready to be stored, without its number, and its changes of the manifest."""

    summary: Summary
    changes: tuple[DroppedRef, ...]


def assemble(
    env: Environment,
    tx: Transaction,
    job: Job,
    attempt_id: str,
    materials: Sequence[Material],
    shown: Shown,
    drafts: Sequence[Draft],
) -> Assembled:
    """Put a summary together."""
    return _Assembly(env, tx, job, attempt_id, materials, shown).build(drafts)


class _Assembly:
    def __init__(
        self,
        env: Environment,
        tx: Transaction,
        job: Job,
        attempt_id: str,
        materials: Sequence[Material],
        shown: Shown,
    ) -> None:
        self._env = env
        self._tx = tx
        self._job = job
        self._attempt_id = attempt_id
        self._materials = materials
        self._shown = shown
        self._base_standing = standing_refs(job.base) if job.base else frozenset()
        self._others = self._base_standing | job.facts.ref_ids  # asked for beside those that were shown
        self._held: list[dict[int, str]] | None = None  # their texts, where they are one page
        self._gone: set[int] = set()  # of those that were asked for: without a text, since it was erased
        self._left = abandoned_of(tx)

    def build(self, drafts: Sequence[Draft]) -> Assembled:
        env, job, plan = self._env, self._job, self._job.plan
        base = job.base
        texts = [material.label + draft.text for material, draft in zip(self._materials, drafts, strict=True)]
        *drafted_refs, anchor_refs = self._standing_in([*texts, job.facts.text])
        segments = self._segments(texts, drafted_refs)
        segment_tokens = sum(segment.head.tokens for segment in segments)
        standing = {ref_id for segment in segments for ref_id in segment.ref_ids}
        budget = ledger_tokens(
            plan.budget, plan.shares, segments=segment_tokens, anchors=job.facts.tokens, tail=job.tail_tokens
        )
        entries = self._shown.new.best(self._pages())
        known = {entry.ref_id for entry in entries}
        entries += [entry for entry in self._shown.again.best(self._pages()) if entry.ref_id not in known]
        calls_text = render_older_calls(job.facts.older_calls, int(budget * LEDGER_CALLS_SHARE), env.counter.count)
        said_text = render_perhaps(job.facts.found, int(budget * LEDGER_FOUND_SHARE), env.counter.count)
        before = "\n".join(text for text in (calls_text, said_text) if text)
        ledger, refs_text = select(
            entries,
            standing=standing | anchor_refs | set(self._tx.refs.find(list(self._shown.stale)).values()),
            budget_tokens=budget - env.part_tokens(before) - env.counter.count(PART_JOINT),
            count=env.counter.count,
        )
        ledger_text = "\n".join(text for text in (before, refs_text) if text)
        own_refs = anchor_refs | self._standing_in([ledger_text])[0] | {entry.ref_id for entry in ledger}
        standing |= own_refs
        change = change_manifest(
            base_standing=self._base_standing,
            base_seen=base.refs_seen if base else 0,
            base_dropped=base.dropped_count if base else 0,
            added=((ref_id, self._shown.new.last_seq(ref_id)) for ref_id in self._shown.new if self._is_added(ref_id)),
            seen_before=self._seen_before(standing),
            standing=standing,
            last_seq=self._last_seq(standing),
            erased=self._gone,
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

    def _segments(self, texts: Sequence[str], ref_ids: Sequence[Set[int]]) -> list[Segment]:
        older = {s.head.segment_id: s for s in self._job.base.segments} if self._job.base else {}
        segments = [older[head.segment_id] for head in self._job.plan.kept]
        for number, (material, text, standing) in enumerate(zip(self._materials, texts, ref_ids, strict=True)):
            salt = self._env.entropy.salt()
            part = material.job
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
                    ref_ids=tuple(sorted(standing)),
                    made_by=self._attempt_id,
                )
            )
        return sorted(segments, key=lambda segment: segment.head.from_seq)

    def _standing_in(self, texts: Sequence[str]) -> list[set[int]]:
        """Return, for each of the texts, the covered references that stand verbatim in it.

        Asked are those of the events that were read, those that stood in the base, and those that the extractor finds
        in the text. A reference of another event that the text holds by chance is reported as dropped: the manifest
        may name too many, never too few (I9).
        """
        found: list[set[int]] = [set() for _ in texts]
        for standing, text in zip(found, texts, strict=True):
            ref_ids = self._tx.refs.find(list(self._env.references.of_text(text))) if text else {}
            strangers = {ref: ref_id for ref, ref_id in ref_ids.items() if not self._is_asked(ref_id)}
            covered = covered_refs(self._env, self._tx, self._job, strangers)
            standing |= {covered[ref] for ref in verbatim_subset(covered, text)}
        for page in self._pages():
            by_text = {ref: ref_id for ref_id, ref in page.items()}
            for standing, text in zip(found, texts, strict=True):
                if text:
                    standing |= {by_text[ref] for ref in verbatim_subset(by_text, text)}
        return found

    def _pages(self) -> Iterator[dict[int, str]]:
        """Yield the texts of the references that were shown, of those that stood in the base, and of the anchors'."""
        if self._held is not None:
            yield from self._held
            return
        asked = groupby(merge(self._shown.new, self._shown.again, sorted(self._others)))
        pages = 0
        page: dict[int, str] = {}
        while ref_ids := [ref_id for ref_id, _ in islice(asked, REFS_PAGE)]:
            page = self._tx.refs.texts(ref_ids)
            self._gone.update(ref_id for ref_id in ref_ids if ref_id not in page)
            pages += 1
            yield page
        if pages <= 1:
            self._held = [page]

    def _is_asked(self, ref_id: int) -> bool:
        return ref_id in self._shown.new or ref_id in self._shown.again or ref_id in self._others

    def _is_added(self, ref_id: int) -> bool:
        """Tell whether a newly covered event holds the reference."""
        return self._shown.new.last_seq(ref_id) > self._job.view.watermark

    def _seen_before(self, standing: Set[int]) -> Container[int]:
        """Return the references that the base's events hold. To a narrow view their numbers tell nothing: other events
        gave most of them. But what its base covers stands in it, or in its manifest (I9).
        """
        if self._job.view.narrow:
            base = self._job.base
            asked = {*standing, *self._shown.new}
            return self._base_standing.union(self._tx.summaries.dropped_by(base.summary_no, asked)) if base else ()
        numbers = range(1, self._last_covered() + 1)
        watermark = self._job.view.watermark
        return _SeenLive(self._tx, numbers, watermark, self._left) if self._left.begins_by(watermark) else numbers

    def _last_covered(self) -> int:
        """Return the last number that a reference had got by the base's watermark: they are given in log order."""
        watermark = self._job.view.watermark
        if watermark == 0:
            return 0
        numbers = range(1, self._tx.log.head().ref_id + 1)
        return bisect(numbers, False, key=lambda ref_id: not self._tx.refs.sightings(ref_id, watermark, 1))

    def _last_seq(self, standing: Set[int]) -> dict[int, int]:
        """Return the newest covered sighting of the references that no newly covered event holds."""
        found = {}
        read_from = self._read_from()
        for ref_id in self._base_standing | standing:
            if not self._is_added(ref_id):
                seq = self._shown.again.last_seq(ref_id)
                if seq < read_from:
                    through, workflow = self._job.plan.watermark, self._env.scope.workflow
                    seq = newest_seen(self._tx, self._job.view, ref_id, through, self._left, workflow)
                found[ref_id] = seq
        return found

    def _read_from(self) -> int:
        """Return the seq from which on all events through the watermark were shown: their sightings are known."""
        through = self._job.plan.watermark
        last = next((m for m in self._materials if m.job.through_seq == through), None)
        whole = last is not None and last.parts and not self._job.view.narrow
        return last.parts[0].from_seq if last is not None and whole else through + 1


class _SeenLive:
    """Those of the numbered references that a live event at or before a watermark holds: others were abandoned."""

    def __init__(self, tx: Transaction, numbers: range, watermark: int, left: Abandoned) -> None:
        self._tx = tx
        self._numbers = numbers
        self._watermark = watermark
        self._left = left

    def __contains__(self, ref_id: object) -> bool:
        return (
            isinstance(ref_id, int)
            and ref_id in self._numbers
            and newest_sighting(self._tx, ref_id, self._watermark, self._left) > 0
        )


def standing_refs(summary: Summary) -> frozenset[int]:
    """Return the references that stand verbatim in a summary."""
    return frozenset(summary.ref_ids).union(*(segment.ref_ids for segment in summary.segments))
