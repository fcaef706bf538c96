"""Both halves of the Identity Assertion JWT Authorization Grant (draft-ietf-oauth-identity-assertion-authz-grant; MCP's
extension for enterprise-managed authorization) on Authlib, for `authorization_server`.

An identity provider exchanges a user's ID token for an assertion; the server of a resource takes the assertion of a
provider that it trusts, once, for an access token. The option ``denied`` names users whom the provider's policy keeps
out, ``trusts`` is the provider's address, ``client_ids`` says what the provider's clients are called elsewhere.
"""

from __future__ import annotations

import secrets
import time
from typing import Any

import httpx2
from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc6749.errors import (
    InvalidGrantError,
    InvalidRequestError,
    InvalidScopeError,
    UnauthorizedClientError,
)
from authlib.oauth2.rfc7523 import JWTBearerGrant
from joserfc import jws, jwt
from joserfc.jwk import ECKey, KeySet

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
TYPE = "oauth-id-jag+jwt"
SHOWN = ["client_secret_basic", "client_secret_post"]


class Keys:
    """The key of one server, and what it signs."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.key = ECKey.generate_key("P-256", {"kid": "one", "use": "sig", "alg": "ES256"})

    @property
    def public(self) -> dict[str, Any]:
        return {"keys": [self.key.as_dict(private=False)]}

    def signed(self, kind: str, lifetime: float, **claims: Any) -> str:
        now = int(time.time())
        said = {"iss": self.issuer, "iat": now, "exp": int(now + lifetime)} | claims
        return jwt.encode({"alg": "ES256", "kid": "one", "typ": kind}, said, self.key)

    def id_token(self, user: str, client: str, lifetime: float = 600) -> str:
        return self.signed("JWT", lifetime, sub=user, aud=client)


def assertion_grants(book: Any) -> list[tuple[type, list[Any]]]:
    class Assertions(grants.BaseGrant, grants.TokenEndpointMixin):
        GRANT_TYPE = EXCHANGE
        TOKEN_ENDPOINT_AUTH_METHODS = SHOWN

        @classmethod
        def check_token_endpoint(cls, asked: Any) -> bool:
            return bool(super().check_token_endpoint(asked)) and asked.form.get("requested_token_type") == ID_JAG

        def validate_token_request(self) -> None:
            form = self.request.form
            self.request.client = self.authenticate_token_endpoint_client()
            if form.get("subject_token_type") != ID_TOKEN or not form.get("audience") or not form.get("resource"):
                raise InvalidRequestError
            claims = jwt.decode(form["subject_token"], book.keys.key, algorithms=["ES256"]).claims
            if claims["aud"] != self.request.client.client_id or claims["exp"] < time.time():
                raise InvalidGrantError
            if claims["sub"] in book.options.get("denied", ()):
                raise UnauthorizedClientError
            self.request.user = claims["sub"]

        def create_token_response(self) -> Any:
            if set(self.request.form.get("scope", "").split()) & set(book.options.get("kept_back", ())):
                raise InvalidScopeError
            form, client = self.request.form, self.request.client.client_id
            made = book.keys.signed(
                TYPE,
                300,
                sub=self.request.user,
                aud=form["audience"],
                resource=form["resource"],
                client_id=book.options.get("client_ids", {}).get(client, client),
                scope=form.get("scope", ""),
                jti=secrets.token_urlsafe(16),
            )
            answer = {"issued_token_type": ID_JAG, "access_token": made, "token_type": "N_A", "expires_in": 300}
            return 200, answer | book.options.get("exchanged", {}), self.TOKEN_RESPONSE_HEADER

    class Bearer(JWTBearerGrant):
        def authenticated(self) -> Any:
            return self.server.authenticate_client(self.request, SHOWN, "token")

        def resolve_issuer_client(self, issuer: str) -> Any:
            return self.authenticated() if issuer == book.options.get("trusts") else None

        def resolve_client_public_key(self, _client: Any) -> KeySet:
            return KeySet.import_key_set(httpx2.get(f"{book.options['trusts']}/jwks", trust_env=False).json())

        def process_assertion_claims(self, assertion: str) -> Any:
            if jws.extract_compact(assertion.encode()).headers().get("typ") != TYPE:
                raise InvalidGrantError
            claims = super().process_assertion_claims(assertion)
            if claims["client_id"] != self.authenticated().client_id or claims["jti"] in book.seen:
                raise InvalidGrantError
            book.seen.add(claims["jti"])
            book.granted = claims["resource"]
            return claims

        def get_audiences(self) -> list[str]:
            return [book.issuer]

        def authenticate_user(self, subject: str) -> str:
            return subject

        def has_granted_permission(self, _client: Any, _user: str) -> bool:
            return True

    return [(Assertions, []), (Bearer, [])]
