"""An authorization server on Authlib and Flask, in a process of its own. Arguments: the port, and options as JSON.

It has the code flow with PKCE and consent, refresh with rotation, client credentials, device flow, registration,
metadata documents of clients, token exchange, identity assertions (`assertion_grants`), revocation and introspection.
Whoever consents is `ann`, unless the form says `who`. Options: ``path`` of the issuer, ``oidc``: only the metadata of
OpenID Connect, ``metadata`` to add or, with null, to leave out, ``clients`` that are known by id, with their secrets,
``kept_back`` scopes that no exchange gives.
The client `resource`, with the secret `resource`, may introspect. `/control` changes options and tells what was asked.
"""

from __future__ import annotations

if __name__ == "__main__":
    import atexit
    import gc

    gc.disable()  # while it imports and in its short life, which is a quarter less
    atexit.register(gc.freeze)

import json
import logging
import os
import secrets
import sys
import time
from collections import Counter
from typing import Any

from assertion_grants import EXCHANGE, Keys, assertion_grants
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc6749.errors import InvalidGrantError, InvalidScopeError
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc7662 import IntrospectionEndpoint
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint, DeviceCodeGrant
from authlib.oauth2.rfc9207 import IssuerParameter
from flask import Flask, jsonify, redirect, request
from werkzeug.serving import make_server

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
METHODS = ["client_secret_basic", "client_secret_post", "none"]
ANN = "ann"
FORM = """<!doctype html><title>Consent</title><h1>May {who} use your account?</h1>
<form method=post action="{action}"><input type=hidden name=user_code value="{code}">
<input type=hidden name=who value="">
<button id=allow name=answer value=allow>Allow</button>
<button id=refuse name=answer value=refuse>Refuse</button></form>"""


class Client:
    """A client of Authlib's kind, in memory."""

    def __init__(self, client_id: str, secret: str | None, metadata: dict[str, Any]) -> None:
        self.client_id = client_id
        self.secret = secret
        self.metadata = metadata

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> None:
        return None

    def get_allowed_scope(self, scope: str | None) -> str:
        return scope or ""

    def check_redirect_uri(self, uri: str) -> bool:
        return uri in self.metadata.get("redirect_uris", [uri])

    def check_client_secret(self, secret: str) -> bool:
        return self.secret is not None and secrets.compare_digest(self.secret, secret)

    def check_endpoint_auth_method(self, method: str, _endpoint: str) -> bool:
        return method == self.metadata.get("token_endpoint_auth_method", "client_secret_basic")

    def check_response_type(self, kind: str) -> bool:
        return kind == "code"

    def check_grant_type(self, kind: str) -> bool:
        return kind in self.metadata.get("grant_types", [kind])


class Record:
    """A code, a token or a device's code, of Authlib's kinds."""

    auth_time = 0
    nonce = None

    def __init__(self, **fields: Any) -> None:
        self.__dict__ |= fields

    def get_client_id(self) -> str:
        return str(self.client_id)

    def get_user_code(self) -> str:
        return str(self.user_code)

    def get_redirect_uri(self) -> str:
        return str(self.redirect_uri)

    def get_scope(self) -> str:
        return str(self.scope)

    def get_nonce(self) -> None:
        return None

    def get_auth_time(self) -> int:
        return 0

    def get_user(self) -> str:
        return ANN

    def check_client(self, client: Client) -> bool:
        return bool(self.client_id == client.client_id)

    def is_expired(self) -> bool:
        return bool(time.time() > self.until)

    def is_revoked(self) -> bool:
        return bool(self.revoked)


