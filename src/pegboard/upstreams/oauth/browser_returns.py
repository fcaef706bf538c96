"""Sign-ins of users in browsers on other machines, which return to an address of the gateway.

A page of the gateway comes first. It says for whom the sign-in is and binds it to the browser that confirms it, so that
nobody who is sent another user's page of the authorization server signs in for that user unknowingly (MCP 2025-11-25,
elicitation, phishing).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from pegboard.upstreams.oauth.loopback import Loopback

CALLBACK = "/oauth/callback"
PAGE = "/oauth/sign-in"
COOKIE = "pegboard_sign_in_"
"""How the names of the cookies begin."""


def cookie_of(state: str) -> str:
    """The name of the cookie of the sign-in with this ``state``: one browser may be in several sign-ins."""
    return COOKIE + hashlib.sha256(state.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRights:
    """Where the person will sign in, and the scopes that are asked for."""

    host: str
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserReturn:
    """One sign-in: ``target`` is the page of the authorization server, ``secret`` what the browser's cookie must
    have."""

    server: str
    name: str
    target: str
    secret: str
    waiting: Loopback

    @property
    def cookie(self) -> str:
        return cookie_of(self.waiting.state)

    @property
    def asked(self) -> AskedRights:
        """What the page of the authorization server will ask for."""
        parts = urlsplit(self.target)
        return AskedRights(host=parts.netloc, scopes=tuple(" ".join(parse_qs(parts.query).get("scope", ())).split()))


class BrowserReturns:
    """The sign-ins under way, by the number in the address of their page. ``base`` is the gateway's public address,
    empty if it has none. ``mark`` is that of this process, if there are several: numbers and cookies begin with it."""

    def __init__(self, base: Callable[[], str], mark: str = "") -> None:
        self._base = base
        self._mark = mark
        self._under_way: dict[str, BrowserReturn] = {}

    def begun(self, server: str) -> Loopback | None:
        """Where the browser is to return to; None if the gateway has no public address."""
        return Loopback(server, f"{base}{CALLBACK}") if (base := self._base()) else None

    def page(self, waiting: Loopback, server: str, name: str, target: str) -> str:
        """The address of the gateway's page for a sign-in at ``target``."""
        begin = f"{self._mark}." if self._mark else ""
        number, secret = (begin + secrets.token_urlsafe(24) for _ in range(2))
        self._under_way[number] = BrowserReturn(server=server, name=name, target=target, secret=secret, waiting=waiting)
        return f"{self._base()}{PAGE}/{number}"

    def of(self, number: str) -> BrowserReturn | None:
        return self._under_way.get(number)

    def end(self, waiting: Loopback) -> None:
        """The sign-in is over, with or without success."""
        self._under_way = {number: each for number, each in self._under_way.items() if each.waiting is not waiting}

    def received(self, state: str, query: str, cookies: Mapping[str, str]) -> tuple[int, str]:
        """Status and sentence of the page to which a browser has returned."""
        found = next((each for each in self._under_way.values() if each.waiting.state == state and state), None)
        if found is None:
            return 400, "This is not the answer to a sign-in that was begun here."
        if not secrets.compare_digest(cookies.get(found.cookie, "").encode(), found.secret.encode()):
            return 400, "This sign-in was not begun in this browser."
        return found.waiting.received(query)
