"""The protocol's side: an MCP server of the official SDK that lists the tools and calls them."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

import msgspec

from strandline import Strandline, StrandlineError
from strandline.integrations.extra import needs_extra
from strandline.integrations.mcp.access import Access
from strandline.integrations.mcp.refusals import ServerBusyError, ServerFaultError, refusal
from strandline.integrations.mcp.tools import TOOLS, Caller, Tool, call
from strandline.limits import MCP_CALLS_MAX, MCP_CALLS_PER_TENANT_MAX

if TYPE_CHECKING:
    from mcp import types
    from mcp.server import Server
    from mcp.server.context import ServerRequestContext

_INSTRUCTIONS: Final = (
    "Strandline keeps the memory of a long task: a log in which each event stays word for word, and a validated "
    "summary of the older ones. Begin with `status` and `read_context`. Append what you decide, make, try and find "
    "with `append_event`. What a summary dropped is found with `find_reference`. Before a critical action ask "
    "`check_ready`."
)
_log = logging.getLogger("strandline.integrations.mcp")


def make_server(db: Strandline, access: Callable[[], Access]) -> Server[dict[str, object]]:
    """Return the server.

    Args:
        db: an open store.
        access: tells what the caller of the present request may reach.

    Raises:
        InvalidInputError: the extra is not installed.
    """
    with needs_extra("the MCP server", "mcp"):
        from mcp import types
        from mcp.server import Server
        from mcp.shared.exceptions import MCPError

    listed = [_listed(tool) for tool in TOOLS.values()]
    desk = _Desk(db, access)

    async def list_tools(
        _ctx: ServerRequestContext, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(_ctx: ServerRequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"no tool is called {params.name[:100]!r}")
        told, is_error = await desk.serve(tool, params.arguments or {})
        text = types.TextContent(type="text", text=msgspec.json.encode(told).decode())
        return types.CallToolResult(content=[text], structured_content=told, is_error=is_error)

    return Server(
        "strandline",
        version=version("strandline"),
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


class _Desk:
    """Runs calls in threads of its own: a few at once, the others in the order in which they came."""

    def __init__(self, db: Strandline, access: Callable[[], Access]) -> None:
        self._db = db
        self._access = access
        self._threads = ThreadPoolExecutor(MCP_CALLS_MAX, "strandline-mcp")
        self._here: Counter[str] = Counter()  # calls by tenant

    async def serve(self, tool: Tool, arguments: dict[str, object]) -> tuple[dict[str, object], bool]:
        """Return what the caller is told, and whether it is an error.

        A call that runs is not broken off when who asked goes away, and has its thread until then; one that waits is
        dropped.
        """
        try:
            access = self._access()
            with self._seat(access.tenant):
                answering = self._threads.submit(copy_context().run, self._answer, tool, access, arguments)
                return await asyncio.wrap_future(answering), False
        except StrandlineError as error:
            _log.info("%s was refused: %s: %s", tool.name, type(error).__name__, error)
            return {"error": refusal(error)}, True

    @contextmanager
    def _seat(self, tenant: str) -> Iterator[None]:
        if self._here[tenant] >= MCP_CALLS_PER_TENANT_MAX:
            raise ServerBusyError
        self._here[tenant] += 1
        try:
            yield
        finally:
            self._here[tenant] -= 1
            self._here += Counter()  # forgets those without any

    def _answer(self, tool: Tool, access: Access, arguments: dict[str, object]) -> dict[str, object]:
        try:
            told: dict[str, object] = msgspec.to_builtins(call(tool, Caller(self._db, access), arguments))
        except StrandlineError:
            raise
        except Exception as error:
            _log.exception("%s failed", tool.name)
            raise ServerFaultError from error  # the caller is not told what is wrong in here
        return told


def _listed(tool: Tool) -> types.Tool:
    from mcp import types

    return types.Tool(
        name=tool.name,
        description=tool.said,
        input_schema=_schema(tool.takes),
        output_schema=_schema(tool.answers),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.reads, destructive_hint=False, idempotent_hint=tool.reads, open_world_hint=False
        ),
    )


def _schema(kind: type[msgspec.Struct]) -> dict[str, object]:
    """Return the JSON schema of a struct, with the object itself at the root, as the protocol wants it."""
    (_,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    root = parts.pop(kind.__name__)
    return {**root, "$defs": parts} if parts else root
