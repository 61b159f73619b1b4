"""Who&When's logs: teams of agents, each log with what went wrong in it and by whom."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Raw

from strandline.model.event import Role
from strandline.transcripts.conversations import Form
from strandline.transcripts.lines import Line
from strandline.transcripts.statements import (
    ABSENT,
    Heard,
    Said,
    actor_of,
    holds_text,
    message_of,
    quoted,
    read_record,
    unread_of,
)
from strandline.transcripts.structure import member, value_end

_READ: Final = frozenset({"role", "name", "content"})
_PROMPTS: Final = b'"system_prompt"'


class _Turn(msgspec.Struct, gc=False):
    content: Raw = ABSENT


_TURN: Final = msgspec.json.Decoder(_Turn)
_MEMBERS: Final = msgspec.json.Decoder(dict[str, Raw])


def read_turn(line: Line, _: Heard) -> Said:
    """Return what one turn states. Who has a name is an agent, also where its role is `user`.

    Raises:
        ImportFormatError: it is damaged.
    """
    fields = read_record(line)
    turn = line.decode(_TURN)
    role = actor_of(line, fields.get("role"), "role")
    name = fields.get("name") or None
    actor = role if name is None else actor_of(line, name, "name")
    voice = Role.SYSTEM if role == "system" else Role.ASSISTANT
    if role == "human" or (role == "user" and name is None):
        voice = Role.USER
    said = Said(actor=actor, role=voice, skipped=unread_of(fields, _READ))
    if holds_text(line, turn.content, "content"):
        said.statements.append(message_of(line, turn.content))
    else:
        said.skipped.append("empty_block")
    return said


def prompts_of(line: Line) -> Iterable[Line]:
    """Return the system prompts of the agents, each as a turn."""
    at = member(line.data, _PROMPTS)
    end = None if at is None or line.data[at : at + 1] != b"{" else value_end(line.data, at)
    if at is None or end is None:
        return []
    (prompts,) = line.parts([(at, end)])
    turns = []
    for agent, prompt in prompts.decode(_MEMBERS).items():
        turn = b'{"role":"system","name":' + quoted(agent) + b',"content":' + bytes(prompt) + b"}"
        turns.append(Line(prompts.number, prompts.start, prompts.as_it_stood(turn), ended=False))
        turns[-1].size_bytes = prompts.size_bytes
    return turns


WHO_AND_WHEN: Final = Form(
    name="who_and_when", read=read_turn, lists=(b'"history"',), beside=prompts_of, beside_names=("system_prompt",)
)
