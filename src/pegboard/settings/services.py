"""Services that are asked over HTTP: where they are, and the keys they want. A key is in no configuration."""

from __future__ import annotations

import os
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from pegboard.errors import ConfigError

VARIABLE = r"^[A-Z_][A-Z0-9_]*$"
"""The name of an environment variable, in capitals: a key that was put in its place has small letters."""


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("base_url has to begin with http:// or https://")
    if parts.username or parts.password or parts.query:
        raise ValueError("base_url may hold no key: name the variable that has it in api_key_env")
    return url


ServiceUrl = Annotated[str, AfterValidator(_address)]
KeyVariable = Annotated[str, Field(pattern=VARIABLE)]


def key_in(variable: str, service: str) -> str:
    """The key of a service, from an environment variable. Raises ConfigError that shows no part of it."""
    key = os.environ.get(variable, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigError(
            f"The variable {variable!r} {'holds what is no key' if key else 'is not set'}.",
            remedy=f"Put the key of {service} into it.",
        )
    return key
