"""What a real workflow did, read from its store after the fact as steps of the model.

The lineage says in which order the memory changed; checkpoints, attempts and cases say the rest. What is recorded
without its place in that order (a claim, the opening of a case) is placed as late as the records allow, so that a trace
is refused only for what can't have been right in any order. Tool calls, drafts and chains are not looked at here: they
are `verify`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from strandline.client import Workflow
from strandline.engine.lineage import maker
from strandline.limits import LINEAGE_PAGE_ENTRIES
from strandline.model.candidate import AttemptState
from strandline.model.case import Case
from strandline.model.ids import DEFAULT_VIEW
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.ports import Transaction
from strandline.testing.protocol.memory import NOT_TOLD, Memory, Plan, View, through
from strandline.testing.protocol.steps import (
    Activate,
    Answer,
    Append,
    Claim,
    Define,
    Fence,
    Keep,
    Note,
    Recover,
    Replace,
    Report,
    Revert,
    Rewind,
    Step,
    Store,
    TakeOver,
)

_NO_VIEW: Final = -1


class Pointer(NamedTuple):
    """Where the store says that a view's pointer is; what is NOT_TOLD was not recorded."""

    view: int
    generation: int
    summary: int = NOT_TOLD
    moved_at: int = NOT_TOLD
    fence: int = NOT_TOLD


class Told(NamedTuple):
    """What the store recorded of a step: it has to be what the model makes of it."""

    lineage: int
    revision: int
    pointers: tuple[Pointer, ...] = ()
    restored: int = NOT_TOLD  # the checkpoint that a recovery took; 0: it replayed
    live: int = NOT_TOLD


class Line(NamedTuple):
    """One step of a trace."""

    step: Step
    told: Told | None = None  # None: the store recorded nothing of this step alone


class Trace(NamedTuple):
    """A workflow's life."""

    first: Memory
    lines: tuple[Line, ...]
    last: Told  # what the store has at the end


def steps_of(workflow: Workflow) -> Trace:
    """Read what a workflow did from its store, in one snapshot."""
    with workflow._env.read() as tx:
        return steps_in(tx)


def steps_in(tx: Transaction) -> Trace:
    """As `steps_of`, in a transaction that is open on the workflow."""
    return _Reader(tx).trace()


