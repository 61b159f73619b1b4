"""The verbs about what is kept and what is not: erasure, legal holds, readers of the log (C31)."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.client.verbs import Verbs
from strandline.engine.erase import erase
from strandline.engine.holds import lift_hold, list_holds, set_hold
from strandline.engine.readers import list_readers, read_through
from strandline.errors import InvalidInputError
from strandline.model.erasure import Erased, ErasureOrder, Hold, Reader
from strandline.model.ids import DEFAULT_VIEW
from strandline.summarizers import ExtractiveSummarizer


class ErasureVerbs(Verbs):
    """A part of `Workflow`."""

    def erase(
        self,
        *,
        events: Sequence[int] = (),
        refs: Sequence[str] = (),
        actor: str | None = None,
        person: str | None = None,
        everything: bool = False,
        by: str,
        why: str,
        force: bool = False,
        scan: bool = True,
    ) -> Erased:
        """Erase what events said, and all that was made from it: one transaction, with proof (C31).

        Body and salt go; envelope, key and digests stay, so `verify` holds. Summaries are re-derived from what remains.

        Args:
            events: their numbers.
            refs: every event that holds one of these, sighted or verbatim.
            actor: every event by this actor.
            person: every event by this person, granted by him, or with his name verbatim.
            everything: every event of the workflow; of a fork, those since the fork.
            by: who decides.
            why: for the lineage, which is never erased: no names here.
            force: also what a reader that has not finished still needs.
            scan: search the store's files for it, and write them anew where they hold it.

        Raises:
            InvalidInputError: nothing is named, an event is not there, nobody decides, or it is asked of a narrow view.
            ErasureRefusedError: a legal hold covers it, or a reader still needs it.
            CorruptRecordError: what would have to be read is not what was written. Nothing was erased.
        """
        self._check_whole("erase")
        order = ErasureOrder(
            events=tuple(events),
            refs=tuple(refs),
            actor=actor,
            person=person,
            everything=everything,
            by=by,
            why=why,
            force=force,
        )
        return erase(self._env, order, ExtractiveSummarizer(), scan=scan)

    def hold(self, name: str, *, by: str, why: str) -> Hold:
        """Set a legal hold: until it is lifted nothing of the workflow is erased, whoever asks.

        Args:
            name: of the hold, such as that of the case at law.
            by: who decides.
            why: for the lineage.

        Raises:
            InvalidInputError: one of this name stands, or nobody decides; nothing was written.
        """
        self._check_whole("set a hold")
        return set_hold(self._env, name, by=by, why=why)

    def lift_hold(self, name: str, *, by: str, why: str) -> Hold:
        """Lift a legal hold of the workflow; one of its tenant is lifted by `Tenant.lift_hold`.

        Raises:
            InvalidInputError: none of this name stands here, or nobody decides; nothing was written.
        """
        self._check_whole("lift a hold")
        return lift_hold(self._env, name, by=by, why=why)

    def holds(self) -> list[Hold]:
        """Return the legal holds that cover the workflow, its tenant's too."""
        return list_holds(self._env)

    def read_through(self, reader: str, seq: int, *, finished: bool = False) -> Reader:
        """Say how far a reader outside has come: an export, an audit. What lies behind is not erased before he has it.

        Args:
            reader: his name; one that is not known is registered.
            seq: the last event that he has read; 0: none.
            finished: he needs no more.

        Raises:
            InvalidInputError: he goes back, or ahead of the log; nothing was written.
        """
        return read_through(self._env, reader, seq, finished=finished)

    def readers(self) -> list[Reader]:
        """Return the readers outside, by name."""
        return list_readers(self._env)

    def _check_whole(self, what: str) -> None:
        if self._view != DEFAULT_VIEW:
            raise InvalidInputError(
                f"view {self._view!r} can't {what}: it would reach what it may not read; nothing was written",
                hint="Ask the workflow itself: `tenant.workflow(name)`.",
            )
