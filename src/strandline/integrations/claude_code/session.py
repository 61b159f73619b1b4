"""One session of Claude Code and its log: what is new in its file is imported, its summaries are judged once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from strandline import Case, CaseKind, ForeignJudgement, ImportReport, LineageKind, Workflow
from strandline.integrations.claude_code.payload import Payload
from strandline.limits import FOREIGN_DROPPED_KEPT_MAX

ACTOR: Final = "claude-code"
CHECKPOINTS: Final = "claude-code"  # of a session before a compaction
SUMMARIES: Final = "claude-code-summary"  # and of what the summary did: judgement and manifest
_SUMMARY: Final = b'"isCompactSummary":true'
_BOUNDARY: Final = b'"compact_boundary"'
_BEFORE_BYTES: Final = 16 * 1024  # in which a boundary stands whole


@dataclass(slots=True)
class Session:
    """A session, its workflow, and what is to be said about it on stderr."""

    payload: Payload
    workflow: Workflow
    notes: list[str] = field(default_factory=list)

    def import_new(self) -> ImportReport | None:
        """Import what the session's file holds and the log does not; None: there is nothing yet.

        A damaged record costs no other one: all that is whole goes into the log, and the damage is said.

        Raises:
            StrandlineError: nothing was imported.
        """
        file = self.payload.session_file
        if file is None or not file.exists() or not file.stat().st_size:
            return None
        report = self.workflow.import_transcript(file, live=True, salvage=True)
        for left in report.left_out:
            what = "the summary of a compaction" if _is_summary(file, left.byte, left.size_bytes) else "a record"
            self.notes.append(
                f"line {left.line} (byte {left.byte}) of {file} is damaged: {left.reason}. It is {what}; every other "
                f"record is in the log of {self.workflow.name!r} ({report.revision} events), with a note in its place"
            )
        return report

    def judge_newest(self) -> None:
        """Judge the newest summary in the session's file, unless its compaction was judged: where Claude Code does not
        hand it out, its file is the only place where it stands.
        """
        foreign = self.workflow.foreign_summaries()
        if not foreign:
            return
        newest = foreign[-1]
        before = foreign[-2].through_seq if len(foreign) > 1 else -1
        entries = self.workflow.lineage()
        judged = [e.detail["turn"] for e in entries if e.kind is LineageKind.CHECKPOINT and e.name == SUMMARIES]
        # What PostCompact judged may speak for fewer events: at the boundary, in the file, open calls are closed.
        if not any(isinstance(seq, int) and (seq > before or seq == newest.through_seq) for seq in judged):
            self.judge(newest.text, through=newest.through_seq)

    def judge(self, text: str, *, through: int | None = None) -> ForeignJudgement:
        """Judge a summary, and keep what is said of it, with the manifest of what it dropped."""
        judgement = self.workflow.judge_foreign(text, through=through, by=ACTOR)
        kept = _kept(self.payload, judgement)
        self.workflow.checkpoint(kept, judgement.through_seq, name=SUMMARIES, context_free=True)
        if judgement.case_id is not None:
            self.notes.append(f"{told(judgement.reasons)} (case {judgement.case_id})")
        return judgement

    def open_case(self) -> Case | None:
        """Return the newest open case on a summary of this session."""
        return next((c for c in reversed(self.workflow.cases()) if c.kind is CaseKind.FOREIGN_SUMMARY), None)


def told(reasons: object) -> str:
    """Say why a summary may not be trusted."""
    listed = "; ".join(map(str, reasons)) if isinstance(reasons, list | tuple) else str(reasons)
    return f"the summary that Claude Code made is not true to the log: {listed}"


def _is_summary(file: Path, byte: int, size_bytes: int) -> bool:
    """Tell whether a damaged line was the summary of a compaction: it says so, or it stands behind a boundary."""
    with file.open("rb") as lines:
        lines.seek(max(0, byte - _BEFORE_BYTES))
        before, line = lines.read(min(byte, _BEFORE_BYTES)), lines.read(size_bytes)
    return _SUMMARY in line.replace(b" ", b"") or _BOUNDARY in before.rstrip(b"\n").rpartition(b"\n")[2]


def _kept(payload: Payload, judgement: ForeignJudgement) -> dict[str, object]:
    return {
        "session": payload.session_id,
        "trigger": payload.trigger,
        "through_seq": judgement.through_seq,
        "facts": [{"fact": claim.fact, "status": claim.status.value} for claim in judgement.facts],
        "violations": [{"rule": one.rule, "detail": one.detail} for one in judgement.violations],
        "refs_seen": judgement.refs_seen,
        "dropped_count": len(judgement.dropped),
        "dropped": [[one.ref, one.last_seq] for one in judgement.dropped[:FOREIGN_DROPPED_KEPT_MAX]],
        "case": judgement.case_id,
    }
