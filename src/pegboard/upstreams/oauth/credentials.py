"""What signing in at a server gave: tokens, the client they were issued to, and who issued them."""

from __future__ import annotations

from dataclasses import dataclass

from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialKey:
    """Whose credentials, for which server at which URL. ``user`` is empty for those that all callers share."""

    server: str
    url: str
    user: str = ""


class CredentialSummary(BaseModel):
    """What may be shown, but for the query of ``url``. Times are in seconds since 1970; ``wanted`` are scopes that the
    server asked for later. ``ended``: the authorization server does not renew them; a person has to sign in again.
    """

    model_config = ConfigDict(frozen=True)

    server: str
    url: str
    user: str = ""
    issuer: str
    scopes: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    obtained_at: float
    expires_at: float | None = None
    renewable: bool = False
    ended: bool = False
    place: str = "file"

    @property
    def key(self) -> CredentialKey:
        return CredentialKey(server=self.server, url=self.url, user=self.user)

    def shown(self) -> dict[str, object]:
        """As JSON."""
        return self.model_dump(mode="json") | {"url": self.url.partition("?")[0]}


class OAuthCredentials(BaseModel):
    """Secret. They are for the server with this ``url`` and no other. Times are in seconds since 1970."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    server: str
    url: str
    user: str = ""
    tokens: OAuthToken
    client: OAuthClientInformationFull
    metadata: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None
    obtained_at: float
    expires_at: float | None = None
    wanted: tuple[str, ...] = ()
    ended: bool = False

    def __repr__(self) -> str:
        return f"OAuthCredentials(server={self.server!r})"

    __str__ = __repr__

    @property
    def key(self) -> CredentialKey:
        return CredentialKey(server=self.server, url=self.url, user=self.user)

    @property
    def scopes(self) -> tuple[str, ...]:
        return tuple((self.tokens.scope or "").split())

    @property
    def secrets(self) -> set[str]:
        """All strings that must not appear in a message."""
        found = (self.tokens.access_token, self.tokens.refresh_token, self.client.client_secret)
        return {each for each in found if each}

    def summary(self, place: str) -> CredentialSummary:
        issuer = str(self.metadata.issuer) if self.metadata else self.client.issuer or ""
        return CredentialSummary(
            server=self.server,
            url=self.url,
            user=self.user,
            issuer=issuer,
            scopes=self.scopes,
            wanted=self.wanted,
            obtained_at=self.obtained_at,
            expires_at=self.expires_at,
            renewable=self.tokens.refresh_token is not None,
            ended=self.ended,
            place=place,
        )


def expiry(tokens: OAuthToken, now: float) -> float | None:
    return None if tokens.expires_in is None else now + tokens.expires_in
