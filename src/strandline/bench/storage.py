"""Bytes on the disk against plain bytes of bodies, after the WAL was emptied into the file."""

from __future__ import annotations

import zlib

import strandline
from strandline.bench import corpus
from strandline.bench.figures import BYTES, Figure, Line, Mark, single
from strandline.bench.raw import KEYED, Raw, bytes_on_disk
from strandline.bench.stage import Stage
from strandline.bench.transcript import body_bytes
from strandline.bench.writing import OURS

EVENTS_MAX = 10_000
BATCH_EVENTS = 500
RANDOM_MARK = Mark(at_most=1.6, of="value")


def storage(stage: Stage) -> list[Figure]:
    """Measure the file of events that hardly compress, and of each corpus."""
    stage.say("bytes on the disk")
    figures = _random(stage)
    for size in stage.sizes:
        path = stage.corpus(size)
        with strandline.open(path, create=False) as db:
            plain = body_bytes(db)
            wf = corpus.workflow(db)
            newest = wf.basis().revision
            note = corpus.density(wf.events(max(1, newest - BATCH_EVENTS), newest))
        line = Line(section="storage", what=f"an agent's log: {BYTES}", unit="×", events=size)
        figures += [
            single(line, OURS, [bytes_on_disk(path) / plain], note=f"{plain / 1e6:.1f} MB of bodies; {note}"),
            single(line, KEYED, [bytes_on_disk(stage.raw_corpus(size, keyed=True)) / plain]),
        ]
    return figures


def _random(stage: Stage) -> list[Figure]:
    """Fill a store with random bodies that declare two new references each."""
    path, raw = stage.fresh("random"), Raw(stage.fresh("random-raw"), keyed=True, synchronous="OFF")
    plain = saved = 0
    amount = min(EVENTS_MAX, max(stage.sizes))
    with strandline.open(path) as db:
        wf = corpus.workflow(db)
        for first in range(0, amount, BATCH_EVENTS):
            numbers = range(first, min(first + BATCH_EVENTS, amount))
            made = [corpus.random_text(number) for number in numbers]
            keys = [f"e-{number}" for number in numbers]
            wf.append([strandline.note(text, refs=refs, key=key) for (text, refs), key in zip(made, keys, strict=True)])
            texts = [text.encode() for text, _ in made]
            raw.append_many(texts, keys)
            plain += sum(map(len, texts))
            saved += sum(max(0, len(text) - len(zlib.compress(text))) for text in texts)
        note = corpus.density(wf.events(1, min(BATCH_EVENTS, amount)))
    size, raw_size = bytes_on_disk(path), raw.bytes_on_disk()
    raw.close()
    line = Line(section="storage", what=f"1 KB of random letters and digits: {BYTES}", unit="×", events=amount)
    whole = Line(section="storage", what="the same, as if no body were compressed", unit="×", events=amount)
    return [
        single(line, OURS, [size / plain], note=f"two declared references each, all different: {note}"),
        single(line, KEYED, [raw_size / plain], note="no references"),
        single(whole, OURS, [(size + saved) / plain], RANDOM_MARK, f"zlib saves {saved / plain:.0%} of such a body"),
    ]
