"""Serve: on the standard streams of the process, or over HTTP."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from strandline import InvalidInputError, Strandline, TenantScopeError
from strandline.integrations.extra import needs_extra
from strandline.integrations.mcp.access import Access
from strandline.integrations.mcp.server import make_server
from strandline.integrations.mcp.tokens import TokenFile
from strandline.limits import MCP_CONNECTIONS_MAX, MCP_REQUEST_BYTES_MAX

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Receive, Scope, Send

PATH: Final = "/mcp"
HOST: Final = "127.0.0.1"
PORT: Final = 8765
_ACCESS: Final = "access"
_log = logging.getLogger("strandline.integrations.mcp")


def serve_stdio(db: Strandline, access: Access) -> None:
    """Serve the one who started this process, on its standard streams, until they end.

    Args:
        db: an open store.
        access: what the caller may reach.

    Raises:
        InvalidInputError: the extra is not installed.
    """
    server = make_server(db, lambda: access)
    from mcp.server.stdio import stdio_server

    async def serve() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    asyncio.run(serve())


def http_app(db: Strandline, who: Access | TokenFile, *, host: str = HOST) -> Starlette:
    """Return an ASGI app that serves the tools at `PATH`. It keeps no sessions: each request stands by itself.

    Args:
        db: an open store.
        who: tokens, of which each request needs one; or what everyone may reach who can connect.
        host: where it will listen: without tokens only this machine.

    Raises:
        InvalidInputError: there are no tokens, and the host is not this machine alone; or the extra is not installed.
    """
    app = _guarded_app(db, who) if isinstance(who, TokenFile) else _open_app(db, who, host)
    app.add_middleware(_PostOnly)
    return app


def _open_app(db: Strandline, access: Access, host: str) -> Starlette:
    if not is_loopback(host):
        raise InvalidInputError(
            f"without tokens it would let in everyone who can reach {host}",
            hint="Give a token file: `strandline mcp token` makes one. Or listen on 127.0.0.1.",
        )
    # The SDK refuses other hosts and origins here, so that no web page reaches it through a browser (DNS rebinding).
    server = make_server(db, lambda: access)
    return server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        json_response=True,
        max_request_body_size=MCP_REQUEST_BYTES_MAX,
        host=HOST,
    )


def _guarded_app(db: Strandline, tokens: TokenFile) -> Starlette:
    tokens.names()  # a file that can't be read is refused before anything is served
    server = make_server(db, _access_of_request)
    from mcp.server.auth.provider import AccessToken
    from mcp.server.auth.settings import AuthSettings
    from mcp.server.transport_security import TransportSecuritySettings

    class Verifier:
        """Tells the SDK whose token it is; the token itself goes no further."""

        async def verify_token(self, token: str) -> AccessToken | None:
            try:
                access = tokens.access_of(token)
            except (InvalidInputError, TenantScopeError) as error:
                _log.error("nobody is let in: %s", error)
                return None
            if access is None:
                return None
            return AccessToken(token="", client_id=access.actor, scopes=[], claims={_ACCESS: access})

    return server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        json_response=True,
        max_request_body_size=MCP_REQUEST_BYTES_MAX,
        # A web page has no token to send, so any name that leads here will do, that of a proxy too.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        # The SDK wants to know who issues tokens. Nobody does over the network; nothing of it is published.
        auth=AuthSettings.model_validate({"issuer_url": "http://localhost", "resource_server_url": None}),
        token_verifier=Verifier(),
    )


class _PostOnly:
    """Refuses what would open a stream on which nothing ever comes, and hold a connection."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] == "POST":
            await self._app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 405, "headers": [(b"allow", b"POST")]})
        await send({"type": "http.response.body", "body": b""})


def _access_of_request() -> Access:
    from mcp.server.auth.middleware.auth_context import get_access_token

    token = get_access_token()
    access = (token.claims or {}).get(_ACCESS) if token is not None else None
    if not isinstance(access, Access):
        raise TenantScopeError("the request has no token", hint="Send one: `Authorization: Bearer …`.")
    return access


def is_loopback(host: str) -> bool:
    """Tell whether who listens there is reached from this machine only; a name that isn't `localhost` may be any."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve_http(
    db: Strandline,
    who: Access | TokenFile,
    *,
    host: str = HOST,
    port: int = PORT,
    told: Callable[[str], None] | None = None,
) -> None:
    """Serve over HTTP until SIGTERM or Ctrl-C: then the requests in hand are finished.

    Args:
        db: an open store.
        who: as of `http_app`.
        host: where to listen.
        port: 0 takes a free one.
        told: called with the URL when it listens.

    Raises:
        InvalidInputError: as of `http_app`, or it can't listen there.
    """
    app = http_app(db, who, host=host)
    with needs_extra("the MCP server", "mcp"):
        import uvicorn

    config = uvicorn.Config(
        app, log_config=None, access_log=False, limit_concurrency=MCP_CONNECTIONS_MAX, server_header=False
    )
    with _listen(host, port) as listening:
        if told is not None:
            shown = f"[{host}]" if ":" in host else host
            told(f"http://{shown}:{listening.getsockname()[1]}{PATH}")
        uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family)
    except (OSError, OverflowError) as error:
        said = f"can't listen on {host}:{port}: {getattr(error, 'strerror', None) or error}"
        raise InvalidInputError(said, hint="Name another host or port.") from error