class _Reader:
    """Reads one workflow's records in the order of its lineage."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._head = tx.log.head()
        self._entries = list(_entries(tx))
        self._rows = tx.views.all()
        defined = {e.view for e in self._entries if e.kind is LineageKind.DEFINE and not e.generation}
        others = [row.name for row in self._rows if row.name not in defined and row.name != DEFAULT_VIEW]
        self._views = {name: number for number, name in enumerate((DEFAULT_VIEW, *others))}
        self._names: dict[str | None, int] = {}
        self._cases: list[tuple[int, Case]] = list(enumerate(tx.cases.all(), 1)) if self._head.cases else []
        self._numbers = {case.case_id: number for number, case in self._cases}
        self._unsaid = list(self._cases)
        self._first = self._begin()
        self._revision = self._first.revision

    def trace(self) -> Trace:
        """Return the whole life."""
        lines: list[Line] = []
        at = 0
        while at < len(self._entries):
            entry = self._entries[at]
            together = self._together(at)
            lines += self._before(entry)
            lines += self._lines(entry, together)
            at += len(together)
        if self._head.revision > self._revision:
            lines.append(Line(Append(self._head.revision)))
        return Trace(self._first, tuple(lines), self._last())

    def _begin(self) -> Memory:
        """Return the memory as it was when the first entry was written: of a fork, with the past that it took over."""
        narrow = {row.name: row.narrow for row in self._rows}
        views = tuple(View(narrow=narrow.get(name, False)) for name in self._views)
        erased: tuple[int, ...] = ()
        if any(entry.kind is LineageKind.ERASURE for entry in self._entries):
            found = ((n, self._tx.summaries.get(n, texts_only=True)) for n in range(1, self._head.summary_no + 1))
            erased = tuple(n for n, summary in found if summary is not None and summary.erased)
        if self._head.parent is None:
            return Memory(views=views, erased=erased)
        revision, live = self._head.fork_seq, through(self._head.fork_seq)
        inherited = _number(self._entries[0], "branch") if self._entries else 0
        for left in self._tx.log.abandoned():
            if left.branch <= inherited:
                live &= ~(through(left.through_seq) ^ through(left.from_seq - 1))
        return Memory(revision=revision, live=live, views=views, erased=erased)

    def _together(self, at: int) -> list[LineageEntry]:
        """Return the entries of one transaction: a rewind has one for each view."""
        first = self._entries[at]
        if first.kind is not LineageKind.REWIND:
            return [first]
        end = at + 1
        while end < len(self._entries) and self._entries[end].kind is LineageKind.REWIND:
            if "fenced" in self._entries[end].detail:  # the first of the next one
                break
            end += 1
        return self._entries[at:end]

    def _before(self, entry: LineageEntry) -> Iterator[Line]:
        """Yield what must have happened before an entry was written: cases were opened, and events appended."""
        answered = self._numbers.get(str(entry.detail.get("case"))) if "case" in entry.detail else None
        for pair in tuple(self._unsaid):
            number, case = pair
            if case.revision < entry.revision or number == answered:
                self._unsaid.remove(pair)
                view = self._views.get(case.view, _NO_VIEW) if case.blocking else _NO_VIEW
                yield Line(Report(number, view, case.summary_no))
        end = _number(entry, "through_seq") if entry.kind is LineageKind.REWIND else entry.revision
        if end > self._revision:
            yield Line(Append(end))
        self._revision = max(entry.revision, self._revision)

    def _lines(self, entry: LineageEntry, together: list[LineageEntry]) -> Iterator[Line]:
        """Yield the steps that an entry is about; of a rewind, those of all its entries."""
        kind, view = entry.kind, self._view(entry)
        told = Told(together[-1].lineage_seq, entry.revision)
        if entry.generation is not None and kind is not LineageKind.CHECKPOINT:
            told = told._replace(pointers=tuple(self._pointer(one) for one in together))
        if kind is LineageKind.COMPACTION:
            yield from self._compaction(entry, view, told)
        elif kind is LineageKind.CHECKPOINT:
            yield self._checkpoint(entry, told)
        elif kind in (LineageKind.RESTORE, LineageKind.REPLAY):
            yield Line(Recover(self._name(entry.name), view), told._replace(restored=entry.restored_seq or 0))
        else:
            yield Line(self._step(entry, view, together), told)

    def _step(self, entry: LineageEntry, view: int, together: list[LineageEntry]) -> Step:
        """Return the step of an entry that is one step."""
        kind = entry.kind
        if kind is LineageKind.FENCE:
            return Fence(view, _number(entry, "fence"))
        if kind is LineageKind.REVERT:
            return Revert(view, _number(entry, "to"))
        if kind is LineageKind.REWIND:
            restored = next((one.restored_seq for one in together if one.restored_seq is not None), 0)
            targets = tuple(_number(one, "summary_no") for one in together)
            restated = entry.revision - _number(entry, "through_seq")
            return Rewind(_number(entry, "to"), restored, restated, targets)
        if kind is LineageKind.ERASURE:
            number = _number(entry, "summary_no")
            made = self._tx.summaries.get(number, texts_only=True) if number else None
            base = made.base_no if made is not None else 0
            return Replace(view, number, _number(entry, "watermark"), base, "fenced" in entry.detail)
        if kind is LineageKind.DEFINE:
            return Define(view, entry.generation or 0)
        if kind is LineageKind.FORK and entry.view is not None:
            return TakeOver(view, _number(entry, "summary_no"), _number(entry, "watermark"))
        if kind in (LineageKind.ANSWER, LineageKind.DIVERGENCE):
            over = entry.detail.get("passed_over")
            case = self._numbers.get(str(entry.detail.get("case")), 0)
            return Answer(case, passes_over=over if isinstance(over, int) else 0)
        return Note()

    def _compaction(self, entry: LineageEntry, view: int, told: Told) -> Iterator[Line]:
        """Yield claim, store and activation; what is not on record is left out, and the activation refused for it."""
        summary_id = str(entry.detail.get("summary_id"))
        candidate_id = summary_id.rpartition(".")[0]
        candidate = self._tx.jobs.candidate(candidate_id)
        found = self._tx.jobs.attempts(candidate_id) if candidate is not None else []
        attempt = next((one for one in found if one.attempt_id == summary_id), None)
        fence = attempt.fence if attempt is not None else 0
        if candidate is not None and attempt is not None:
            planned = candidate.plan
            plan = Plan(
                view=view,
                generation=planned.base_generation,
                base=planned.base_summary_no,
                watermark=planned.watermark,
                covers=NOT_TOLD,
                revision=planned.revision,
            )
            yield Line(Claim(plan, fence, leases=False))
            if attempt.state is AttemptState.ACTIVATED and attempt.draft_digest == entry.digest:
                yield Line(Store(view, fence, fence, summary=attempt.summary_no or 0))
        yield Line(Activate(view, fence, fence), told)

    def _checkpoint(self, entry: LineageEntry, told: Told) -> Line:
        """Return the step of a checkpoint, with the generations that it recorded (I14)."""
        made = self._tx.checkpoints.get(entry.lineage_seq)
        view, free = self._views.get(maker(entry), _NO_VIEW), entry.view is None
        basis = entry.revision
        if made is not None:
            told = told._replace(pointers=tuple(Pointer(self._views[v.view], v.generation) for v in made.views))
            basis = next((v.basis_revision for v in made.views if v.basis_revision is not None), basis)
        return Line(Keep(self._name(entry.name), view, entry.generation or 0, basis, NOT_TOLD, free), told)

    def _view(self, entry: LineageEntry) -> int:
        if entry.view is None:
            return 0
        return self._views.setdefault(entry.view, len(self._views))

    def _name(self, name: str | None) -> int:
        return self._names.setdefault(name, len(self._names))

    def _pointer(self, entry: LineageEntry) -> Pointer:
        number = entry.detail.get("summary_no")
        return Pointer(self._view(entry), entry.generation or 0, number if isinstance(number, int) else NOT_TOLD)

    def _last(self) -> Told:
        """Return what head and views say at the end."""
        pointers = tuple(
            Pointer(self._views[row.name], row.generation, row.summary_no, row.moved_lineage_seq, row.fence)
            for row in self._rows
        )
        live = through(self._head.revision)
        for left in self._tx.log.abandoned():
            live &= ~(through(left.through_seq) ^ through(left.from_seq - 1))
        return Told(self._head.lineage_seq, self._head.revision, pointers, live=live)


def _entries(tx: Transaction) -> Iterator[LineageEntry]:
    last = 0
    while page := tx.lineage.read(last, LINEAGE_PAGE_ENTRIES):
        yield from page
        last = page[-1].lineage_seq


def _number(entry: LineageEntry, name: str) -> int:
    value = entry.detail.get(name)
    return value if isinstance(value, int) else 0
