"""The verbs by which a controller decides about the memory: cases and answers, revert, rewind, fork (C17, C21, C22)."""

from __future__ import annotations

from collections.abc import Collection

from strandline.client.verbs import Verbs, basis_of
from strandline.engine.cases import get_case, list_cases
from strandline.engine.checkpoint import register_checkpoint
from strandline.engine.fork import fork
from strandline.engine.read_context import Context
from strandline.engine.reconcile import reconcile
from strandline.engine.revert import report_regression, revert
from strandline.engine.rewind import rewind, rewind_to_checkpoint
from strandline.errors import InvalidInputError
from strandline.limits import CASES_LISTED_MAX
from strandline.model.case import Case, CaseAnswer
from strandline.model.checkpoint import Checkpoint, ExternalState
from strandline.model.event import Basis
from strandline.model.outcome import Forked, Reverted, Rewound


class RecoveryVerbs(Verbs):
    """A part of `Workflow`."""

    def register_checkpoint(
        self,
        address: str,
        digest: str,
        turn: int,
        *,
        basis: Context | Basis | None = None,
        name: str | None = None,
        context_free: bool = False,
    ) -> Checkpoint:
        """Register agent state that lives elsewhere as a checkpoint, by its digest (I14). It is not fetched.

        Args:
            address: where it lives, as `load` of `recover` is told; what lies there must never change.
            digest: "sha256:" and the 64 hexadecimal digits of its bytes.
            turn, basis, name, context_free: as of `checkpoint`.

        Raises:
            CompactionLineageError, InvalidInputError: as of `checkpoint`; an address or a digest that is none.
        """
        return register_checkpoint(
            self._env,
            ExternalState(address=address, digest=digest),
            turn=turn,
            name=self._view if name is None else name,
            basis=basis_of(basis, self._view),
            context_free=context_free,
            view=self._view,
        )

    def revert(self, to_generation: int, *, by: str, why: str) -> Reverted:
        """Go back to the content of an earlier generation, as a new generation; list what was made from the bad ones.

        Args:
            to_generation: whose summary becomes active again; 0: the empty one.
            by: who decides.
            why: for the lineage.

        Raises:
            InvalidInputError: there never was such a generation, its content is the active one, it was left as bad by
                an earlier revert, or it covers events that a rewind abandoned.
            CorruptRecordError: its summary is damaged. Nothing was written.
        """
        return revert(self._env, self._view, to_generation, by=by, why=why)

    def report_regression(self, generation: int, *, by: str, why: str) -> Case:
        """Open a case on a generation whose summary is bad: while that summary is active it is not compacted again.

        Args:
            generation: whose summary is bad. Nothing is moved; `revert` does that.
            by: who says so.
            why: for the case.

        Raises:
            InvalidInputError: there never was such a generation, or it is the empty one.
        """
        return report_regression(self._env, self._view, generation, by=by, why=why)

    def rewind(
        self,
        to_revision: int | None = None,
        *,
        checkpoint_seq: int | None = None,
        keep: Collection[int] = (),
        expected_revision: int | None = None,
        by: str,
        why: str,
    ) -> Rewound:
        """Go on from an earlier event, on a new branch: what came after it is abandoned, and nothing is deleted (C22).

        Args:
            to_revision: the last event that stays; 0: none does.
            checkpoint_seq: in its place, the lineage_seq of a checkpoint: of its revision, and `recover` restores it.
            keep: events behind `to_revision` that are stated again on the new branch, in the same transaction.
            expected_revision: refuse if the workflow has another revision.
            by: who decides.
            why: for the lineage.

        Raises:
            InvalidInputError: that is no live event or no checkpoint, nothing stands behind it, nobody decides, or an
                event of `keep` does not stand behind it.
            StaleRevisionError: somebody appended meanwhile.
            CorruptRecordError: what would have to be read is not what was written. Nothing was written.
        """
        if to_revision is None and checkpoint_seq is not None and not keep and expected_revision is None:
            return rewind_to_checkpoint(self._env, checkpoint_seq, by=by, why=why, view=self._view)
        if to_revision is None or checkpoint_seq is not None:
            raise InvalidInputError(
                "give to_revision or checkpoint_seq, and not both; keep and expected_revision go with to_revision; "
                "nothing was written"
            )
        return rewind(
            self._env,
            to_revision,
            by=by,
            why=why,
            view=self._view,
            keep=keep,
            expected_revision=expected_revision,
        )

    def cases(self, include_answered: bool = False, limit: int = CASES_LISTED_MAX) -> list[Case]:
        """Return the open cases, the oldest first (C21).

        Args:
            include_answered: then the answered ones, too, behind them, the newest first.
            limit: at most so many.

        Raises:
            InvalidInputError: a limit outside 1..CASES_LISTED_MAX.
            CorruptRecordError: a case is missing, or not what was written.
        """
        return list_cases(self._env, include_answered, limit, self._view)

    def case(self, case_id: str) -> Case:
        """Return a case, open or answered.

        Raises:
            InvalidInputError: there is none of this id.
        """
        return get_case(self._env, case_id, self._view)

    def reconcile(self, case: Case | str, answer: CaseAnswer, *, by: str, why: str) -> Case:
        """Answer a case: what the answer does, its entry in the lineage and the answered case are one (I17).

        Args:
            case: it, or its id.
            answer: one that fits its kind, such as `ReplayFromExact()`.
            by: who decides.
            why: for the lineage.

        Raises:
            InvalidInputError: no such case, or an answer that does not fit or can't be carried out; nothing is written.
            CaseAnsweredError: it was answered before, and otherwise: the first answer wins.
        """
        case_id = case.case_id if isinstance(case, Case) else case
        return reconcile(self._env, case_id, answer, by=by, why=why, view=self._view)

    def fork(self, at_revision: int | None, name: str, *, by: str, why: str) -> Forked:
        """Begin a new workflow of the tenant from the state of this one at a revision (C22).

        It reads the past up to there from this workflow, shares its ledger of effects and permits, and goes its own way
        in everything else. This workflow stays as it is.

        Args:
            at_revision: a live event; None: as the workflow is now.
            name: of the new workflow.
            by: who decides it.
            why: the reason, for the lineage of the new workflow.

        Raises:
            TenantScopeError: this workflow is not there, or no workflow can have this name.
            InvalidInputError: the name is taken, or the revision is none to fork from; nothing was written.
        """
        return fork(self._env, at_revision, name, by=by, why=why, view=self._view)
