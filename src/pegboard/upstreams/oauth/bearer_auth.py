"""Adds the access token of a server to its requests, and renews it before it expires, once for all callers.

It never asks a person: without credentials a request goes out as it is, and the server's 401 says what to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextvars import Context
from functools import partial

import httpx2

from pegboard.errors import PegboardError
from pegboard.flags import Flag
from pegboard.protocols import Clock
from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.upstreams.oauth.challenges import FORBIDDEN, UNAUTHORIZED, TokenNotRenewed, wanted_scopes
from pegboard.upstreams.oauth.credential_store import CredentialStore, in_lock_thread
from pegboard.upstreams.oauth.credentials import CredentialKey, OAuthCredentials
from pegboard.upstreams.oauth.oauth_login import login
from pegboard.upstreams.oauth.token_requests import SignInEnded, renewed

LOGGER = logging.getLogger(__name__)

AHEAD = 60.0
"""Seconds before its end at which a token is renewed."""
LOOK_SECONDS = 1.0
"""Least time between two looks at what other processes have stored."""
RETRY_SECONDS = 30.0
"""Least time between two attempts of a client to sign in by itself, or to renew a token after a failure: an
authorization server must not be flooded, nor a person asked to unlock a keychain at each request."""
RENEW_SECONDS = 45.0
"""Most time of a renewal: less than others wait for its lock."""


class BearerAuth(httpx2.Auth):
    """The credentials of one user for one server, for all connections with them."""

    def __init__(
        self,
        key: CredentialKey,
        store: CredentialStore,
        clock: Clock,
        settings: OAuthSettings,
    ) -> None:
        self._key = key
        self._origin = origin_of(httpx2.URL(key.url))
        self._store = store
        self._clock = clock
        self._settings = settings
        self.secrets: set[str] = set()
        """The tokens of now and before, which must not appear in a message."""
        self._last_secrets: set[str] = set()
        self._credentials: OAuthCredentials | None = None
        self._stamp = 0
        self._unstored: tuple[int, OAuthCredentials] | None = None
        """Credentials that could not be stored, and the stamp of those that they replace."""
        self._looked: float | None = None
        self._look: asyncio.Task[None] | None = None
        """The look of now."""
        self._failed: float | None = None
        self._unread: float | None = None
        """When the stored credentials could not be read; None if they could."""
        self._unproven: float | None = None
        self._renewal = asyncio.Lock()
        self._news = Flag()

    @property
    def signs_in_alone(self) -> bool:
        """Whether no person is needed."""
        return self._settings.grant == "client_credentials"

    def tell(self) -> None:
        """The stored credentials have changed in this process."""
        self._looked = self._failed = None
        self._news.set()

    async def wait_for_news(self, seconds: float) -> None:
        """Return when other credentials are stored, or after so many seconds."""
        loop, before = asyncio.get_running_loop(), self._stamp
        end = loop.time() + seconds
        self._news.clear()
        while loop.time() < end and not self._news.is_set():
            if await asyncio.to_thread(self._store.stamp, self._key) != before:
                break
            try:
                await asyncio.wait_for(self._news.wait(), LOOK_SECONDS)
            except TimeoutError:
                continue
        self._looked = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Raises TokenNotRenewed if the authorization server cannot be asked for a token now."""
        credentials = await self._fresh() if origin_of(request.url) == self._origin else None
        if credentials is None:
            yield request
            return
        used = sign(request, credentials.tokens.access_token)
        response = yield request
        if response.status_code == UNAUTHORIZED:
            again = await self._other_than(used)
            if again is not None:
                used = sign(request, again.tokens.access_token)
                response = yield request
        if response.status_code != UNAUTHORIZED and self._is_current(used):
            self._unproven = None
        if response.status_code == FORBIDDEN and await self._has_more(wanted_scopes(response)):
            sign(request, (self._credentials or credentials).tokens.access_token)
            yield request

    async def _fresh(self) -> OAuthCredentials | None:
        """The credentials, renewed if they end soon; None if there are none that hold. Raises TokenNotRenewed.

        While another caller renews them, which can take long, the old ones are used as long as they hold.
        """
        if self._renewal.locked() and (held := self._unended()) is not None and not self._is_over(held):
            return held
        now = self._clock.monotonic()
        looks = self._looked is None or now - self._looked >= LOOK_SECONDS
        if looks:  # not in the context of the request, whose token it would keep
            self._looked, self._look = now, asyncio.create_task(self._load(), context=Context())
        if self._look is not None and (looks or self._unended() is None):
            await asyncio.shield(self._look)  # it goes on if this request is given up: others may wait for it, too
        credentials = self._credentials
        if credentials is None or credentials.ended:
            return await self._own_account() if self.signs_in_alone else None
        return await self._renew(credentials) if self._ends_soon(credentials) else credentials

    async def _other_than(self, used: str) -> OAuthCredentials | None:
        """Credentials with another token than the refused one; None if there are no others.

        A server that refuses new tokens, too, does not make us ask for one with each request.
        """
        credentials = self._credentials
        if credentials is not None and self._is_current(used):
            if self._unproven is not None and self._clock.monotonic() - self._unproven < RETRY_SECONDS:
                return None
            credentials = await self._renew(credentials)
        if credentials is None or credentials.tokens.access_token == used:
            return None
        return credentials

    async def _renew(self, old: OAuthCredentials) -> OAuthCredentials | None:
        """Once for all callers and processes. The old ones if they still hold and nobody can renew them now; None if
        they have ended."""
        if self.signs_in_alone and old.tokens.refresh_token is None:
            return await self._own_account(old)
        async with self._renewal:
            if self._credentials is not old:
                return self._unended()
            if self._rests():
                return self._still(old)
            try:
                new = await in_lock_thread(partial(self._renew_alone, old, asyncio.get_running_loop()))
            except (PegboardError, httpx2.HTTPError, OSError) as error:
                self._failed = self._clock.monotonic()
                LOGGER.warning("Server %s: its token cannot be renewed now: %s", self._key.server, type(error).__name__)
                return self._still(old)
            self._take(new)
            return self._unended()

    def _renew_alone(self, old: OAuthCredentials, loop: asyncio.AbstractEventLoop) -> OAuthCredentials | None:
        """In a thread, because the lock between processes blocks. Another process may have been faster."""
        with self._store.lock(self._key):
            stored = self._stored()
            if stored is None or stored.ended or stored.tokens.access_token != old.tokens.access_token:
                return stored
            if stored.tokens.refresh_token is None and not self._is_over(stored):
                return stored  # the server refuses it, or soon will, but that may pass
            renewing = asyncio.run_coroutine_threadsafe(self._renewed(stored), loop)
            try:
                new = renewing.result(RENEW_SECONDS)
            except SignInEnded as refusal:
                return self._end_alone(stored, refusal)
            except TimeoutError:
                renewing.cancel()
                raise httpx2.ReadTimeout("the authorization server does not answer in time") from None
            return self._keep(new, stored)

    def _keep(self, new: OAuthCredentials, old: OAuthCredentials) -> OAuthCredentials | None:
        """Store the new ones, unless somebody has signed in or out meanwhile. Those that count then."""
        try:
            stored = self._stored()
        except (PegboardError, OSError):  # the old ones are of no use any more
            stored = old
        if stored is None or stored.tokens.access_token != old.tokens.access_token:
            return stored
        self._write(new)
        return new

    def _stored(self) -> OAuthCredentials | None:
        """Those that count now: what is stored, or what could not be stored in its place."""
        if self._unstored is not None and self._unstored[0] == self._store.stamp(self._key):
            return self._unstored[1]
        return self._store.read(self._key)

    def _end_alone(self, refused: OAuthCredentials, refusal: SignInEnded) -> OAuthCredentials | None:
        """Mark them as ended, unless somebody has signed in meanwhile. In a thread that has the lock."""
        ended = refused.model_copy(update={"ended": True})
        kept = self._keep(ended, refused)
        if kept is ended:
            LOGGER.warning("Server %s: %s Run `pegboard login %s`.", self._key.server, refusal, self._key.server)
        return kept

    async def _renewed(self, old: OAuthCredentials) -> OAuthCredentials:
        return await renewed(old, now=self._clock.time(), private=self._settings.private_addresses)

    async def _own_account(
        self, old: OAuthCredentials | None = None, scopes: tuple[str, ...] = ()
    ) -> OAuthCredentials | None:
        """Sign in as the client itself, unless another caller just has. Raises TokenNotRenewed."""
        async with self._renewal:
            if self._credentials is not old and self._unended() is not None:
                return self._credentials
            if self._rests():
                return None if old is None else self._still(old)
            try:
                new = await login(
                    self._key, self._settings, None, now=self._clock.time, before=self._credentials, scopes=scopes
                )
            except PegboardError as error:
                self._failed = self._clock.monotonic()
                LOGGER.warning("%s", error)
                return None if old is None else self._still(old)
            await asyncio.to_thread(self._write, new)
            self._take(new)
            return new

    async def _load(self) -> None:
        try:
            async with self._renewal:
                await self._load_alone()
        finally:
            if self._look is asyncio.current_task():
                self._look = None

    async def _load_alone(self) -> None:
        stamp, unread = await asyncio.to_thread(self._store.stamp, self._key), self._unread
        again = unread is not None and self._clock.monotonic() - unread >= RETRY_SECONDS  # a keychain may be unlocked
        if stamp == self._stamp and not again:
            return
        try:
            found, self._unread = await asyncio.to_thread(self._store.read, self._key), None
        except (PegboardError, OSError) as error:
            if self._unread is None:
                LOGGER.warning("Server %s: %s", self._key.server, error)
            found, self._unread = None, self._clock.monotonic()  # after its prompt, which may have been open for long
        self._credentials, self._stamp, self._failed, self._unproven = found, stamp, None, None
        self._note_secrets()

    def _write(self, credentials: OAuthCredentials) -> None:
        try:
            self._store.write(credentials)
        except (PegboardError, OSError) as error:
            LOGGER.warning("Server %s: its credentials cannot be stored: %s", self._key.server, error)
            self._unstored = self._store.stamp(self._key), credentials
        else:
            self._unstored = None

    def _take(self, credentials: OAuthCredentials | None) -> None:
        self._credentials, self._unread = credentials, None
        self._failed, self._unproven = None, self._clock.monotonic()
        self._stamp = self._store.stamp(self._key)
        self._note_secrets()

    def _note_secrets(self) -> None:
        """Those before stay, because a message may still quote them; those before them go."""
        new = self._credentials.secrets if self._credentials is not None else set()
        before = self._last_secrets
        self._last_secrets = new
        self.secrets.clear()
        self.secrets |= before | new

    def _is_current(self, token: str) -> bool:
        return self._credentials is not None and self._credentials.tokens.access_token == token

    async def _has_more(self, scopes: tuple[str, ...]) -> bool:
        """Whether there is now a token with these scopes. If it needs a person, their next sign-in asks for them."""
        credentials = self._credentials
        if credentials is None or set(scopes) <= {*credentials.wanted, *credentials.scopes}:
            return False
        if self.signs_in_alone:
            new = await self._own_account(credentials, scopes)
            return new is not None and new is not credentials
        async with self._renewal:
            try:
                wanting = await in_lock_thread(partial(self._want_alone, scopes))
            except (PegboardError, OSError) as error:
                LOGGER.warning("Server %s: what it wants cannot be stored: %s", self._key.server, error)
                wanting = None if self._credentials is None else _wanting(self._credentials, scopes)
            self._take(wanting)
        return False

    def _want_alone(self, scopes: tuple[str, ...]) -> OAuthCredentials | None:
        """In a thread, as `_renew_alone`: of what is stored now, because old tokens must not come back."""
        with self._store.lock(self._key):
            stored = self._stored()
            if stored is None:
                return None
            new = _wanting(stored, scopes)
            self._write(new)
            return new

    def _unended(self) -> OAuthCredentials | None:
        found = self._credentials
        return None if found is None or found.ended else found

    def _still(self, old: OAuthCredentials) -> OAuthCredentials:
        """The old ones, if they have not ended yet. Raises TokenNotRenewed."""
        if self._is_over(old):
            raise TokenNotRenewed
        return old

    def _is_over(self, credentials: OAuthCredentials) -> bool:
        return credentials.expires_at is not None and self._clock.time() >= credentials.expires_at

    def _rests(self) -> bool:
        """Whether an attempt has failed a moment ago."""
        return self._failed is not None and self._clock.monotonic() - self._failed < RETRY_SECONDS

    def _ends_soon(self, credentials: OAuthCredentials) -> bool:
        """Whether it is time to renew them, which for those that cannot be renewed is their end."""
        if credentials.tokens.refresh_token is None and not self.signs_in_alone:
            return self._is_over(credentials)
        ends = credentials.expires_at
        return ends is not None and self._clock.time() > ends - min(AHEAD, (ends - credentials.obtained_at) / 2)


def _wanting(credentials: OAuthCredentials, scopes: tuple[str, ...]) -> OAuthCredentials:
    """The same, and the next sign-in asks for these scopes, too."""
    return credentials.model_copy(update={"wanted": tuple(dict.fromkeys([*credentials.wanted, *scopes]))})


def sign(request: httpx2.Request, token: str) -> str:
    """The token that the request now has."""
    request.headers["Authorization"] = f"Bearer {token}"
    return token


def origin_of(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
