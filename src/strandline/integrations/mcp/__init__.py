"""An MCP server: other agents read a memory, and append to it, by tools (C33). It needs the extra `mcp`.

    serve_stdio(db, Access(tenant="acme", workflows=["release-42"]))

or, over HTTP, `serve_http` and `http_app`. `strandline mcp` does the same from the command line.
"""

from strandline.integrations.mcp.access import Access
from strandline.integrations.mcp.serving import http_app, serve_http, serve_stdio
from strandline.integrations.mcp.tokens import TokenFile

__all__ = ["Access", "TokenFile", "http_app", "serve_http", "serve_stdio"]
