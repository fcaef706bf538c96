"""The dashboard as an ASGI application: access, paths and headers.

host and origin ─► static files ─► sign-in ─► viewer ─► page, or form token ─► act ─► headers
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit

from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from pegboard.activity_export import FORMATS
from pegboard.errors import ConfigError, PegboardError
from pegboard.gateways.dashboard.activity_pages import ActivityPages
from pegboard.gateways.dashboard.approval_pages import ApprovalPages
from pegboard.gateways.dashboard.board_pages import LONGEST_QUERY, BoardPages
from pegboard.gateways.dashboard.dashboard_access import (
    FORM_COOKIE,
    FORM_FIELD,
    SESSION_SECONDS,
    DashboardAccess,
    DashboardRefused,
    Viewer,
)
from pegboard.gateways.dashboard.forms import MOST_OF_SIGN_IN, fields_of, last
from pegboard.gateways.dashboard.operator_acts import DONE, OperatorActs
from pegboard.gateways.dashboard.page_templates import STATIC, PageTemplates
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.gateways.mcp.transport.auth import InsufficientScope, Unauthorized
from pegboard.telemetry.activity_recorder import ActivityRecorder

LOGGER = logging.getLogger(__name__)

PATH = "/ui"
SIGN_IN = f"{PATH}/sign-in"
MOST_STREAMS = 20
HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
NAVIGATION = (
    ("", "Overview"),
    ("activity", "Activity"),
    ("tools", "Tools and servers"),
    ("approvals", "Approvals"),
    ("conversations", "Conversations"),
    ("clients", "Clients and keys"),
    ("try", "Try it"),
    ("settings", "Settings"),
)
OFF = "No activity is kept here: [activity] keep is off, or in the memory of another process."
Page = Callable[[Request], Awaitable[dict[str, Any]]]


def open_dashboard(
    host: Host,
    recorder: ActivityRecorder | None,
    security: TransportSecuritySettings,
    ends: Callable[[], bool],
    *,
    ticket: str = "",
) -> DashboardApp | None:
    """None if Jinja2 is not installed. ``ends`` says whether the server is about to end; a ``ticket`` opens it once."""
    try:
        templates = PageTemplates()
    except ConfigError as error:
        LOGGER.info("There is no dashboard: %s", error)
        return None
    return DashboardApp(host, recorder, security, templates, ends, ticket)


class DashboardApp:
    """Serves `PATH` and what is below it. Only the forms of operators change state, and sessions of browsers."""

    def __init__(
        self,
        host: Host,
        recorder: ActivityRecorder | None,
        security: TransportSecuritySettings,
        templates: PageTemplates,
        ends: Callable[[], bool],
        ticket: str = "",
    ) -> None:
        self._access = DashboardAccess(host, security, ticket)
        self._templates = templates
        self._ends = ends
        self._streams = 0
        self._board = BoardPages(host, recorder)
        self._acts = OperatorActs(host, recorder)
        self._activity = (
            ActivityPages(recorder, host.parts.archive, host.parts.clock.time) if recorder is not None else None
        )
        self._pages: Mapping[str, tuple[str, Page]] = {
            "tools": ("tools.html", lambda _: self._board.tools()),
            "approvals": ("approvals.html", ApprovalPages(host).approvals),
            "clients": ("clients.html", lambda _: self._board.clients()),
            "try": ("try.html", lambda _: self._board.tried("")),
            "settings": ("settings.html", self._settings),
        }
        if self._activity is not None:
            self._pages = {
                **self._pages,
                "": ("overview.html", self._activity.overview),
                "activity": ("activity.html", self._activity.activity),
                "conversations": ("conversations.html", self._activity.conversations),
            }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
        except ClientDisconnect:
            return
        except PegboardError as error:
            answer = self._refused(request, error)
        for name, value in HEADERS.items():
            answer.headers[name] = value
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        """Raises PegboardError."""
        await self._access.check_origin(request)
        path = request.url.path.removeprefix(PATH).strip("/")
        if path.startswith("static/"):
            return self._static(path.removeprefix("static/"))
        if request.method not in ("GET", "HEAD", "POST"):
            raise DashboardRefused(f"{request.method} is not for this path.", HTTPStatus.METHOD_NOT_ALLOWED)
        if request.method == "POST":
            return await self._posted(request, path)
        if path == "sign-in":
            return self._html("sign_in.html", Viewer(), {"error": "", "ticket": self._access.with_ticket})
        viewer = await self._access.viewer(request)
        if path.startswith("activity"):
            special = await self._of_activity(request, viewer, path)
            if special is not None:
                return special
        found = self._pages.get(path)
        if found is None:
            if path in ("", "activity", "conversations"):
                return self._message(viewer, OFF, HTTPStatus.OK)
            return self._message(viewer, "There is no such page.", HTTPStatus.NOT_FOUND)
        template, page = found
        done = DONE.get(request.query_params.get("done", ""), "")
        return self._html(template, viewer, {**await page(request), "done": done}, path)

    async def _of_activity(self, request: Request, viewer: Viewer, path: str) -> Response | None:
        """The stream, the files and the page of one decision; None for the list."""
        pages, name = self._activity, unquote(path.removeprefix("activity").lstrip("/"))
        kind = path.removeprefix("activity.")
        if pages is None or not name:
            if kind in FORMATS:
                return self._message(viewer, OFF, HTTPStatus.NOT_FOUND)
            return None
        if kind in FORMATS:
            pieces = await pages.exported(request.query_params, kind)
            named = {"content-disposition": f'attachment; filename="activity.{kind}"'}
            return StreamingResponse(pieces, media_type=FORMATS[kind][0], headers=named)
        if name == "stream":
            if self._streams >= MOST_STREAMS:
                raise DashboardRefused("Too many pages are live.", HTTPStatus.SERVICE_UNAVAILABLE)
            return StreamingResponse(self._streamed(request, pages), media_type="text/event-stream")
        values = await pages.decision(name)
        if values is None:
            return self._message(viewer, "There is no such decision, or not any more.", HTTPStatus.NOT_FOUND)
        return self._html("decision.html", viewer, values, "activity")

    async def _streamed(self, request: Request, pages: ActivityPages) -> AsyncIterator[str]:
        async def still() -> bool:
            try:
                await self._access.viewer(request)
            except PegboardError:
                return False
            return True

        self._streams += 1
        try:
            rows = pages.stream(request.query_params, self._templates, still=still, ends=self._ends)
            async for row in rows:
                yield row
        finally:
            self._streams -= 1

    async def _posted(self, request: Request, path: str) -> Response:
        """Signing in and out, a query to try, and acts of operators: none of them is for an address."""
        if path == "sign-in":
            token = last(await fields_of(request, MOST_OF_SIGN_IN), "token").strip()
            try:
                session = await self._access.sign_in(token)
            except (Unauthorized, InsufficientScope) as error:
                values = {"error": error.message, "ticket": self._access.with_ticket}
                return self._html("sign_in.html", Viewer(), values, status=error.http_status)
            answer = RedirectResponse(PATH, HTTPStatus.SEE_OTHER)
            answer.set_cookie(
                self._access.cookie,
                session,
                max_age=int(SESSION_SECONDS),
                path=PATH,
                secure=_is_over_tls(request),
                httponly=True,
                samesite="strict",
            )
            return answer
        viewer = await self._access.viewer(request)
        if path == "sign-out":
            self._access.sign_out(request)
            leaving = RedirectResponse(SIGN_IN, HTTPStatus.SEE_OTHER)
            leaving.delete_cookie(self._access.cookie, path=PATH)
            return leaving
        if path == "try":
            query = last(await fields_of(request), "query")
            return self._html("try.html", viewer, await self._board.tried(query[:LONGEST_QUERY]), path)
        if path in self._acts.paths:
            fields = await fields_of(request)
            self._access.check_form(request, viewer, last(fields, FORM_FIELD))
            return RedirectResponse(f"{PATH}/{await self._acts.do(path, viewer, fields)}", HTTPStatus.SEE_OTHER)
        raise DashboardRefused("POST is not for this path.", HTTPStatus.METHOD_NOT_ALLOWED)

    async def _settings(self, _: Request) -> dict[str, Any]:
        return await asyncio.to_thread(self._board.settings)

    def _static(self, name: str) -> Response:
        if name not in STATIC:
            raise DashboardRefused("There is no such file.", HTTPStatus.NOT_FOUND)
        return Response(self._templates.static[name], media_type=STATIC[name])

    def _refused(self, request: Request, error: PegboardError) -> Response:
        """A page for browsers that navigate, JSON for others; without a token, browsers are led to sign in."""
        status = error.status if isinstance(error, DashboardRefused) else error.http_status
        if "text/html" not in request.headers.get("accept", ""):
            challenge = {"www-authenticate": error.challenge} if isinstance(error, Unauthorized) else {}
            return JSONResponse(error.payload(), status, headers=challenge)
        if isinstance(error, Unauthorized) and not isinstance(error, InsufficientScope):
            return RedirectResponse(SIGN_IN, HTTPStatus.SEE_OTHER)
        return self._message(None, f"{error.message} {error.remedy or ''}".strip(), status)

    def _message(self, viewer: Viewer | None, text: str, status: int) -> Response:
        return self._html("message.html", viewer, {"message": text}, status=status)

    def _html(
        self, template: str, viewer: Viewer | None, values: Mapping[str, Any], path: str = "-", *, status: int = 200
    ) -> Response:
        pages = NAVIGATION if viewer is not None else ()
        shared = {"navigation": pages, "path": path, "root": PATH, "viewer": viewer}
        shared |= {"form_field": FORM_FIELD, "done": ""}
        page = HTMLResponse(self._templates.render(template, {**shared, **values}), status)
        if viewer is not None and viewer.form_cookie:
            page.set_cookie(FORM_COOKIE, viewer.form_cookie, path=PATH, httponly=True, samesite="strict")
        return page


def _is_over_tls(request: Request) -> bool:
    """Whether the browser has the page over TLS. It says so itself: a proxy in between may have ended the TLS."""
    return "https" in (request.url.scheme, urlsplit(request.headers.get("origin", "")).scheme)
