"""Valid values of the model, for tests.

What `make_…` returns is well-formed, and the same for the same arguments; change what a test is about with
`dataclasses.replace`, or `_replace` for an event. Digests are fillers of the right size: stores keep digests, the
engine checks them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from strandline.codec import encode_record
from strandline.model.action import ActionNeed, FactVersion, NeedKind, Permit, PermitState
from strandline.model.candidate import (
    Attempt,
    AttemptState,
    Candidate,
    CandidateState,
    CompactionPlan,
    CompactionRecipe,
    SegmentJob,
)
from strandline.model.case import Case, CaseKind, CaseState
from strandline.model.checkpoint import Checkpoint, CheckpointView
from strandline.model.due import DueCompaction
from strandline.model.effect import Effect, EffectState
from strandline.model.event import Basis, BodyFormat, Envelope, EventKind, Role, StoredEvent
from strandline.model.ids import DEFAULT_CHECKPOINT_NAME, DEFAULT_VIEW, EVERYONE
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.model.outcome import ForeignSummary
from strandline.model.register import Fact, FactKey, FactKind, FactState
from strandline.model.segment import Segment, SegmentHead
from strandline.model.summary import DroppedRef, DropReason, Summary
from strandline.model.view import ViewHead
from strandline.testing.fakes import SALT_BYTES, START_US

_COUNTER: Final = "bytes/3"


def make_digest(*parts: object) -> bytes:
    """Return 32 bytes that stand for a digest of `parts`."""
    return hashlib.sha256(repr(parts).encode()).digest()


def make_salt(*parts: object) -> bytes:
    """Return 16 bytes that stand for a salt."""
    return make_digest("salt", *parts)[:SALT_BYTES]


def make_event(
    seq: int, *, body: bytes = b"a message", key: str | None = None, record: bytes | None = None
) -> StoredEvent:
    """Return a message by the user, or what another record says."""
    message = encode_record(
        kind=EventKind.MESSAGE,
        at_us=START_US + seq,
        format=BodyFormat.TEXT,
        sightings=(),
        actor="user",
        audience=EVERYONE,
        envelope=Envelope(role=Role.USER),
    )
    return StoredEvent(
        seq=seq,
        key=key,
        record=message if record is None else record,
        body=body,
        salt=make_salt("event", seq),
        body_digest=None,
        chain=make_digest("chain", seq, body),
    )


def make_fact(
    subject: str,
    from_seq: int,
    *,
    kind: FactKind = FactKind.CONSTRAINT,
    holder: str = "",
    ordinal: int = 0,
    through_seq: int | None = None,
) -> Fact:
    """Return a fact of the register that the event `from_seq` states."""
    return Fact(
        key=FactKey(kind=kind, subject=subject, holder=holder),
        state=FactState.STANDING,
        source_seq=from_seq,
        from_seq=from_seq,
        ordinal=ordinal,
        through_seq=through_seq,
    )


def make_view(name: str = DEFAULT_VIEW, *, view_id: int = 1, fence: int = 0) -> ViewHead:
    """Return a view at generation 0."""
    return ViewHead(view_id=view_id, name=name, fence=fence)


def make_candidate(
    candidate_id: str, *, view: str = DEFAULT_VIEW, base_generation: int = 0, base_no: int = 0, watermark: int = 1
) -> Candidate:
    """Return a pending candidate for a summary of the events 1..watermark in one segment."""
    job = SegmentJob(from_seq=1, through_seq=watermark, level=0, depth=1, budget_tokens=200)
    return Candidate(
        candidate_id=candidate_id,
        view=view,
        audience_version=1,
        plan=CompactionPlan(
            base_generation=base_generation,
            base_summary_no=base_no,
            revision=watermark,
            watermark=watermark,
            budget=1_000,
            compactions=1,
            kept=(),
            jobs=(job,),
        ),
        recipe=CompactionRecipe(
            algorithm="segments/1", model="scripted/1", prompt="1", schema=1, token_counter=_COUNTER, strict=False
        ),
        state=CandidateState.PENDING,
        created_us=START_US,
    )


def make_attempt(
    attempt_id: str, candidate_id: str, *, number: int = 1, fence: int = 1, state: AttemptState = AttemptState.RUNNING
) -> Attempt:
    """Return an attempt without a draft."""
    return Attempt(
        attempt_id=attempt_id,
        candidate_id=candidate_id,
        number=number,
        fence=fence,
        state=state,
        started_us=START_US,
    )


def make_segment(segment_id: str, from_seq: int, through_seq: int, *, text: str = "what happened") -> Segment:
    """Return a segment over from_seq..through_seq, made from the raw events."""
    salt = make_salt("segment", segment_id)
    return Segment(
        head=SegmentHead(
            segment_id=segment_id,
            from_seq=from_seq,
            through_seq=through_seq,
            level=0,
            depth=1,
            tokens=len(text),
            source_tokens=10 * len(text),
        ),
        event_count=through_seq - from_seq + 1,
        source_digest=make_digest("source", from_seq, through_seq),
        text=text,
        salt=salt,
        text_digest=make_digest("text", salt, text),
        ref_ids=(),
        made_by=f"attempt of {segment_id}",
    )


def make_summary(
    summary_no: int,
    segments: Sequence[Segment],
    *,
    summary_id: str | None = None,
    view: str = DEFAULT_VIEW,
    base_no: int = 0,
    generation: int | None = None,
) -> Summary:
    """Return a summary of these segments; without a generation it becomes the generation of its own number."""
    watermark = segments[-1].head.through_seq if segments else 0
    return Summary(
        summary_no=summary_no,
        summary_id=summary_id or f"summary-{summary_no}",
        view=view,
        base_no=base_no,
        generation=summary_no if generation is None else generation,
        compactions=1,
        watermark=watermark,
        event_count=watermark,
        source_digest=make_digest("source", 1, watermark),
        depth=1,
        tokens=sum(segment.head.tokens for segment in segments),
        token_counter=_COUNTER,
        segments=tuple(segments),
        anchors=(),
        ledger=(),
        anchors_text="",
        ledger_text="",
        ref_ids=(),
        salt=make_salt("summary", summary_no),
        text_digest=make_digest("summary", summary_no),
        refs_seen=0,
        dropped_count=0,
        manifest_digest=make_digest("manifest", summary_no),
        revision=watermark,
    )


def make_dropped(ref_id: int, last_seq: int, *, dropped: bool = True) -> DroppedRef:
    """Return a change of the manifest: dropped, or standing verbatim again."""
    return DroppedRef(ref_id=ref_id, dropped=dropped, last_seq=last_seq, reason=DropReason.NOT_IN_SUMMARY)


def make_foreign(key: str, through_seq: int, *, text: str = "what another tool wrote") -> ForeignSummary:
    """Return a summary that another tool wrote."""
    return ForeignSummary(key=key, through_seq=through_seq, text=text, detail={"tool": "another"})


def make_lineage(
    lineage_seq: int,
    kind: LineageKind = LineageKind.FENCE,
    *,
    op_key: str | None = None,
    name: str | None = None,
    restored_seq: int | None = None,
) -> LineageEntry:
    """Return an entry of the lineage; its operation is its own unless `op_key` names it."""
    return LineageEntry(
        lineage_seq=lineage_seq,
        kind=kind,
        op_key=op_key or f"operation {lineage_seq}",
        revision=1,
        at_us=START_US + lineage_seq,
        name=name,
        restored_seq=restored_seq,
        chain=make_digest("lineage", lineage_seq),
    )


def make_checkpoint(
    lineage_seq: int, *, name: str = DEFAULT_CHECKPOINT_NAME, turn: int = 1, state: bytes = b'{"step":1}'
) -> Checkpoint:
    """Return a checkpoint of the entry `lineage_seq`, made from the main view at generation 0."""
    return Checkpoint(
        name=name,
        lineage_seq=lineage_seq,
        turn=turn,
        revision=1,
        branch=0,
        context_free=False,
        in_flight=False,
        views=(CheckpointView(view=DEFAULT_VIEW, generation=0, basis_revision=1),),
        state=state,
        salt=make_salt("checkpoint", lineage_seq),
        digest=make_digest("checkpoint", lineage_seq, state),
    )


def make_effect(key: str, *, fingerprint: str = "fingerprint", attempt: int = 1, intended_us: int = START_US) -> Effect:
    """Return an effect whose intent stands in event 1."""
    return Effect(
        key=key,
        tool="create_bucket",
        subject=None,
        fingerprint=fingerprint,
        state=EffectState.INTENDED,
        attempt=attempt,
        workflow="release-42",
        call_seq=1,
        intended_us=intended_us,
        basis=Basis(view=DEFAULT_VIEW, generation=0, revision=0),
        actor="agent",
    )


def make_case(
    case_id: str,
    *,
    kind: CaseKind = CaseKind.MISSING_DEPENDENCY,
    view: str = DEFAULT_VIEW,
    generation: int = 0,
    summary_no: int = 0,
) -> Case:
    """Return an open case about a summary."""
    return Case(
        case_id=case_id,
        identity=f"identity of {case_id}",
        kind=kind,
        state=CaseState.OPEN,
        view=view,
        generation=generation,
        summary_no=summary_no,
        reason="dependency_not_verbatim",
        revision=1,
        opened_us=START_US,
    )


def make_permit(permit_id: str, state: PermitState = PermitState.GRANTED) -> Permit:
    """Return a decision that rests on one approval."""
    return Permit(
        permit_id=permit_id,
        action="publish",
        state=state,
        needs=(ActionNeed(kind=NeedKind.APPROVED, subject="security-review"),),
        facts=(FactVersion(need=0, subject="security-review", seq=1, workflow="release-42", holder="dana"),),
        workflow="release-42",
        revision=1,
        decided_us=START_US,
    )


def make_due(*, view: str = DEFAULT_VIEW, priority: int = 5, due_us: int | None = START_US) -> DueCompaction:
    """Return a compaction that was asked for and never run."""
    return DueCompaction(
        view=view,
        revision=1,
        priority=priority,
        budget=None,
        when_tokens=None,
        strict=False,
        asked_us=START_US,
        wanted_us=due_us,
        due_us=due_us,
    )
