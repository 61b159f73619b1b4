"""Blocks of calls and results as Anthropic's messages write them: what must stand in them."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.transcripts.lines import Line, identifier


def read_tool_use(line: Line, block: Mapping[str, object]) -> tuple[str, str]:
    """Return the id of a call, and its tool.

    Raises:
        ImportFormatError: the block is damaged.
    """
    call_id = identifier(line, block.get("id"), "a tool_use block's id")
    tool = identifier(line, block.get("name"), "a tool_use block's name")
    if "input" not in block:
        raise line.fault("a tool_use block without input")
    return call_id, tool


def read_tool_result(line: Line, block: Mapping[str, object]) -> tuple[str, bool]:
    """Return the id of the call that a result answers, and whether it is an error.

    Raises:
        ImportFormatError: the block is damaged.
    """
    call_id = identifier(line, block.get("tool_use_id"), "a tool_result block's tool_use_id")
    is_error = block.get("is_error")
    if is_error is not None and not isinstance(is_error, bool):
        raise line.fault("a tool_result block whose is_error is no bool")
    return call_id, is_error is True
