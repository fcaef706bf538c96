"""What signing in at a server gave: tokens, the client they were issued to, and who issued them."""

from __future__ import annotations

from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from pydantic import BaseModel, ConfigDict


class CredentialSummary(BaseModel):
    """What may be shown. Times are in seconds since 1970; ``wanted`` are scopes that the server asked for later."""

    model_config = ConfigDict(frozen=True)

    server: str
    url: str
    issuer: str
    scopes: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    obtained_at: float
    expires_at: float | None = None
    renewable: bool = False
    place: str = "file"


class OAuthCredentials(BaseModel):
    """Secret. They are for the server with this ``url`` and no other. Times are in seconds since 1970."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    server: str
    url: str
    tokens: OAuthToken
    client: OAuthClientInformationFull
    metadata: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None
    obtained_at: float
    expires_at: float | None = None
    wanted: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"OAuthCredentials(server={self.server!r})"

    __str__ = __repr__

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
            url=self.url.partition("?")[0],
            issuer=issuer,
            scopes=self.scopes,
            wanted=self.wanted,
            obtained_at=self.obtained_at,
            expires_at=self.expires_at,
            renewable=self.tokens.refresh_token is not None,
            place=place,
        )


def expiry(tokens: OAuthToken, now: float) -> float | None:
    return None if tokens.expires_in is None else now + tokens.expires_in
