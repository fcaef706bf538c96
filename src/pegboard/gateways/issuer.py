"""Access tokens of an authorization server: JWTs by its keys (RFC 9068), others by introspection (RFC 7662)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import ssl
from collections import OrderedDict
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx2
import jwt

from pegboard.errors import PegboardError
from pegboard.protocols import Clock
from pegboard.settings.issuer_settings import IssuerSettings
from pegboard.settings.services import key_in

LOGGER = logging.getLogger(__name__)

Claims = Mapping[str, Any]

SECONDS = 5.0
"""For one request to the issuer."""
MOST_BYTES = 1_000_000
"""Of one of its answers."""
KEYS_LAST = 600.0
"""Seconds after which keys are read again, so that a withdrawn one is not accepted for ever."""
PAUSE, RETRY = 10.0, 1.0
"""Least seconds between two readings of the keys, and after one that failed: tokens with made-up key ids must not
become requests."""
CHECK_LASTS = 60.0
"""Seconds for which an introspected token is not asked about again; a JWT counts until it expires."""
MOST_TOKENS = 10_000
"""Checked tokens that are remembered, each by its hash."""
LONGEST_TOKEN = 16_384
DISCOVERY = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")


class TokenRefused(Exception):  # noqa: N818
    """The token is not valid here. Its text says why, without any part of the token."""


class IssuerUnavailable(PegboardError):  # noqa: N818
    """The issuer does not answer, so that no new token can be checked."""

    code = "issuer_unavailable"
    http_status = 503

    def __init__(self, why: str) -> None:
        super().__init__(f"Tokens cannot be checked now: {why}", remedy="Try again in a few seconds.")


class Issuer:
    """Checks tokens. Its keys are read when they are first needed, once for all requests that wait for them."""

    def __init__(self, settings: IssuerSettings, clock: Clock) -> None:
        self.settings = settings
        self._clock = clock
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._jwks_uri = settings.jwks_uri
        self._read_at = -math.inf
        self._answered = True
        self._reading = asyncio.Lock()
        self._known: OrderedDict[str, tuple[Claims, float]] = OrderedDict()

    async def claims(self, token: str) -> Claims:
        """The claims of a valid token. Raises TokenRefused and IssuerUnavailable."""
        mark, now = hashlib.sha256(token.encode()).hexdigest(), self._clock.time()
        known = self._known.get(mark)
        if known is not None and now < known[1]:
            return known[0]
        if len(token) > LONGEST_TOKEN or not token.isascii():
            raise TokenRefused("it is no token")
        claims, until = await (self._verified(token) if is_jwt(token) else self._introspected(token))
        self._known[mark] = claims, until
        while len(self._known) > MOST_TOKENS:
            self._known.popitem(last=False)
        return claims

    def issued(self, token: str) -> bool:
        """Whether a token says that it is from this issuer; it is not checked."""
        try:
            said = jwt.decode(token, options={"verify_signature": False}) if is_jwt(token) else {}
        except jwt.PyJWTError:
            return False
        return bool(said.get("iss") == self.settings.url)

    async def _verified(self, token: str) -> tuple[Claims, float]:
        """RFC 9068, section 4; RFC 8725, section 3. The algorithm is one of the configured, and that of the key."""
        settings = self.settings
        try:
            head = jwt.get_unverified_header(token)
        except jwt.PyJWTError as error:
            raise TokenRefused("it cannot be read") from error
        if head.get("alg") not in settings.algorithms or "crit" in head:
            raise TokenRefused("its algorithm is not accepted")
        key = await self._key(head.get("kid"))
        if not _fits(key, head["alg"]):
            raise TokenRefused("its algorithm is not that of the key")
        try:
            claims = jwt.decode(
                token,
                key.key,
                algorithms=[head["alg"]],
                issuer=settings.url,
                leeway=settings.leeway,
                options={"require": ["exp", "iss", "aud", "sub"], "verify_aud": False},
            )
        except jwt.PyJWTError as error:
            raise TokenRefused(REASONS.get(type(error), "its signature or its claims are wrong")) from error
        if not claims["sub"]:
            raise TokenRefused("it is nobody's")
        self._check_audience(claims)
        return claims, float(claims["exp"]) + settings.leeway

    async def _introspected(self, token: str) -> tuple[Claims, float]:
        """RFC 7662, section 2."""
        settings = self.settings
        if settings.introspection_uri is None:
            raise TokenRefused("it is no JWT")
        secret = key_in(settings.client_secret_env or "", "the introspection endpoint")
        form = {"token": token, "token_type_hint": "access_token"}
        said = await self._json("POST", settings.introspection_uri, data=form, auth=(settings.client_id or "", secret))
        now = self._clock.time()
        if said.get("active") is not True or said.get("iss", settings.url) != settings.url:
            raise TokenRefused("it is not active")
        until = min(now + CHECK_LASTS, _end(said.get("exp"), now + CHECK_LASTS) + settings.leeway)
        if until <= now or not said.get("sub") or not isinstance(said["sub"], str):
            raise TokenRefused("it has expired, or is nobody's")
        self._check_audience(said)
        return said, until

    def _check_audience(self, claims: Claims) -> None:
        """A token for another resource is refused, whoever issued it (RFC 8707; MCP 2025-11-25, authorization)."""
        named, resource = values(claims.get("aud")), self.settings.resource.rstrip("/")
        ours = {*self.settings.audiences, resource}
        if not any(each.rstrip("/") in ours or each.startswith(f"{resource}/") for each in named):
            raise TokenRefused("it is for another resource")

    async def _key(self, kid: str | None) -> jwt.PyJWK:
        """The key of this id; an unknown one is looked for once again, since keys rotate."""
        if kid not in self._keys or self._age > KEYS_LAST:
            async with self._reading:
                if self._age > (KEYS_LAST if kid in self._keys else PAUSE if self._answered else RETRY):
                    await self._read_keys()
        found = next(iter(self._keys.values())) if kid is None and len(self._keys) == 1 else self._keys.get(kid)
        if found is None and not self._answered:
            raise IssuerUnavailable("the keys of the issuer cannot be read.")
        if found is None:
            raise TokenRefused("its key is unknown")
        return found

    @property
    def _age(self) -> float:
        return self._clock.monotonic() - self._read_at

    async def _read_keys(self) -> None:
        """If they cannot be read, those known stay in use."""
        try:
            said = await self._json("GET", await self._keys_address())
            self._keys = {each.key_id: each for each in jwt.PyJWKSet.from_dict(dict(said)).keys if _signs(each)}
            self._answered = True
        except (IssuerUnavailable, jwt.PyJWTError, AttributeError, TypeError) as error:
            LOGGER.warning("The keys of the issuer cannot be read: %s", type(error).__name__)
            self._answered = False
        finally:
            self._read_at = self._clock.monotonic()

    async def _keys_address(self) -> str:
        """By the issuer's metadata, which must name this issuer (RFC 8414, section 3.3)."""
        if self._jwks_uri is None:
            for place in _places(self.settings.url):
                try:
                    said = await self._json("GET", place)
                except IssuerUnavailable:
                    continue
                address = said.get("jwks_uri")
                if said.get("issuer") == self.settings.url and isinstance(address, str) and self._is_safe(address):
                    self._jwks_uri = address
                    break
            else:
                raise IssuerUnavailable("the issuer has no metadata that names it.")
        return self._jwks_uri or ""

    def _is_safe(self, address: str) -> bool:
        """Metadata may lead to https, or where the issuer itself is."""
        there, here = urlsplit(address), urlsplit(self.settings.url)
        return there.scheme == "https" or (there.scheme, there.hostname) == (here.scheme, here.hostname)

    def _opened(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(trust_env=False, timeout=SECONDS, follow_redirects=False, verify=_certificates())

    async def _json(self, method: str, url: str, **more: Any) -> Claims:
        try:
            async with asyncio.timeout(SECONDS), self._opened() as http, http.stream(method, url, **more) as answer:
                body = bytearray()
                async for chunk in answer.aiter_bytes():
                    body += chunk
                    if len(body) > MOST_BYTES:
                        raise IssuerUnavailable("the issuer's answer is too long.")
            said = json.loads(bytes(body)) if answer.status_code == httpx2.codes.OK else None
        except (httpx2.HTTPError, TimeoutError, ValueError) as error:
            raise IssuerUnavailable(f"the issuer does not answer ({type(error).__name__}).") from error
        if not isinstance(said, dict):
            raise IssuerUnavailable(f"the issuer answers with status {answer.status_code}.")
        return said


REASONS: Mapping[type[Exception], str] = {
    jwt.ExpiredSignatureError: "it has expired",
    jwt.ImmatureSignatureError: "it is not valid yet",
    jwt.InvalidIssuerError: "it is of another issuer",
    jwt.MissingRequiredClaimError: "it lacks a claim: exp, iss, aud or sub",
}


@cache
def _certificates() -> ssl.SSLContext:
    """Those that are trusted. Reading them takes 20 ms in which nothing else is answered: once, not for each token."""
    return httpx2.create_ssl_context(trust_env=False)


def _end(said: Any, latest: float) -> float:
    """When a token ends that says it of itself, or ``latest`` if it does not. Raises TokenRefused for what is no time.

    >>> _end(5, 9.0), _end("5", 9.0), _end(10**400, 9.0), _end(None, 9.0)
    (5.0, 5.0, 9.0, 9.0)
    """
    if said is None:
        return latest
    if isinstance(said, str) and said.isascii() and said.isdigit():  # not as RFC 7662 has it, but clear
        said = float(said)
    if isinstance(said, bool) or not isinstance(said, int | float):
        raise TokenRefused("its end cannot be read")
    return float(min(latest, max(0, said)))


def is_jwt(token: str) -> bool:
    """Whether it has a header, claims and a signature (RFC 7515, section 3.1)."""
    return token.count(".") == 2


def values(claim: Any) -> tuple[str, ...]:
    """A claim's values: those of a list, or a text's words (RFC 8693, section 4.2).

    >>> values("read write"), values(["a b", 7]), values(None)
    (('read', 'write'), ('a b',), ())
    """
    if isinstance(claim, str):
        return tuple(claim.split())
    return tuple(each for each in claim if isinstance(each, str)) if isinstance(claim, list) else ()


def claim_at(claims: Claims, path: str) -> Any:
    """The claim of this name, or at the end of a path of names.

    >>> claim_at({"realm_access": {"roles": ["dev"]}, "a.b": 1}, "realm_access.roles"), claim_at({"a.b": 1}, "a.b")
    (['dev'], 1)
    """
    if path in claims:
        return claims[path]
    first, dot, rest = path.partition(".")
    inner = claims.get(first)
    return claim_at(inner, rest) if dot and isinstance(inner, Mapping) else None


def _places(issuer: str) -> list[str]:
    """Where the metadata of an issuer may be: RFC 8414, section 3.1, and OpenID Connect Discovery 1.0, section 4."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    inserted = [urlunsplit((parts.scheme, parts.netloc, known + path, "", "")) for known in DISCOVERY]
    return [*inserted, issuer.rstrip("/") + DISCOVERY[1]] if path else inserted


def _signs(key: jwt.PyJWK) -> bool:
    return key.public_key_use in (None, "sig") and key.key_type != "oct"


def _fits(key: jwt.PyJWK, algorithm: str) -> bool:
    """Whether a key that does not say its algorithm can be used with this one."""
    said = key._jwk_data.get("alg")
    kinds = {"RSA": ("RS", "PS"), "EC": ("ES",), "OKP": ("Ed",)}
    return said in (None, algorithm) and algorithm[:2] in kinds.get(str(key.key_type), ())
