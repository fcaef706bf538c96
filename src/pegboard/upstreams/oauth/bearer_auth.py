"""Adds the access token of a server to its requests, and renews it before it expires, once for all callers.

It never asks a person: without credentials a request goes out as it is, and the server's 401 says what to do.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable

import httpx2
from pydantic import ValidationError

from pegboard.errors import PegboardError
from pegboard.protocols import Clock
from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.upstreams.oauth.credential_store import CredentialStore
from pegboard.upstreams.oauth.credentials import OAuthCredentials
from pegboard.upstreams.oauth.token_requests import SignInEnded, renewed

LOGGER = logging.getLogger(__name__)

AHEAD = 60.0
"""Seconds before its end at which a token is renewed."""
UNAUTHORIZED, FORBIDDEN = 401, 403
SCOPE = re.compile(r'\bscope="([^"]*)"')
INSUFFICIENT = re.compile(r'\berror="?insufficient_scope\b')

Obtain = Callable[[], "asyncio.Future[OAuthCredentials] | object"]


class BearerAuth(httpx2.Auth):
    """The credentials of one server, for all its connections.

    ``keep_secret`` is told every token, so that none appears in a message. What another process stores is noticed by
    the store's stamp.
    """

    def __init__(
        self,
        server: str,
        url: str,
        store: CredentialStore,
        clock: Clock,
        settings: OAuthSettings,
        keep_secret: Callable[[set[str]], None] = lambda secrets: None,
    ) -> None:
        self._server = server
        self._url = url
        self._store = store
        self._clock = clock
        self._settings = settings
        self._keep_secret = keep_secret
        self._stamp = 0
        self._credentials: OAuthCredentials | None = None
        self._renewal = asyncio.Lock()
        self.refused = False
        """Whether the authorization server has refused to renew the credentials: a person has to sign in again."""

    @property
    def stamp(self) -> int:
        """Changes with every sign-in, of any process."""
        return self._store.stamp(self._server, self._url)

    @property
    def signed_in(self) -> bool:
        return self._credentials is not None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        credentials = await self._fresh()
        if credentials is None:
            yield request
            return
        used = _sign(request, credentials)
        response = yield request
        if response.status_code == UNAUTHORIZED:
            again = await self._other_than(used)
            if again is not None:
                _sign(request, again)
                response = yield request
        if response.status_code == FORBIDDEN:
            await self._want(wanted_scopes(response))

    async def _fresh(self) -> OAuthCredentials | None:
        """The credentials, renewed if they end soon; None if there are none. Raises PegboardError."""
        if self._store.stamp(self._server, self._url) != self._stamp:
            async with self._renewal:
                await self._load()
        credentials = self._credentials
        if credentials is None:
            return await self._own_account() if self._settings.grant == "client_credentials" else None
        if self._ends_soon(credentials):
            return await self._renew(credentials)
        return credentials

    async def _other_than(self, used: str) -> OAuthCredentials | None:
        """Credentials with another token than the refused one; None if there are no others."""
        credentials = self._credentials
        if credentials is not None and credentials.tokens.access_token == used:
            credentials = await self._renew(credentials)
        if credentials is None or credentials.tokens.access_token == used:
            return None
        return credentials

    async def _renew(self, old: OAuthCredentials) -> OAuthCredentials | None:
        """Once for all callers and processes. The old ones if they still hold and nobody can renew them now."""
        async with self._renewal:
            if self._credentials is not old:
                return self._credentials
            try:
                new = await asyncio.to_thread(self._renew_alone, old, asyncio.get_running_loop())
            except SignInEnded as refusal:
                LOGGER.warning("Server %s: %s Run `pegboard login %s`.", self._server, refusal, self._server)
                self.refused = True
                new = None
            except (PegboardError, httpx2.HTTPError) as error:
                LOGGER.warning("Server %s: its token cannot be renewed now: %s", self._server, type(error).__name__)
                return old if self._holds(old) else None
            self._take(new)
            return new

    def _renew_alone(self, old: OAuthCredentials, loop: asyncio.AbstractEventLoop) -> OAuthCredentials | None:
        """In a thread, because the lock between processes blocks. Another process may have been faster."""
        with self._store.lock(self._server, self._url):
            stored = self._store.read(self._server, self._url)
            if stored is None or stored.tokens.access_token != old.tokens.access_token:
                return stored
            new = asyncio.run_coroutine_threadsafe(self._renewed(old), loop).result()
            self._store.write(new)
            return new

    async def _renewed(self, old: OAuthCredentials) -> OAuthCredentials:
        return await renewed(old, now=self._clock.time(), private=self._settings.private_addresses)

    async def _own_account(self) -> OAuthCredentials | None:
        """Sign in as the client itself, without a person. Raises PegboardError."""
        from pegboard.upstreams.oauth.login import login

        async with self._renewal:
            if self._credentials is None:
                try:
                    new = await login(self._server, self._url, self._settings, None, now=self._clock.time)
                except (PegboardError, httpx2.HTTPError, ValidationError) as error:
                    LOGGER.warning("Server %s: signing in failed: %s", self._server, error)
                    return None
                await asyncio.to_thread(self._store.write, new)
                self._take(new)
            return self._credentials

    async def _load(self) -> None:
        stamp = self._store.stamp(self._server, self._url)
        if stamp == self._stamp:
            return
        try:
            found = await asyncio.to_thread(self._store.read, self._server, self._url)
        except PegboardError as error:
            LOGGER.warning("%s", error)
            found = None
        self._take(found, stamp)

    def _take(self, credentials: OAuthCredentials | None, stamp: int | None = None) -> None:
        self._credentials = credentials
        self._stamp = self.stamp if stamp is None else stamp
        if credentials is not None:
            self.refused = False
            self._keep_secret(credentials.secrets)

    async def _want(self, scopes: tuple[str, ...]) -> None:
        """Remember scopes that the server asked for; the next sign-in asks for them."""
        credentials = self._credentials
        if credentials is None or set(scopes) <= set(credentials.wanted):
            return
        new = credentials.model_copy(update={"wanted": tuple(dict.fromkeys([*credentials.wanted, *scopes]))})
        try:
            await asyncio.to_thread(self._store.write, new)
        except (PegboardError, OSError) as error:
            LOGGER.warning("Server %s: %s", self._server, error)
        self._take(new)

    def _ends_soon(self, credentials: OAuthCredentials) -> bool:
        ends = credentials.expires_at
        return ends is not None and self._clock.time() > ends - min(AHEAD, (ends - credentials.obtained_at) / 2)

    def _holds(self, credentials: OAuthCredentials) -> bool:
        return credentials.expires_at is None or self._clock.time() < credentials.expires_at


def _sign(request: httpx2.Request, credentials: OAuthCredentials) -> str:
    """The token that the request now has."""
    token = credentials.tokens.access_token
    request.headers["Authorization"] = f"Bearer {token}"
    return token


def wanted_scopes(response: httpx2.Response) -> tuple[str, ...]:
    """The scopes that a 403 asks for (RFC 6750, 3.1); empty if scopes are not the reason."""
    said = response.headers.get("www-authenticate", "")
    found = SCOPE.search(said)
    return tuple(found.group(1).split()) if found and INSUFFICIENT.search(said) else ()
