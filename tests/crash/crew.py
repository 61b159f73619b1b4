"""One of many processes on one workflow: `python tests/crash/crew.py STORE ROLE NAME COUNT`.

It waits for a line on stdin, does its role so many times, and says what was acknowledged, a line of JSON each. Agents
append as fast as they can; the others wait until the log has grown, so that all of them meet all along the way.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Final

import strandline

TENANT: Final = "acme"
WORKFLOW: Final = "crew"
BUDGET: Final = 900  # tokens
WHOLE: Final = 1_000_000  # tokens: a budget in which every context fits


LOG_EVENTS: Final = 240  # what the agents append together, about
GROWN_WITHIN_S: Final = 120.0
POLL_S: Final = 0.01


def say(**what: object) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


def append(workflow: strandline.Workflow, name: str, number: int) -> None:
    """Append a batch of one to three events."""
    keys = [f"{name}-{number}-{part}" for part in range(1 + number % 3)]
    texts = [f"{key} wrote bucket-{number:04x} to /srv/out/{key}.json, and {number} more." for key in keys]
    added = workflow.append(
        [strandline.message("assistant", text, actor=name, key=key) for text, key in zip(texts, keys, strict=True)]
    )
    say(appended=dict(zip(keys, added.seqs, strict=True)))


def compact(workflow: strandline.Workflow, name: str, number: int) -> None:
    """Compact; what another did meanwhile may make it vain."""
    outcome = workflow.compact(BUDGET)
    say(compacted=outcome.outcome, generation=outcome.generation, lineage_seq=outcome.lineage_seq)


def checkpoint(workflow: strandline.Workflow, name: str, number: int) -> None:
    """Keep a state; one that a compaction has overtaken is refused, and told."""
    context = workflow.context(WHOLE)
    try:
        made = workflow.checkpoint({"number": number, "revision": context.revision}, number, basis=context)
    except strandline.CompactionLineageError:
        say(refused=number)
    else:
        say(checkpoint=made.lineage_seq, revision=made.revision)


def recover(workflow: strandline.Workflow, name: str, number: int) -> None:
    """Recover, which fences every compaction in flight."""
    try:
        found = workflow.recover(budget=WHOLE)
    except strandline.SummaryReconciliationError as error:
        if error.reason != "nothing_recorded":
            raise
        say(recovered="nothing yet")
    else:
        say(recovered=found.kind, lineage_seq=found.lineage_seq, checkpoint_seq=found.checkpoint_seq)


ROLES: Final[dict[str, Callable[[strandline.Workflow, str, int], None]]] = {
    role.__name__: role for role in (append, compact, checkpoint, recover)
}


def wait_until_grown(workflow: strandline.Workflow, events: int) -> None:
    deadline = time.monotonic() + GROWN_WITHIN_S
    while workflow.basis().revision < events:
        if time.monotonic() > deadline:
            raise SystemExit(f"the log has not grown to {events} events within {GROWN_WITHIN_S} s")
        time.sleep(POLL_S)


def main(store: str, role: str, name: str, count: str) -> None:
    with strandline.open(store) as db:
        workflow = db.tenant(TENANT).workflow(WORKFLOW)
        say(ready=name)
        sys.stdin.readline()
        for number in range(int(count)):
            if role != "append":
                wait_until_grown(workflow, (number + 1) * LOG_EVENTS // (int(count) + 1))
            ROLES[role](workflow, name, number)


if __name__ == "__main__":
    main(*sys.argv[1:])