class Book:
    """All that the server knows."""

    def __init__(self, issuer: str, options: dict[str, Any]) -> None:
        self.issuer = issuer
        self.options = options
        self.lifetime = options.get("lifetime", 3600)
        self.asked: Counter[str] = Counter()
        self.forms: list[dict[str, str]] = []
        self.codes: dict[str, Record] = {}
        self.devices: dict[str, Record] = {}
        self.answers: dict[str, tuple[str, bool]] = {}
        self.tokens: list[Record] = []
        self.keys = Keys(issuer)
        self.seen: set[str] = set()
        self.granted = ""
        self.id_tokens: list[str] = []
        own = {"token_endpoint_auth_method": "client_secret_basic"}
        self.clients = {"resource": Client("resource", "resource", own)}
        for name, secret in options.get("clients", {}).items():
            method = options.get("authentication", "client_secret_basic") if secret else "none"
            self.clients[name] = Client(name, secret, {"token_endpoint_auth_method": method})

    def client(self, client_id: str) -> Client | None:
        if client_id not in self.clients and "/" in client_id and self.options.get("cimd"):
            self.asked["cimd"] += 1
            self.clients[client_id] = Client(client_id, None, self.options["cimd"])
        return self.clients.get(client_id)

    def save(self, token: dict[str, Any], asked: Any) -> None:
        """Tokens are for the resource of the request (RFC 8707), or of the code."""
        renewed = getattr(getattr(asked, "refresh_token", None), "resource", None)
        resource = self.granted or asked.form.get("resource") or renewed
        self.tokens.append(
            Record(
                access=token["access_token"],
                refresh=token.get("refresh_token"),
                scope=token.get("scope", ""),
                client_id=asked.client.client_id,
                user=asked.user,
                resource=resource,
                until=time.time() + self.lifetime,
                revoked=False,
            )
        )

    def issue(self, user: str, resource: str) -> None:
        """An access token for a user, as after a sign-in elsewhere."""
        about = {"scope": "", "client_id": "elsewhere", "user": user, "resource": resource}
        until = time.time() + self.lifetime
        access = secrets.token_urlsafe(24)
        self.tokens.append(Record(access=access, refresh=None, until=until, revoked=False, **about))

    def token(self, text: str) -> Record | None:
        return next((each for each in self.tokens if text in (each.access, each.refresh)), None)

    def metadata(self) -> dict[str, Any]:
        at = self.issuer
        said = {
            "issuer": at,
            "authorization_endpoint": f"{at}/authorize",
            "token_endpoint": f"{at}/token",
            "registration_endpoint": f"{at}/register",
            "revocation_endpoint": f"{at}/revoke",
            "introspection_endpoint": f"{at}/introspect",
            "device_authorization_endpoint": f"{at}/device_authorization",
            "jwks_uri": f"{at}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials", DEVICE_GRANT],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
        said |= {"client_id_metadata_document_supported": True} if self.options.get("cimd") else {}
        changed = said | self.options.get("metadata", {})
        return {name: value for name, value in changed.items() if value is not None}


