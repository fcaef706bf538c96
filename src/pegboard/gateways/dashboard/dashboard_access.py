"""Who may look at the dashboard, and who may act: on this machine whoever reaches it, elsewhere holders of a token with
its scopes."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request

from pegboard.errors import PegboardError
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.gateways.mcp.transport.auth import AUTHORIZATION, Holder, Unauthorized, check_scope
from pegboard.settings.issuer_settings import LOOPBACK

VIEWER = "ui:viewer"
"""The scope of a token that may look."""
OPERATOR = "ui:operator"
"""The scope of a token that may also approve, reject, switch and erase."""
COOKIE = "pegboard_ui"
FORM_COOKIE = "pegboard_ui_form"
"""Ties forms to a browser that has not signed in."""
FORM_FIELD = "form"
SESSION_SECONDS = 8 * 3_600.0
MOST_SESSIONS = 1_000
IN_ADDRESSES = frozenset({"token", "access_token", "api_key"})
"""Parameters by which tokens would end up in logs and histories."""
OWN_PAGES = ("same-origin", "none")


class DashboardClosed(PegboardError):  # noqa: N818
    code = "dashboard_closed"
    http_status = 403

    def __init__(self) -> None:
        super().__init__(
            "The dashboard is open only on this machine, as no tokens are configured.",
            remedy=f"`pegboard keys new NAME --mcp --tools '' --scopes {VIEWER}` makes a token that may look.",
        )


class DashboardRefused(PegboardError):  # noqa: N818
    """A request that no page of the dashboard makes, and the status of the answer."""

    code = "dashboard_refused"
    http_status = 403

    def __init__(self, why: str, status: int = 403) -> None:
        super().__init__(why, remedy="Open the dashboard by its own address, and sign in there.")
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Who looks; ``name`` is empty on this machine, where nobody signs in.

    Forms that act repeat ``form_token``; ``form_cookie`` is a cookie that the browser does not have yet.
    """

    name: str = ""
    tenant: str = ""
    signed_in: bool = False
    operates: bool = False
    form_token: str = field(default="", repr=False)
    form_cookie: str = field(default="", repr=False)


class DashboardAccess:
    """Sessions of browsers are kept in memory, with the token, which is checked again at each request."""

    def __init__(self, host: Host, security: TransportSecuritySettings) -> None:
        self._host = host
        self._guard = TransportSecurityMiddleware(security)
        self._sessions: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._form_key = secrets.token_bytes(32)

    async def check_origin(self, request: Request) -> None:
        """Raises DashboardRefused for another host's name, for requests of other sites, and for tokens in the
        address."""
        answer = await self._guard.validate_request(request)
        if answer is not None:
            raise DashboardRefused("This gateway is not known by that name, or the page is another's.", 421)
        site, mode = request.headers.get("sec-fetch-site", "none"), request.headers.get("sec-fetch-mode", "")
        if site not in OWN_PAGES and (request.method not in ("GET", "HEAD") or mode != "navigate"):
            raise DashboardRefused("The request comes from a page of another site.")
        origin = request.headers.get("origin")
        if request.method == "POST" and origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
            raise DashboardRefused("The request comes from a page of another site.")
        if IN_ADDRESSES & {name.lower() for name in request.query_params}:
            raise DashboardRefused("A token does not belong into an address.", 400)

    async def viewer(self, request: Request) -> Viewer:
        """Raises DashboardClosed, Unauthorized without a token, and InsufficientScope."""
        if self._is_local(request):
            known = request.cookies.get(FORM_COOKIE, "")
            fresh = "" if known else secrets.token_urlsafe(32)
            return Viewer(operates=True, form_token=self._form_token(known or fresh), form_cookie=fresh)
        if not self._host.access.needed:
            raise DashboardClosed
        if request.headers.get("authorization"):
            return await self._viewer(request.headers["authorization"])
        session = request.cookies.get(COOKIE, "")
        token = self._token(session)
        if token is None:
            raise Unauthorized(shown=False)
        viewer = await self._viewer(f"Bearer {token}")
        return replace(viewer, signed_in=True, form_token=self._form_token(session))

    def check_form(self, request: Request, viewer: Viewer, given: str) -> None:
        """Raises DashboardRefused for a form that no page of this browser has shown. A program that sends its token in
        a header needs none: no browser adds that by itself."""
        if not viewer.form_token:
            return
        from_here = "origin" in request.headers or request.headers.get("sec-fetch-site") == "same-origin"
        shown = not viewer.form_cookie and hmac.compare_digest(given.encode(), viewer.form_token.encode())
        if not from_here or not shown:
            raise DashboardRefused("The form is not one that this browser was shown, or it is too old.")

    async def sign_in(self, token: str) -> str:
        """The name of a new session. Raises Unauthorized, and InsufficientScope for a token that may not look."""
        await self._viewer(f"Bearer {token}")
        session = secrets.token_urlsafe(32)
        self._sessions[session] = (token, self._host.parts.clock.time() + SESSION_SECONDS)
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def sign_out(self, request: Request) -> None:
        self._sessions.pop(request.cookies.get(COOKIE, ""), None)

    async def _viewer(self, authorization: str) -> Viewer:
        headers = [(AUTHORIZATION, authorization.encode("latin-1", "replace"))]
        holder: Holder | None = await self._host.access.holder(headers)
        if holder is None:
            return Viewer()
        operates = OPERATOR in holder.scopes
        if not operates:
            check_scope(holder, VIEWER)
        return Viewer(name=holder.name, tenant=holder.tenant, operates=operates)

    def _form_token(self, bound: str) -> str:
        return hmac.new(self._form_key, bound.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    def _token(self, session: str) -> str | None:
        token, ends = self._sessions.get(session, (None, 0.0))
        return token if self._host.parts.clock.time() < ends else None

    def _is_local(self, request: Request) -> bool:
        """Whether only programs of this machine can have made the request, and nobody has asked for tokens."""
        settings = self._host.settings
        client = request.client.host if request.client else ""
        private = settings.host in LOOPBACK and not settings.allowed_hosts and not self._host.access.needed
        return private and client in LOOPBACK
