"""What the hooks of one installation do: the file strandline.json beside settings.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

import strandline
from strandline.errors import InvalidInputError
from strandline.limits import CARRIED_TOKENS

Failure = Literal["open", "closed"]
Refusal = Literal["deny", "ask"]

EVENTS: Final = ("PreCompact", "PostCompact", "SessionStart", "UserPromptSubmit", "Stop", "PreToolUse")
CAN_BLOCK: Final = frozenset({"PreCompact", "UserPromptSubmit", "PreToolUse"})
"""Events on which a hook that fails may stop Claude Code. A Stop that is blocked would make it go on for ever."""

FAILURES: Final[Mapping[str, Failure]] = {event: "closed" if event == "PreToolUse" else "open" for event in EVENTS}
"""What happens where a hook fails: a guard that can't decide lets nothing through, all else goes on."""

_FIX: Final = "Correct the file; `strandline claude-code install` writes a new one where there is none."


class GuardRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which calls of a tool need what, as the verb `guard` takes it. Nothing but events of the log counts (I20)."""

    tool: str  # its name; "*": any tool
    mentions: tuple[str, ...] = ()  # one of these must stand in a text of its input; none: every call
    action: str = ""  # what is permitted, in the permits; "": the tool's name
    approved: tuple[str, ...] = ()
    quorum: int = 1  # of different granters, for each of `approved`
    granters: tuple[str, ...] = ()  # only these may grant
    resolved: tuple[str, ...] = ()
    no_open_issue: tuple[str, ...] = ()
    in_force: tuple[str, ...] = ()
    not_in_force: tuple[str, ...] = ()
    once: bool = False  # the same input a second time is a repeat
    otherwise: Refusal = "deny"  # where a need is not met
    again: Refusal = "ask"  # of a repeat

    def needs(self) -> Iterator[strandline.ActionNeed]:
        """Yield what must hold.

        Raises:
            InvalidInputError: a need that can't be.
        """
        for subject in self.approved:
            yield strandline.approved(subject, quorum=self.quorum, granters=self.granters or None)
        yield from (strandline.resolved(subject) for subject in self.resolved)
        yield from (strandline.no_open_issue(subject) for subject in self.no_open_issue)
        yield from (strandline.in_force(subject) for subject in self.in_force)
        yield from (strandline.not_in_force(subject) for subject in self.not_in_force)


class HookConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where the log is, and what is to be done."""

    store: str = "strandline.db"  # a URL, or a path from the folder of this file
    tenant: str = "default"
    workflow: str = ""  # one for all sessions; "": one for each, named by the session's id
    budget: int = CARRIED_TOKENS  # tokens of what is put beside a summary
    on_failure: dict[str, Failure] = {}
    guards: tuple[GuardRule, ...] = ()

    def on_failure_of(self, event: str) -> Failure:
        """Return what happens where the hook of an event fails."""
        return self.on_failure.get(event, FAILURES.get(event, "open"))

    @property
    def matcher(self) -> str:
        """The tools whose calls are guarded, as settings.json names them; "": none."""
        tools = dict.fromkeys(rule.tool for rule in self.guards)
        return "*" if "*" in tools else "|".join(tools)


_CONFIG: Final = msgspec.json.Decoder(HookConfig)


def read_config(path: Path) -> HookConfig:
    """Read and check a file of settings; the store is an absolute path, or a URL, then.

    Raises:
        InvalidInputError: it can't be read, is no such file, or names what can't be.
    """
    try:
        config = _CONFIG.decode(path.read_bytes())
    except OSError as error:
        raise InvalidInputError(f"{str(path)!r} can't be read: {error.strerror or error}", hint=_FIX) from error
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"{str(path)!r}: {error}", hint=_FIX) from error
    for event, failure in config.on_failure.items():
        if event not in EVENTS or (failure == "closed" and event not in CAN_BLOCK):
            which = ", ".join(sorted(CAN_BLOCK))
            said = f"on_failure of {event!r} is {failure!r}; only {which} can be closed"
            raise InvalidInputError(f"{str(path)!r}: {said}", hint=_FIX)
    for number, rule in enumerate(config.guards):
        try:
            if not (list(rule.needs()) or rule.once):
                raise InvalidInputError("it needs nothing; say what must hold, or once")
            if not rule.tool or any(not phrase.strip() for phrase in rule.mentions):
                raise InvalidInputError("an empty tool, or an empty phrase in mentions")
        except InvalidInputError as error:
            raise InvalidInputError(f"{str(path)!r}: guard {number}: {error.message}", hint=_FIX) from error
    store = config.store if "://" in config.store or config.store == ":memory:" else str(path.parent / config.store)
    return msgspec.structs.replace(config, store=store)
