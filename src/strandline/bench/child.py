"""A process of its own for what must not share one: building a large store, peak memory, several writers at once.

`python -m strandline.bench.child VERB PATH [N]`. Lines of JSON on stdout; the last one is the answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import strandline
from strandline.bench import corpus
from strandline.bench.raw import KEYED, Raw
from strandline.bench.rounds import peak_memory_mb

APPENDED_EVENTS = 999  # whole turns
APPENDED_SINGLY = 100
STOP = "stop"
OWN_WORKFLOW = ", workflow "


def say(**line: object) -> None:
    """Tell the parent."""
    print(json.dumps(line), flush=True)  # noqa: T201  the parent reads it


def build(path: Path, size: int) -> None:
    """Build a corpus."""
    corpus.build(path, size, lambda done, total: say(done=done, total=total))


def append(path: Path, _: int) -> None:
    """Append events, in batches and singly."""
    with strandline.open(path, create=False) as db:
        wf = corpus.workflow(db)
        first = corpus.free(wf)
        wf.append(corpus.events(first, APPENDED_EVENTS))
        for number in range(APPENDED_SINGLY):
            wf.append(strandline.message("assistant", corpus.text_of(number), key=f"single-{first}-{number}"))


def context(path: Path, _: int) -> None:
    """Read the context."""
    with strandline.open(path, create=False) as db:
        corpus.workflow(db).context(corpus.CONTEXT_BUDGET_TOKENS)


def recover(path: Path, _: int) -> None:
    """Recover for real: fence, choice, and the entry in the lineage."""
    with strandline.open(path, create=False) as db:
        corpus.workflow(db).recover(budget=corpus.CONTEXT_BUDGET_TOKENS)


def compact(path: Path, _: int) -> None:
    """Compact what was appended since."""
    with strandline.open(path, create=False) as db:
        outcome = corpus.workflow(db).compact(corpus.COMPACT_BUDGET_TOKENS)
        if outcome.outcome != "activated":
            raise SystemExit(f"the compaction ended as {outcome.outcome}: {outcome.reason}")


def verify(path: Path, _: int) -> None:
    """Prove the store."""
    with strandline.open(path, create=False) as db:
        if not db.verify().ok:
            raise SystemExit("verify found a problem")


VERBS: Mapping[str, Callable[[Path, int], None]] = {
    "build": build,
    "append": append,
    "context": context,
    "recover": recover,
    "compact": compact,
    "verify": verify,
}


def write(place: str, who: str) -> None:
    """Append as many events as each line on stdin says, and answer each line; until STOP. `who` may name a workflow."""
    raw = Raw(Path(place), keyed=True, shared=True) if who == KEYED else None
    db = None if raw else strandline.open(place)
    own = who.partition(OWN_WORKFLOW)[2]
    wf = (db.tenant(corpus.TENANT).workflow(own) if own else corpus.workflow(db)) if db else None
    say(ready=True)
    for line in sys.stdin:
        if line.strip() == STOP:
            break
        label, count = line.split()
        for number in range(int(count)):
            text, key = corpus.text_of(number), f"{label}-{number}"
            if raw:
                raw.append(text.encode(), key)
            elif wf:
                wf.append(strandline.message("assistant", text, key=key))
        say(done=True)
    if raw:
        raw.close()
    if db:
        db.close()


def run(verb: str, path: Path, size: int, tell: corpus.Progress | None = None) -> dict[str, float]:
    """Do a verb in a child, and return its answer: seconds of elapsed and of processor time, and peak memory."""
    words = [sys.executable, "-m", __name__, verb, str(path), str(size)]
    answer: dict[str, float] = {}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            answer = json.loads(line)
            if tell and "done" in answer:
                tell(int(answer["done"]), int(answer["total"]))
    if process.returncode or "memory_mb" not in answer:
        raise RuntimeError(f"the child that was to {verb} {path.name} ended with {process.returncode}")
    return answer


class Writer:
    """A child that appends when it is told."""

    def __init__(self, place: Path | str, who: str) -> None:
        words = [sys.executable, "-m", __name__, "write", str(place), who]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.wait()

    def tell(self, order: str) -> None:
        """Send a line."""
        if self._process.stdin is None:
            raise RuntimeError("the writer has no stdin")
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()

    def wait(self) -> None:
        """Wait for its answer."""
        if self._process.stdout is None or not self._process.stdout.readline():
            raise RuntimeError("a writing child has ended")

    def stop(self) -> None:
        """Let it end."""
        self.tell(STOP)
        self._process.communicate()


@contextmanager
def writers(place: Path | str, whos: Sequence[str]) -> Iterator[list[Writer]]:
    """Start writers on one store, one after the other, and stop them."""
    started: list[Writer] = []
    try:
        for who in whos:
            started.append(Writer(place, who))  # noqa: PERF401  those that started are stopped when one does not
        yield started
    finally:
        for writer in started:
            writer.stop()


def main(words: list[str]) -> None:
    """Do what the parent asks."""
    verb, path, argument = words
    if verb == "write":
        write(path, argument)
        return
    wall, cpu = time.perf_counter(), time.process_time()
    VERBS[verb](Path(path), int(argument))
    say(wall_s=time.perf_counter() - wall, cpu_s=time.process_time() - cpu, memory_mb=peak_memory_mb())


if __name__ == "__main__":
    main(sys.argv[1:])
