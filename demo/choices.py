"""What the demo has to choose: where to cut the file, the budget, a reference to need, one to miss."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import strandline
from demo.document import read_document
from demo.facts import Source
from demo.visible import visible

BUNDLED: Final = Path(__file__).parent / "transcripts" / "api-tests.jsonl"
BUNDLED_FIRST_LINES: Final = 150
BUNDLED_BUDGET: Final = 6_000
BUNDLED_NEED: Final = "sbx-7f3a91c2"  # the sandbox that every later test run goes to
BUNDLED_LOST: Final = "/run/sbx/keys/db.pem"  # the key of the test database; a tool returned it once
FIRST_SHARE: Final = 0.6
BUDGET_MAX: Final = 12_000
BUDGET_MIN: Final = 200  # a smaller file is not worth a summary
EVERYTHING: Final = 1 << 40  # a budget that nothing exceeds
LOST_TRIES_MAX: Final = 200
_FILE_HINT: Final = "Give a transcript that can be read: make run FILE=path; without FILE it takes the bundled one."

_HANDLE_LIKE: Final = re.compile(r"(?=.*\d)(?=.*[a-z])(?=.*[-_/:])\S{8,80}", re.IGNORECASE)


def look_at(path: Path) -> Source:
    """Count the lines of a file, and say by what it is cut, and how much of it the first import gets.

    Raises:
        InvalidInputError: there is none, it is no file, or it can't be read.
    """
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
        file = path.open("rb") if is_file or not path.exists() else None  # opening a pipe would wait for its other end
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _refused(path, f"can't be read: {reason}") from error
    if file is None:
        raise _refused(path, "is a folder, not a transcript" if is_folder else "is no regular file, and is read twice")
    with file:
        lines = sum(1 for _ in file)
    document = read_document(path)
    part, parts = ("line", lines) if document is None else (document.part, len(document.ends))
    bundled = path.resolve() == BUNDLED.resolve()
    first = BUNDLED_FIRST_LINES if bundled else max(1, int(parts * FIRST_SHARE))
    return Source(
        path=path,
        bundled=bundled,
        size_bytes=path.stat().st_size,
        lines=lines,
        part=part,
        parts=parts,
        first_parts=min(first, parts),
    )


def _refused(path: Path, why: str) -> strandline.InvalidInputError:
    return strandline.InvalidInputError(f"'{visible(path)}' {why}", hint=_FILE_HINT)


def copy_first_parts(source: Source, to: Path) -> None:
    """Write the first parts of the file, as if the agents were still at work."""
    document = read_document(source.path)
    if document is not None:
        to.write_bytes(document.beginning(source.first_parts))
        return
    with source.path.open("rb") as file, to.open("wb") as out:
        for _, line in zip(range(source.first_parts), file, strict=False):
            out.write(line)


def first_budget(source: Source, tokens: int) -> int:
    """Return the budget of the first compaction."""
    return BUNDLED_BUDGET if source.bundled else max(BUDGET_MIN, min(BUDGET_MAX, tokens // 3))


def choose_need(source: Source, outcome: strandline.CompactionOutcome) -> str | None:
    """Return a reference that must survive: it stands verbatim in the summary, by Strandline's own hand."""
    if source.bundled:
        return BUNDLED_NEED
    ledger = outcome.summary.ledger if outcome.summary else ()
    best = sorted(ledger, key=lambda entry: (not _HANDLE_LIKE.fullmatch(entry.text), not entry.declared))
    return best[0].text if best else None


def choose_lost(source: Source, log: strandline.Workflow) -> str | None:
    """Return a reference that the summary dropped and that stands nowhere else in the context; None: there is none."""
    for ref in islice(_wanted(source, log), LOST_TRIES_MAX):
        if log.context(EVERYTHING, needs=[ref]).needs.retrieved:
            return ref
    return None


def _wanted(source: Source, log: strandline.Workflow) -> Iterator[str]:
    refs = [entry.ref for entry in log.manifest() if entry.ref is not None]
    if source.bundled and BUNDLED_LOST in refs:
        yield BUNDLED_LOST
    yield from (ref for ref in refs if _HANDLE_LIKE.fullmatch(ref))
    yield from (ref for ref in refs if not _HANDLE_LIKE.fullmatch(ref))
