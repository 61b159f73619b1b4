"""Verify: prove a store from its bytes (C5): gaps, digests, register, references, coverage, lineage, manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from strandline.codec import EMPTY_CHAIN, record_digest, source_digest
from strandline.engine.assemble import EMPTY_SOURCE, standing_refs
from strandline.engine.checkpoint import check_checkpoint
from strandline.engine.environment import Environment
from strandline.engine.lineage import read_entries
from strandline.engine.reading import check_event, read_summary, register_event
from strandline.errors import CorruptRecordError, StrandlineError
from strandline.limits import LOG_PAGE_EVENTS, VERIFY_PROBLEMS_MAX
from strandline.model.candidate import CandidateState
from strandline.model.event import Event
from strandline.model.ids import Scope
from strandline.model.lineage import LineageKind
from strandline.model.outcome import Problem, VerifyReport
from strandline.model.register import Fact
from strandline.model.summary import Summary
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.rules.merging import depth_bound
from strandline.rules.register import Register
from strandline.rules.verbatim import verbatim_subset

Progress = Callable[[int, int], None]


def verify(env: Environment, scopes: list[Scope], progress: Progress | None = None) -> VerifyReport:
    """Check workflows completely, and the storage engine's own structures.

    Returns what was found, at most VERIFY_PROBLEMS_MAX problems; nothing is repaired.
    """
    problems = [Problem(workflow="", place="store", reason=reason) for reason in env.store.problems()]
    events = 0
    for number, scope in enumerate(scopes):
        check = _WorkflowCheck(replace(env, scope=scope))
        try:
            with env.store.read(scope) as tx:
                check.run(tx, progress)
        except StrandlineError as error:
            check.note(error)
        problems += check.problems
        events += check.events
        if progress is not None:
            progress(number + 1, len(scopes))
    return VerifyReport(workflows=len(scopes), events=events, problems=tuple(problems[:VERIFY_PROBLEMS_MAX]))


class _WorkflowCheck:
    def __init__(self, env: Environment) -> None:
        self._env = env
        self.problems: list[Problem] = []
        self.events = 0
        self._sighted: dict[int, tuple[int, int]] = {}  # ref_id -> first and last seq
        self._digests: list[bytes] = []
        self._audiences: list[str] = []
        self._facts: list[Fact] = []
        self._progress: Progress | None = None

    def note(self, error: StrandlineError, place: str = "") -> None:
        """Take down a problem."""
        where = error.place if isinstance(error, CorruptRecordError) else place
        reason = error.reason if isinstance(error, CorruptRecordError) else str(error)
        self.problems.append(Problem(workflow=str(self._env.scope), place=where, reason=reason))

    def _say(self, place: str, reason: str) -> None:
        self.problems.append(Problem(workflow=str(self._env.scope), place=place, reason=reason))

    def run(self, tx: Transaction, progress: Progress | None) -> None:
        """Check everything; what one check finds does not hide what the next would."""
        self._progress = progress
        checks: tuple[Callable[[Transaction], None], ...] = (
            self._log,
            self._references,
            self._register,
            self._lineage,
            self._views,
            self._jobs,
            self._checkpoints,
            self._foreign,
        )
        for check in checks:
            try:
                check(tx)
            except StrandlineError as error:
                self.note(error)

    def _log(self, tx: Transaction) -> None:
        """Seqs 1..revision without gap, each body and the whole chain (I1, I4); folds the register on the way."""
        head = tx.log.head()
        register = Register((), lambda _: None)
        ended: list[Fact] = []
        chain = b""
        for event in self._checked_events(tx, head.revision):
            self.events += 1
            chain = event.chain
            self._digests.append(event.body_digest)
            self._audiences.append(event.audience)
            for sighting in event.sightings:
                first, _ = self._sighted.get(sighting.ref_id, (event.seq, 0))
                self._sighted[sighting.ref_id] = (first, event.seq)
            ended += register.apply(register_event(event)).ended
            if self._progress is not None and self.events % LOG_PAGE_EVENTS == 0:
                self._progress(self.events, head.revision)
        self._facts = sorted([*ended, *register.facts], key=lambda fact: (fact.from_seq, fact.ordinal))
        if self.events and chain != head.chain:
            self._say(f"workflow {self._env.scope.workflow!r}", "the last event is not the one that the head names")
        if tx.log.count() != head.revision:
            self._say("event", f"{tx.log.count()} events are stored, the head says {head.revision} (I1)")

    def _checked_events(self, tx: Transaction, revision: int) -> Iterator[Event]:
        chain, expected = EMPTY_CHAIN, 1
        for event in tx.log.read(1, revision):
            place = f"event {expected} of {self._env.scope.workflow!r}"
            if event.seq != expected:
                raise CorruptRecordError(f"the event is missing; the next one is {event.seq}", place=place)
            check_event(event, chain, place)
            chain, expected = event.chain, expected + 1
            yield event
        if expected <= revision:
            raise CorruptRecordError(
                f"the log ends at {expected - 1}, the head says {revision}", place=f"event {expected}"
            )

    def _references(self, tx: Transaction) -> None:
        """The index of sightings is what the events say, and every reference has its text (C3)."""
        last = {ref_id: seq for seq, ref_id, _ in tx.refs.all_sightings()}
        if {ref_id: seq for ref_id, (_, seq) in self._sighted.items()} != last:
            wrong = sorted(
                ref_id
                for ref_id in self._sighted.keys() | last.keys()
                if last.get(ref_id) != self._sighted.get(ref_id, (0, 0))[1]
            )
            self._say("event_ref", f"the index does not match the events for {len(wrong)} references, first {wrong[0]}")
        stored = set(tx.refs.all_ids())
        missing = sorted(self._sighted.keys() - stored)
        if missing:
            self._say(f"ref {missing[0]}", f"{len(missing)} sighted references are not stored")
        tx.refs.texts(sorted(stored))  # each row is checked against its digest

    def _register(self, tx: Transaction) -> None:
        """The stored register is the fold of the log."""
        stored = list(tx.register.all())
        if stored != self._facts:
            differ = next(
                (i for i, pair in enumerate(zip(stored, self._facts, strict=False)) if pair[0] != pair[1]),
                min(len(stored), len(self._facts)),
            )
            where = stored[differ] if differ < len(stored) else self._facts[differ]
            self._say(
                f"register_fact {where.from_seq}.{where.ordinal}",
                f"{len(stored)} facts are stored, the log folds to {len(self._facts)}; the first difference is here",
            )

    def _lineage(self, tx: Transaction) -> None:
        """The lineage is gap-free and chained; each generation is one move (I13)."""
        moves: dict[str, int] = {}
        generations: dict[str, int] = {}
        for entry in read_entries(self._env, tx):
            if entry.kind is LineageKind.COMPACTION and entry.view is not None:
                expected = generations.get(entry.view, 0) + 1
                if entry.generation != expected:
                    self._say(f"lineage {entry.lineage_seq}", f"generation {entry.generation} follows {expected - 1}")
                generations[entry.view] = entry.generation or 0
                moves[entry.view] = entry.lineage_seq
        for view in tx.views.all():
            if (view.generation, view.moved_lineage_seq) != (generations.get(view.name, 0), moves.get(view.name, 0)):
                self._say(f"view {view.name!r}", "the pointer is not where the lineage says")

    def _views(self, tx: Transaction) -> None:
        """Each summary on each view's chain covers exactly its events, and accounts for every reference (I7, I9)."""
        for view in tx.views.all():
            summary = read_summary(tx, view)
            if summary is not None:
                self._coverage(view, summary)
                self._accounting(tx, view, summary)

    def _coverage(self, view: ViewHead, summary: Summary) -> None:
        place = f"summary {summary.summary_no}"
        for segment in summary.segments:
            head = segment.head
            covered = [
                digest
                for digest, audience in zip(
                    self._digests[head.from_seq - 1 : head.through_seq],
                    self._audiences[head.from_seq - 1 : head.through_seq],
                    strict=True,
                )
                if view.reads(audience)
            ]
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
        if view.audiences is None:
            covered = {ref_id for ref_id, (first, _) in self._sighted.items() if first <= summary.watermark}
            standing = standing_refs(summary)
            dropped = {entry.ref_id for entry in tx.summaries.manifest(summary.summary_no)}
            lost = covered - standing - dropped
            if lost:
                self._say(place, f"{len(lost)} references are unaccounted for, first {min(lost)} (I9)")
            if standing & dropped:
                self._say(place, f"reference {min(standing & dropped)} is listed as dropped, and stands in the summary")
            invented = (standing | dropped) - covered
            if invented:
                self._say(place, f"reference {min(invented)} is in no covered event")
            if (len(covered), len(dropped)) != (summary.refs_seen, summary.dropped_count):
                self._say(place, "its counts are not those of a recount")
        self._verbatim(tx, summary)
        if record_digest(tuple(tx.summaries.changes(summary.summary_no))) != summary.manifest_digest:
            self._say(place, "its changes do not match their digest")

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
        """Every candidate and attempt is what was written; the active ones are those that the pointers mean (I5)."""
        active = {view.summary_no for view in tx.views.all() if view.summary_no}
        for candidate in tx.jobs.all_candidates():
            attempts = tx.jobs.attempts(candidate.candidate_id)
            if candidate.state is CandidateState.ACTIVE and not active & {a.summary_no for a in attempts}:
                self._say(
                    f"candidate {candidate.candidate_id!r}", "it is active, and no view points to its summary (I5)"
                )

    def _checkpoints(self, tx: Transaction) -> None:
        for checkpoint in tx.checkpoints.all():
            try:
                check_checkpoint(checkpoint)
            except CorruptRecordError as error:
                self.note(error)

    def _foreign(self, tx: Transaction) -> None:
        tx.summaries.foreign()
