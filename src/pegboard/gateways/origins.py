"""Which web pages may use models: this server's own, allowed origins, and desktop programs.

A page in a browser cannot forge its `Origin`. Without this check, any page that a user opens could send requests to a
gateway on their machine and spend its provider keys.
"""

from __future__ import annotations

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.types import Scope

from pegboard.errors import PegboardError

DESKTOP = ("app://", "tauri://", "vscode-file://", "vscode-webview://")
"""Origin schemes that no web page has: those of desktop programs, which could just as well omit the header. The same
ones that Ollama allows by default (`envconfig.AllowedOrigins`). `file://` is not among them: browsers send `null` for
it, as for every sandboxed frame."""
FROM_PAGES = frozenset({b"origin", b"sec-fetch-site"})
"""Headers that browsers send for pages, and other programs do not."""
WRONG_HOST = 421


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
