"""Which web pages may use models: this server's own, allowed origins, and desktop programs.

A page in a browser cannot forge its `Origin`. Without this check, any page that a user opens could send requests to a
gateway on their machine and spend its provider keys.
"""

from __future__ import annotations

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Scope, Send

from pegboard.errors import PegboardError

DESKTOP = ("app://", "tauri://", "vscode-file://", "vscode-webview://")
"""Origin schemes that no web page has: those of desktop programs, which could just as well omit the header. The same
ones that Ollama allows by default (`envconfig.AllowedOrigins`). `file://` is not among them: browsers send `null` for
it, as for every sandboxed frame."""
FROM_PAGES = frozenset({b"origin", b"sec-fetch-site"})
"""Headers that browsers send for pages, and other programs do not."""
WRONG_HOST = 421
PREFLIGHT_SECONDS = 600
"""How long a browser may keep the answer to a preflight."""
CORS = b"access-control-"
"""The prefix of headers that say which pages may read an answer."""


class OriginRefused(PegboardError):  # noqa: N818
    code = "origin_not_allowed"
    http_status = 403

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"Requests from pages of {origin!r} are not allowed.",
            remedy="The gateway's operator can add the origin to allowed_origins.",
        )


class HostRefused(PegboardError):  # noqa: N818
    code = "host_not_allowed"
    http_status = WRONG_HOST

    def __init__(self, host: str) -> None:
        super().__init__(
            f"This gateway is not known as {host!r}.", remedy="Its operator can add the name to allowed_hosts."
        )


class OriginCheck:
    """Checks `Host` and `Origin` of requests to models."""

    def __init__(self, security: TransportSecuritySettings) -> None:
        self._guard = TransportSecurityMiddleware(security)

    async def check(self, scope: Scope) -> None:
        """Raises OriginRefused or HostRefused for a page that may not use models."""
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if not headers.keys() & FROM_PAGES:
            return
        origin = headers.get(b"origin", "")
        if origin.startswith(DESKTOP):
            others = [each for each in scope["headers"] if each[0].lower() != b"origin"]
            scope = {**scope, "headers": others}
        answer = await self._guard.validate_request(Request(scope))
        if answer is not None and answer.status_code == WRONG_HOST:
            raise HostRefused(headers.get(b"host", ""))
        if answer is not None:
            raise OriginRefused(origin)


def preflight_answer(scope: Scope) -> Response | None:
    """The answer to a browser's preflight for a page that may use models; None for any other request.

    A preflight has no key (Fetch, 4.8): the request itself is checked for one, and only that goes to a provider.
    """
    headers = Request(scope).headers
    origin, method = headers.get("origin"), headers.get("access-control-request-method")
    if scope["method"] != "OPTIONS" or origin is None or method is None:
        return None
    allowed = {"origin": origin, "methods": method, "headers": headers.get("access-control-request-headers", "")}
    said = {f"access-control-allow-{name}": value for name, value in allowed.items() if value}
    said |= {"access-control-max-age": str(PREFLIGHT_SECONDS), "vary": "origin"}
    return Response(status_code=204, headers=said)


def readable_by_page(scope: Scope, send: Send) -> Send:
    """A `send` that lets the page that asked read the answer, and its headers, whatever the provider allows."""
    origin = Request(scope).headers.get("origin")
    if origin is None:
        return send
    ours = [(b"access-control-allow-origin", origin.encode("latin-1")), (b"access-control-expose-headers", b"*")]

    async def readable(message: Message) -> None:
        if message["type"] == "http.response.start":
            others = [each for each in message.get("headers", ()) if not each[0].lower().startswith(CORS)]
            message = {**message, "headers": [*others, *ours, (b"vary", b"origin")]}
        await send(message)

    return readable
