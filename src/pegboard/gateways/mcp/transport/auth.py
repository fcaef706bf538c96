"""Authentication on HTTP: bearer tokens (RFC 6750), stored as hashes or of an issuer, and the tools that each grants.

A session belongs to the token that began it (`signed_ids`).
"""

from __future__ import annotations

import math
import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from urllib.parse import urlsplit, urlunsplit

from starlette.responses import JSONResponse, Response

from pegboard.caller_limits import LimitedCaller
from pegboard.clock import SystemClock
from pegboard.empty_sets import frozen
from pegboard.errors import ConfigError, PegboardError
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.issuer import Claims, Issuer, TokenRefused, claim_at, values
from pegboard.gateways.users import of_subject, of_token
from pegboard.protocols import Clock
from pegboard.settings import Settings
from pegboard.settings.issuer_settings import ClaimPolicy, IssuerSettings
from pegboard.settings.limit_settings import BudgetSettings, RateSettings

HOLDER_KEY = "pegboard.holder"
"""The key of the ASGI scope under which the HTTP door stores the holder of the token."""
AUTHORIZATION = b"authorization"
REALM = 'Bearer realm="pegboard"'
MOST_HOLDERS = 10_000
"""Holders of an issuer's tokens that are remembered, each by the hash of the token."""
WELL_KNOWN = "/.well-known/oauth-protected-resource"


