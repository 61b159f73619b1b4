"""Fork: a new workflow that shares the past of another up to one of its events, and goes its own way from there (C22).

Nothing of the past is copied: `ancestry` reads it from the parent. What is copied is what holds at the fork point, so
that the parent may go on without the fork noticing: the facts in force, the ranges that were abandoned by then, and of
each view the newest fit summary, which is a cache of the past.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import replace

from strandline.codec import record_digest
from strandline.engine.ancestry import compose
from strandline.engine.cases import check_cases_whole
from strandline.engine.environment import Environment, check_author, check_whole
from strandline.engine.lineage import add_entry, next_seq, own_key
from strandline.engine.reading import abandoned_of, check_register_whole, check_summary, find_view, read_one
from strandline.engine.watching import watched
from strandline.errors import CorruptRecordError, InvalidInputError, TenantScopeError
from strandline.limits import FORK_DEPTH_MAX
from strandline.model.event import EventKind
from strandline.model.ids import DEFAULT_VIEW, Scope, check_workflow
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.model.outcome import Forked
from strandline.model.summary import DroppedRef, Summary
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.ports.occurrences import ForkTold
from strandline.rules.branches import Abandoned
from strandline.rules.register import carried

_FORKED = "fork:"  # before the id of a summary that a fork took over: no attempt of its own made it
_ERASURE = "erasure:"  # and of one that an erasure put in the place of another
_NOTHING = "nothing was written"


@watched("fork")
def fork(
    env: Environment, at_revision: int | None, name: str, *, by: str, why: str, view: str = DEFAULT_VIEW
) -> Forked:
    """Begin the workflow `name` from the state of this one at a revision; None: as it is now. Its views, with their
    audiences, are those of this one; a narrow `view` is told of its own.

    Raises:
        TenantScopeError: the workflow is not there, or no workflow can have this name.
        InvalidInputError: the name is taken, or there is no such revision to fork from; nothing was written.
        CorruptRecordError: what the fork would begin from is not what was written.
    """
    check_workflow(name)
    check_whole("at_revision", at_revision)
    check_author(by, why)
    if name == env.scope.workflow:
        raise InvalidInputError(f"a fork of {name!r} needs another name than its parent's; {_NOTHING}")
    here = replace(env, scope=replace(env.scope, workflow=name))
    with here.write() as tx:  # a fork locks itself first, then its ancestors
        if tx.log.head().revision or tx.log.head().lineage_seq or tx.views.all():
            raise InvalidInputError(f"{str(here.scope)!r} is there already; {_NOTHING}", hint="Take another name.")
        forked = _Fork(env, tx, name, at_revision).make(by, why)
        reader = find_view(tx, view, str(here.scope))
        if reader.narrow:
            facts = sum(reader.reads(fact.audience) for fact in tx.register.as_of(forked.revision))
            forked = replace(forked, facts=facts, watermarks={view: forked.watermarks[view]})
    env.emit("fork", ForkTold(revision=forked.revision, fork=name))
    return forked


class _Fork:
    """One fork, within its transaction. `tx` is that of the new workflow, which is empty."""

    def __init__(self, env: Environment, tx: Transaction, name: str, at_revision: int | None) -> None:
        self._env = env
        self._tx = tx
        self._name = name
        self._parent = compose(tx.relative(env.scope.workflow, locked=True))  # it stands still while it is read
        self._head = self._parent.log.head()
        self._left = abandoned_of(self._parent)
        self._seq = self._head.revision if at_revision is None else at_revision
        self._check_point()
        self._check_depth()

    def _check_point(self) -> None:
        scope, revision = str(self._env.scope), self._head.revision
        if not revision:
            raise TenantScopeError(
                f"{scope!r} holds no event to fork from; {_NOTHING}", hint="Check tenant and workflow, or begin anew."
            )
        if not 1 <= self._seq <= revision:
            raise InvalidInputError(f"revision {self._seq} of {scope!r} lies outside 1..{revision}; {_NOTHING}")
        if self._seq in self._left and self._seq != revision:  # the newest revision stands for what is live now
            raise InvalidInputError(
                f"event {self._seq} of {scope!r} was abandoned by a rewind; {_NOTHING}",
                hint=f"The last live event before it is {self._left.last_live(self._seq)}.",
            )

    def _check_depth(self) -> None:
        depth, above = 1, self._head.parent
        while above is not None:
            depth, above = depth + 1, self._tx.relative(above).log.head().parent
            if depth > FORK_DEPTH_MAX:
                raise InvalidInputError(
                    f"{str(self._env.scope)!r} has {FORK_DEPTH_MAX} ancestors, which is the most allowed; {_NOTHING}",
                    hint="Fork one of its ancestors, or begin a workflow of its own.",
                )

    def make(self, by: str, why: str) -> Forked:
        """Write the fork's head, what holds there, its summaries and its lineage."""
        tx, parent, seq = self._tx, self._parent, self._seq
        check_register_whole(parent)
        check_cases_whole(parent)  # a missing one might block the summary that is taken over (I11)
        last = read_one(parent, seq, self._env.scope.workflow)
        ranges = [left for left in self._left.ranges if left.through_seq <= seq]
        facts = carried(parent.register.as_of(seq), seq)
        tx.log.set_head(
            replace(
                tx.log.head(),
                revision=seq,
                chain=last.chain,
                branch=len(ranges),
                ref_id=(ref_id := self._last_ref_id()),
                live_events=sum(last + 1 - first for first, last in Abandoned(ranges).live_spans(1, seq)),
                facts=len(facts),
                epoch=self._epoch(last.epoch),
                parent=self._env.scope.workflow,
                fork_seq=seq,
                fork_ref_id=ref_id,
            )
        )
        for left in ranges:
            tx.log.abandon(left)
        tx.register.begin(facts)
        views = [self._take_over(view, by, why) for view in parent.views.all()]
        if not any(view.summary_no for view in views):
            add_entry(tx, self._entry(None, None, by, why))
        return Forked(
            workflow=self._name,
            parent=self._env.scope.workflow,
            revision=seq,
            lineage_seq=tx.log.head().lineage_seq,
            facts=len(facts),
            watermarks={view.name: view.watermark for view in views},
        )

    def _last_ref_id(self) -> int:
        """Return the highest number of a reference that was seen at or before the fork point: numbers are given in the
        order of first sightings.
        """
        if self._seq == self._head.revision:
            return self._head.ref_id
        refs = self._parent.refs
        return bisect(
            range(1, self._head.ref_id + 1), False, key=lambda ref_id: not refs.sightings(ref_id, self._seq, 1)
        )

    def _epoch(self, of_last: int) -> int:
        """Return the epoch that an event after the fork point is in (I17)."""
        if self._seq == self._head.revision:
            return self._head.epoch
        after = read_one(self._parent, self._seq + 1, self._env.scope.workflow)
        return of_last if after.kind is EventKind.DIVERGENCE else after.epoch

    def _take_over(self, view: ViewHead, by: str, why: str) -> ViewHead:
        """Make the fork's own view; its pointer goes to a copy of the newest summary that is fit for it."""
        made = ViewHead(
            view_id=view.view_id,
            name=view.name,
            audiences=view.audiences,
            budget=view.budget,
        )
        summary = self._fit_summary(view)
        if summary is None:
            self._tx.views.put(made)
            return made
        copy, changes = self._copied(summary)
        self._tx.log.set_head(replace(self._tx.log.head(), summary_no=copy.summary_no))
        self._tx.summaries.add(copy, changes)
        made = replace(
            made,
            generation=copy.generation,
            summary_no=copy.summary_no,
            watermark=copy.watermark,
            moved_lineage_seq=next_seq(self._tx),
        )
        if not self._tx.views.shift_pointer(made, base_generation=0):
            raise AssertionError("a view of an empty workflow has a pointer")
        add_entry(self._tx, self._entry(made, copy, by, why))
        return made

    def _fit_summary(self, view: ViewHead) -> Summary | None:
        """Return the newest summary on the chain of the view's active one that covers nothing behind the fork point and
        under which no blocking case is open (I11); None: the empty one.
        """
        number = find_view(self._parent, view.name, str(self._env.scope)).summary_no
        while number:
            place = f"summary {number} of view {view.name!r}"
            summary = self._parent.summaries.get(number)
            if summary is None:
                raise CorruptRecordError("the summary is missing", place=place)
            fits = summary.watermark <= self._seq and not summary.erased
            if fits and self._parent.cases.blocking(view.name, number) is None:
                check_summary(summary, place)
                return summary
            number = summary.base_no
        return None

    def _copied(self, summary: Summary) -> tuple[Summary, list[DroppedRef]]:
        """Return a summary as the fork's own, on the empty base, with its whole manifest as its changes."""
        changes = self._whole_manifest(summary)
        copy = replace(
            summary,
            summary_no=self._tx.log.head().summary_no + 1,
            summary_id=_FORKED + summary.summary_id.removeprefix(_FORKED),
            base_no=0,
            generation=1,
            manifest_digest=record_digest(tuple(changes)),
        )
        return copy, changes

    def _whole_manifest(self, summary: Summary) -> list[DroppedRef]:
        """Return what a summary dropped, as the fold of the changes along the chain of its bases."""
        newest: dict[int, DroppedRef] = {}
        link: Summary | None = summary
        while link is not None:
            changes = self._parent.summaries.changes(link.summary_no)
            if record_digest(tuple(changes)) != link.manifest_digest:
                reason = "its changes do not match their digest"
                raise CorruptRecordError(reason, place=f"manifest of summary {link.summary_no}")
            for change in changes:
                newest.setdefault(change.ref_id, change)
            link = self._parent.summaries.get(link.base_no) if link.base_no else None
        dropped = [change for _, change in sorted(newest.items()) if change.dropped]
        if len(dropped) != summary.dropped_count:
            raise CorruptRecordError(
                f"it has {len(dropped)} entries, and {summary.dropped_count} were written",
                place=f"manifest of summary {summary.summary_no}",
            )
        return dropped

    def _entry(self, view: ViewHead | None, summary: Summary | None, by: str, why: str) -> LineageEntry:
        head = self._tx.log.head()
        detail: dict[str, object] = {"parent": head.parent, "at": head.fork_seq, "branch": head.branch}
        if summary is not None:
            detail |= {
                "summary_id": summary.summary_id,
                "summary_no": summary.summary_no,
                "watermark": summary.watermark,
            }
        return LineageEntry(
            lineage_seq=0,
            kind=LineageKind.FORK,
            op_key=own_key(self._env, "fork"),
            revision=self._seq,
            at_us=self._env.clock.now_us(),
            view=view.name if view else None,
            generation=view.generation if view else None,
            by=by,
            why=why,
            detail=detail,
        )


def inherited_branches(tx: Transaction) -> int:
    """Return how many rewinds came before a workflow was forked; they are in the lineage of an ancestor."""
    if tx.log.head().parent is None:
        return 0
    first = next(iter(tx.lineage.read(0, 1)), None)
    branch = first.detail.get("branch") if first is not None and first.kind is LineageKind.FORK else None
    if not isinstance(branch, int):
        raise CorruptRecordError("it does not begin with the fork", place="lineage 1")
    return branch


def made_here(summary_id: str) -> bool:
    """Tell whether an attempt of this workflow made a summary: what a fork took over, or an erasure made, has no
    candidate here.
    """
    return not summary_id.startswith((_FORKED, _ERASURE))


def made_by_erasure(scope: Scope, view: str, generation: int) -> str:
    """Return the id of the summary that an erasure makes for a generation of a view. It names the workflow: a fork has
    the segments that an erasure made in its parent, under generations of its own.
    """
    return f"{_ERASURE}{scope.workflow}:{view}:{generation}"
