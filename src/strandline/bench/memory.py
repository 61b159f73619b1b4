"""Peak memory of a process that does one verb on the largest workflow."""

from __future__ import annotations

from strandline.bench import child
from strandline.bench.figures import Figure, Line, Mark, single
from strandline.bench.stage import Stage
from strandline.bench.writing import OURS

MEMORY_MARK = Mark(at_most=300.0, of="value")
# After the section `compact` the first compaction here is the workflow's eighth, which merges what seven before made,
# from raw events where they fit the summarizer's window. The second, the ninth, covers what is new.
VERBS = (
    ("context", "read the context"),
    ("recover", "recover"),
    ("append", f"append {child.APPENDED_EVENTS} events at once, then {child.APPENDED_SINGLY} singly"),
    ("compact", "compact; with section `compact`, the eighth time"),
    ("append", "append as many again"),
    ("compact", "compact once more, over what is new"),
    ("verify", "verify"),
)


def memory(stage: Stage) -> list[Figure]:
    """Measure the peak of each verb in a process of its own; the store is built in one as well."""
    size = max(stage.sizes)
    path = stage.corpus(size)
    answers = {"build it: append in batches, compact four times": stage.built[size]} if stage.built[size] else {}
    for verb, what in VERBS:
        stage.say(f"memory: {what}")
        answers[what] = child.run(verb, path, size)
    return [
        single(
            Line(section="memory", what=what, unit="MB", events=size),
            OURS,
            [answer["memory_mb"]],
            MEMORY_MARK,
            f"took {answer['wall_s']:,.1f} s, with {answer['cpu_s']:,.1f} s of processor time",
        )
        for what, answer in answers.items()
    ]