class Unauthorized(PegboardError):  # noqa: N818
    """No token, or one that is not accepted. ``shown`` is whether one was presented, ``why`` what is wrong with it."""

    code = "unauthorized"
    http_status = 401

    def __init__(self, *, shown: bool, why: str = "") -> None:
        unknown = f"The token is not accepted: {why}." if why else "The token is unknown."
        super().__init__(
            unknown if shown else "This gateway requires a token.",
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
    """The holder of a token. ``only`` are patterns of the tools it grants, None for all; ``secret`` is its hash.

    ``user`` identifies the person or program whose connections to servers are used: the issuer and its subject, or the
    name of a configured token. It stays the same when rights change or a token is renewed. ``token`` is an issuer's own
    token, for an exchange (RFC 8693); empty for configured ones.
    """

    name: str
    secret: str = field(repr=False)
    scopes: frozenset[str] = frozenset()
    only: tuple[str, ...] | None = None
    tenant: str = ""
    rates: tuple[RateSettings, ...] = ()
    budgets: tuple[BudgetSettings, ...] = ()
    user: str = field(default="", repr=False)
    token: str = field(default="", repr=False, compare=False)

    @property
    def limited(self) -> LimitedCaller:
        """Who is counted by limits."""
        return LimitedCaller(name=self.name, tenant=self.tenant, rates=self.rates, budgets=self.budgets)

    @property
    def identity(self) -> tuple[str, str]:
        """Identifies this holder over time: another holder with the same name has another token."""
        return self.name, self.secret

    @property
    def is_subject(self) -> bool:
        """Whether an issuer vouches for it: a configured token may have the same name."""
        return self.user not in ("", of_token(self.name))

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
    """The configured tokens, and the issuer of others. Without any, every client may use whatever the process may."""

    def __init__(
        self,
        settings: Settings,
        environment: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        before: Access | None = None,
    ) -> None:
        """``before`` is the access that this one replaces, whose checked tokens are kept if the issuer is the same.

        Raises ConfigError for a variable that is not set, and for a token that two holders share.
        """
        known = os.environ if environment is None else environment
        self._clock = clock or SystemClock()
        self._holders: dict[str, Holder] = {}
        self._expiries: dict[str, float] = {}
        self._grants = settings.grants
        self._by_token: OrderedDict[str, tuple[Claims, Holder]] = OrderedDict()
        self._issuer: Issuer | None = _issuer(settings, self._clock, before._issuer if before else None)
        for name, each in settings.access.items():
            secret = each.hash or hashed(_value(name, each.env or "", known))
            if secret in self._holders:
                raise ConfigError(
                    f"The tokens {self._holders[secret].name!r} and {name!r} are the same.",
                    remedy="Give each holder its own token.",
                )
            only = _patterns(each.tools, each.scopes, settings.grants)
            scopes = frozenset(each.scopes)
            user = of_token(name)
            holder = Holder(name=name, secret=secret, scopes=scopes, only=only, tenant=each.tenant, user=user)
            for hash_, end in ((secret, each.expires), (each.previous, each.previous_expires)):
                if hash_ is not None:
                    self._holders[hash_] = holder
                    self._expiries[hash_] = math.inf if end is None else end.timestamp()

    @property
    def needed(self) -> bool:
        return bool(self._holders) or self._issuer is not None

    def holder_of(self, token: str) -> Holder | None:
        """The holder of a configured token that has not expired."""
        secret = hashed(token)
        expired = self._clock.time() >= self._expiries.get(secret, math.inf)
        return None if expired else self._holders.get(secret)

    def is_token(self, token: str) -> bool:
        """Whether it is a token for this gateway, valid or not, which nobody else must see."""
        return hashed(token) in self._holders or (self._issuer is not None and self._issuer.issued(token))

    async def holder(self, headers: Iterable[tuple[bytes, bytes]]) -> Holder | None:
        """The holder of the request's token; None if no token is required. Raises Unauthorized, and IssuerUnavailable
        while the issuer of a new token does not answer."""
        if not self.needed:
            return None
        shown = [value.decode("latin-1") for name, value in headers if name.lower() == AUTHORIZATION]
        if len(shown) > 1:
            raise InvalidRequest
        scheme, _, token = shown[0].partition(" ") if shown else ("", "", "")
        if scheme.lower() != "bearer":
            raise Unauthorized(shown=False)
        token = token.strip()
        if not token:
            raise InvalidRequest
        found = self.holder_of(token)
        if found is None and self._issuer is not None:
            try:
                claims = await self._issuer.claims(token)
            except TokenRefused as reason:
                raise Unauthorized(shown=True, why=str(reason)) from reason
            return self._of_claims(claims, token, self._issuer.settings)
        if found is None:
            raise Unauthorized(shown=True)
        return found

    def _of_claims(self, claims: Claims, token: str, issuer: IssuerSettings) -> Holder:
        """As `_by_claims`, once for the claims of a token as long as they hold. The claims are those of the issuer's
        own memory: another object is another check."""
        secret = hashed(token)
        known = self._by_token.get(secret)
        if known is None or known[0] is not claims:
            self._by_token[secret] = known = claims, replace(self._by_claims(claims, issuer), token=token)
            while len(self._by_token) > MOST_HOLDERS:
                self._by_token.popitem(last=False)
        return known[1]

    def _by_claims(self, claims: Claims, issuer: IssuerSettings) -> Holder:
        """The holder of an issuer's token: its subject, with its own scopes and what its claims permit by policy.

        It is the same holder while its token is renewed, but not after its rights have changed: lists and sessions
        of other rights are not its own.
        """
        matching = [each for each in issuer.policies if _matches(claims, each)]
        scopes = frozen({*values(claims.get(issuer.scope_claim)), *(one for each in matching for one in each.scopes)})
        tools = None if not issuer.policies else tuple(one for each in matching for one in each.tools)
        only = _patterns(tools, sorted(scopes), self._grants)
        tenant = " ".join(values(claim_at(claims, issuer.tenant_claim))) if issuer.tenant_claim else ""
        rights = f"{issuer.url}\0{claims['sub']}\0{sorted(scopes)}\0{only}\0{tenant}"
        return Holder(
            name=str(claims["sub"]),
            secret=hashed(rights),
            scopes=scopes,
            only=only,
            tenant=tenant,
            rates=tuple(one for each in matching for one in each.rates),
            budgets=tuple(one for each in matching for one in each.budgets),
            user=of_subject(issuer.url, str(claims["sub"])),
        )


def protected_resource(issuer: IssuerSettings, scopes: Iterable[str], toolset: str) -> JSONResponse:
    """The metadata of this resource, or of a toolset's endpoint (RFC 9728, section 3.2)."""
    base = issuer.resource.rstrip("/")
    said = {
        "resource": f"{base}/{toolset}" if toolset else base,
        "authorization_servers": [issuer.url],
        "bearer_methods_supported": ["header"],
        "resource_name": "Pegboard",
    }
    named = sorted(scopes)
    return JSONResponse(said | ({"scopes_supported": named} if named else {}))


def metadata_url(issuer: IssuerSettings, toolset: str) -> str:
    """The address of that metadata (RFC 9728, section 3.1): before the path of the resource."""
    parts = urlsplit(issuer.resource.rstrip("/") + (f"/{toolset}" if toolset else ""))
    return urlunsplit((parts.scheme, parts.netloc, WELL_KNOWN + parts.path, "", ""))


def check_scope(holder: Holder | None, scope: str | None) -> None:
    """Raises InsufficientScope if tokens are required and this one lacks the scope."""
    if holder is not None and scope is not None and scope not in holder.scopes:
        raise InsufficientScope(scope)


def refused(error: Unauthorized, metadata: str = "", scope: str | None = None) -> Response:
    """The response with its challenge (RFC 6750, section 3), the address of the resource's metadata (RFC 9728, 5.1)
    and the scope that is needed."""
    more = {"resource_metadata": metadata, "scope": scope if "scope=" not in error.challenge else ""}
    said = ", ".join([error.challenge, *(f'{name}="{value}"' for name, value in more.items() if value and metadata)])
    return JSONResponse(error.payload(), error.http_status, headers={"www-authenticate": said})


def _issuer(settings: Settings, clock: Clock, before: Issuer | None) -> Issuer | None:
    if settings.issuer is None:
        return None
    return before if before is not None and before.settings == settings.issuer else Issuer(settings.issuer, clock)


def _matches(claims: Claims, policy: ClaimPolicy) -> bool:
    """Whether the claims have one of the values for each claim that a policy names."""
    return all(set(values(claim_at(claims, name))) & set(wanted) for name, wanted in policy.claims.items())


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
