"""The main job from end to end, through the public API and one process that is killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from demo.after import compact_again, prove, recover, recover_again, refuse
from demo.before import compact_first, import_first, import_rest, kill, read_control
from demo.choices import look_at
from demo.facts import Step, Story
from demo.model import compare_model
from demo.run import Run, work_files


def tell(path: Path, out: Path, told: Callable[[Step], None]) -> Story:
    """Do the main job on a transcript; where it holds no event, there is nothing to do after it was read.

    Args:
        path: the transcript.
        out: an existing folder; files of an earlier run in it are removed.
        told: called after each step.

    Raises:
        StrandlineError: the file can't be imported, or the job could not be done.
        OSError: a file can't be read or written.
    """
    for file in work_files(out):
        file.unlink(missing_ok=True)
    run = Run(story=Story(look_at(path), told=told), out=out, workflow="transcript")
    read_control(run)
    if not run.story.events:
        return run.story
    import_first(run)
    compacted = compact_first(run)
    import_rest(run)
    if compacted and kill(run):
        recover(run)
        refuse(run)
        compact_again(run)
        recover_again(run)
    prove(run)
    if compacted:
        compare_model(run)
    return run.story
