"""Authentication on HTTP: bearer tokens (RFC 6750), stored as hashes, and the tools that each token grants.

A session belongs to the token that began it (`signed_ids`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from starlette.responses import JSONResponse, Response

from pegboard.errors import ConfigError, PegboardError
from pegboard.gateways.access_keys import hashed
from pegboard.settings import Settings

HOLDER_KEY = "pegboard.holder"
"""The key of the ASGI scope under which the HTTP door stores the holder of the token."""
AUTHORIZATION = b"authorization"
REALM = 'Bearer realm="pegboard"'


class Unauthorized(PegboardError):  # noqa: N818
    """No token, or an unknown one. ``shown`` is whether one was presented."""

    code = "unauthorized"
    http_status = 401

    def __init__(self, *, shown: bool) -> None:
        super().__init__(
            "The token is unknown." if shown else "This gateway requires a token.",
            remedy="Send the header `Authorization: Bearer TOKEN` with a token made by `pegboard keys new`.",
        )
        self.challenge = f'{REALM}, error="invalid_token"' if shown else REALM


class InvalidRequest(Unauthorized):
    """The credentials are not a single bearer token."""

    code = "invalid_request"
    http_status = 400

    def __init__(self) -> None:
        super().__init__(shown=True)
        self.message = "The request does not contain exactly one bearer token."
        self.challenge = f'{REALM}, error="invalid_request"'


class InsufficientScope(Unauthorized):
    """The token is valid but lacks the scope that the address requires."""

    code = "insufficient_scope"
    http_status = 403

    def __init__(self, scope: str) -> None:
        super().__init__(shown=True)
        self.message = f"The token does not have the scope {scope!r}."
        self.remedy = "Ask the gateway's operator."
        self.challenge = f'{REALM}, error="insufficient_scope", scope="{scope}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The holder of a token. ``only`` are patterns of the tools it grants, None for all; ``secret`` is its hash."""

    name: str
    secret: str = field(repr=False)
    scopes: frozenset[str] = frozenset()
    only: tuple[str, ...] | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """Identifies this holder over time: another holder with the same name has another token."""
        return self.name, self.secret

    def may_see(self, server: str) -> bool:
        """Whether the patterns can match any tool of a server."""
        return self.only is None or any(
            "/" not in each or fnmatchcase(server, each.partition("/")[0]) for each in self.only
        )

    def opens(self, server: str) -> bool:
        """Whether every tool of a server is granted; its resources and prompts are then granted too."""
        halves = (each.partition("/") for each in self.only or ())
        whole = (of for of, slash, name in halves if name == "*" or (of, slash) == ("*", ""))
        return self.only is None or any(fnmatchcase(server, of) for of in whole)


class Access:
    """The configured tokens. Without any, every client may use whatever the process may use."""

    def __init__(self, settings: Settings, environment: Mapping[str, str] | None = None) -> None:
        """Raises ConfigError for a variable that is not set, and for a token that two holders share."""
        known = os.environ if environment is None else environment
        self._holders: dict[str, Holder] = {}
        for name, each in settings.access.items():
            secret = each.hash or hashed(_value(name, each.env or "", known))
            if secret in self._holders:
                raise ConfigError(
                    f"The tokens {self._holders[secret].name!r} and {name!r} are the same.",
                    remedy="Give each holder its own token.",
                )
            only = _patterns(each.tools, each.scopes, settings.grants)
            self._holders[secret] = Holder(name=name, secret=secret, scopes=frozenset(each.scopes), only=only)

    @property
    def needed(self) -> bool:
        return bool(self._holders)

    def holder_of(self, token: str) -> Holder | None:
        """The holder of a token."""
        return self._holders.get(hashed(token))

    def holder(self, headers: Iterable[tuple[bytes, bytes]]) -> Holder | None:
        """The holder of the request's token; None if no token is required. Raises Unauthorized."""
        if not self._holders:
            return None
        shown = [value.decode("latin-1") for name, value in headers if name.lower() == AUTHORIZATION]
        if len(shown) > 1:
            raise InvalidRequest
        scheme, _, token = shown[0].partition(" ") if shown else ("", "", "")
        if scheme.lower() != "bearer":
            raise Unauthorized(shown=False)
        if not token.strip():
            raise InvalidRequest
        found = self.holder_of(token.strip())
        if found is None:
            raise Unauthorized(shown=True)
        return found


def check_scope(holder: Holder | None, scope: str | None) -> None:
    """Raises InsufficientScope if tokens are required and this one lacks the scope."""
    if holder is not None and scope is not None and scope not in holder.scopes:
        raise InsufficientScope(scope)


def refused(error: Unauthorized) -> Response:
    """The response with its challenge (RFC 6750, section 3)."""
    return JSONResponse(error.payload(), error.http_status, headers={"www-authenticate": error.challenge})


def _value(name: str, variable: str, environment: Mapping[str, str]) -> str:
    value = environment.get(variable, "").strip()
    if not value:
        raise ConfigError(
            f"The token {name!r} is read from the variable {variable!r}, which is not set.",
            remedy="Set it, or configure the token's hash: `pegboard keys new` prints both.",
        )
    return value


def _patterns(
    tools: tuple[str, ...] | None, scopes: Iterable[str], grants: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...] | None:
    """Patterns of the tools that a token grants: its own and those of its scopes; None for all tools."""
    if tools is None and not grants:
        return None
    return (*(tools or ()), *(pattern for scope in scopes for pattern in grants.get(scope, ())))
