"""Proofs about the log that do not take the log's word: against the file, against a second store, by recall."""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import strandline
from demo.facts import DroppedRow
from strandline.engine.reading import read_log
from strandline.rules.secrets import MARK

RECALLS_MAX: Final = 3_000
_ADDED_BY_THE_IMPORT: Final = {  # what no record of the file says
    "jsonl": (),
    "claude_code": ("abandoned",),  # a restarted session closes its open calls
}
_OF_A_CONVERSATION: Final = ("abandoned", "note")  # as does the next conversation, which a note opens
_PLUMBING: Final = ("type", "id", "name", "tool_use_id")  # of a block: what the import may have made
_SAID_FIRST: Final = ("system", "reasoning_content", "content", "audio", "refusal")  # in whatever order they stand
_PAYLOADS: Final = ("text", "input", "content")


def stored_events(db: strandline.Strandline, workflow: str) -> Iterator[tuple[str, str, bytes]]:
    """Yield every event of a workflow in order, as the store holds it: kind, what stands beside the body, body."""
    scope = next(scope for scope in db.store.scopes("default") if scope.workflow == workflow)
    with db.store.read(scope) as tx:
        for event in read_log(tx, 1, tx.log.head().revision, workflow):
            yield (
                event.kind.value,
                repr((event.actor, event.audience, event.call_seq, event.envelope)),
                event.body or b"",
            )


def log_digest(db: strandline.Strandline, workflow: str) -> tuple[int, str]:
    """Return the number of events, and one SHA-256 over all of them. Keys are left out: a store may make its own."""
    digest, count = hashlib.sha256(), 0
    for count, (kind, beside, body) in enumerate(stored_events(db, workflow), 1):
        digest.update(f"{count}\0{kind}\0{beside}\0{len(body)}\0".encode(errors="surrogatepass"))
        digest.update(body)
    return count, digest.hexdigest()


def bodies_found_in_file(db: strandline.Strandline, workflow: str, path: Path, format_: str) -> tuple[int, int]:
    """Look for each event of the log in the file, without Strandline's parser. Return found and looked for."""
    added = _ADDED_BY_THE_IMPORT.get(format_, _OF_A_CONVERSATION)
    bodies = [body for kind, _, body in stored_events(db, workflow) if kind not in added]
    look = {"jsonl": _decoded_alike, "claude_code": _verbatim, "openai": _among_values}.get(format_, _of_its_texts)
    return look(bodies, path), len(bodies)


def _verbatim(bodies: list[bytes], path: Path) -> int:
    """Claude Code: a body is the block's JSON as it stood, and log order is file order."""
    found = position = 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for body in bodies:
            at = data.find(body, position)
            if at >= 0:
                found, position = found + 1, at + len(body)
    return found


def _of_its_texts(bodies: list[bytes], path: Path) -> int:
    """Sessions of other tools: each text in a body is a text of the file, or of JSON that a text of the file spells."""
    texts = set(_texts(_records(path)))
    found = 0
    for body in bodies:
        said = json.loads(body)
        if isinstance(said, dict):
            said = [value for name, value in said.items() if name not in _PLUMBING]
        found += all(text in texts for text in _texts(said))
    return found


def _texts(value: object) -> Iterator[str]:
    for inner in _values(value):
        if isinstance(inner, str):
            yield inner
            if inner.lstrip().startswith("{"):
                try:
                    yield from _texts(json.loads(inner))
                except ValueError:
                    continue


def _records(path: Path) -> list[object]:
    text = path.read_text(encoding="utf-8-sig")
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def _among_values(bodies: list[bytes], path: Path) -> int:
    """OpenAI messages: what a body says is a value of the file, and stands behind what the body before it says."""
    values = _values(_records(path))
    found = 0
    for body in bodies:
        said = json.loads(body)
        if isinstance(said, dict):
            said = next((said[name] for name in ("input", "content", "thinking", "refusal") if name in said), said)
        found += any(value == said or _spells(value, said) for value in values)
    return found


def _values(item: object) -> Iterator[object]:
    """Yield a value, and all values in it, in the order in which they are said."""
    yield item
    if isinstance(item, dict):
        first = (item[name] for name in _SAID_FIRST if name in item)
        inner = [*first, *(value for name, value in item.items() if name not in _SAID_FIRST)]
    else:
        inner = item if isinstance(item, list) else []
    for value in inner:
        yield from _values(value)


def _spells(value: object, said: object) -> bool:
    """Tell whether a value is the string of arguments that a call's input was read from."""
    if not (isinstance(value, str) and isinstance(said, dict) and value.lstrip().startswith("{")):
        return False
    try:
        return bool(json.loads(value) == said)
    except ValueError:
        return False


def _decoded_alike(bodies: list[bytes], path: Path) -> int:
    """Our own JSONL: one event a line; what the line says must be what the body says."""
    with path.open(encoding="utf-8-sig") as lines:
        records = [json.loads(line) for line in lines if line.strip()]
    return sum(_says(body, record) for body, record in zip(bodies, records, strict=False))


def _says(body: bytes, record: dict[str, object]) -> bool:
    try:
        block = json.loads(body)
    except ValueError:
        block = body.decode(errors="replace")
    if "body" in record or "spelled" in record:  # the exact form
        return bool(block == (json.loads(str(record["spelled"])) if "spelled" in record else record["body"]))
    values = list(block.values()) if isinstance(block, dict) else [block, body.decode(errors="replace")]
    payloads = [record[name] for name in _PAYLOADS if record.get(name) is not None]
    return all(payload in values for payload in payloads)


def recall_dropped(log: strandline.Workflow, texts: dict[int, str]) -> list[DroppedRow]:
    """Return the manifest; of each of its first RECALLS_MAX references ask the log for the event that it names.

    `texts` is the text of each event in the control store, which recall must give back to the letter.
    """
    manifest = [entry for entry in log.manifest() if entry.ref is not None]
    asked = {entry.ref_id for entry in islice(manifest, RECALLS_MAX)}
    return [
        DroppedRow(
            ref=entry.ref or "",
            last_seq=entry.last_seq,
            generation=entry.generation_dropped,
            reason=entry.reason.value,
            recalled=_recalled(log, entry.ref or "", entry.last_seq, texts) if entry.ref_id in asked else None,
        )
        for entry in manifest
    ]


def _recalled(log: strandline.Workflow, ref: str, seq: int, texts: dict[int, str]) -> bool:
    for limit in (1, 16, 1_000):
        for hit in log.recall(ref, limit):
            if hit.seq == seq:
                return hit.text == texts.get(seq) and (hit.declared or _holds(hit.text, ref))
    return False


def _holds(text: str, ref: str) -> bool:
    """A result that is JSON is shown as JSON, with its escapes; the mark of a secret stands for what an event holds."""
    return ref in text or json.dumps(ref)[1:-1] in text or ref.startswith(MARK)
