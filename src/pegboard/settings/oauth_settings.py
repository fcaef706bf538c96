"""How Pegboard signs in at a server that asks for OAuth."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pegboard.settings.issuer_settings import SafeUrl


class OAuthSettings(BaseModel):
    """The options of an entry's `oauth`; most servers need none.

    Without ``client_id``, Pegboard registers itself: by ``client_metadata_url`` where the authorization server takes
    such documents (CIMD), else dynamically (RFC 7591). ``issuer`` names the authorization server that the client
    belongs to; the client's secret is sent to no other one.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, hide_input_in_errors=True)

    grant: Literal["authorization_code", "device_code", "client_credentials", "token_exchange", "id_jag"] = (
        "authorization_code"
    )
    """Who signs in: a person in a browser, a person on another device (RFC 8628), the client itself, or nobody:
    the caller's own token is exchanged for one of the server (RFC 8693), or for an assertion about the caller that the
    server's authorization server takes (ID-JAG)."""
    client_id: str | None = Field(default=None, alias="clientId")
    client_secret: str | None = Field(default=None, alias="clientSecret", repr=False)
    """May be a variable or the name of a secret, such as `${keyring:github-app}`."""
    client_authentication: Literal["client_secret_basic", "client_secret_post"] | None = Field(
        default=None, alias="clientAuthentication"
    )
    """How the client shows its secret; None means as the authorization server's metadata say."""
    client_metadata_url: str | None = Field(default=None, alias="clientMetadataUrl")
    """Where Pegboard's own metadata document is published (CIMD)."""
    issuer: SafeUrl | None = None
    token_endpoint: SafeUrl | None = Field(default=None, alias="tokenEndpoint")
    """Where tokens are exchanged; under `id_jag`, at the identity provider."""
    subject_token: Literal["access_token", "id_token"] | None = Field(default=None, alias="subjectToken")
    """What callers present; by default an ID token under `id_jag`, and else an access token."""
    issuer_client_id: str | None = Field(default=None, alias="issuerClientId")
    issuer_client_secret: str | None = Field(default=None, alias="issuerClientSecret", repr=False)
    """The client at ``issuer`` under `id_jag`, where ``client_id`` is the one at the identity provider."""
    audience: str | None = None
    """The audience of an exchanged token, if the authorization server wants one besides the server's address."""
    scopes: tuple[str, ...] = ()
    """Asked for besides those that the server names."""
    callback_port: int = Field(default=0, ge=0, le=65535, alias="callbackPort")
    """Port of the loopback redirect; 0 is any free one."""
    private_addresses: bool = Field(default=False, alias="privateAddresses")
    """Whether its authorization server may have a private address although the server itself has a public one."""

    @field_validator("scopes", mode="before")
    @classmethod
    def _one_text(cls, value: object) -> object:
        return tuple(value.split()) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.client_secret is not None and self.client_id is None:
            raise ValueError("client_secret needs client_id")
        if self.grant == "client_credentials" and not (self.client_id and self.client_secret and self.issuer):
            raise ValueError("client_credentials needs client_id, client_secret and issuer")
        if self.grant == "token_exchange" and not (self.client_id and self.client_secret and self.token_endpoint):
            raise ValueError("token_exchange needs client_id, client_secret and token_endpoint")
        of_provider = self.client_id and self.client_secret and self.token_endpoint
        if self.grant == "id_jag" and not (of_provider and self.issuer and self.issuer_client_id):
            raise ValueError("id_jag needs client_id, client_secret, token_endpoint, issuer and issuer_client_id")
        if self.issuer_client_secret is not None and self.issuer_client_id is None:
            raise ValueError("issuer_client_secret needs issuer_client_id")
        return self

    @property
    def exchanges(self) -> bool:
        """Whether tokens are got by those that callers present."""
        return self.grant in ("token_exchange", "id_jag")

    @property
    def presents_id_tokens(self) -> bool:
        return (self.subject_token or ("id_token" if self.grant == "id_jag" else "access_token")) == "id_token"
