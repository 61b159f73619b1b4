"""What must be true of a compaction that became active (I5–I11)."""

from __future__ import annotations

from strandline.model.candidate import AttemptState, CandidateState
from strandline.model.event import Event, EventKind, Role
from strandline.model.lineage import LineageEntry
from strandline.model.summary import Summary
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.testing.simulator.history import BrokenInvariantError
from strandline.testing.simulator.known import Known, sighted
from strandline.testing.simulator.tearing import TORN

LIE = "bucket-ffff0"  # a reference that no event holds: a draft with it must never become active (I10)
CUT = "Work went on and then the"  # how a draft begins that is cut off: it must never become active (I5)
_ENDED_BY = {
    EventKind.CONSTRAINT: EventKind.LIFT_CONSTRAINT,
    EventKind.APPROVAL: EventKind.REVOKE,
    EventKind.ISSUE: EventKind.RESOLVE,
}


def check_activation(tx: Transaction, entry: LineageEntry, known: Known, new: Known) -> None:
    """Check the summary that an entry says became active.

    Raises:
        BrokenInvariantError: it should not have.
    """
    view, before = new.views[entry.view or ""], known.views.get(entry.view or "")
    summary = tx.summaries.get(view.summary_no)
    if summary is None or summary.summary_id != entry.detail.get("summary_id"):
        raise BrokenInvariantError("I5", f"lineage {entry.lineage_seq} activates a summary that is not there")
    _check_attempt(tx, entry, summary, before)
    if before is not None and (view.name, before.summary_no) in known.blocked:
        raise BrokenInvariantError("I11", f"summary {before.summary_no} was compacted under an open blocking case")
    if before is not None and summary.base_no != before.summary_no:
        raise BrokenInvariantError("I6", f"it was built on summary {summary.base_no}, not on {before.summary_no}")
    if before is not None and view.watermark < before.watermark:
        raise BrokenInvariantError("I6", f"the watermark went from {before.watermark} back to {view.watermark}")
    covered = list(new.live(view.watermark, view))
    _check_coverage(summary, view, covered)
    _check_calls(view, new)
    text = "\n".join([*(segment.text for segment in summary.segments), summary.anchors_text, summary.ledger_text])
    if TORN in text:
        raise BrokenInvariantError("I4", "what was read torn became part of a summary")
    if LIE in text or CUT in text:
        raise BrokenInvariantError("I5", "a draft became active that lies, or was cut off")
    _check_references(tx, summary, covered, text)
    _check_facts(covered, summary)


def _check_attempt(tx: Transaction, entry: LineageEntry, summary: Summary, before: ViewHead | None) -> None:
    candidate_id = summary.summary_id.rpartition(".")[0]
    attempt = next((one for one in tx.jobs.attempts(candidate_id) if one.attempt_id == summary.summary_id), None)
    if attempt is None or attempt.state is not AttemptState.ACTIVATED:
        raise BrokenInvariantError("I6", f"attempt {summary.summary_id!r} is active, and {attempt and attempt.state}")
    if attempt.draft_digest != entry.digest or attempt.draft_digest is None:
        raise BrokenInvariantError("I5", "the lineage holds the digest of another draft")
    if attempt.verdict is None or not attempt.verdict.ok:
        raise BrokenInvariantError("I5", f"attempt {summary.summary_id!r} is active, and was not found good")
    if before is not None and attempt.fence != before.fence:
        raise BrokenInvariantError(
            "I6", f"an attempt with fence {attempt.fence} is active, the view's is {before.fence}"
        )
    candidate = tx.jobs.candidate(candidate_id)
    if candidate is None or candidate.state is not CandidateState.ACTIVE:
        raise BrokenInvariantError("I5", f"candidate {candidate_id!r} is not active")
    if before is not None and candidate.plan.base_generation != before.generation:
        raise BrokenInvariantError(
            "I6", f"it was built on generation {candidate.plan.base_generation}, not on {before.generation}"
        )


def _check_coverage(summary: Summary, view: ViewHead, covered: list[Event]) -> None:
    """The segments cover the live events through the watermark: no gap, no overlap (I7)."""
    if summary.watermark != view.watermark:
        raise BrokenInvariantError("I7", f"the summary's watermark is {summary.watermark}, the view's {view.watermark}")
    last = 0
    for segment in summary.segments:
        head = segment.head
        if head.from_seq <= last or any(last < event.seq < head.from_seq for event in covered):
            raise BrokenInvariantError("I7", f"segment {head.from_seq}..{head.through_seq} follows {last}")
        last = head.through_seq
    if any(event.seq > last for event in covered):
        raise BrokenInvariantError("I7", f"the segments end at {last}, the watermark is {view.watermark}")
    if summary.event_count != len(covered):
        raise BrokenInvariantError("I7", f"it speaks for {summary.event_count} events, and covers {len(covered)}")


def _check_calls(view: ViewHead, new: Known) -> None:
    """No covered call is open as of the watermark, and none is parted from its result (I8)."""
    live = list(new.live(new.head.revision, view))
    for call in live:
        if call.kind is not EventKind.TOOL_CALL or call.seq > view.watermark:
            continue
        closers = [
            event.seq
            for event in live
            if event.call_seq == call.seq
            or (event.seq > call.seq and event.kind is EventKind.MESSAGE and event.envelope.role is Role.USER)
        ]
        if not closers or min(closers) > view.watermark:
            raise BrokenInvariantError("I8", f"watermark {view.watermark} covers call {call.seq}, closed at {closers}")


def _check_references(tx: Transaction, summary: Summary, covered: list[Event], text: str) -> None:
    """Every reference of covered events stands in the summary or in the manifest (I9)."""
    seen = frozenset().union(*(sighted(event.sightings) for event in covered))
    dropped = {entry.ref_id for entry in tx.summaries.manifest(summary.summary_no)}
    missing = seen - dropped
    texts = tx.refs.texts(missing)
    lost = [texts.get(ref_id) for ref_id in missing if texts.get(ref_id) is not None and texts[ref_id] not in text]
    if lost:
        raise BrokenInvariantError("I9", f"{sorted(map(str, lost))} stand neither in the summary nor in its manifest")


def _check_facts(covered: list[Event], summary: Summary) -> None:
    """What binds as of the watermark stands verbatim among the anchors (I10)."""
    for place, event in enumerate(covered):
        end = _ENDED_BY.get(event.kind)
        if end is None or event.body is None:
            continue
        later = covered[place + 1 :]
        if any(e.kind in (end, event.kind) and e.envelope.subject == event.envelope.subject for e in later):
            continue
        if f"[event {event.seq}]" not in summary.anchors_text:
            raise BrokenInvariantError("I10", f"{event.kind.value} {event.seq} does not stand in the summary")
