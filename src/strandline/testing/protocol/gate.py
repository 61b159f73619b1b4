"""What a recovery goes on from: the gate (I15), and whether the next turn's need is there (I16)."""

from __future__ import annotations

from strandline.testing.protocol.guards import ALL_ON, Guards
from strandline.testing.protocol.memory import Checkpoint, Memory, watermark_of


def choose(memory: Memory, name: int, reader: int, guards: Guards = ALL_ON) -> Checkpoint | None:
    """Return the checkpoint that a recovery takes: the newest of its name that passes the gate (I15), or the one that a
    rewind went back to, if that was the last move of its view (I17).
    """
    window = memory.views[reader]
    over = max(
        (made.stamp for made in memory.checkpoints if made.name == name and made.stamp in memory.passed), default=0
    )
    best: Checkpoint | None = None
    for made in memory.checkpoints:
        if made.name != name or (window.narrow and (made.view != reader or made.stamp < window.defined_at)):
            continue
        passes = made.stamp > over and not _left(memory, made, guards) and _gate(memory, made, guards)
        if (passes or _gone_back_to(memory, made)) and (best is None or made.stamp > best.stamp):
            best = made
    return best


def _gate(memory: Memory, made: Checkpoint, guards: Guards) -> bool:
    if made.free:
        return made.past == 0 or bool(memory.live >> made.past & 1)
    moved_at = memory.views[made.view].moved_at
    if not guards.all_moves:
        moved_at = max((m.at for m in memory.moves if m.view == made.view and m.kind == "compaction"), default=0)
    return made.stamp > moved_at or (made.stamp == moved_at and not guards.equal)


def _left(memory: Memory, made: Checkpoint, guards: Guards) -> bool:
    """Tell whether a restore of its name went back behind it."""
    return guards.left_past and any(
        done.name == made.name and done.at >= made.stamp > done.restored > 0 for done in memory.recoveries
    )


def _gone_back_to(memory: Memory, made: Checkpoint) -> bool:
    if made.foreign or made.stamp in memory.passed:
        return False
    moved = {view.moved_at for view in memory.views}
    return any(move.restored == made.stamp and move.at in moved for move in reversed(memory.moves))


def is_missing(memory: Memory, view: int, need: int) -> bool:
    """Tell whether a need stands in neither tail nor anchors; the state has what the context had that it was made from.

    A summary of the model keeps no reference but the pinned ones: the worst that a lossy one may do.
    """
    covered = need <= watermark_of(memory, memory.views[view].summary)
    return covered and not any(ref == need and memory.live >> pin & 1 for ref, pin in memory.pins)
