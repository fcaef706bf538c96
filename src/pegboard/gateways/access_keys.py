"""The gateway's own keys, for models and for MCP: generated here, and stored as hashes only."""

from __future__ import annotations

import hashlib
import secrets

PREFIX = "pgb_"


def new_key() -> str:
    """A new key: 256 random bits, so its plain SHA-256 reveals nothing about it.

    >>> new_key().startswith("pgb_")
    True
    """
    return PREFIX + secrets.token_urlsafe(32)


def hashed(key: str) -> str:
    """The hash of a key, as the configuration has it.

    >>> hashed("pgb_x")[:13]
    'sha256:7e40aa'
    """
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()
