"""The TLS settings of connections to servers: certificates are read once, not for each connection."""

from __future__ import annotations

import os
import ssl
from functools import lru_cache

import httpx2

SOURCES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that name the certificates to trust."""


def trusted() -> ssl.SSLContext:
    """A context that all connections share; it has no credentials. It takes 400 KB and 10 ms to make."""
    return _trusted(*(os.environ.get(name) for name in SOURCES))


@lru_cache(maxsize=2)
def _trusted(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    return httpx2.create_ssl_context()
