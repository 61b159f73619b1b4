"""Scenes that tests begin from, written through the port in the order that the engine writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from strandline.model.candidate import Attempt, AttemptState, CandidateState, Draft, Verdict
from strandline.model.event import StoredEvent
from strandline.model.ids import DEFAULT_CHECKPOINT_NAME, DEFAULT_VIEW, Scope
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.model.register import FactKind
from strandline.model.summary import DroppedRef, Summary
from strandline.model.view import ViewHead
from strandline.ports import Store, Transaction
from strandline.testing.values import (
    make_attempt,
    make_candidate,
    make_checkpoint,
    make_digest,
    make_dropped,
    make_due,
    make_event,
    make_fact,
    make_foreign,
    make_lineage,
    make_segment,
    make_summary,
    make_view,
)

SCOPE: Final = Scope(tenant="acme", workflow="release-42")
FAR: Final = 2**62  # after everything


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A summary that is ready to be activated: the view with its lease taken, and the validated attempt."""

    view: ViewHead
    attempt: Attempt
    summary: Summary

    @property
    def moved(self) -> ViewHead:
        """The view as it stands after the activation."""
        return replace(
            self.view,
            generation=self.summary.generation,
            summary_no=self.summary.summary_no,
            watermark=self.summary.watermark,
            moved_lineage_seq=self.view.moved_lineage_seq + 1,
            lease_attempt=None,
            lease_until_us=0,
        )


def append(tx: Transaction, count: int = 1, mark: str = "event") -> list[StoredEvent]:
    """Append events, with the mark in their keys and bodies."""
    head = tx.log.head()
    seqs = range(head.revision + 1, head.revision + count + 1)
    events = [make_event(seq, key=f"{mark}-{seq}", body=f"{mark} number {seq}".encode()) for seq in seqs]
    tx.log.insert(events)
    live_events = head.live_events + count
    tx.log.set_head(replace(head, revision=seqs[-1], chain=events[-1].chain, live_events=live_events))
    return events


def intern(tx: Transaction, *texts: str) -> dict[str, int]:
    """Number references as the engine does: from the head's counter on."""
    head = tx.log.head()
    known = tx.refs.find(texts)
    new = [text for text in dict.fromkeys(texts) if text not in known]
    tx.refs.add(new, head.ref_id + 1, ())
    tx.log.set_head(replace(head, ref_id=head.ref_id + len(new)))
    return known | {text: number for number, text in enumerate(new, start=head.ref_id + 1)}


def record(
    tx: Transaction,
    kind: LineageKind,
    op_key: str | None = None,
    *,
    name: str | None = None,
    restored_seq: int | None = None,
    view: str | None = None,
) -> LineageEntry:
    """Add the next entry of the lineage."""
    head = tx.log.head()
    entry = make_lineage(head.lineage_seq + 1, kind, op_key=op_key, name=name, restored_seq=restored_seq)
    entry = entry if view is None else replace(entry, view=view)
    tx.lineage.add(entry)
    tx.log.set_head(replace(head, lineage_seq=entry.lineage_seq, lineage_chain=entry.chain))
    return entry


def lease(tx: Transaction, view: str = DEFAULT_VIEW) -> ViewHead:
    """Take a view's lease, which raises its fence; a view that is not there is made."""
    there = tx.views.get(view) or make_view(view, view_id=len(tx.views.all()) + 1)
    taken = replace(there, fence=there.fence + 1, lease_attempt="somebody", lease_until_us=1)
    tx.views.put(taken)
    return taken


def prepare(tx: Transaction, changes: Sequence[DroppedRef] = (), *, mark: str = "") -> Prepared:
    """Bring a summary of all events up to its activation: lease, candidate, attempt, summary, verdict."""
    head = tx.log.head()
    view = lease(tx)
    number = head.summary_no + 1
    candidate = make_candidate(
        f"{mark}candidate-{number}", base_generation=view.generation, base_no=view.summary_no, watermark=head.revision
    )
    attempt = make_attempt(f"{mark}attempt-{number}", candidate.candidate_id, fence=view.fence)
    summary = make_summary(
        number,
        [make_segment(f"{mark}segment-{number}", 1, head.revision, text=f"{mark} summary {number}")],
        summary_id=attempt.attempt_id,
        base_no=view.summary_no,
        generation=view.generation + 1,
    )
    tx.jobs.add_candidate(candidate)
    tx.jobs.add_attempt(attempt)
    tx.summaries.add(summary, changes)
    tx.log.set_head(replace(head, summary_no=number))
    validated = validate(attempt, summary_no=number)
    assert tx.jobs.settle_attempt(validated, fence=view.fence, expected=AttemptState.RUNNING)
    tx.jobs.set_candidate_state(candidate.candidate_id, CandidateState.VALIDATED)
    return Prepared(view=view, attempt=validated, summary=summary)


def validate(attempt: Attempt, *, text: str = "the draft", summary_no: int | None = None) -> Attempt:
    """Return the attempt with a draft that passed."""
    return replace(
        attempt,
        state=AttemptState.VALIDATED,
        drafts=(Draft(text=text),),
        draft_digest=make_digest(text),
        verdict=Verdict(),
        summary_no=summary_no,
    )


