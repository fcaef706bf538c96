"""Identity assertions (ID-JAG): the identity provider vouches for a user, and a server's authorization server gives a
token for that (draft-ietf-oauth-identity-assertion-authz-grant; MCP, enterprise-managed authorization).

the caller's own token ─► identity provider: assertion (RFC 8693) ─► the server's: access token (RFC 7523)
"""

from __future__ import annotations

import httpx2
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    create_oauth_metadata_request,
    handle_auth_metadata_response,
)

from pegboard.errors import PegboardError
from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.upstreams.oauth.bearer_auth import origin_of
from pegboard.upstreams.oauth.credentials import CredentialKey
from pegboard.upstreams.oauth.guarded_transport import guarded_client
from pegboard.upstreams.oauth.token_requests import client_shown

ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


def assertion_in(answer: httpx2.Response) -> str | None:
    """The assertion that an identity provider answered with (section 4.2 of the extension); None if there is none."""
    try:
        said = answer.json()
    except ValueError:
        return None
    if not isinstance(said, dict) or said.get("issued_token_type") != ID_JAG:
        return None
    assertion = said.get("access_token")
    return assertion if isinstance(assertion, str) and assertion else None


async def redeemed(
    key: CredentialKey, settings: OAuthSettings, assertion: str, scopes: tuple[str, ...]
) -> httpx2.Response:
    """The answer of the server's authorization server, which the operator named: neither the assertion nor the client's
    secret goes to any other. Raises PegboardError if its metadata are not its own."""
    issuer = settings.issuer or ""
    form = {"grant_type": JWT_BEARER, "assertion": assertion, "resource": key.url}
    form |= {"scope": " ".join(scopes)} if scopes else {}
    in_form = settings.client_authentication == "client_secret_post"
    more, shown = client_shown(settings.issuer_client_id or "", settings.issuer_client_secret or "", in_form=in_form)
    async with guarded_client(key.server, issuer, private=settings.private_addresses) as client:
        return await client.post(await _token_endpoint(client, key.server, issuer), data=form | more, auth=shown)


async def _token_endpoint(client: httpx2.AsyncClient, server: str, issuer: str) -> str:
    """By the metadata of the issuer (RFC 8414, OpenID Connect), which must name it and stay on its origin."""
    for place in build_oauth_authorization_server_metadata_discovery_urls(issuer, issuer):
        goes_on, found = await handle_auth_metadata_response(await client.send(create_oauth_metadata_request(place)))
        if found is not None:
            endpoint = httpx2.URL(str(found.token_endpoint))
            its_own = origin_of(endpoint) == origin_of(httpx2.URL(issuer))
            if its_own and str(found.issuer).rstrip("/") == issuer.rstrip("/"):
                return str(endpoint)
            raise PegboardError(
                f"Server {server!r}: the metadata of its authorization server name another one.",
                remedy="Correct oauth.issuer in its entry, or have its operators correct the metadata.",
            )
        if not goes_on:
            break
    raise PegboardError(
        f"Server {server!r}: its authorization server has no metadata.", remedy="Correct oauth.issuer in its entry."
    )
