"""Servers that tests start on this machine: a free port, and whether somebody answers."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit


def get(url: str) -> int:
    """The status of a GET; 0 where nobody answers."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5)
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()
