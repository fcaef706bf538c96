"""What a server's 401 or 403 means for a request, without the packages of the OAuth flow."""

from __future__ import annotations

import re

import httpx2

UNAUTHORIZED, FORBIDDEN = 401, 403
SCOPE = re.compile(r'\bscope="([^"]*)"')
INSUFFICIENT = re.compile(r'\berror="?insufficient_scope\b')


class TokenNotRenewed(httpx2.TransportError):
    """A token has ended, and the authorization server cannot be asked for another one now."""

    def __init__(self) -> None:
        super().__init__("the token has ended and cannot be renewed now")


def wanted_scopes(response: httpx2.Response) -> tuple[str, ...]:
    """The scopes that a 403 asks for (RFC 6750, 3.1); empty if scopes are not the reason."""
    said = response.headers.get("www-authenticate", "")
    found = SCOPE.search(said)
    return tuple(found.group(1).split()) if found and INSUFFICIENT.search(said) else ()
