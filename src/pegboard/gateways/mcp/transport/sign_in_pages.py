"""The pages on which users begin and end a sign-in at a server that is connected for them alone."""

from __future__ import annotations

import html
import re
import secrets
from collections.abc import Mapping
from urllib.parse import parse_qs, parse_qsl

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Receive, Scope

from pegboard.upstreams.oauth.browser_returns import CALLBACK, PAGE, BrowserReturn, BrowserReturns, cookie_of
from pegboard.upstreams.oauth.person import PATIENCE

HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
"""No page refers to another one, and none can be put into a frame."""
SEEN = "pegboard_sign_in_page"
"""The cookie of a browser that has seen such a page."""
LONGEST_FORM = 4096
MARKED = re.compile(r"(\w+)\.[\w-]+", re.ASCII)
"""A page's number, or a cookie, with the mark of its process."""


def is_page(path: str) -> bool:
    return path == CALLBACK or path.startswith(f"{PAGE}/")


def mark(scope: Scope) -> str:
    """The mark of the process whose page is wanted; empty if that is of no matter."""
    path = scope["path"]
    if path == CALLBACK:
        found = Request(scope).cookies.get(cookie_of(_state(scope)), "")
    else:
        found = path.removeprefix(f"{PAGE}/")
    marked = MARKED.fullmatch(found)
    return marked.group(1) if marked else ""


async def form(receive: Receive) -> bytes:
    """The body of a request; only the first part of one that is too long for a form of ours."""
    body, more = b"", True
    while more and len(body) < LONGEST_FORM:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body[:LONGEST_FORM]


def answer(scope: Scope, returns: BrowserReturns, body: bytes = b"") -> Response:
    """``body`` is that of the request, a form."""
    request, path = Request(scope), scope["path"]
    if path == CALLBACK:
        query = scope["query_string"].decode("latin-1")
        status, sentence = returns.received(_state(scope), query, request.cookies)
        return _page(f"<p>{html.escape(sentence)}</p>", status)
    found = returns.of(path.removeprefix(f"{PAGE}/"))
    if found is None:
        return _page("<p>This sign-in is over.</p>", 404)
    if request.method != "POST":
        return _question(found, request)
    if why := _refusal(dict(parse_qsl(body.decode("latin-1"))), request.cookies.get(SEEN, "")):
        return _page(f"<p>{why}</p>", 400)
    response = RedirectResponse(found.target, 303, headers={name: HEADERS[name] for name in list(HEADERS)[:2]})
    secure = found.waiting.url.startswith("https:")
    response.set_cookie(found.cookie, found.secret, max_age=int(PATIENCE), httponly=True, samesite="lax", secure=secure)
    return response


def _state(scope: Scope) -> str:
    query: str = scope["query_string"].decode("latin-1")
    return (parse_qs(query).get("state") or [""])[0]


def _question(found: BrowserReturn, request: Request) -> Response:
    """The page that says who asks and for what. Only the browser that has seen it can confirm it: another site could
    send the form from the browser of somebody who has not."""
    name, server, asked = html.escape(found.name), html.escape(found.server), found.asked
    rights = f", with the rights <b>{html.escape(', '.join(asked.scopes))}</b>" if asked.scopes else ""
    mark = request.cookies.get(SEEN) or secrets.token_urlsafe(24)
    response = _page(
        f"<h1>Sign in to {server} for {name}</h1><p><b>{name}</b> has asked this gateway for a connection to {server}. "
        f"You will sign in at <b>{html.escape(asked.host)}</b>{rights}. What you allow there, Pegboard will do for "
        f"<b>{name}</b> with your account. If that is not you, close this page.</p><form method=post>"
        f'<input type=hidden name=seen value="{html.escape(mark)}">'
        f"<p><label><input type=checkbox name=me value=yes required> I am {name}, and I have asked for this.</label>"
        "</p><button>Continue</button></form>"
    )
    secure = found.waiting.url.startswith("https:")
    response.set_cookie(SEEN, mark, max_age=int(PATIENCE), httponly=True, samesite="strict", secure=secure)
    return response


def _refusal(form: Mapping[str, str], seen: str) -> str:
    """Why the form does not confirm the page; empty if it does."""
    if not seen or not secrets.compare_digest(form.get("seen", "").encode(), seen.encode()):
        return "This page was not opened in this browser before. Open it again from your client."
    return "" if form.get("me") == "yes" else "Go back, and confirm that it is you."


def _page(body: str, status: int = 200) -> Response:
    return HTMLResponse(f"<!doctype html><meta charset=utf-8><title>Pegboard</title>{body}", status, headers=HEADERS)
