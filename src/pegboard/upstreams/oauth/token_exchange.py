"""Tokens for a server in exchange for the caller's own (RFC 8693), or for an identity provider's assertion about the
caller: no person is asked, and nothing is stored."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import httpx2
from mcp.shared.auth import OAuthToken
from pydantic import ValidationError

from pegboard.errors import PegboardError
from pegboard.protocols import Clock
from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.upstreams.oauth.bearer_auth import AHEAD, RETRY_SECONDS, origin_of, sign
from pegboard.upstreams.oauth.challenges import FORBIDDEN, UNAUTHORIZED, TokenNotRenewed, wanted_scopes
from pegboard.upstreams.oauth.credentials import CredentialKey
from pegboard.upstreams.oauth.guarded_transport import guarded_client
from pegboard.upstreams.oauth.identity_assertion import ID_JAG, assertion_in, redeemed
from pegboard.upstreams.oauth.token_requests import client_shown
from pegboard.upstreams.request_origin import ORIGIN

LOGGER = logging.getLogger(__name__)

GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105
USUAL_LIFETIME = 300.0
"""Seconds for which a token is used whose answer does not say how long it holds."""
MOST_SUBJECTS = 16
"""Tokens of one user whose exchanges are remembered."""
OK = 200


class SubjectTokens:
    """The token that each user presented last, in memory alone, while the user is here."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}
        self._heard: dict[str, list[asyncio.Event]] = {}

    def put(self, user: str, token: str) -> None:
        """Use this token from now on."""
        if self._of.get(user) != token:
            self._of[user] = token
            for event in self._heard.get(user, ()):
                event.set()

    def of(self, user: str) -> str:
        """Empty if there is none."""
        return self._of.get(user, "")

    def forget(self, user: str) -> None:
        self._of.pop(user, None)

    async def changed(self, user: str, seconds: float) -> None:
        """Return when the user presents another token, or after so many seconds."""
        event = asyncio.Event()
        self._heard.setdefault(user, []).append(event)
        try:
            await asyncio.wait_for(event.wait(), seconds)
        except TimeoutError:
            pass
        finally:
            self._heard[user].remove(event)
            if not self._heard[user]:
                del self._heard[user]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangedToken:
    """``until`` is when it is to be replaced, in seconds of the monotonic clock; ``scopes`` are those that were asked
    for."""

    token: str = field(repr=False)
    until: float
    scopes: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class SubjectToken:
    """One token of a user, what was got for it, and when the last exchange of it was refused; ``not_given`` are the
    scopes of the last exchange for more that was, and when."""

    token: str = field(repr=False)
    held: ExchangedToken | None = None
    failed: float | None = None
    not_given: tuple[frozenset[str], float] | None = None
    secrets: set[str] = field(default_factory=set, repr=False)

    def kept(self, now: float, instead_of: ExchangedToken | None) -> ExchangedToken | None:
        """What was got for it, while it holds."""
        held = self.held
        return None if held is None or held is instead_of or now >= held.until else held


