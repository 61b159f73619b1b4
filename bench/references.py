"""How fast the references of a text are found: a megabyte of each hostile text, and the texts of real transcripts.

    python bench/references.py [FILE.jsonl ...] [--rounds N] [--bytes N]

Times are CPU seconds of this process (`process_time`): the least and the median of the rounds. Each round of a hostile
text begins with an empty memo. A file's round measures both: the memo empty, and filled by the round before.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time

import msgspec

from strandline.limits import EVENT_REFS_MAX
from strandline.rules import references
from strandline.rules.references import extract, extract_json

SEED = 20261129
PIECES = (
    "a",
    "1",
    "1,",
    "a.",
    "/",
    "a/",
    "-",
    "{",
    "://",
    "a://b ",
    "a://b(",
    "a://b)",
    "1 s ",
    "1 ",
    "$1",
    "1%",
    "#1+",
    "C:\\",
    "\\",
    "a1--b:",
    "a__",
    "a@",
    "aB",
    "a1",
    "a_a.",
    "1h",
    "a\ud800b_c",
    "a\0b_c",
    "\u0627\u0644\u202ea_b ",
    " ",
    "\n",
    "a ",
    "aB ",
    "'a_b',",
    '"a":',
    "é",
    "٣",
    "a_b,",
    "x,1+",
    "..",
    "--",
    "a:1,b:2;",
    "10.0.0.1,",
    "2026-11-29T",
    "12:30:45,",
    "a@b.co,",
    "a#1,",
    "'",
    "!a",
    "/a/b,",
    "%1#",
)
ALPHABETS = {
    "signs": "./\\@~,:$€%#+-'_",
    "signs and digits": "./\\@~,:$€%#+-'_0123456789",
    "signs and letters": "./\\@~,:$€%#+-'_abcABC",
    "digits and commas": "0123456789,",
    "hex": "0123456789abcdef",
    "latin": "".join(map(chr, range(32, 255))),
    "any": "".join(map(chr, (*range(0, 0x3000, 7), *range(0xD800, 0xDC00, 9), *range(0x1F300, 0x1F400)))),
}


def _runs(chance: random.Random, alphabet: str, longest: int) -> Iterator[str]:
    while True:
        yield "".join(chance.choices(alphabet, k=chance.randint(1, longest)))


def _filled(pieces: Iterator[str], joint: str, size: int) -> str:
    parts, held = [], 0
    for piece in pieces:
        parts.append(piece)
        held += len(piece) + len(joint)
        if held >= size:
            break
    return joint.join(parts)[:size]


def _numbered(form: str) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield form.format(n=number, h=f"{number * 2654435761 % 2**32:08x}", l=_letters(number))


def _letters(number: int) -> str:
    out = ""
    while number:
        number, digit = divmod(number, 26)
        out += chr(97 + digit)
    return out


FORMS = (
    *("job-{n}", "{h}", "/a/{h}/{l}.py", "{l}_{l}", "{l}{n}", "{l}:{n},{l}", "'{l}.{n}'", "{n},{n}", "{l}", "{l}-{l}"),
    *("{n}.{n}.{n}.{n}", "{n}:{n}:{n}", "${n}", "#{n}", "{l}@{l}.com", "x={l}+{n}", "{l}--{n}", "{l}..{n}"),
    *("http://{l}/{n}", "{n} tokens", "{n} s", "{l}/{l}", "é{l}", "{l}'{l}", "\\{l}\\{n}", "+{l}_{n}:", "{l}#{n}/{l}"),
    *("{l}$", "A{n}a{l}", "a1{l}2", "1{l}", "{n}x{l}", "{l}B{l}", "-{l}@{n}%", "{l}.{l}", "{l}.{l}.{l}"),
)


def hostile(size: int) -> Iterator[tuple[str, str]]:
    """Yield names and texts: one piece over and over, chance out of an alphabet, and many tokens, no two alike."""
    for piece in PIECES:
        yield f"{piece!r} over and over", (piece * (size // len(piece) + 1))[:size]
    chance = random.Random(SEED)
    for name, alphabet in ALPHABETS.items():
        for longest, joint in ((8, " "), (40, " "), (400, ","), (size, "")):
            yield f"{name}, up to {longest}", _filled(_runs(chance, alphabet, longest), joint, size)
    for form in FORMS:
        for joint in (" ", ","):
            yield f"{form!r} by {joint!r}", _filled(_numbered(form), joint, size)
    yield "JSON, nested", "[" * (size // 2) + "]" * (size // 2)
    yield "JSON, a line", msgspec.json.encode([{"id": n, "a_b": f"x-{n}"} for n in range(size // 26)]).decode()[:size]


def measured(work: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return the least and the median CPU seconds."""
    times = []
    for _ in range(rounds):
        begun = process_time()
        work()
        times.append(process_time() - begun)
    return min(times), statistics.median(times)


def _cold(text: str) -> Callable[[], object]:
    def work() -> object:
        references.forget()
        return extract(text, most=EVENT_REFS_MAX)  # as `append` does, which refuses more

    return work


def _values(path: Path) -> list[object]:
    values: list[object] = []
    for line in path.read_bytes().splitlines():
        try:
            record = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue
        content = record.get("message", {}).get("content", "") if isinstance(record, dict) else ""
        for block in content if isinstance(content, list) else [content]:
            value = block if isinstance(block, str) else block.get("text") or block.get("content") or block.get("input")
            if value:
                values.append(value)
    return values


def _each(values: list[object]) -> None:
    for value in values:
        if isinstance(value, str):
            extract(value)
        else:
            extract_json(value)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bytes", type=int, default=1_000_000)
    parser.add_argument("--worst", type=int, default=20, help="rows of the hostile table")
    asked = parser.parse_args()
    rows = [
        (*measured(_cold(text), asked.rounds), len(extract(text, most=EVENT_REFS_MAX)), name)
        for name, text in hostile(asked.bytes)
    ]
    print(f"{len(rows)} hostile texts of {asked.bytes:,} characters, the slowest first")
    print("   least  median     refs  text")
    for least, median, found, name in sorted(rows, reverse=True)[: asked.worst]:
        print(f"{least:7.3f}s {median:6.3f}s {found:8,}  {name}")
    for path in asked.files:
        values = _values(path)
        chars = sum(len(v) if isinstance(v, str) else len(msgspec.json.encode(v)) for v in values)

        def cold(values: list[object] = values) -> None:
            references.forget()
            _each(values)

        for state, work in (("empty", cold), ("filled", lambda values=values: _each(values))):
            least, median = measured(work, asked.rounds)
            rates = f"{chars / least / 1e6:5.1f} MB/s at best, {chars / median / 1e6:5.1f} in the middle"
            print(f"{path.name}: {chars / 1e6:.2f} MB of content, memo {state}: {rates}")


if __name__ == "__main__":
    main()
