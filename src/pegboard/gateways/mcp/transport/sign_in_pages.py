"""The pages on which users begin and end a sign-in at a server that is connected for them alone."""

from __future__ import annotations

import html
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Scope

from pegboard.upstreams.oauth.browser_returns import CALLBACK, COOKIE, PAGE, BrowserReturns
from pegboard.upstreams.oauth.person import PATIENCE

HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
"""No page refers to another one, and none can be put into a frame."""


def is_page(path: str) -> bool:
    return path == CALLBACK or path.startswith(f"{PAGE}/")


def answer(scope: Scope, returns: BrowserReturns) -> Response:
    request, path = Request(scope), scope["path"]
    if path == CALLBACK:
        query = scope["query_string"].decode("latin-1")
        state = (parse_qs(query).get("state") or [""])[0]
        status, sentence = returns.received(state, query, request.cookies)
        return _page(f"<p>{html.escape(sentence)}</p>", status)
    found = returns.of(path.removeprefix(f"{PAGE}/"))
    if found is None:
        return _page("<p>This sign-in is over.</p>", 404)
    if request.method != "POST":
        name, server = html.escape(found.name), html.escape(found.server)
        return _page(
            f"<h1>Sign in to {server} for {name}</h1><p>What you allow there, Pegboard will do for <b>{name}</b>. If "
            "that is not you, close this page.</p><form method=post><button>Continue</button></form>"
        )
    response = RedirectResponse(found.target, 303, headers={name: HEADERS[name] for name in list(HEADERS)[:2]})
    secure = found.waiting.url.startswith("https:")
    response.set_cookie(COOKIE, found.secret, max_age=int(PATIENCE), httponly=True, samesite="lax", secure=secure)
    return response


def _page(body: str, status: int = 200) -> Response:
    return HTMLResponse(f"<!doctype html><meta charset=utf-8><title>Pegboard</title>{body}", status, headers=HEADERS)