class ExchangedAuth(httpx2.Auth):
    """Adds the token of one user for one server to its requests: in exchange for that with which the user made the
    request, or of requests that nobody made, for the one that the user presented last.

    Another one is got when it ends, and when the server wants more scopes (403, `insufficient_scope`).
    """

    def __init__(self, key: CredentialKey, subjects: SubjectTokens, clock: Clock, settings: OAuthSettings) -> None:
        self._key = key
        self._origin = origin_of(httpx2.URL(key.url))
        self._subjects = subjects
        self._clock = clock
        self._settings = settings
        self._asserts = settings.grant == "id_jag"
        self._known: OrderedDict[str, SubjectToken] = OrderedDict()
        self._down: float | None = None
        """When the authorization server could not be asked."""
        self._exchange = asyncio.Lock()
        self.secrets: set[str] = set()
        """The tokens that must not appear in a message."""

    async def wait_for_news(self, seconds: float) -> None:
        """Return when the user presents another token, or after so many seconds."""
        await self._subjects.changed(self._key.user, seconds)

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Raises TokenNotRenewed if the authorization server cannot be asked for a token now."""
        subject = self._subject() if origin_of(request.url) == self._origin else None
        held = None if subject is None else await self._fresh(subject)
        if subject is None or held is None:
            yield request
            return
        sign(request, held.token)
        response = yield request
        if response.status_code == UNAUTHORIZED and (again := await self._fresh(subject, instead_of=held)) is not None:
            held = again
            sign(request, held.token)
            response = yield request
        if response.status_code == FORBIDDEN and (wider := await self._wider(subject, held, wanted_scopes(response))):
            sign(request, wider.token)
            yield request

    def _subject(self) -> SubjectToken | None:
        """Two clients of a user may have tokens with different rights: one must not act with those of the other."""
        origin, user = ORIGIN.get(), self._key.user
        token = (origin.token_of(user) if origin is not None else "") or self._subjects.of(user)
        if not token:
            return None
        found = self._known.setdefault(token, SubjectToken(token=token))
        self._known.move_to_end(token)
        while len(self._known) > MOST_SUBJECTS:
            self._known.popitem(last=False)
        return found

    async def _fresh(self, subject: SubjectToken, instead_of: ExchangedToken | None = None) -> ExchangedToken | None:
        """What holds in exchange for it; None if it cannot be exchanged."""
        if (held := subject.kept(self._clock.monotonic(), instead_of)) is not None:
            return held
        async with self._exchange:
            now = self._clock.monotonic()
            if (held := subject.kept(now, instead_of)) is not None:  # by another request that had the lock
                return held
            if subject.failed is not None and now - subject.failed < RETRY_SECONDS:
                return None
            subject.held = await self._exchanged(subject, self._settings.scopes)
            if subject.held is None or instead_of is not None:  # the new one may be refused, too: that must not flood
                subject.failed = now  # the endpoint
            return subject.held

    async def _wider(
        self, subject: SubjectToken, held: ExchangedToken, wanted: tuple[str, ...]
    ) -> ExchangedToken | None:
        """A token with these scopes besides those of the refused one; None if it was asked for them already, or the
        authorization server does not give them. Raises TokenNotRenewed if that cannot be asked."""
        if set(wanted) <= set(held.scopes):
            return None
        async with self._exchange:
            now, known = self._clock.monotonic(), subject.held
            if known is not None and set(wanted) <= set(known.scopes):
                return known  # by another request that had the lock
            asked = frozenset(wanted)
            if subject.not_given is not None:
                scopes, at = subject.not_given
                if scopes <= asked and now - at < RETRY_SECONDS:
                    return None
            wider = await self._exchanged(subject, tuple(dict.fromkeys((*held.scopes, *wanted))))
            if wider is None:
                subject.not_given = asked, now
            else:
                subject.held = wider
            return wider

    async def _exchanged(self, subject: SubjectToken, scopes: tuple[str, ...]) -> ExchangedToken | None:
        """None if the authorization server refuses. Raises TokenNotRenewed if it cannot be asked, or could not a moment
        ago: those who waited for one attempt would otherwise wait for another one each."""
        server, assertion = self._key.server, ""
        if self._down is not None and self._clock.monotonic() - self._down < RETRY_SECONDS:
            raise TokenNotRenewed
        try:
            response = await self._asked(subject.token, scopes)
            if self._asserts and response.status_code == OK:
                assertion = assertion_in(response) or ""
                if not assertion:
                    LOGGER.warning("Server %s: the identity provider's answer has no assertion", server)
                    return None
                self.secrets |= {subject.token, assertion}
                response = await redeemed(self._key, self._settings, assertion, scopes)
        except (httpx2.HTTPError, PegboardError) as error:
            LOGGER.warning("Server %s: a token cannot be exchanged now: %s", server, type(error).__name__)
            self._down = self._clock.monotonic()
            raise TokenNotRenewed from None
        self._down = None
        if response.status_code != OK:
            LOGGER.warning("Server %s: a token was not exchanged: status %d", server, response.status_code)
            return None
        try:
            answer = OAuthToken.model_validate_json(response.content)
        except ValidationError:
            LOGGER.warning("Server %s: a token was not exchanged: the answer has none", server)
            return None
        if answer.scope is not None and not set(scopes) <= set(answer.scope.split()):
            LOGGER.warning("Server %s: a token was exchanged with fewer scopes than it was asked for", server)
            if scopes != self._settings.scopes:
                return None
        subject.secrets = {subject.token, answer.access_token, *filter(None, [assertion])}
        self.secrets.clear()
        self.secrets |= set().union(subject.secrets, *(each.secrets for each in self._known.values()))
        lifetime = USUAL_LIFETIME if answer.expires_in is None else float(answer.expires_in)
        until = self._clock.monotonic() + lifetime - min(AHEAD, lifetime / 2)
        return ExchangedToken(token=answer.access_token, until=until, scopes=scopes)

    async def _asked(self, subject: str, scopes: tuple[str, ...]) -> httpx2.Response:
        """The answer of the token endpoint (RFC 8693, 2.1), which the operator named: it may be a private address."""
        settings = self._settings
        form = {
            "grant_type": GRANT,
            "subject_token": subject,
            "subject_token_type": ID_TOKEN if settings.presents_id_tokens else ACCESS_TOKEN,
            "requested_token_type": ID_JAG if self._asserts else ACCESS_TOKEN,
            "resource": self._key.url,
        }
        audience = settings.audience or (settings.issuer if self._asserts else None)
        form |= {"audience": audience} if audience else {}
        form |= {"scope": " ".join(scopes)} if scopes else {}
        in_form = settings.client_authentication == "client_secret_post"
        more, shown = client_shown(settings.client_id or "", settings.client_secret or "", in_form=in_form)
        async with guarded_client(self._key.server, self._key.url, private=True) as client:
            return await client.post(settings.token_endpoint or "", data=form | more, auth=shown)
