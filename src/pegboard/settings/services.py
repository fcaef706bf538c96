"""URLs and keys of HTTP services. Keys are read from environment variables and never stand in a configuration."""

from __future__ import annotations

import os
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from pegboard.errors import ConfigError

VARIABLE = r"^[A-Z_][A-Z0-9_]*$"
"""The name of an environment variable, in capitals. A key pasted in its place has lower-case letters and fails."""


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("base_url must begin with http:// or https://")
    if parts.username or parts.password or parts.query:
        raise ValueError("base_url must not contain a key: name its environment variable in api_key_env")
    return url


ServiceUrl = Annotated[str, AfterValidator(_address)]
KeyVariable = Annotated[str, Field(pattern=VARIABLE)]


def key_in(variable: str, service: str) -> str:
    """The key of a service, from an environment variable. Raises ConfigError, which shows no part of the key."""
    key = os.environ.get(variable, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigError(
            f"The variable {variable!r} {'does not contain a key' if key else 'is not set'}.",
            remedy=f"Put the key of {service} into it.",
        )
    return key
