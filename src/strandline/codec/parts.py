"""What the bytes of a part of a saved state say: JSON, msgpack, or any other bytes with texts in them (C31)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from strandline.codec.values import decode_json, leaf_text
from strandline.errors import CorruptRecordError
from strandline.limits import JSON_DEPTH_MAX

_RUN: Final = re.compile(r"[^\x00-\x08\x0e-\x1f\x7f\ufffd]+")  # of what can be read


def part_text(data: bytes) -> str:
    """Return the texts in some bytes, a line each, whatever serialised them.

    Of bytes that are neither JSON nor msgpack each run that can be read stands twice, the second time without its first
    character: a length before a text may look like a letter.
    """
    try:
        return leaf_text(decode_json(data))
    except CorruptRecordError:
        return "\n".join(_texts(data, 0))


def _texts(data: bytes, depth: int) -> Iterator[str]:
    try:
        value = msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, RecursionError):
        value = None
    if isinstance(value, dict | list | str | msgspec.msgpack.Ext) and depth < JSON_DEPTH_MAX:
        yield from _leaves(value, depth)
        return
    for run in _RUN.findall(data.decode("utf-8", "replace")):
        yield from (run, run[1:])


def _leaves(root: object, depth: int) -> Iterator[str]:
    todo = [root]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            todo.extend(item for pair in reversed(value.items()) for item in reversed(pair))
        elif isinstance(value, list | tuple):
            todo.extend(reversed(value))
        elif isinstance(value, msgspec.msgpack.Ext):
            yield from _texts(bytes(value.data), depth + 1)
        elif isinstance(value, bytes):
            yield from _texts(value, depth + 1)
        elif isinstance(value, str):
            yield value
        elif value is not None:
            yield str(value)
