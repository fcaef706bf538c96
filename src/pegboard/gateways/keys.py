"""Keys of the gateway's own, for models and for MCP: made here, and known by their hashes alone."""

from __future__ import annotations

import hashlib
import secrets

PREFIX = "pgb_"


def new_key() -> str:
    """A key that cannot be guessed: 256 random bits, so its plain SHA-256 tells nothing of it.

    >>> new_key().startswith("pgb_")
    True
    """
    return PREFIX + secrets.token_urlsafe(32)


def hashed(key: str) -> str:
    """How a key stands in the configuration.

    >>> hashed("pgb_x")[:13]
    'sha256:7e40aa'
    """
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()
