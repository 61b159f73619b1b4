"""What the tests of the engine stand on: stores, generated logs with an oracle, and strict checkers of messages.

The checkers are tested here: each must refuse what its provider refuses.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

import strandline
from strandline.engine.reading import read_log
from strandline.model.ids import Scope
from strandline.testing import SeededEntropy, VirtualClock

STORES = ("sqlite", "memory")
WHOLE = 10_000_000  # tokens: a budget in which every context fits
SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)
PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)  # to explain takes longer than to shrink

_numbers = itertools.count(1)


def bounded(examples: int) -> settings:
    """Return a hypothesis profile with so many examples and no clock."""
    return settings(max_examples=examples, deadline=None, suppress_health_check=SLOW, phases=PHASES)


def open_store(kind: str, folder: Path, **arguments) -> strandline.Strandline:
    """Open a store of this kind, whose clock is the test's own."""
    url = ":memory:" if kind == "memory" else folder / "store.db"
    arguments = {"clock": VirtualClock(), "entropy": SeededEntropy(next(_numbers)), "durability": "normal"} | arguments
    return strandline.open(url, **arguments)


def new_workflow(db: strandline.Strandline) -> strandline.Workflow:
    """Return a workflow that nobody has written to."""
    return db.tenant("acme").workflow(f"run-{next(_numbers)}")


@contextmanager
def transaction(db: strandline.Strandline, wf: strandline.Workflow, *, write: bool = False) -> Iterator:
    scope = Scope(tenant="acme", workflow=wf.name)
    with (db.store.write if write else db.store.read)(scope) as tx:
        yield tx


def log_of(db, wf) -> list:
    with transaction(db, wf) as tx:
        return list(read_log(tx, 1, tx.log.head().revision, wf.name))


def standing(db, wf) -> set[tuple[str, str, str, str, int]]:
    """Return the register: (kind, subject, holder, state, source_seq) of each fact that holds."""
    with transaction(db, wf) as tx:
        return {
            (f.key.kind.value, f.key.subject, f.key.holder if f.key.kind != "call" else "", f.state.value, f.source_seq)
            for f in tx.register.as_of(2**62)
        }


def lease_of(db, wf, view: str = "main") -> str | None:
    """Return the attempt that holds the view's lease, or None."""
    with transaction(db, wf) as tx:
        head = tx.views.get(view)
        return head.lease_attempt if head else None


def states(db, wf) -> list[tuple[str, list[str]]]:
    """Return each candidate's state with those of its attempts, the oldest first."""
    with transaction(db, wf) as tx:
        found = sorted(tx.jobs.all_candidates(), key=lambda candidate: candidate.plan.base_generation)
        return [(c.state.value, [a.state.value for a in tx.jobs.attempts(c.candidate_id)]) for c in found]


def seen_of(wf) -> dict[str, object]:
    """Return all that a reader can see of the memory, but for fences, which a refused attempt may leave."""
    context = wf.context(WHOLE)
    return {
        "generation": context.generation,
        "watermark": context.watermark,
        "revision": context.revision,
        "parts": [(part.kind.value, part.from_seq, part.through_seq, part.text) for part in context.parts],
        "manifest": wf.manifest(),
        "lineage": [entry for entry in wf.lineage() if entry.kind != "fence"],
    }


