"""OpenAI's messages: a record is a message, a response of chat completions, or a conversation.

Conversations are objects with a list of messages, which fine-tuning lines, requests (Anthropic's too) and tau-bench
episodes are.
"""

from __future__ import annotations

from typing import Final

from strandline.transcripts.conversations import Form
from strandline.transcripts.openai_message import read_message
from strandline.transcripts.openai_records import LISTS, only_choice, system_of

OPENAI: Final = Form(
    name="openai", read=read_message, lists=LISTS, beside=system_of, beside_names=("system",), message=only_choice
)
