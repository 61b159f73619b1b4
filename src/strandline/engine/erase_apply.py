"""Carry out a prepared erasure in one workflow of a family, in the transaction that does all of it (C31)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from strandline.codec import ERASED_TEXT, body_digest, decode_json, leaf_text, searched_text
from strandline.engine.ancestry import compose
from strandline.engine.claim import fence_all
from strandline.engine.environment import Environment
from strandline.engine.erase_plan import ErasurePlan, Loss, holds, reach_of, said_by
from strandline.engine.erase_replace import is_affected
from strandline.engine.erase_states import erase_states
from strandline.engine.lineage import add_entry, next_seq, own_key
from strandline.engine.reading import read_log
from strandline.errors import CorruptRecordError
from strandline.model.candidate import Attempt, Candidate, CandidateState, Verdict
from strandline.model.case import Case
from strandline.model.checkpoint import Checkpoint
from strandline.model.erasure import ErasureOrder
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.rules.erasure import Reach, Traces, spans_of
from strandline.rules.searching import words_of

_GOES_ON = frozenset({CandidateState.PENDING, CandidateState.VALIDATED})


@dataclass(slots=True)
class Taken:
    """What an erasure took from one workflow."""

    generations: dict[str, int] = field(default_factory=dict)
    also: Counter[str] = field(default_factory=Counter)  # rows that held it, or were made from it, by kind
    outside: list[str] = field(default_factory=list)
    lineage_seq: int = 0


def take_away(tx: Transaction, plan: ErasurePlan, loss: Loss, order: ErasureOrder) -> Taken:
    """Erase what a workflow loses. `tx` is that of its rows alone, and holds its lock.

    Nothing is re-derived here: what takes the place of a summary was prepared.
    """
    return _Taking(tx, plan, loss, order).run()


class _Taking:
    def __init__(self, tx: Transaction, plan: ErasurePlan, loss: Loss, order: ErasureOrder) -> None:
        self._env: Environment = loss.env
        self._tx = tx
        self._loss = loss
        self._order = order
        self._traces: Traces = plan.traces
        self._taken = Taken()
        self._void: set[str] = set()  # candidates whose drafts were taken away
        self._views: dict[str, ViewHead] = {}

    def run(self) -> Taken:
        fenced = fence_all(self._env, self._tx)  # from here on nothing that is in flight becomes active (I6)
        self._views = {view.name: view for view in self._tx.views.all()}
        self._drop_words()
        self._tx.log.erase({seq: self._loss.seen[seq].digest for seq in sorted(self._loss.own)})
        self._tx.refs.erase(self._loss.own_gone)
        self._summaries()
        self._jobs()
        self._checkpoints()
        self._taken.also.update(erase_states(self._tx, self._traces))
        self._foreign()
        self._cases()
        self._due()
        for number, view in enumerate(self._moved()):
            self._move(view, fenced if number == 0 else None)
        return self._taken

    # ------------------------------------------------------------------------------------------ log and index

    def _drop_words(self) -> None:
        """Take the events out of the index of words; what is not known by its words lets the index be made anew."""
        indexed = self._tx.search.ranges()
        for first, last in spans_of(sorted(self._loss.own)):
            for event in read_log(compose(self._tx), first, last, self._env.scope.workflow):
                if any(begin <= event.seq <= end for begin, end in indexed):
                    before, after = words_of(searched_text(event)), words_of(searched_text(event._replace(body=None)))
                    if not after <= before:
                        self._tx.search.reset()
                        return
                    self._tx.search.drop(event.seq, before - after)

    # ------------------------------------------------------------------------------------------ summaries, jobs

    def _summaries(self) -> None:
        """Erase every summary that was made from one of the events, but for the segments that stay in active ones."""
        kept = {segment_id for made in self._loss.replacements.values() for segment_id in made.kept}
        whole = [v.summary_no for v in self._views.values() if v.summary_no and v.name not in self._loss.replacements]
        for number in whole:
            summary = self._tx.summaries.get(number, texts_only=True)
            kept |= {segment.head.segment_id for segment in summary.segments} if summary else set()
        numbers: list[int] = []
        segments: set[str] = set()
        for number in range(1, self._tx.log.head().summary_no + 1):
            summary = None if number in whole else self._tx.summaries.get(number)
            if summary is None:
                continue
            reach = self._loss.reach(self._views.get(summary.view))
            if summary.salt and holds(summary, reach, self._loss.gone):
                numbers.append(number)
            segments |= {
                segment.head.segment_id
                for segment in summary.segments
                if not segment.erased
                and segment.head.segment_id not in kept
                and is_affected(segment, reach, self._loss.gone, self._traces)
            }
        self._tx.summaries.erase(numbers, sorted(segments))
        self._taken.also.update({"summary": len(numbers), "segment": len(segments)})

    def _jobs(self) -> None:
        """Void the jobs that cover one of the events, and take away what attempts drafted from it."""
        replaced = {view.summary_no for view in self._views.values() if view.name in self._loss.replacements}
        for candidate in list(self._tx.jobs.all_candidates()):
            reach = self._loss.reach(self._views.get(candidate.view))
            covers = reach.covered(1, candidate.plan.watermark)
            attempts = self._tx.jobs.attempts(candidate.candidate_id)
            said_less = [less for less in (self._less(one, candidate, reach) for one in attempts) if less is not None]
            for less in said_less:
                self._tx.jobs.erase(less)
            self._taken.also["attempt"] += len(said_less)
            active = candidate.state is CandidateState.ACTIVE
            left = active and any(attempt.summary_no in replaced for attempt in attempts)
            if (covers and candidate.state in _GOES_ON) or left or (said_less and not active):
                self._tx.jobs.set_candidate_state(candidate.candidate_id, CandidateState.VOID)

    def _less(self, attempt: Attempt, candidate: Candidate, reach: Reach) -> Attempt | None:
        """Return an attempt without what it drafted and was told, where that is affected; None: it is not."""
        less = replace(
            attempt,
            drafts=(),
            verdict=None if attempt.verdict is None else _without_details(attempt.verdict),
            failure_text=None if attempt.failure_text is None else ERASED_TEXT,
        )
        if less == attempt:
            return None
        made = any(reach.touches(job.from_seq, job.through_seq) for job in candidate.plan.jobs)
        return less if made or self._traces.stand_in(*said_by(attempt)) else None

    # ------------------------------------------------------------------------------------------ states and texts

    def _checkpoints(self) -> None:
        """Erase the states that repeat it; name those that live elsewhere and were made while it was there."""
        first = min(self._loss.seen, default=0)
        for made in list(self._tx.checkpoints.all()):
            if made.external is not None and made.revision >= first > 0:
                self._taken.outside.append(made.external.address)
            if made.external is None and not made.erased and self._traces.stand_in(_state(made)):
                self._tx.checkpoints.erase(made.lineage_seq, body_digest(made.salt, made.state))
                self._taken.also["checkpoint"] += 1

    def _foreign(self) -> None:
        """Erase the summaries of other tools that speak for one of the events, or repeat it: such a one may speak for
        what another session said.
        """
        every = Reach(sorted(self._loss.seen))
        kept = (summary for summary in self._tx.summaries.foreign() if not summary.erased)
        keys = [s.key for s in kept if every.covered(1, s.through_seq) or self._traces.stand_in(s.text)]
        self._tx.summaries.erase_foreign(keys)
        self._taken.also["foreign_summary"] += len(keys)

    def _cases(self) -> None:
        """Take the details of the cases away that repeat it. Who answered, and why, stands in the lineage as well."""
        for case in list(self._tx.cases.all()):
            if (case.detail or case.reason != ERASED_TEXT) and self._traces.stand_in(*_asked(case)):
                self._tx.cases.erase(replace(case, detail={}, reason=ERASED_TEXT))
                self._taken.also["case_file"] += 1

    def _due(self) -> None:
        for due in self._tx.due.all():
            if due.failure_text and self._traces.stand_in(due.failure_text):
                self._tx.due.settle(replace(due, failure_text=ERASED_TEXT), fence=due.fence)
                self._taken.also["due_compaction"] += 1

    # ------------------------------------------------------------------------------------------ pointers

    def _moved(self) -> Iterator[ViewHead]:
        """Yield the views that read one of the events, or whose summary is replaced: what was made from them is older
        than the erasure (I15).
        """
        for view in self._views.values():
            if view.name in self._loss.replacements or any(view.reads(e.audience) for e in self._loss.seen.values()):
                yield view

    def _move(self, view: ViewHead, fenced: list[str] | None) -> None:
        """Move a view's pointer, to what was prepared or to the summary that it has, and record it."""
        made = self._loss.replacements.get(view.name)
        number = view.summary_no
        if made is not None:
            head = self._tx.log.head()
            number = head.summary_no + 1
            self._tx.log.set_head(replace(head, summary_no=number))
            self._tx.summaries.add(replace(made.summary, summary_no=number), made.changes)
        moved = replace(view, generation=view.generation + 1, summary_no=number, moved_lineage_seq=next_seq(self._tx))
        if not self._tx.views.shift_pointer(moved, base_generation=view.generation):
            raise AssertionError("the pointer moved while the head was locked")
        reach = reach_of({s: lost for s, lost in self._loss.seen.items() if view.reads(lost.audience)})
        detail: dict[str, object] = {
            "spans": [list(span) for span in spans_of(reach.seqs)],
            "events": len(reach.seqs),
            "summary_no": number,
            "watermark": view.watermark,
        }
        if fenced is not None:
            detail |= {"refs": len(self._loss.own_gone), "forced": self._order.force, "fenced": fenced}
        entry = add_entry(
            self._tx,
            LineageEntry(
                lineage_seq=0,
                kind=LineageKind.ERASURE,
                op_key=own_key(self._env, f"erasure:{view.name}"),
                revision=self._tx.log.head().revision,
                at_us=self._env.clock.now_us(),
                view=view.name,
                generation=moved.generation,
                by=self._order.by,
                why=self._order.why,
                detail=detail,
            ),
        )
        self._taken.generations[view.name] = moved.generation
        self._taken.lineage_seq = entry.lineage_seq


def erased_spans(entry: LineageEntry) -> list[tuple[int, int]]:
    """Return the ranges of events that an entry says were erased.

    Raises:
        CorruptRecordError: it does not say so.
    """
    try:
        return [(int(first), int(last)) for first, last in entry.detail["spans"]]  # type: ignore[attr-defined]
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptRecordError("it does not say what was erased", place=f"lineage {entry.lineage_seq}") from error


def _without_details(verdict: Verdict) -> Verdict:
    bare = tuple(replace(violation, detail=ERASED_TEXT) for violation in verdict.violations)
    return replace(verdict, violations=bare, claims=())


def _state(made: Checkpoint) -> str:
    return leaf_text(decode_json(made.state, f"checkpoint {made.lineage_seq}"))


def _asked(case: Case) -> tuple[str, ...]:
    return case.reason, leaf_text(dict(case.detail))
