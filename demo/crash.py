"""Kill a compaction in its middle, and look for what it left behind."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

import strandline
from demo.facts import Killed
from strandline.drill.files import hits_in_store

CHILD_TIMEOUT_S: Final = 60.0


def kill_while_drafting(store: Path, workflow: str, budget: int, draft_file: Path, control: str) -> Killed | None:
    """Start a compaction in a process of its own and kill it with SIGKILL once half its draft is written.

    Args:
        store: the store's file; no handle of this process may be open.
        workflow: the workflow to compact.
        budget: tokens.
        draft_file: where the child writes its half draft.
        control: a text that the store does hold, to prove that the search finds.

    Returns None when the child ended without drafting: there was nothing to compact.

    Raises:
        ContextOverflowError: the child's, for which the budget was too small.
        StrandlineError: the child failed otherwise.
    """
    marker = f"half-draft-{secrets.token_hex(8)}"
    command = [sys.executable, str(Path(__file__).with_name("child.py"))]
    command += [str(store), workflow, str(budget), marker, str(draft_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        watchdog = threading.Timer(CHILD_TIMEOUT_S, child.kill)
        watchdog.start()
        line = child.stdout.readline() if child.stdout else b""
        watchdog.cancel()
        said = json.loads(line) if line else {}
        if "from_seq" in said:
            child.kill()
    if "overflow" in said:
        raise strandline.ContextOverflowError(said["overflow"], needed=said["needed"], budget=budget)
    if not said and child.returncode != 0:
        raise strandline.StrandlineError(f"the child process ended with {child.returncode} before it drafted anything")
    if not said:
        return None
    return Killed(
        pid=child.pid,
        signal=-child.returncode,
        from_seq=said["from_seq"],
        through_seq=said["through_seq"],
        written_bytes=said["written_bytes"],
        draft_bytes=said["draft_bytes"],
        marker=marker,
        hits=hits_in_store(store, marker),
        control_hits=hits_in_store(store, control),
    )
