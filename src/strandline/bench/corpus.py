"""What the store is filled with: the log of an agent at work, made from numbers, the same in every run."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import strandline
from strandline.bench.raw import Raw, bytes_on_disk

TENANT, WORKFLOW = "bench", "agent"
BATCH_EVENTS = 1_000
BATCHES_MIN = 100  # a smaller log is appended in smaller batches
COMPACTED_AT = (0.01, 0.02, 0.03, 1.0)  # shares of the log; the fourth compaction covers all of it from raw
TAIL_EVENTS = 20  # at least; appended after the last compaction
COMPACT_BUDGET_TOKENS = 8_000
CONTEXT_BUDGET_TOKENS = 16_000
BODY_BYTES = 1_024

_SEED = 20_261_129
_SENTENCES = 4_096
_WORDS = (
    "the request was answered with status and body as contract says after retry on staging while other runs went on "
    "check failed because field missing in response token expired before call order payment refund customer address "
    "queue worker started stopped again slow path timeout connection reset by peer schema migration table index column "
    "test passed expected actual difference between version branch merged review comment resolved open close next step"
)

Progress = Callable[[int, int], None]


@cache
def _sentences() -> list[str]:
    chance, words = random.Random(_SEED), _WORDS.split()
    return [" ".join(chance.choices(words, k=chance.randint(6, 18))).capitalize() + "." for _ in range(_SENTENCES)]


def prose(number: int, size: int) -> str:
    """Return a text of at least this size that names two references: a path that recurs, and an id of its own."""
    sentences = _sentences()
    parts = [f"Step {number} wrote build/reports/part-{number % 997}.json as job-{number:08x}."]
    length = len(parts[0])
    while length < size:
        parts.append(sentences[(number * 31 + len(parts) * 7) % _SENTENCES])
        length += len(parts[-1]) + 1
    return " ".join(parts)


def text_of(number: int) -> str:
    """Return a text of exactly BODY_BYTES."""
    return prose(number, BODY_BYTES)[:BODY_BYTES]


def random_text(number: int) -> tuple[str, list[str]]:
    """Return BODY_BYTES of random letters and digits, and the two references in them, new with each number."""
    chance = random.Random(_SEED + number)
    refs = [f"obj-{chance.getrandbits(48):012x}", f"run-{chance.getrandbits(48):012x}"]
    filler = "".join(chance.choices(string.ascii_letters + string.digits, k=BODY_BYTES))
    return f"{refs[0]} {refs[1]} {filler}"[:BODY_BYTES], refs


def records(first: int, count: int) -> Iterator[dict[str, object]]:
    """Yield an agent's turns as records of our own JSONL: a thought aloud, a call, its result."""
    for number in range(first, first + count):
        turn, part = divmod(number, 3)
        if part == 0:
            yield {"kind": "message", "key": f"m-{turn}", "role": "assistant", "text": prose(turn, 300)}
        elif part == 1:
            arguments = {"path": f"src/orders/step_{turn % 499}.py", "timeout_s": 30, "run": f"job-{turn:08x}"}
            yield {
                "kind": "tool_call",
                "key": f"c-{turn}",
                "call_id": f"call-{turn}",
                "tool": "run",
                "input": arguments,
            }
        else:
            content = prose(turn + 1, 900)
            yield {"kind": "tool_result", "key": f"r-{turn}", "call_id": f"call-{turn}", "content": content}


def events(first: int, count: int) -> list[strandline.NewEvent]:
    """Return the same turns as events."""
    return [_event(record) for record in records(first, count)]


def _event(record: dict[str, object]) -> strandline.NewEvent:
    key = str(record["key"])
    if record["kind"] == "message":
        return strandline.message("assistant", str(record["text"]), key=key)
    if record["kind"] == "tool_call":
        return strandline.tool_call(str(record["call_id"]), str(record["tool"]), record["input"], key=key)
    return strandline.tool_result(str(record["call_id"]), record["content"], key=key)


def bodies(first: int, count: int) -> list[bytes]:
    """Return the bodies of the same turns as the log holds them: text, or a block of JSON."""
    return [_body(record) for record in records(first, count)]


def _body(record: dict[str, object]) -> bytes:
    if record["kind"] == "message":
        return str(record["text"]).encode()
    if record["kind"] == "tool_call":
        block = {"id": record["call_id"], "input": record["input"], "name": record["tool"], "type": "tool_use"}
    else:
        block = {"content": record["content"], "tool_use_id": record["call_id"], "type": "tool_result"}
    return json.dumps(block, separators=(",", ":"), sort_keys=True).encode()


def free(wf: strandline.Workflow) -> int:
    """Return a number from which on no turn is in the log yet: each is appended under a number below three times it."""
    return 3 * wf.basis().revision


def workflow(db: strandline.Strandline) -> strandline.Workflow:
    """Return the workflow that the benchmark works on."""
    return db.tenant(TENANT).workflow(WORKFLOW)


def length(size: int) -> int:
    """Return how many events a corpus of this size has with its tail; the last call has its result."""
    return size + TAIL_EVENTS + -(size + TAIL_EVENTS) % 3


def build(path: Path, size: int, tell: Progress) -> None:
    """Build a store with one workflow of `size` events, as a long run leaves it behind.

    A checkpoint after each batch; compactions at COMPACTED_AT; then TAIL_EVENTS more and a checkpoint.
    """
    batch = max(1, min(BATCH_EVENTS, size // BATCHES_MIN))
    due = sorted({max(batch, round(share * size)) for share in COMPACTED_AT})
    with strandline.open(path) as db:
        wf = workflow(db)
        for first in range(0, size, batch):
            count = min(batch, size - first)
            wf.append(events(first, count))
            while due and first + count >= due[0]:
                due.pop(0)
                wf.compact(COMPACT_BUDGET_TOKENS)
            wf.checkpoint({"step": first}, turn=first // batch, basis=wf.basis())
            tell(first + count, size)
        wf.append(events(size, length(size) - size))
        wf.checkpoint({"step": size}, turn=size, basis=wf.basis())
    bytes_on_disk(path)


def build_raw(path: Path, size: int, *, keyed: bool) -> None:
    """Fill a raw file with the same bodies."""
    raw = Raw(path, keyed=keyed, synchronous="OFF")
    for first in range(0, length(size), BATCH_EVENTS):
        numbers = range(first, min(first + BATCH_EVENTS, length(size)))
        raw.append_many(bodies(first, len(numbers)), [f"e-{number}" for number in numbers])
    raw.bytes_on_disk()
    raw.close()


def write_transcript(path: Path, count: int) -> None:
    """Write turns as Strandline's own JSONL."""
    with path.open("w", encoding="utf-8") as file:
        for record in records(0, count):
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def density(sample: Sequence[strandline.SourceEvent]) -> str:
    """Say how many references the events hold."""
    refs = sum(len(event.declared) + len(event.extracted) for event in sample)
    text = sum(len(event.text.encode("utf-8", "surrogatepass")) for event in sample)
    if not refs:
        return "no references"
    return f"{refs / len(sample):.1f} references per event, one per {text / refs:,.0f} bytes"
