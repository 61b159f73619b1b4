"""For tests of programs that use Strandline, and of stores and summarizers that others write (C40).

- `strandline.testing.fakes`: clocks and randomness that a test owns, and a summarizer that follows a script.
- `strandline.testing.faults`: a store at which things go wrong at named points, and crashes of the process there.
- `strandline.testing.faulty_summarizer`: a summarizer that fails and lies as models do.
- `strandline.testing.model_server`: plays a language model over HTTP, by a script, with its failures.
- `strandline.testing.values`: valid values of the model.
- `strandline.testing.conformance`: the suite that every store passes. It needs pytest, and Strandline doesn't install
  it: `pip install pytest`. This module needs only the fakes and the values, and they don't.
"""

from strandline.testing.fakes import FixedClock, ScriptedSummarizer, SeededEntropy, VirtualClock
from strandline.testing.fault_points import points
from strandline.testing.faults import CrashError, Fault, FaultyStore, crash_at, fault_at, kill_at
from strandline.testing.faulty_summarizer import FaultySummarizer, SummarizerFault
from strandline.testing.model_server import Failure, Reply, ScriptedModel
from strandline.testing.values import (
    make_attempt,
    make_candidate,
    make_case,
    make_checkpoint,
    make_dropped,
    make_effect,
    make_event,
    make_fact,
    make_foreign,
    make_lineage,
    make_permit,
    make_segment,
    make_summary,
    make_view,
)

__all__ = [
    "CrashError",
    "Failure",
    "Fault",
    "FaultyStore",
    "FaultySummarizer",
    "FixedClock",
    "Reply",
    "ScriptedModel",
    "ScriptedSummarizer",
    "SeededEntropy",
    "SummarizerFault",
    "VirtualClock",
    "crash_at",
    "fault_at",
    "kill_at",
    "make_attempt",
    "make_candidate",
    "make_case",
    "make_checkpoint",
    "make_dropped",
    "make_effect",
    "make_event",
    "make_fact",
    "make_foreign",
    "make_lineage",
    "make_permit",
    "make_segment",
    "make_summary",
    "make_view",
    "points",
]
