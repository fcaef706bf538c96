"""The credentials of all servers and users in this process."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from pegboard.errors import PegboardError
from pegboard.protocols import Clock
from pegboard.settings import Settings
from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.settings.server_spec import ServerSpec

if TYPE_CHECKING:
    from pegboard.upstreams.oauth.bearer_auth import BearerAuth
    from pegboard.upstreams.oauth.browser_returns import BrowserReturns
    from pegboard.upstreams.oauth.credential_store import CredentialStore
    from pegboard.upstreams.oauth.credentials import CredentialKey, CredentialSummary
    from pegboard.upstreams.oauth.person import Person
    from pegboard.upstreams.oauth.token_exchange import ExchangedAuth, SubjectTokens


def credential_store(settings: Settings) -> CredentialStore:
    """Where the settings say that credentials are kept."""
    from pegboard.upstreams.oauth.credential_store import CredentialStore

    return CredentialStore(settings.state_dir, place=settings.credentials)


def credential_key(spec: ServerSpec, user: str = "") -> CredentialKey:
    """Of an `expanded` spec with a URL."""
    from pegboard.upstreams.oauth.credentials import CredentialKey

    return CredentialKey(server=spec.name, url=spec.url or "", user=user)


def may_sign_in(spec: ServerSpec) -> bool:
    """Whether credentials of a sign-in are used for the server, if there are any."""
    return spec.url is not None and (spec.oauth is not None or not spec.has_credentials)


class SignIns:
    """Makes one `BearerAuth` or `ExchangedAuth` for each server and user, so that all their connections, also later
    ones, share its tokens, until the server's address or its options for signing in are others.

    With ``local``, all clients are one person on this machine, who may sign in at a client's request.
    """

    def __init__(self, settings: Settings, clock: Clock, *, local: bool = False) -> None:
        self.local = local
        self.mark = ""
        """That of this process, if there are several."""
        self._settings = settings
        self._clock = clock
        self._store: CredentialStore | None = None
        self._subjects: SubjectTokens | None = None
        self._names: dict[str, str] = {}
        self._returns: BrowserReturns | None = None
        self._entries: dict[str, OAuthSettings] = {}
        """By server, so that all users' share one."""
        self._auths: dict[tuple[str, str], tuple[CredentialKey, OAuthSettings, BearerAuth | ExchangedAuth]] = {}
        """By server and user: what it was made of, and itself."""

    @property
    def store(self) -> CredentialStore:
        if self._store is None:
            self._store = credential_store(self._settings)
        return self._store

    @property
    def subjects(self) -> SubjectTokens:
        """What callers presented, for exchanges."""
        if self._subjects is None:
            from pegboard.upstreams.oauth.token_exchange import SubjectTokens

            self._subjects = SubjectTokens()
        return self._subjects

    @property
    def returns(self) -> BrowserReturns:
        """The sign-ins of users in browsers on other machines."""
        if self._returns is None:
            from pegboard.upstreams.oauth.browser_returns import BrowserReturns

            self._returns = BrowserReturns(lambda: self._settings.public_address, self.mark)
        return self._returns

    def follow(self, settings: Settings) -> None:
        """Use these settings of the gateway from now on."""
        self._settings, self.local = settings, settings.is_for_one_person

    def present(self, user: str, name: str, token: str) -> None:
        """A user is here, under this name, with a token to exchange if there is one."""
        self._names[user] = name
        if token:
            self.subjects.put(user, token)

    def name_of(self, user: str) -> str:
        """What the user is called on pages."""
        return self._names.get(user, "")

    def forget(self, user: str) -> None:
        """The user has left: nothing of theirs stays in memory."""
        self._names.pop(user, None)
        if self._subjects is not None:
            self._subjects.forget(user)
        self._auths = {known: each for known, each in self._auths.items() if known[1] != user}

    def auth(self, spec: ServerSpec, user: str = "") -> BearerAuth | ExchangedAuth | None:
        """For an `expanded` spec; None if the server needs no sign-in."""
        if not may_sign_in(spec):
            return None
        key, oauth = credential_key(spec, user), spec.oauth or OAuthSettings()
        known = self._auths.get((key.server, user))
        if known is None or known[:2] != (key, oauth):
            entry = self._entries.get(spec.name)
            oauth = self._entries[spec.name] = entry if entry == oauth else oauth
            known = self._auths[key.server, user] = key, oauth, self._made(key, oauth)
        return known[2]

    def _made(self, key: CredentialKey, oauth: OAuthSettings) -> BearerAuth | ExchangedAuth:
        if oauth.exchanges:
            from pegboard.upstreams.oauth.token_exchange import ExchangedAuth

            return ExchangedAuth(key, self.subjects, self._clock, oauth)
        from pegboard.upstreams.oauth.bearer_auth import BearerAuth

        return BearerAuth(key, self.store, self._clock, oauth)

    async def sign_in(
        self, spec: ServerSpec, person: Person, *, user: str = "", device: bool = False, scopes: tuple[str, ...] = ()
    ) -> CredentialSummary:
        """Sign in to a server of an `expanded` spec, and keep the tokens. Raises PegboardError.

        ``device``: on another device, whatever the spec says; ``scopes`` are asked for besides the usual ones.
        """
        from pegboard.upstreams.oauth.credential_store import in_lock_thread
        from pegboard.upstreams.oauth.oauth_login import login

        key, oauth = credential_key(spec, user), spec.oauth or OAuthSettings()
        if device:
            oauth = oauth.model_copy(update={"grant": "device_code"})
        try:
            before = await asyncio.to_thread(self.store.read, key)
        except (PegboardError, OSError):  # the key of the file is lost: they are replaced now
            before = None
        made = await login(key, oauth, person, now=self._clock.time, before=before, scopes=scopes)
        try:
            summary = await in_lock_thread(partial(self.store.keep, made))
        except OSError as error:
            raise PegboardError(
                f"Signing in to {key.server!r} succeeded, but its tokens cannot be kept: {error}.",
                remedy="Make that place writable, or make room there, and sign in again.",
            ) from error
        self.tell(key)
        return summary

    def tell(self, key: CredentialKey) -> None:
        """This process has stored other credentials."""
        from pegboard.upstreams.oauth.bearer_auth import BearerAuth

        for known, _, auth in self._auths.values():
            if known == key and isinstance(auth, BearerAuth):
                auth.tell()
