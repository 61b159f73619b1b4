"""The deterministic simulator: real engine, simulated store, clock, summarizer and processes (C40, ADR 66).

One integer is a run: which processes call which verbs, who goes on at which crossing of a port, and what goes wrong
there. After each commit the invariants are checked, at the end the history, recovery and `verify`. What breaks is made
smaller and told. `python -m strandline.testing.simulator --seed 1 --count 1000` runs schedules.
"""

from strandline.testing.simulator.running import Tally, run_schedules

__all__ = ["Tally", "run_schedules"]
