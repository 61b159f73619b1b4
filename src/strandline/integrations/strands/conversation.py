"""The conversation manager: Strands says when the list is too long, Strandline covers its older part by a summary."""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING, Any, Final

from strands.agent.conversation_manager import ConversationManager
from strands.types.content import Message
from strands.types.exceptions import ContextWindowOverflowException

from strandline import CompactionResult, InvalidInputError, Workflow
from strandline.integrations.items import Item, active_summary, compact_through, covered_count, find_item
from strandline.integrations.strands.messages import FRAMEWORK
from strandline.limits import GUEST_SUMMARY_TOKENS, SUMMARIZER_DEADLINE_S

if TYPE_CHECKING:
    from strands import Agent

_MARK: Final = "strandline_generation"  # in the metadata of the message that holds the summary
_log = logging.getLogger("strandline.integrations")


class StrandlineConversationManager(ConversationManager):
    """Keeps an agent's list of messages short: the active summary, and the messages that it does not speak for.

    The log has all of them: the session manager writes it. What is restored is computed from the log, so it is the list
    that was live.
    """

    def __init__(
        self,
        workflow: Workflow,
        *,
        keep_messages: int = 10,
        summary_tokens: int = GUEST_SUMMARY_TOKENS,
        summarizer: object = None,
        deadline_s: float = SUMMARIZER_DEADLINE_S,
        proactive_compression: bool = True,
    ) -> None:
        """Take the workflow of the agent, of `StrandlineSessionManager.workflow`.

        Args:
            workflow: that the session manager writes the agent's messages to.
            keep_messages: the newest ones that stay as they are.
            summary_tokens: of a summary, at most.
            summarizer: as of `Workflow.compact`.
            deadline_s: for one draft.
            proactive_compression: compact at 70 % of the model's window, and not only when it overflows.

        Raises:
            InvalidInputError: fewer than one message to keep.
        """
        super().__init__(proactive_compression=proactive_compression)
        if keep_messages < 1:
            raise InvalidInputError(f"keep_messages is 1 at least, not {keep_messages!r}")
        self._workflow = workflow
        self._keep_messages = keep_messages
        self._summary_tokens = summary_tokens
        self._summarizer = summarizer
        self._deadline_s = deadline_s

    def restore_from_session(self, state: dict[str, Any]) -> list[Message] | None:
        """Return the summary that stands before the messages which are restored, as the log has it now."""
        super().restore_from_session(state)
        summary, self.removed_message_count = self._summary()
        return None if summary is None else [summary]

    def apply_management(self, agent: Agent, **kwargs: object) -> None:
        """Do nothing: Strands says when the list is too long."""

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: object) -> None:
        """Cover the older messages by a validated summary; if none can be made, the list stays as it is.

        Raises:
            ContextWindowOverflowException: the model's window has overflown, and the list can't be made shorter.
            InvalidInputError: the list is not the one that the session manager stored.
        """
        live = [message for message in agent.messages if not _is_summary(message)]
        keep = self._keep_messages if e is None else max(1, min(self._keep_messages, len(live) // 2))
        cut = _whole_turns(live, len(live) - keep)
        if cut > 0:
            self._compact(live[cut - 1], cut)
        summary, covered = self._summary()
        gone = covered - self.removed_message_count
        if summary is None or gone <= 0:
            if e is not None:
                raise ContextWindowOverflowException("no summary could be made of the older messages") from e
            return
        agent.messages[:] = [summary, *live[gone:]]
        self.removed_message_count = covered

    def _compact(self, last: Message, count: int) -> None:
        number = self.removed_message_count + count - 1
        stored = find_item(self._workflow, FRAMEWORK, str(number))
        if stored is None or not _is_of(stored, last):
            raise InvalidInputError(
                f"message {number} of the agent's list is not the one in {self._workflow!r}; nothing was compacted",
                hint="Let StrandlineSessionManager store the agent's messages, and nothing else shorten its list.",
            )
        outcome = compact_through(
            self._workflow,
            stored.seqs[-1],
            summary_tokens=self._summary_tokens,
            summarizer=self._summarizer,
            deadline_s=self._deadline_s,
        )
        if outcome.outcome is not CompactionResult.ACTIVATED:
            _log.warning(
                "a compaction made no summary: %s; the agent goes on with the prior one", outcome.outcome.value
            )

    def _summary(self) -> tuple[Message | None, int]:
        """Return the active summary as a message, and how many messages it stands for."""
        summary = active_summary(self._workflow)
        covered = covered_count(self._workflow, FRAMEWORK, summary.watermark, lambda block: "toolResult" in block)
        if not covered:
            return None, 0
        name = f"{self._workflow!r} {summary.generation}"
        return {
            "role": "user",
            "content": [{"text": summary.text}],
            "tracking_id": str(uuid.uuid5(uuid.NAMESPACE_OID, name)),
            "metadata": {"custom": {_MARK: summary.generation}},
        }, covered


def _is_summary(message: Message) -> bool:
    return _MARK in message.get("metadata", {}).get("custom", {})


def _is_of(stored: Item, message: Message) -> bool:
    """Tell whether an item is of a message; of one that was erased, only its number tells."""
    frame = stored.frame
    return frame is None or frame["message"].get("tracking_id") == message.get("tracking_id")


def _whole_turns(messages: list[Message], cut: int) -> int:
    """Return the last place at or before `cut` where no result is parted from its call."""
    while 0 < cut < len(messages) and any("toolResult" in block for block in messages[cut]["content"]):
        cut -= 1
    return cut