def talk(turns: int, *, words: int = 12, start: int = 1) -> list[strandline.NewEvent]:
    """Return turns of user and agent, each with references of its own and about `words` words."""
    filler = " ".join(["the", "pump", "room", "was", "inspected", "again"] * (words // 6 + 1))[: words * 6]
    events = []
    for number in range(start, start + turns):
        events.append(strandline.message("user", f"Step {number}: look at /srv/site/{number}/plan.md and {filler}."))
        events.append(strandline.message("assistant", f"Step {number} wrote bucket-{number:04x}; then {filler}."))
    return events


def quiet(request: strandline.SummaryRequest) -> str:
    """Summarize honestly and shortly."""
    return f"Work went on from event {request.from_seq}."


# ---------------------------------------------------------------------------------------------- generated logs

CALL_IDS = ("c1", "c1_2", "toolu_A")
LANES = ("main", "scout")
CONTENTS = ("", "bucket-77aa is ready at /srv/out/77.txt", {"rows": 3, "id": "job-8841"}, [1, 2, 3], 12.5, None, "  ")


@dataclass
class Call:
    """One call of the oracle: which event made it, and which closed it."""

    call_id: str
    lane: str
    seq: int
    closed: int | None = None
    answered: bool = False


@dataclass
class Log:
    """Builds valid events from drawn numbers, and keeps its own account of calls: the oracle."""

    events: list[strandline.NewEvent] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    answers: dict[int, int] = field(default_factory=dict)  # seq of a result -> seq of the call that it belongs to
    held: set[str] = field(default_factory=set)  # references that an event declares

    def take(self, op: str, a: int, b: int) -> None:
        event = getattr(self, f"_{op}")(a, b)
        if event is not None:
            self.events.append(event)

    @property
    def seq(self) -> int:
        return len(self.events) + 1

    def _ref(self, a: int, b: int) -> str:
        return f"asset-{a:x}{b:x}{self.seq % 50:02x}"

    def _user(self, a: int, b: int) -> strandline.NewEvent:
        lane = LANES[a % 2]
        for call in self.calls:
            if call.closed is None and call.lane == lane:
                call.closed = self.seq
        return strandline.message("user", f"Please check {self._ref(a, b)} and /etc/app/{b}.conf now", actor=lane)

    def _agent(self, a: int, b: int) -> strandline.NewEvent:
        return strandline.message(
            "assistant", f"I looked at {self._ref(a, b)}; it has {a * 10 + b} MB", actor=LANES[a % 2]
        )

    def _system(self, a: int, b: int) -> strandline.NewEvent:
        return strandline.message("system", f"You may use tool-set {b}.", actor=LANES[a % 2])

    def _thought(self, a: int, b: int) -> strandline.NewEvent:
        return strandline.thinking(f"perhaps {self._ref(a, b)}")

    def _call(self, a: int, b: int) -> strandline.NewEvent:
        call_id, lane = CALL_IDS[a % len(CALL_IDS)], LANES[b % 2]
        self.calls.append(Call(call_id, lane, self.seq))
        return strandline.tool_call(call_id, "fetch", {"path": f"/srv/in/{a}/{self.seq}.csv", "n": b}, actor=lane)

    def _result(self, a: int, b: int) -> strandline.NewEvent | None:
        if not self.calls:
            return None
        call_id = self.calls[a % len(self.calls)].call_id
        mine = [call for call in self.calls if call.call_id == call_id]
        waiting = [call for call in mine if call.closed is None]
        unknown = [call for call in mine if not call.answered]
        if waiting:
            waiting[-1].closed, waiting[-1].answered = self.seq, True
            self.answers[self.seq] = waiting[-1].seq
        elif unknown:
            unknown[-1].answered = True
            self.answers[self.seq] = unknown[-1].seq
        return strandline.tool_result(call_id, CONTENTS[b % len(CONTENTS)], is_error=b == 5)

    def _abandon(self, a: int, b: int) -> strandline.NewEvent | None:
        waiting = [call for call in self.calls if call.closed is None]
        if not waiting:
            return None
        call_id = waiting[a % len(waiting)].call_id
        [call for call in waiting if call.call_id == call_id][-1].closed = self.seq
        return strandline.abandoned(call_id, "the agent stopped")

    def _fact(self, a: int, b: int) -> strandline.NewEvent:
        subject, ref = f"rule-{a}", self._ref(a, b)
        if b % 6 == 5:
            return strandline.pin(sorted(self.held)[a % len(self.held)]) if self.held else self._said(a, 0)
        return (
            strandline.constraint(subject, f"Never touch {ref}."),
            strandline.issue(subject, f"{ref} leaks."),
            strandline.approval(subject, f"Go on with {ref}.", granter=f"dana-{b}"),
            strandline.revoke(subject, "Not any more."),
            strandline.artifact(subject, f"handle-{a}{b}{self.seq:03d}", "the report"),
        )[b % 6]

    def _said(self, a: int, b: int) -> strandline.NewEvent:
        if b % 3 == 0:
            self.held.add(f"ticket {a}.{self.seq}")
        return (
            strandline.note(f"Seen: {self._ref(a, b)}", refs=[f"ticket {a}.{self.seq}"]),
            strandline.decision(f"We take {self._ref(a, b)}."),
            strandline.failed_attempt(f"{self._ref(a, b)} could not be opened."),
        )[b % 3]


OPS = ("user", "agent", "call", "result", "result", "call", "abandon", "said", "fact", "thought", "system")


def logs(max_size: int, ops: tuple[str, ...] = OPS, min_size: int = 1) -> st.SearchStrategy[Log]:
    """Generate logs: random interleavings of calls, results, turns and facts."""
    drawn = st.tuples(st.sampled_from(ops), st.integers(0, 5), st.integers(0, 6))

    def build(steps: list[tuple[str, int, int]]) -> Log:
        log = Log()
        for step in steps:
            log.take(*step)
        if not log.events:
            log.take("user", 0, 0)
        return log

    return st.lists(drawn, min_size=min_size, max_size=max_size).map(build)


# ---------------------------------------------------------------------------------------------- what providers accept

_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")
_ANTHROPIC_TOOL = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_OPENAI_TOOL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_RESULT_BLOCKS = {"text", "image", "document", "search_result"}


def check_anthropic(messages: list[dict]) -> None:
    """Check messages by the rules of the Anthropic Messages API; AssertionError names the first that is broken."""
    assert not messages or messages[0]["role"] == "user", "the first message is the user's"
    asked: list[str] = []
    used: set[str] = set()
    for before, message in zip([None, *messages], messages, strict=False):
        assert set(message) == {"role", "content"}, "a message has role and content"
        assert message["role"] in ("user", "assistant"), "a role is user or assistant"
        assert before is None or before["role"] != message["role"], "roles alternate"
        assert message["content"], "a message is not empty"
        blocks = message["content"]
        results = [block for block in blocks if block["type"] == "tool_result"]
        assert blocks[: len(results)] == results, "results stand first"
        answered = [block["tool_use_id"] for block in results]
        assert sorted(answered) == sorted(asked), "the next message answers each call once, and nothing else"
        asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert not used & set(asked), "ids are unique"
        assert len(set(asked)) == len(asked), "ids are unique"
        used |= set(asked)
        for block in blocks:
            _check_block(block, message["role"])
    assert not asked, "the last calls are answered"
    assert json.dumps(messages, allow_nan=False)


def _check_block(block: dict, role: str) -> None:
    kind = block["type"]
    if kind == "text":
        assert isinstance(block["text"], str), "a text is a string"
        assert block["text"].strip(), "a text is not empty"
    elif kind == "tool_use":
        assert role == "assistant", "the assistant calls"
        assert _ANTHROPIC_ID.fullmatch(block["id"]), f"the id {block['id']!r} has letters that are not allowed"
        assert _ANTHROPIC_TOOL.fullmatch(block["name"]), f"the tool {block['name']!r} has letters that are not allowed"
        assert isinstance(block["input"], dict), "an input is an object"
    elif kind == "tool_result":
        assert role == "user", "results are the user's"
        assert isinstance(block["content"], str | list), "a result is text or blocks"
        for part in block["content"] if isinstance(block["content"], list) else ():
            assert isinstance(part, dict), "a result's block is an object"
            assert part.get("type") in _RESULT_BLOCKS, "a result's block is of a kind that is allowed there"
            _check_block(part, role)
    else:
        assert kind in ("image", "document"), f"the block {kind!r} is known"


def check_openai(messages: list[dict]) -> None:
    """Check messages by the rules of OpenAI's chat completions; AssertionError names the first that is broken."""
    waiting: list[str] = []
    used: set[str] = set()
    for message in messages:
        role = message["role"]
        assert role in ("system", "user", "assistant", "tool"), "a role is known"
        if role == "tool":
            assert message["tool_call_id"] in waiting, "a tool message answers a call right before it, once"
            waiting.remove(message["tool_call_id"])
            assert isinstance(message["content"], str), "a tool message has text"
            continue
        assert not waiting, "each call is answered before anything else is said"
        calls = message.get("tool_calls")
        assert calls is None or (role == "assistant" and calls), "only the assistant calls, and never an empty list"
        if calls is None:
            assert isinstance(message["content"], str), "a message has text"
            assert message["content"].strip(), "a message is not empty"
            continue
        waiting = [call["id"] for call in calls]
        assert not used & set(waiting), "ids are unique"
        assert len(set(waiting)) == len(waiting), "ids are unique"
        used |= set(waiting)
        for call in calls:
            assert call["type"] == "function", "a call is of a function"
            name = call["function"]["name"]
            assert _OPENAI_TOOL.fullmatch(name), f"the tool {name!r} has letters that are not allowed"
            json.loads(call["function"]["arguments"])
    assert not waiting, "the last calls are answered"
    assert json.dumps(messages, allow_nan=False)


CHECKERS: dict[str, Callable[[list[dict]], None]] = {"anthropic": check_anthropic, "openai": check_openai}


def said(role: str, *blocks: dict | str) -> dict:
    return {
        "role": role,
        "content": [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks],
    }


def use(call_id: str, **changes: object) -> dict:
    return {"type": "tool_use", "id": call_id, "name": "fetch", "input": {}} | changes


def answer(call_id: str, content: object = "") -> dict:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


GOOD = [said("user", "hello"), said("assistant", "so", use("a"), use("b")), said("user", answer("a"), answer("b"), "x")]


def test_the_checker_of_anthropic_messages_accepts_what_is_valid():
    check_anthropic(GOOD)
    check_anthropic([])


@pytest.mark.parametrize(
    "bad",
    [
        [said("assistant", "hello")],
        [said("user", "a"), said("user", "b")],
        [said("user")],
        [said("user", " ")],
        [*GOOD[:2]],
        [*GOOD[:2], said("user", answer("a"))],
        [*GOOD[:2], said("user", "x", answer("a"), answer("b"))],
        [*GOOD[:2], said("user", answer("a"), answer("b"), answer("b"))],
        [said("user", answer("z"))],
        [*GOOD, said("assistant", use("a")), said("user", answer("a"))],
        [said("user", "a"), said("assistant", use("a.b")), said("user", answer("a.b"))],
        [said("user", "a"), said("assistant", use("a", input=[])), said("user", answer("a"))],
        [said("user", "a"), said("assistant", use("a", name="a b")), said("user", answer("a"))],
        [said("user", "a"), said("assistant", use("a")), said("user", answer("a", [1]))],
        [said("user", "a"), said("assistant", use("a")), said("user", answer("a", [{"type": "row"}]))],
    ],
)
def test_the_checker_of_anthropic_messages_refuses_what_is_not(bad):
    with pytest.raises(AssertionError):
        check_anthropic(bad)


def calling(*ids: str) -> dict:
    made = [{"id": i, "type": "function", "function": {"name": "fetch", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def tool(call_id: str) -> dict:
    return {"role": "tool", "tool_call_id": call_id, "content": ""}


def test_the_checker_of_openai_messages_accepts_what_is_valid():
    check_openai([{"role": "user", "content": "x"}, calling("a", "b"), tool("b"), tool("a"), calling("c"), tool("c")])


@pytest.mark.parametrize(
    "bad",
    [
        [tool("a")],
        [calling("a")],
        [calling("a"), {"role": "user", "content": "x"}, tool("a")],
        [calling("a"), tool("a"), tool("a")],
        [calling("a", "a"), tool("a"), tool("a")],
        [calling("a"), tool("a"), calling("a"), tool("a")],
        [calling()],
        [{"role": "assistant", "content": None}],
        [{"role": "user", "content": " "}],
    ],
)
def test_the_checker_of_openai_messages_refuses_what_is_not(bad):
    with pytest.raises(AssertionError):
        check_openai(bad)
