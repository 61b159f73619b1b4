"""Verify: prove a store from its bytes (C5): gaps, digests, register, references, coverage, lineage, manifests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from strandline.codec import record_digest, source_digest
from strandline.engine.assemble import standing_refs
from strandline.engine.cases import answer_key, check_cases_whole
from strandline.engine.checkpoint import check_checkpoint
from strandline.engine.environment import Environment, room_of
from strandline.engine.erase_apply import erased_spans
from strandline.engine.fork import inherited_branches
from strandline.engine.lineage import read_entries
from strandline.engine.material import EMPTY_SOURCE
from strandline.engine.readers import check_readers_whole
from strandline.engine.reading import check_summary, read_summary
from strandline.engine.verify_due import check_due
from strandline.engine.verify_effects import check_effects
from strandline.engine.verify_log import LogFold, Notes, Progress, check_references, check_register, fold_log
from strandline.engine.verify_permits import check_permits
from strandline.engine.verify_search import check_search
from strandline.engine.verify_states import check_states
from strandline.engine.watching import watched
from strandline.errors import CorruptRecordError, StrandlineError
from strandline.limits import VERIFY_PROBLEMS_MAX
from strandline.model.candidate import AttemptState, CandidateState
from strandline.model.case import CaseState
from strandline.model.ids import EVERYONE, TENANT_RULES, Scope
from strandline.model.lineage import MOVES, AbandonedRange, LineageEntry, LineageKind
from strandline.model.outcome import Problem, VerifyReport
from strandline.model.summary import Summary
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.ports.occurrences import IncidentTold
from strandline.rules.merging import depth_bound
from strandline.rules.verbatim import verbatim_subset


@watched("verify")
def verify(env: Environment, scopes: list[Scope], progress: Progress | None = None) -> VerifyReport:
    """Check workflows completely, and the storage engine's own structures.

    Returns what was found, at most VERIFY_PROBLEMS_MAX problems; nothing is repaired. `progress` is told, for each
    workflow, how many of its events were walked.
    """
    problems = [Problem(workflow="", place="store", reason=reason) for reason in env.store.problems()]
    events = states = 0
    for scope in scopes:
        here = replace(env, scope=scope)
        check = _WorkflowCheck(here)
        try:
            with here.read() as tx:
                check.run(tx, progress)
        except StrandlineError as error:
            check.notes.note(error)
        problems += check.notes.problems
        events += check.events
        states += check.states
    once = tuple(dict.fromkeys(problems))  # a segment that several summaries share is damaged once
    for room, found in Counter(room_of(problem.place) for problem in once).items():
        env.emit("incident", IncidentTold(operation="verify", place=room, problems=found))
    workflows = sum(scope.workflow != TENANT_RULES for scope in scopes)
    return VerifyReport(workflows=workflows, events=events, states=states, problems=once[:VERIFY_PROBLEMS_MAX])


def told_narrowly(report: VerifyReport) -> VerifyReport:
    """Return a report as a narrow view may know it: whether all is whole, and not what is wrong with what (I21)."""
    said = {Problem(workflow=found.workflow, place="", reason=_TOLD): None for found in report.problems}
    return replace(report, states=0, problems=tuple(said))


_TOLD: Final = "it is damaged; `verify` through the view `main` says where"


class _WorkflowCheck:
    def __init__(self, env: Environment) -> None:
        self._env = env
        self.notes = self._notes = Notes(env.scope)
        self._say = self.notes.say
        self._fold = LogFold(whole=False)
        self.states = 0
        self._activated: list[str] = []  # by the lineage: the ids of the summaries that became active, in order
        self._checkpointed: dict[int, bytes | None] = {}  # by the lineage: lineage_seq -> digest

    @property
    def events(self) -> int:
        return self._fold.events

    def run(self, tx: Transaction, progress: Progress | None) -> None:
        """Check everything; what one check finds does not hide what the next would."""
        self._fold = fold_log(tx, self._notes, progress)
        checks: tuple[Callable[[Transaction], None], ...] = (
            lambda tx: check_references(tx, self._fold, self._notes),
            lambda tx: check_register(tx, self._fold, self._notes),
            self._lineage,
            self._erasures,
            self._summaries,
            self._views,
            self._jobs,
            self._checkpoints,
            self._foreign,
            self._cases,
            lambda tx: check_permits(tx, self._notes),
            lambda tx: check_effects(self._env, tx, self._notes),
            lambda tx: check_due(tx, self._notes),
            check_readers_whole,
            self._states,
            self._search,
        )
        for check in checks:
            try:
                check(tx)
            except StrandlineError as error:
                self._notes.note(error)
            except (TypeError, ValueError) as error:
                if not self._env.store.problems():
                    raise
                self._say("", f"a row that can't be read: {error}")  # a page of another table stands in its place

    def _lineage(self, tx: Transaction) -> None:
        """The lineage is gap-free and chained; each generation is one move (I13)."""
        moves: dict[str, int] = {}
        generations: dict[str, int] = {}
        summaries: dict[tuple[str, object], object] = {}  # of each generation of a view
        rewinds: dict[int, AbandonedRange] = {}
        for entry in read_entries(tx, self._env.scope.workflow):
            if entry.kind is LineageKind.CHECKPOINT:
                self._checkpointed[entry.lineage_seq] = entry.digest
            if entry.kind in MOVES and entry.view is not None and entry.generation is not None:
                begins = entry.kind is LineageKind.DEFINE and not entry.generation  # a view that was not there
                expected = generations.get(entry.view, -1 if begins else 0) + 1
                if entry.generation != expected:
                    self._say(f"lineage {entry.lineage_seq}", f"generation {entry.generation} follows {expected - 1}")
                generations[entry.view] = entry.generation
                if entry.kind is LineageKind.COMPACTION:
                    self._activated.append(str(entry.detail.get("summary_id")))
                moves[entry.view] = entry.lineage_seq
                summaries[entry.view, entry.generation] = entry.detail.get("summary_no")
                if entry.kind is LineageKind.REVERT and summaries[entry.view, entry.generation] != summaries.get(
                    (entry.view, entry.detail.get("to")), 0
                ):
                    self._say(f"lineage {entry.lineage_seq}", "it did not go back to the summary that it names")
            if entry.kind is LineageKind.REWIND and entry.detail.get("events"):
                behind = _left_behind(entry)
                rewinds[behind.branch] = behind
        self._ranges(tx, rewinds)
        views = tx.views.all()
        for name in sorted(moves.keys() - {view.name for view in views}):
            self._say(f"view {name!r}", f"its row is missing; the lineage moved it to generation {generations[name]}")
        for view in views:
            if (view.generation, view.moved_lineage_seq) != (generations.get(view.name, 0), moves.get(view.name, 0)):
                self._say(f"view {view.name!r}", "the pointer is not where the lineage says")
            elif view.generation and summaries[view.name, view.generation] != view.summary_no:
                self._say(f"view {view.name!r}", "its summary is not the one that the lineage names")

    def _states(self, tx: Transaction) -> None:
        self.states = check_states(self._env, tx, self._notes)

    def _erasures(self, tx: Transaction) -> None:
        """Every event without a body is one that the lineage says was erased (I1)."""
        unknown = set(self._fold.erased)
        for entry in tx.lineage.of_kinds((LineageKind.ERASURE,)) if unknown else ():
            unknown.difference_update(*(range(first, last + 1) for first, last in erased_spans(entry)))
        if unknown:
            self._say(f"event {min(unknown)}", "its body is gone, and the lineage knows of no erasure of it (I1)")

    def _ranges(self, tx: Transaction, rewinds: dict[int, AbandonedRange]) -> None:
        """Every range of abandoned events is that of a rewind in the lineage; a fork has its parent's, too (C22)."""
        inherited = inherited_branches(tx)
        stored = {left.branch: left for left in self._fold.left.ranges if left.branch > inherited}
        for branch in sorted(stored.keys() | rewinds.keys()):
            if stored.get(branch) != rewinds.get(branch):
                self._say(f"abandoned_range {branch}", "it is not what the lineage says of the rewind (C22)")

    def _summaries(self, tx: Transaction) -> None:
        """Every summary that was stored is what was written, and so are its changes of the manifest (I5, I9)."""
        for number in range(1, tx.log.head().summary_no + 1):
            place = f"summary {number}"
            try:
                summary = tx.summaries.get(number)
                if summary is None:
                    self._say(place, "it is missing")
                    continue
                check_summary(summary, place)
            except CorruptRecordError as error:
                self._notes.note(error)
                continue
            if record_digest(tuple(tx.summaries.changes(number))) != summary.manifest_digest:
                self._say(f"manifest of {place}", "its changes do not match their digest")

    def _views(self, tx: Transaction) -> None:
        """Each summary on each view's chain covers exactly its events, and accounts for every reference (I7, I9)."""
        for view in tx.views.all():
            summary = read_summary(tx, view)
            if summary is not None and self._fold.whole:
                self._coverage(view, summary)
                self._accounting(tx, view, summary)

    def _coverage(self, view: ViewHead, summary: Summary) -> None:
        place = f"summary {summary.summary_no}"
        for segment in summary.segments:
            head = segment.head
            covered = self._fold.body_digests(view, head.from_seq, head.through_seq)
            if source_digest(EMPTY_SOURCE, covered) != segment.source_digest:
                self._say(f"segment {head.segment_id!r}", "it was not made from the events that it covers (I7)")
        whole = source_digest(EMPTY_SOURCE, (segment.source_digest for segment in summary.segments))
        if whole != summary.source_digest:
            self._say(place, "its source digest is not that of its segments (I7)")
        if summary.depth > depth_bound(summary.compactions):
            self._say(place, f"depth {summary.depth} after {summary.compactions} compactions (I12)")

    def _accounting(self, tx: Transaction, view: ViewHead, summary: Summary) -> None:
        """Count again: every covered reference stands verbatim in the summary or is in its manifest (I9)."""
        place = f"manifest of summary {summary.summary_no}"
        self._count_again(tx, view, summary, place)
        self._verbatim(tx, summary)

    def _sighted(self, tx: Transaction, view: ViewHead) -> Sequence[int]:
        """Return, by number of a reference, the first live event that holds it and that the view may read; 0: none."""
        if not view.narrow:
            return self._fold.sighted
        first = [0] * len(self._fold.sighted)
        for seq, ref_id, _ in tx.refs.all_sightings():  # the index was compared with the log
            if seq not in self._fold.left and view.reads(self._fold.audiences.get(seq, EVERYONE)):
                first[ref_id] = min(first[ref_id] or seq, seq)
        return first

    def _count_again(self, tx: Transaction, view: ViewHead, summary: Summary, place: str) -> None:
        standing = standing_refs(summary)
        dropped = {entry.ref_id for entry in tx.summaries.manifest(summary.summary_no)}
        covered = lost = first_lost = 0
        invented = len(standing | dropped)
        for ref_id, first in enumerate(self._sighted(tx, view)):
            if 0 < first <= summary.watermark:
                covered += 1
                if ref_id in standing or ref_id in dropped:
                    invented -= 1
                else:
                    lost += 1
                    first_lost = first_lost or ref_id
        if lost:
            self._say(place, f"{lost} references are unaccounted for, first {first_lost} (I9)")
        if standing & dropped:
            self._say(place, f"reference {min(standing & dropped)} is listed as dropped, and stands in the summary")
        if invented:
            self._say(place, f"{invented} of its references are in no covered event")
        if (covered, len(dropped)) != (summary.refs_seen, summary.dropped_count):
            self._say(place, "its counts are not those of a recount")

    def _verbatim(self, tx: Transaction, summary: Summary) -> None:
        parts = [(segment.ref_ids, segment.text) for segment in summary.segments]
        parts.append((summary.ref_ids, f"{summary.anchors_text}\n{summary.ledger_text}"))
        for ref_ids, text in parts:
            texts = tx.refs.texts(ref_ids)
            absent = set(texts.values()) - verbatim_subset(texts.values(), text)
            if absent:
                place = f"summary {summary.summary_no}"
                self._say(place, f"{len(absent)} references do not stand in it as it says, first {min(absent)!r} (I9)")

    def _jobs(self, tx: Transaction) -> None:
        """Every candidate and attempt is what was written; those of activated summaries are there (I5)."""
        active = {view.summary_no for view in tx.views.all() if view.summary_no}
        found: set[str] = set()
        counted = 0
        for candidate in tx.jobs.all_candidates():
            attempts = tx.jobs.attempts(candidate.candidate_id)
            counted += len(attempts)
            if not attempts:
                self._say(f"candidate {candidate.candidate_id!r}", "its attempts are missing")
            found |= {attempt.attempt_id for attempt in attempts if attempt.state is AttemptState.ACTIVATED}
            if candidate.state is CandidateState.ACTIVE and not active & {a.summary_no for a in attempts}:
                place = f"candidate {candidate.candidate_id!r}"
                self._say(place, "it is active, and no view points to its summary (I5)")
        if counted != tx.log.head().attempts:
            self._say("attempt", f"{counted} are stored, {tx.log.head().attempts} were written")
        for summary_id in self._activated:
            if summary_id not in found or tx.summaries.by_id(summary_id) is None:
                self._say(f"attempt {summary_id!r}", "the lineage says that it was activated, and it is not there (I5)")

    def _checkpoints(self, tx: Transaction) -> None:
        """Every checkpoint is what was written, and each that the lineage names is there (I14)."""
        found = {}
        for checkpoint in tx.checkpoints.all():
            found[checkpoint.lineage_seq] = checkpoint.digest
            try:
                check_checkpoint(checkpoint)
            except CorruptRecordError as error:
                self._notes.note(error)
        for lineage_seq in sorted(found.keys() | self._checkpointed.keys()):
            if found.get(lineage_seq) != self._checkpointed.get(lineage_seq):
                self._say(f"checkpoint {lineage_seq}", "it is not the one that the lineage names")

    def _cases(self, tx: Transaction) -> None:
        """Every case is what was written, and each answer stands in the lineage, once (I11, I17)."""
        check_cases_whole(tx)
        for case in tx.cases.all():
            place = f"case_file {case.case_id!r}"
            entry = tx.lineage.by_op_key(answer_key(case.case_id))
            if (case.state is CaseState.ANSWERED) != (entry is not None):
                self._say(place, f"it is {case.state}, and the lineage does {'' if entry else 'not '}hold its answer")
            elif entry is not None and (case.answered_seq, case.answer, case.by, case.why) != (
                entry.lineage_seq,
                entry.detail.get("answer"),
                entry.by,
                entry.why,
            ):
                self._say(place, "its answer is not the one in the lineage")

    def _search(self, tx: Transaction) -> None:
        if self._fold.whole:
            check_search(tx, self._notes)

    def _foreign(self, tx: Transaction) -> None:
        """Every summary of another tool is what was kept."""
        counted, kept = len(tx.summaries.foreign()), tx.log.head().foreign_summaries
        if counted != kept:
            self._say("foreign_summary", f"{counted} are stored, {kept} were kept")


def _left_behind(entry: LineageEntry) -> AbandonedRange:
    """Return the range that a rewind abandoned, by its entry."""
    branch, from_seq, through_seq = (int(str(entry.detail[name])) for name in ("branch", "from_seq", "through_seq"))
    return AbandonedRange(branch=branch, from_seq=from_seq, through_seq=through_seq)
