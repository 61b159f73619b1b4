"""A transcript from end to end: import, compaction, and what the store then takes on the disk."""

from __future__ import annotations

from pathlib import Path

import strandline
from strandline.bench import corpus
from strandline.bench.figures import BYTES, Figure, Line, Mark, single
from strandline.bench.raw import bytes_on_disk
from strandline.bench.rounds import timed
from strandline.bench.stage import Stage, remove
from strandline.bench.writing import OURS
from strandline.model.ids import Scope

MADE_RECORDS = 9_000
PAGE_EVENTS = 1_000
IMPORT_MARK = Mark(at_least=15.0, of="value")
COMPACT_MARK = Mark(at_least=20.0, of="value")
SIZE_MARK = Mark(at_most=0.9, of="value")


def transcript(stage: Stage) -> list[Figure]:
    """Measure import and compaction in megabytes of the file per processor second, and the bytes that remain."""
    file = stage.file or stage.folder / "made.jsonl"
    if stage.file is None:
        corpus.write_transcript(file, min(MADE_RECORDS, max(stage.sizes)))
    megabytes = file.stat().st_size / 1e6
    stage.say(f"import and compaction of {file.name}, {megabytes:.1f} MB")
    imports, compactions, sizes, note = [], [], [], ""
    for number in range(stage.runs + 1):
        path = stage.fresh("transcript")
        with strandline.open(path) as db:
            wf = corpus.workflow(db)
            imported = timed(lambda wf=wf: wf.import_transcript(file))  # type: ignore[misc]
            compacted = timed(lambda wf=wf: wf.compact())  # type: ignore[misc]
            plain = body_bytes(db) if number == 0 else 0
            sample = wf.events(1, PAGE_EVENTS) if number == 0 else []
        if number == 0:  # the warm-up: bytes are the same in each round
            sizes = [bytes_on_disk(path) / plain]
            note = f"{plain / 1e6:.2f} MB of bodies; {corpus.density(sample)}"
        else:
            imports.append(megabytes / imported.cpu_s)
            compactions.append(megabytes / compacted.cpu_s)
        remove(path)
    marked = stage.file is not None
    what = "the given transcript" if marked else "a transcript made for this"
    return [
        single(
            Line(section="transcript", what=f"import {what}: parse, references, register", unit="MB/s"),
            OURS,
            imports,
            IMPORT_MARK if marked else None,
            f"{megabytes:.1f} MB; processor time",
        ),
        single(
            Line(section="transcript", what="compact it once", unit="MB/s"),
            OURS,
            compactions,
            COMPACT_MARK if marked else None,
            "of the file; processor time",
        ),
        single(Line(section="transcript", what=BYTES, unit="×"), OURS, sizes, SIZE_MARK if marked else None, note),
    ]


def body_bytes(db: strandline.Strandline) -> int:
    """Return the plain bytes of all bodies in the benchmark's workflow."""
    with db.store.read(Scope(tenant=corpus.TENANT, workflow=corpus.WORKFLOW)) as transaction:
        newest = transaction.log.head().revision
        return sum(len(event.body or b"") for event in transaction.log.read(1, newest))


def source_of(file: Path | None) -> str:
    """Name the transcript without its folder."""
    return "made for the run" if file is None else file.name
