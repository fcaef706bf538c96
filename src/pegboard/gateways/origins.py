"""Which pages may use models: this server's own, those that are allowed by name, and desktop programs.

A page in a browser says where it is from (`Origin`), and cannot say anything else. Without the check any page that
somebody opens could send requests to a gateway on their machine, and spend the provider's key that it holds.
"""

from __future__ import annotations

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.types import Scope

from pegboard.errors import PegboardError

DESKTOP = ("app://", "tauri://", "vscode-file://", "vscode-webview://")
"""How origins begin that no page of the web has: those of desktop programs, which may leave the header out just as
well. The same that Ollama allows without being asked (`envconfig.AllowedOrigins`). `file://` is not among them:
browsers say `null` for it, as for every sandboxed frame of any page."""
FROM_PAGES = frozenset({b"origin", b"sec-fetch-site"})
"""Headers that browsers send for pages, and other programs do not."""
WRONG_HOST = 421


class OriginRefused(PegboardError):  # noqa: N818
    code = "origin_not_allowed"
    http_status = 403

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"Requests of pages from {origin!r} are not allowed.",
            remedy="Whoever runs this gateway can add that to allowed_origins.",
        )


class HostRefused(PegboardError):  # noqa: N818
    code = "host_not_allowed"
    http_status = WRONG_HOST

    def __init__(self, host: str) -> None:
        super().__init__(
            f"This gateway is not known as {host!r}.", remedy="Whoever runs it can add the name to allowed_hosts."
        )


class OriginCheck:
    """The check of `Host` and `Origin` for requests to models."""

    def __init__(self, security: TransportSecuritySettings) -> None:
        self._guard = TransportSecurityMiddleware(security)

    async def check(self, scope: Scope) -> None:
        """Raises OriginRefused or HostRefused for the request of a page that may not use models."""
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
