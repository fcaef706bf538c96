"""Tokens in memory, where the SDK's flow puts and finds them."""

from __future__ import annotations

from mcp.shared.auth import OAuthClientInformationFull, OAuthToken


class HeldTokens:
    """Implements the SDK's `TokenStorage`."""

    def __init__(self, tokens: OAuthToken | None = None, client: OAuthClientInformationFull | None = None) -> None:
        self.tokens = tokens
        self.client = client

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info
