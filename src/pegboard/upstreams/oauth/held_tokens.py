"""Tokens in memory, where the SDK's flow puts and finds them."""

from __future__ import annotations

from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken


class HeldTokens:
    """Implements the SDK's `TokenStorage`."""

    def __init__(self, tokens: OAuthToken | None = None, client: OAuthClientInformationFull | None = None) -> None:
        self.tokens = tokens
        self.client = client
        self._code = ""

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    def received(self, answer: AuthorizationCodeResult) -> AuthorizationCodeResult:
        """Note the authorization code as a secret."""
        self._code = answer.code
        return answer

    @property
    def secrets(self) -> set[str]:
        """All strings that must not appear in a message."""
        tokens = (self.tokens.access_token, self.tokens.refresh_token) if self.tokens else ()
        found = (*tokens, self.client.client_secret if self.client else None, self._code)
        return {each for each in found if each}
