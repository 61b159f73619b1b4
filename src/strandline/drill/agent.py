"""An agent with Strandline, in a process of its own: `python -m strandline.drill.agent STORE WORKFLOW PORT`.

It does what the drill asks of it, by the public API only.
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, cast

import strandline as sl
from strandline.drill import material
from strandline.drill.process import say, serve, wait_for_death
from strandline.drill.service import Remote
from strandline.model.ids import Scope
from strandline.ports import Transaction
from strandline.system import SystemClock

BUDGET: Final = 100_000  # tokens: every context of the drill fits, but for those that are asked for smaller
_EVENTS: Final[dict[str, Callable[[int, int], list[sl.NewEvent]]]] = {
    "review": material.review_events,
    "working": material.working_events,
}


class SetClock(SystemClock):
    """A wall clock that the drill sets, also backwards; durations are the machine's."""

    at_us: int | None = None

    def now_us(self) -> int:
        """Return the time that was set."""
        return super().now_us() if self.at_us is None else self.at_us


class DyingStore:
    """A store whose next commit never comes: the process is killed in the middle of the write."""

    def __init__(self, store: sl.Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    @contextmanager
    def write(self, scope: Scope, *, joins: bool = True) -> Iterator[Transaction]:
        """Open a transaction, and stop before its commit."""
        with self._store.write(scope, joins=joins) as tx:
            yield tx
            say({"paused": "before the commit"})
            wait_for_death()


class EndpointSummarizer:
    """Drafts by the service outside: it is sent a line for each event, and streams lines back."""

    name, version, window_tokens = "drill-endpoint", "1", None

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self.drafts_ended = threading.Semaphore(0)  # one for each call that came to its end, however late

    def summarize(self, request: sl.SummaryRequest) -> sl.Draft:
        """Return what the service streamed."""
        chars = request.budget_tokens * 3 // len(request.events) - 4
        lines = [material.opening(f"[{event.seq}] {event.text}", chars) for event in request.events]
        try:
            return sl.Draft(text="\n".join(self._remote.summarize(lines)), finish="stop")
        finally:
            self.drafts_ended.release()


class Agent:
    """What the drill can ask for. A failure is an answer: its type and its attributes."""

    def __init__(self, store: str, workflow: str, port: str) -> None:
        self._clock = SetClock()
        self._db = sl.open(store, clock=self._clock)
        self._wf = self._db.tenant("default").workflow(workflow)
        self._name = workflow
        self._remote = Remote(int(port))
        self._summarizer = EndpointSummarizer(self._remote)
        self._bucket = ""
        self._statuses: set[int] = set()  # that the service answered

    def set_clock(self, at_us: int) -> dict[str, object]:
        """Set the wall clock."""
        self._clock.at_us = at_us
        return {}

    def append(self, what: str, first: int, last: int) -> dict[str, object]:
        """Append events of the drill's material."""
        return {"revision": self._wf.append(_EVENTS[what](first, last)).revision}

    def append_and_die(self, what: str, first: int, last: int) -> None:
        """Append events, and be killed before the commit."""
        db = sl.Strandline(cast("sl.Store", DyingStore(self._db.store)), clock=self._clock)
        db.tenant("default").workflow(self._name).append(_EVENTS[what](first, last))

    def compact(
        self,
        budget: int,
        through: int | None = None,
        strict: bool = False,
        deadline_s: float | None = None,
    ) -> dict[str, object]:
        """Compact; with a deadline, by the service outside."""
        try:
            if deadline_s is None:
                done = self._wf.compact(budget, strict=strict, through=through)
            else:
                done = self._wf.compact(budget, self._summarizer, strict=strict, through=through, deadline_s=deadline_s)
        except sl.StrandlineError as error:
            return _failed(error)
        return {
            "outcome": done.outcome,
            "reason": done.reason,
            "generation": done.generation,
            "watermark": done.watermark,
            "lineage_seq": done.lineage_seq,
            "tokens_before": done.tokens_before,
            "tokens_after": done.tokens_after,
            "dropped": done.refs_dropped,
            "unaccounted": done.refs_unaccounted,
            "failures": [attempt.failure_text for attempt in done.attempts if attempt.failure_text],
        }

    def wait_for_drafts(self, drafts: int) -> dict[str, object]:
        """Wait until so many calls of the summarizer have come to their end, late ones among them."""
        for _ in range(drafts):
            self._summarizer.drafts_ended.acquire()
        return {"drafts": drafts}

    def checkpoint(self, turn: int, state: object) -> dict[str, object]:
        """Write a checkpoint of a state that is made from the present context."""
        made = self._wf.checkpoint(state, turn, basis=self._wf.basis())
        return {"lineage_seq": made.lineage_seq}

    def register(self, turn: int, name: str, file: str) -> dict[str, object]:
        """Register a file, which holds another tool's state, as a checkpoint."""
        digest = f"sha256:{hashlib.sha256(Path(file).read_bytes()).hexdigest()}"
        made = self._wf.register_checkpoint(file, digest, turn, basis=self._wf.basis(), name=name)
        return {"in_flight": made.in_flight}

    def recover(self, needs: Sequence[str] = (), budget: int = BUDGET, name: str = "main") -> dict[str, object]:
        """Recover, for a next turn that needs these references."""
        try:
            found = self._wf.recover(
                needs, budget=budget, name=name, prior_state=True, load=lambda file: Path(file).read_bytes()
            )
        except sl.StrandlineError as error:
            return _failed(error)
        return {
            "kind": found.kind,
            "turn": found.turn,
            "state": found.state,
            "stale_turn": found.prior_state.turn if found.prior_state else None,
            "generation": found.generation,
            "lineage_seq": found.lineage_seq,
            "checkpoint_seq": found.checkpoint_seq,
            "tokens": found.context.tokens,
            "since": sum(part.since_checkpoint for part in found.context.parts),
        }

    def work(self, first: int, last: int, bucket: str = "") -> dict[str, object]:
        """Write a report a turn into the bucket, which the first turn creates."""
        self._bucket = bucket or self._bucket
        for turn in range(first, last + 1):
            self._turn(turn)
        return {"bucket": self._bucket, "statuses": sorted(self._statuses)}

    def create(self, key: str, subject: str, wanted: dict[str, object]) -> dict[str, object]:
        """Create a bucket: an effect, which runs once."""
        run = partial(self._remote.create_bucket, wanted)
        done = self._wf.effect(key, "create_bucket", wanted, run, subject=subject, actor="writer")
        return {"kind": done.kind, "bucket": cast("dict[str, object]", done.result)["bucket"]}

    def _turn(self, turn: int) -> None:
        call = f"call-{turn}"
        if turn == 1:
            self._wf.append(sl.message("user", "Write a report a turn into one bucket.", actor="lead"))
            self._bucket = str(self.create("reports-bucket", "reports", material.BUCKET_WANTED)["bucket"])
            return
        name = f"report-{turn}.json"
        self._wf.append(sl.message("assistant", material.report_text(turn), actor="writer"))
        self._wf.append(sl.tool_call(call, "put_object", {"name": name}, actor="writer"))
        status = self._remote.put(self._bucket, name)
        self._statuses.add(status)
        self._wf.append(sl.tool_result(call, f"{status}: {name} is stored", actor="writer"))


def _failed(error: sl.StrandlineError) -> dict[str, object]:
    said = {name: getattr(error, name) for name in error.fields}
    return {"error": type(error).__name__, "message": error.message, **said}


if __name__ == "__main__":
    serve(Agent(*sys.argv[1:]))
