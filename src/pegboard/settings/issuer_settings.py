"""The issuer whose access tokens the MCP gateway accepts, and what their claims permit."""

from __future__ import annotations

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from pegboard.settings.limit_settings import BudgetSettings, RateSettings
from pegboard.settings.services import KeyVariable, ServiceUrl

Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Signatures with a public key. Shared keys (HS256 …) are no choice: whoever checks a token could make one."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def _safe(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise ValueError("must begin with https://, except on this machine")
    if parts.fragment:
        raise ValueError("must not have a fragment")
    return url


SafeUrl = Annotated[ServiceUrl, AfterValidator(_safe)]


class ClaimPolicy(BaseModel):
    """What tokens with certain claims permit.

    ``claims`` are values by claim, of which a token must have one for each claim named; a dot leads into an object
    (`realm_access.roles`). ``tools`` and ``scopes`` are as for a token of `access`. What several policies permit adds
    up; the ``rates`` and ``budgets`` of each of them hold.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    claims: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    tools: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    rates: tuple[RateSettings, ...] = ()
    budgets: tuple[BudgetSettings, ...] = ()


class IssuerSettings(BaseModel):
    """An OAuth 2.1 authorization server.

    ``resource`` is the address of this gateway as its clients know it (RFC 8707): tokens must be for it, for one of
    its toolsets, or for one of ``audiences``. Keys are found by discovery (RFC 8414, OpenID Connect) unless
    ``jwks_uri`` is given. Tokens that are no JWT are introspected (RFC 7662) at ``introspection_uri``. ``tenant_claim``
    is the claim that names a caller's tenant (`tid`, `org_id`). Without policies, a token permits what its own scopes
    do.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: SafeUrl
    resource: SafeUrl
    audiences: tuple[str, ...] = ()
    jwks_uri: SafeUrl | None = None
    algorithms: tuple[Algorithm, ...] = ("RS256", "PS256", "ES256", "EdDSA")
    leeway: float = Field(default=60.0, ge=0, le=600, description="Seconds that clocks may differ.")
    scope_claim: str = "scope"
    tenant_claim: str | None = None
    introspection_uri: SafeUrl | None = None
    client_id: str | None = None
    client_secret_env: KeyVariable | None = None
    policies: tuple[ClaimPolicy, ...] = ()

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.introspection_uri is not None and not (self.client_id and self.client_secret_env):
            raise ValueError("introspection_uri needs client_id and client_secret_env")
        return self
