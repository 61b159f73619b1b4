"""What the measures of constraints are made from: fifteen constraints, ways to put them, and what stands around."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from strandline.codec import encode_body, user_text
from strandline.model.event import NewEvent
from strandline.transcripts import open_transcript

FORMATS: Final = (".json", ".jsonl", ".traj")
INDEX: Final = "INDEX.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One constraint: what is to be done, or not, as a command and as an activity."""

    command: str
    activity: str
    negative: bool = False


WISHES: Final = (
    Wish(negative=True, command="push to the main branch", activity="pushing to the main branch"),
    Wish(negative=True, command="touch the production database", activity="touching the production database"),
    Wish(negative=True, command="send e-mails to customers", activity="sending e-mails to customers"),
    Wish(negative=True, command="share the API key with anyone", activity="sharing the API key with anyone"),
    Wish(negative=True, command="deploy on Fridays", activity="deploying on Fridays"),
    Wish(
        negative=True, command="add a dependency that is not pinned", activity="adding a dependency that is not pinned"
    ),
    Wish(negative=True, command="delete the audit records", activity="deleting the audit records"),
    Wish(negative=True, command="book a flight before 8 am", activity="booking a flight before 8 am"),
    Wish(command="run the whole test suite before every commit", activity="running the whole test suite"),
    Wish(command="ask Dana before you change the schema", activity="asking Dana"),
    Wish(command="answer in German", activity="answering in German"),
    Wish(command="keep the total cost under $500", activity="keeping the total cost under $500"),
    Wish(command="store all timestamps in UTC", activity="storing all timestamps in UTC"),
    Wish(command="name the ticket in each commit message", activity="naming the ticket"),
    Wish(command="publish only after the security review", activity="publishing after the security review"),
)
FORBIDDING: Final = (
    "Never {command}.",
    "Please do not {command}.",
    "You must not {command}.",
    "Under no circumstances should you {command}.",
    "From now on, don't {command}.",
    "Keep in mind that you are not allowed to {command}.",
    "I'd rather you didn't {command}.",
    "It would be great if you could avoid {activity}.",
    "Could you please make sure that you never {command}?",
    "{Activity} is off limits.",
    "Whatever happens, do not {command}.",
    "By the way, I don't want you to {command}.",
    "The last step is fine, but don't {command}.",
    "One rule: never {command}.",
    "Nobody is allowed to {command}.",
)
DEMANDING: Final = (
    "Always {command}.",
    "Please {command} from now on.",
    "You must {command}.",
    "Make sure that you {command}.",
    "From now on, {command}.",
    "Keep in mind that you have to {command}.",
    "I'd like you to always {command}.",
    "It is important that you {command}.",
    "Could you please always {command}?",
    "You are required to {command}.",
    "Whatever happens, {command}.",
    "For the rest of this project, {command}.",
    "The last step is fine, but always {command}.",
    "One rule: {command}.",
    "Don't forget to {command}.",
)


def worded(number: int) -> list[str]:
    """Return the constraints, each put in its `number`-th way."""
    found = []
    for wish in WISHES:
        framing = (FORBIDDING if wish.negative else DEMANDING)[number]
        activity = wish.activity
        found.append(
            framing.format(command=wish.command, activity=activity, Activity=activity[0].upper() + activity[1:])
        )
    return found


def user_messages(data: Path) -> Iterator[str]:
    """Yield what users say in the data sets, message by message, as an import reads them."""
    for event in _events(data):
        format_, body = encode_body(event)
        if said := user_text(event, format_, body):
            yield said


def digest_of(content: bytes) -> str:
    """Return a short digest of bytes, as text."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _events(data: Path) -> Iterator[NewEvent]:
    files = (path for path in sorted(data.rglob("*")) if path.suffix in FORMATS and path.name != INDEX)
    for path in files:
        for item in open_transcript(path, digest=digest_of).items():
            if isinstance(item, NewEvent):
                yield item
