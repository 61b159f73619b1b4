"""Calibration from sessions whose provider said how many tokens each request held."""

from __future__ import annotations

import os

from strandline.summarizers import Calibration
from strandline.transcripts import read_requests


def calibrate(path: str | os.PathLike[str], counter: object = None) -> Calibration:
    """Learn from a Claude Code session what its model's tokens are, beside those of a counter.

    Args:
        path: the session's file. `Calibration.learn` brings what several taught together.
        counter: as `open` takes it; None: the default one.

    Raises:
        ImportFormatError: the file is damaged.
        InvalidInputError: it can't be read, or is no such session.
    """
    calibration = Calibration(counter)
    before: int | None = None
    for request in read_requests(path):
        if request.tokens is None or before is None:
            calibration.interrupt()
        else:
            # The parts of a context are joined by an empty line.
            counted = sum(calibration.counter.count(f"{text}\n\n") for text in request.texts)
            calibration.report(counted, request.tokens - before)
        before = request.tokens
    return calibration
