"""Constraints: those that nobody declared, found and pinned; declared ones, byte for byte after 50 generations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Final

import strandline
from strandline.bench.quality.constraint_corpus import DEMANDING, WISHES, digest_of, user_messages, worded
from strandline.bench.quality.row import Row
from strandline.rules.standing import find_standing

FOUND_MARK: Final = 97.0  # % of constraints, each put in each way
WRONG_PINS_MARK: Final = 1.0  # per 100 messages
PRECISION_MARK: Final = 60.0
REAL_MARK: Final = 80.0  # an aim
KEPT_MARK: Final = 100.0
FRAMINGS: Final = len(DEMANDING)
AROUND: Final = 4  # messages of real users between two constraints
BUDGET: Final = 32_000
GENERATIONS: Final = 50
POSITIONS: Final = 5  # of each constraint in what stands before the first generation
HAYSTACKS: Final = 2
HAYSTACK_MESSAGES: Final = 200
HAYSTACK_CHARS: Final = 400  # of a message
ROUND_MESSAGES: Final = 3  # between two generations
LABELS: Final = "pins.txt"  # what a reader of the real messages thought of each sentence, by its digest

FOUND: Final = Row(
    id="found",
    measure="constraints that nobody declared, found and pinned",
    data=f"{len(WISHES)} constraints in {FRAMINGS} framings each, among real messages",
    mark=FOUND_MARK,
)
REAL: Final = Row(
    id="found_real",
    measure="constraints of real users, found and pinned",
    data="users' messages of the data sets",
    mark=REAL_MARK,
)
WRONG_PINS: Final = Row(
    id="wrong_pins",
    measure="wrong pins per 100 messages of users",
    data="users' messages of the data sets",
    mark=WRONG_PINS_MARK,
    at_most=True,
    unit="",
)
PRECISION: Final = Row(
    id="pin_precision",
    measure="pins that are right",
    data="users' messages of the data sets",
    mark=PRECISION_MARK,
)
KEPT: Final = Row(
    id="constraints_50",
    measure=f"declared constraints, byte for byte, after 1 and after {GENERATIONS} generations",
    data=f"{len(WISHES)} constraints x {POSITIONS} positions x {FRAMINGS} framings x {HAYSTACKS} haystacks",
    mark=KEPT_MARK,
)
_ROWS: Final = (FOUND, REAL, WRONG_PINS, PRECISION, KEPT)


def measure(data: Path, tell: Callable[[int, int], None]) -> Iterator[Row]:
    """Measure on made-up constraints among real messages, and on the real messages."""
    said = list(user_messages(data))
    if not said:
        for row in _ROWS:
            yield row.measured(None, "no transcript is there")
        return
    steps = FRAMINGS + HAYSTACKS * FRAMINGS
    found = 0
    for number in range(FRAMINGS):
        tell(number, steps)
        found += _found(worded(number), said[number * AROUND :])
    yield FOUND.measured(100 * found / (FRAMINGS * len(WISHES)))
    yield from _real(said)
    kept = inserted = 0
    for haystack in range(HAYSTACKS):
        for number in range(FRAMINGS):
            tell(FRAMINGS + haystack * FRAMINGS + number, steps)
            good, of = _kept(worded(number), said[haystack * len(said) // HAYSTACKS + number :])
            kept, inserted = kept + good, inserted + of
    yield KEPT.measured(100 * kept / inserted, f"{inserted} insertions, after 1 and after {GENERATIONS} generations")


# ---------------------------------------------------------------------------------------------- nobody declared them


def _found(constraints: Sequence[str], around: Sequence[str]) -> int:
    """Return how many constraints stand among the anchors once the messages that state them are covered."""
    with strandline.open(":memory:") as db:
        workflow = db.tenant("bench").workflow("found")
        for number, constraint in enumerate(constraints):
            before = around[number * AROUND : (number + 1) * AROUND]
            talk = [strandline.message("user", text[:HAYSTACK_CHARS]) for text in before]
            workflow.append([*talk, strandline.message("user", f"{_opening(before)}{constraint}")])
        revision = workflow.append(strandline.message("assistant", "Understood.")).revision
        workflow.compact(budget=BUDGET, through=revision)
        anchors = _anchors(workflow)
    return sum(constraint in anchors for constraint in constraints)


def _opening(before: Sequence[str]) -> str:
    """Return a line of a real message that stands before a constraint in the same message."""
    lines = [line for text in before for line in text.splitlines() if line.strip()]
    return f"{lines[0][:HAYSTACK_CHARS]}\n" if lines else ""


def _real(said: Sequence[str]) -> Iterator[Row]:
    """Judge what is pinned of real messages by what a reader thought of it."""
    thought = _labels()
    missed = {digest for digest, label in thought.items() if label == "missed"}
    verdicts: Counter[str] = Counter()
    for text in said:
        for one in find_standing(text):
            if one.sure:
                verdicts[thought.get(digest_of(text[one.start : one.end].encode()), "unread")] += 1
    wrong = verdicts["wrong"] + verdicts["unread"]
    right = verdicts["right"] + verdicts["missed"]
    unread = f"{verdicts['unread']} pins that nobody has read count as wrong" if verdicts["unread"] else ""
    yield REAL.measured(
        100 * right / (right + len(missed)) if right else 0.0, "by one reading; " + (unread or "all pins read")
    )
    yield WRONG_PINS.measured(100 * wrong / len(said), unread)
    yield PRECISION.measured(100 * right / (right + wrong) if right + wrong else 100.0, unread)


def _labels() -> dict[str, str]:
    lines = (files("strandline.bench.quality") / LABELS).read_text(encoding="utf-8").splitlines()
    pairs = (line.split() for line in lines if line and not line.startswith("#"))
    return {line[0]: line[1] for line in pairs}


# ---------------------------------------------------------------------------------------------- declared


def _kept(constraints: Sequence[str], haystack: Sequence[str]) -> tuple[int, int]:
    """Return how many declared constraints stand byte for byte in the anchors after the first generation and after the
    last, and how many were declared.
    """
    messages = [text[:HAYSTACK_CHARS] for text in islice(haystack, HAYSTACK_MESSAGES + ROUND_MESSAGES * GENERATIONS)]
    before, later = messages[:HAYSTACK_MESSAGES], messages[HAYSTACK_MESSAGES:]
    with strandline.open(":memory:") as db:
        workflow = db.tenant("bench").workflow("declared")
        share = -(-len(before) // (POSITIONS - 1))
        for position in range(POSITIONS):
            declared = [strandline.constraint(f"c{number}-{position}", text) for number, text in enumerate(constraints)]
            between = before[position * share : (position + 1) * share]
            workflow.append([*declared, *(strandline.message("assistant", text) for text in between)])
        lines = {f"constraint c{n}-{p} [": text for n, text in enumerate(constraints) for p in range(POSITIONS)}
        standing = set(lines)
        for generation in range(GENERATIONS):
            talk = later[generation * ROUND_MESSAGES : (generation + 1) * ROUND_MESSAGES] or ["Go on."]
            revision = workflow.append([strandline.message("assistant", text) for text in talk]).revision
            workflow.compact(budget=BUDGET, through=revision)
            if generation in (0, GENERATIONS - 1):
                standing &= _standing(_anchors(workflow), lines)
    return len(standing), len(lines)


def _standing(anchors: str, lines: dict[str, str]) -> set[str]:
    """Return the constraints whose line of the anchors ends with the very words that declared it."""
    found = set()
    for line in anchors.splitlines():
        name = line.removeprefix("- ").split("event ")[0]
        if name in lines and line.partition("]: ")[2] == lines[name]:
            found.add(name)
    return found


def _anchors(workflow: strandline.Workflow) -> str:
    parts = workflow.context(budget=2 * BUDGET).parts
    return "\n".join(part.text for part in parts if part.kind is strandline.PartKind.ANCHORS)
