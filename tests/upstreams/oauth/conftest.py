from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pegboard.clock import SYSTEM_CLOCK
from pegboard.settings import Settings
from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.upstreams.oauth.credentials import CredentialKey, OAuthCredentials
from pegboard.upstreams.oauth.oauth_login import login
from processes import listening
from signers import AUTHORIZATION, RESOURCE, Signer
from upstream_specs import fleet_of

__all__ = ["fleet_of"]

Started = Callable[..., str]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Keeps credentials in a file, with a key in the same folder."""
    return Settings(state_dir=tmp_path, credentials="file")


@pytest.fixture(autouse=True)
def _own_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def authorization() -> Iterator[Started]:
    """Starts an authorization server with these options; returns its address, to which an issuer's path is added."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(listening(AUTHORIZATION, json.dumps(options)))


@pytest.fixture
def resource() -> Iterator[Started]:
    """Starts an MCP server whose tokens this issuer makes; returns its address, to which `/mcp` is added."""
    with ExitStack() as stack:
        yield lambda issuer, **options: stack.enter_context(
            listening(RESOURCE, json.dumps({"issuer": issuer} | options))
        )


@pytest.fixture
def signed_in() -> Callable[..., Any]:
    """Signs in to the MCP server at an address, with these settings."""

    async def sign_in(
        url: str,
        signer: Signer | None = None,
        *,
        user: str = "",
        seconds: float = 60.0,
        alone: bool = False,
        **options: Any,
    ) -> OAuthCredentials:
        key = CredentialKey(server="signed", url=f"{url}/mcp", user=user)
        before, scopes = options.pop("before", None), options.pop("ask", ())
        person = None if alone else (signer or Signer()).person(seconds)
        return await login(key, OAuthSettings(**options), person, now=SYSTEM_CLOCK.time, before=before, scopes=scopes)

    return sign_in