def activate(tx: Transaction, changes: Sequence[DroppedRef] = (), *, mark: str = "") -> Summary:
    """Compact the main view from end to end (DESIGN §2)."""
    prepared = prepare(tx, changes, mark=mark)
    attempt = prepared.attempt
    record(tx, LineageKind.COMPACTION, attempt.attempt_id)
    assert tx.views.move_pointer(
        prepared.moved,
        base_generation=prepared.view.generation,
        fence=prepared.view.fence,
        attempt_id=attempt.attempt_id,
    )
    settled = replace(attempt, state=AttemptState.ACTIVATED)
    assert tx.jobs.settle_attempt(settled, fence=attempt.fence, expected=AttemptState.VALIDATED)
    tx.jobs.set_candidate_state(attempt.candidate_id, CandidateState.ACTIVE)
    return prepared.summary


def populate(tx: Transaction, mark: str) -> None:
    """Write something through every facet. `mark` makes the content its own."""
    first, second, third = append(tx, 3, mark)
    head = tx.log.head()
    numbers = [head.ref_id + 1, head.ref_id + 2]
    seen = [(numbers[0], first.seq, True), (numbers[1], second.seq, False), (numbers[0], third.seq, False)]
    tx.refs.add([f"{mark} handle", f"{mark} path"], numbers[0], seen)
    tx.log.set_head(replace(head, ref_id=numbers[1]))
    tx.search.add(first.seq, third.seq, {f"{mark} word": 0b101, "word": 0b111})
    ended = make_fact(f"{mark} call", first.seq, kind=FactKind.CALL)
    tx.register.begin([ended, make_fact(f"{mark} rule", second.seq)])
    tx.register.end([replace(ended, through_seq=second.seq)])
    activate(tx, [make_dropped(number, third.seq) for number in numbers], mark=mark)
    taken = record(tx, LineageKind.CHECKPOINT, name=DEFAULT_CHECKPOINT_NAME)
    tx.checkpoints.add(make_checkpoint(taken.lineage_seq, state=f'{{"mark":"{mark}"}}'.encode()))
    record(tx, LineageKind.RESTORE, name=DEFAULT_CHECKPOINT_NAME, restored_seq=taken.lineage_seq)
    tx.summaries.add_foreign([make_foreign(f"{mark} foreign", third.seq)])
    tx.due.add(make_due(view=mark))


def give_up(store: Store, scope: Scope, mark: str, error: type[BaseException] = RuntimeError) -> None:
    """Write something through every facet, and leave the transaction by an exception."""
    with store.write(scope) as tx:
        populate(tx, mark)
        raise error


def dump(tx: Transaction) -> dict[str, object]:
    """Read everything there is, through every facet, by each of its ways."""
    events = list(tx.log.read(1, FAR))
    texts = dict(tx.refs.all_texts())
    facts = list(tx.register.all())
    candidates = sorted(tx.jobs.all_candidates(), key=lambda candidate: candidate.candidate_id)
    attempts = [attempt for candidate in candidates for attempt in tx.jobs.attempts(candidate.candidate_id)]
    lineage = tx.lineage.read(0, 1_000)
    summary_nos = [attempt.summary_no for attempt in attempts if attempt.summary_no is not None]
    return {
        "head": tx.log.head(),
        "events": events,
        "event count": tx.log.count(),
        "events by key": tx.log.by_keys([event.key for event in events if event.key]),
        "texts": texts,
        "numbers": tx.refs.find([text for text in texts.values() if text]),
        "sightings": sorted(tx.refs.all_sightings()),
        "sightings by ref": {number: tx.refs.sightings(number, FAR, 100) for number in texts},
        "indexed": tx.search.ranges(),
        "postings": sorted(tx.search.all()),
        "postings by word": {word: list(tx.search.postings(word, FAR)) for word, _, _ in tx.search.all()},
        "facts": facts,
        "facts standing": sorted(tx.register.as_of(FAR), key=lambda fact: (fact.from_seq, fact.ordinal)),
        "facts by key": {fact.key: tx.register.newest(fact.key.kind, fact.key.subject) for fact in facts},
        "views": tx.views.all(),
        "views by name": {view.name: tx.views.get(view.name) for view in tx.views.all()},
        "candidates": candidates,
        "candidates by id": [tx.jobs.candidate(candidate.candidate_id) for candidate in candidates],
        "attempts": attempts,
        "summaries": {number: tx.summaries.get(number) for number in summary_nos},
        "summaries by id": {attempt.attempt_id: tx.summaries.by_id(attempt.attempt_id) for attempt in attempts},
        "changes": {number: tx.summaries.changes(number) for number in summary_nos},
        "manifests": {number: tx.summaries.manifest(number) for number in summary_nos},
        "foreign": tx.summaries.foreign(),
        "lineage": lineage,
        "lineage by operation": {entry.op_key: tx.lineage.by_op_key(entry.op_key) for entry in lineage},
        "left": [
            entry.op_key for entry in lineage if tx.lineage.left_by_restore(DEFAULT_CHECKPOINT_NAME, entry.lineage_seq)
        ],
        "checkpoints": list(tx.checkpoints.all()),
        "newest checkpoint": tx.lineage.newest_checkpoint(DEFAULT_CHECKPOINT_NAME, FAR, context_free=False),
        "due": tx.due.all(),
        "lines": tx.states.lines(),
        "lines by name": [tx.states.line(line.name) for line in tx.states.lines()],
        "states": list(tx.states.all()),
        "states by id": [tx.states.get(row.line, row.state_id) for row in tx.states.all()],
        "states by position": tx.states.page(FAR, 1_000),
        "nodes": list(tx.nodes.all()),
    }