def grants_of(book: Book) -> list[tuple[type, list[Any]]]:
    class Code(grants.AuthorizationCodeGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = METHODS

        def save_authorization_code(self, code: str, asked: Any) -> None:
            data = asked.payload.data
            book.codes[code] = Record(
                code=code,
                client_id=asked.client.client_id,
                redirect_uri=asked.payload.redirect_uri,
                user=asked.user,
                scope=asked.payload.scope or "",
                code_challenge=data.get("code_challenge"),
                code_challenge_method=data.get("code_challenge_method"),
            )

        def query_authorization_code(self, code: str, client: Client) -> Record | None:
            found = book.codes.get(code)
            return found if found is not None and found.check_client(client) else None

        def delete_authorization_code(self, code: Record) -> None:
            book.codes.pop(code.code)

        def authenticate_user(self, code: Record) -> str:
            return str(code.user)

    class Refresh(grants.RefreshTokenGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = METHODS
        INCLUDE_NEW_REFRESH_TOKEN = True

        def authenticate_refresh_token(self, text: str) -> Record | None:
            found = next((each for each in book.tokens if each.refresh == text), None)
            return found if found is not None and not found.revoked else None

        def authenticate_user(self, token: Record) -> str:
            return str(token.user)

        def revoke_old_credential(self, token: Record) -> None:
            token.revoked = True

    class Device(DeviceCodeGrant):
        def query_device_credential(self, code: str) -> Record | None:
            return book.devices.get(code)

        def query_user_grant(self, code: str) -> tuple[str, bool] | None:
            return book.answers.get(code)

        def should_slow_down(self, device: Record) -> bool:
            device.asked += 1
            return bool(device.asked == 1 and book.options.get("slow"))

    class Own(grants.ClientCredentialsGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = METHODS[:2]

    class Exchange(grants.BaseGrant, grants.TokenEndpointMixin):
        """A token of the same user for another resource (RFC 8693)."""

        GRANT_TYPE = EXCHANGE
        TOKEN_ENDPOINT_AUTH_METHODS = METHODS[:2]

        def validate_token_request(self) -> None:
            self.request.client = self.authenticate_token_endpoint_client()
            found = next((each for each in book.tokens if each.access == self.request.form["subject_token"]), None)
            if found is None or found.is_expired() or found.is_revoked():
                raise InvalidGrantError
            self.request.user = found.user

        def create_token_response(self) -> Any:
            scope = self.request.form.get("scope", "")
            if set(scope.split()) & set(book.options.get("kept_back", ())):
                raise InvalidScopeError
            token = self.generate_token(user=self.request.user, scope=scope, include_refresh_token=False)
            self.save_token(token)
            kind = {"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}
            return 200, token | kind, self.TOKEN_RESPONSE_HEADER

    alone: list[tuple[type, list[Any]]] = [(each, []) for each in (Refresh, Device, Own)]
    return [(Code, [CodeChallenge(required=True)]), *alone, *assertion_grants(book), (Exchange, [])]


def endpoints_of(book: Book) -> list[type]:
    class Revocation(RevocationEndpoint):
        CLIENT_AUTH_METHODS = METHODS

        def query_token(self, text: str, _hint: str | None) -> Record | None:
            return book.token(text)

        def revoke_token(self, token: Record, _asked: Any) -> None:
            token.revoked = True

    class Introspection(IntrospectionEndpoint):
        def query_token(self, text: str, _hint: str | None) -> Record | None:
            found = next((each for each in book.tokens if each.access == text), None)
            return None if book.options.get("no_access") else found

        def check_permission(self, _token: Record, client: Client, _asked: Any) -> bool:
            return client.client_id == "resource"

        def introspect_token(self, token: Record) -> dict[str, Any]:
            said = {"client_id": token.client_id, "scope": token.scope, "sub": token.user or token.client_id}
            return said | {"aud": token.resource, "iss": book.issuer, "exp": int(token.until)}

    class Registration(ClientRegistrationEndpoint):
        def authenticate_token(self, _asked: Any) -> bool:
            return True

        def get_server_metadata(self) -> dict[str, Any]:
            return {}

        def save_client(self, info: dict[str, Any], metadata: dict[str, Any], _asked: Any) -> Client:
            made = Client(info["client_id"], info["client_secret"], metadata)
            book.clients[made.client_id] = made
            return made

    class DeviceAuthorization(DeviceAuthorizationEndpoint):
        INTERVAL = 1
        EXPIRES_IN = book.options.get("device_lifetime", 600)

        def get_verification_uri(self) -> str:
            return f"{book.issuer}/device"

        def save_device_credential(self, client_id: str, scope: str | None, data: dict[str, Any]) -> None:
            book.devices[data["device_code"]] = Record(
                client_id=client_id,
                scope=scope or "",
                user_code=data["user_code"],
                until=time.time() + data["expires_in"],
                asked=0,
            )

    return [Revocation, Introspection, Registration, DeviceAuthorization]


def made(book: Book, path: str) -> Flask:
    app = Flask("authorization")
    app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = True
    app.config["OAUTH2_TOKEN_EXPIRES_IN"] = dict.fromkeys(
        ["authorization_code", "client_credentials", "refresh_token", DEVICE_GRANT, EXCHANGE], book.lifetime
    )
    server = AuthorizationServer(app, book.client, book.save)
    for grant, extensions in grants_of(book):
        server.register_grant(grant, extensions)
    for endpoint in endpoints_of(book):
        server.register_endpoint(endpoint)

    class Issuer(IssuerParameter):
        def get_issuer(self) -> str:
            return str(book.options.get("iss", book.issuer))

    server.register_extension(Issuer())

    def metadata() -> Any:
        book.asked["metadata"] += 1
        return jsonify(book.metadata())

    if not book.options.get("oidc"):
        app.add_url_rule(f"/.well-known/oauth-authorization-server{path}", "rfc8414", metadata)
    else:
        app.add_url_rule(f"{path}/.well-known/openid-configuration", "oidc", metadata)

    @app.route(f"{path}/authorize", methods=["GET", "POST"])
    def authorize() -> Any:
        book.asked["authorize"] += 1
        if where := book.options.get("redirect"):
            return redirect(where)
        grant = server.get_consent_grant(end_user=ANN)
        if request.method == "GET":
            who = grant.client.metadata.get("client_name", grant.client.client_id)
            return FORM.format(who=who, action=request.url.replace("&", "&amp;"), code="")
        user = (request.form.get("who") or ANN) if request.form.get("answer") == "allow" else None
        return server.create_authorization_response(grant_user=user, grant=grant)

    @app.route(f"{path}/device", methods=["GET", "POST"])
    def device() -> Any:
        if request.method == "GET":
            code = request.args.get("user_code", "")
            return FORM.format(who="your device", action=f"{path}/device", code=code)
        book.answers[request.form["user_code"]] = ANN, request.form.get("answer") == "allow"
        return "Thank you."

    @app.post(f"{path}/token")
    def token() -> Any:
        book.asked[request.form.get("grant_type", "")] += 1
        book.forms.append(dict(request.form))
        if book.options.get("token_echo"):
            return f"refused: {dict(request.form)} {request.headers.get('authorization')}", 400
        if (status := book.options.get("token_status")) is not None:
            return book.options.get("token_answer", ""), status
        return server.create_token_response()

    @app.get(f"{path}/jwks")
    def jwks() -> Any:
        return jsonify(book.keys.public)

    @app.post(f"{path}/register")
    def register() -> Any:
        book.asked["register"] += 1
        return server.create_endpoint_response("client_registration")

    for name, address in [
        ("revocation", "revoke"),
        ("introspection", "introspect"),
        ("device_authorization", "device_authorization"),
    ]:

        def endpoint(name: str = name) -> Any:
            book.asked[name] += 1
            return server.create_endpoint_response(name)

        app.add_url_rule(f"{path}/{address}", name, endpoint, methods=["POST"])

    @app.post("/control")
    def control() -> Any:
        changes = request.get_json()
        for what, value in changes.items():
            if what == "lifetime":
                book.lifetime = value
                app.config["OAUTH2_TOKEN_EXPIRES_IN"] |= dict.fromkeys(app.config["OAUTH2_TOKEN_EXPIRES_IN"], value)
                server.load_config(app.config)
            elif what == "issue":
                book.issue(**value)
            elif what == "id_token":
                book.id_tokens.append(book.keys.id_token(**value))
            elif what == "expire":
                for each in book.tokens:
                    each.until = 0
            elif what == "revoke_access":
                book.options["no_access"] = True
            elif what == "revoke":
                for each in book.tokens:
                    each.revoked = True
            else:
                book.options[what] = value
        known = [text for each in book.tokens if not each.revoked for text in (each.access, each.refresh) if text]
        said = {"asked": dict(book.asked), "tokens": known, "forms": book.forms, "clients": list(book.clients)}
        more = {"id_tokens": book.id_tokens, "resources": [each.resource for each in book.tokens]}
        return jsonify(said | more)

    return app


def main(port: str, options: str = "{}") -> None:
    os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    chosen = json.loads(options)
    path = chosen.get("path", "")
    book = Book(f"http://127.0.0.1:{port}{path}", chosen)
    make_server("127.0.0.1", int(port), made(book, path), threaded=True).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
