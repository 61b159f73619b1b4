"""The verbs about summaries that other tools make in the agent's own context (I9, I10)."""

from __future__ import annotations

from strandline.client.verbs import Verbs
from strandline.engine.foreign import judge_foreign, list_foreign, read_carried
from strandline.limits import CARRIED_TOKENS
from strandline.model.foreign import Carried, ForeignJudgement
from strandline.model.outcome import ForeignSummary


class ForeignVerbs(Verbs):
    """A part of `Workflow`."""

    def foreign_summaries(self) -> list[ForeignSummary]:
        """Return the summaries that other tools wrote into imported transcripts, in log order.

        Raises:
            InvalidInputError: the view is a narrow one: they speak of what it may not read.
        """
        return list_foreign(self._env, self._view)

    def carried(self, budget: int = CARRIED_TOKENS, *, beside: str = "") -> Carried:
        """Read what must stand beside a summary that another tool makes: facts in force, open calls, a ledger.

        Args:
            budget: tokens. Facts and open calls are never cut; the ledger takes what they leave.
            beside: what the reader has anyhow: references that stand there need no place.

        Raises:
            InvalidInputError: a budget that can't be.
            CorruptRecordError: an event, or the register, is not what was written.
        """
        return read_carried(self._env, self._view, budget, beside)

    def judge_foreign(self, text: str, *, through: int | None = None, by: str = "") -> ForeignJudgement:
        """Say what a summary that another tool made keeps of the log, and what it says that the log does not.

        Where it drops a mandatory fact, or says of an approval, an issue, a constraint or a call what nobody did, a
        case is opened: once, however often it is judged.

        Args:
            text: the summary.
            through: the last event that it speaks for; None: the newest one.
            by: what judged it, for the case.

        Raises:
            InvalidInputError: no text, one longer than DRAFT_BYTES_MAX, an event that is not there, or a narrow view.
            CorruptRecordError: an event, or the register, is not what was written.
        """
        return judge_foreign(self._env, self._view, text, through, by)
