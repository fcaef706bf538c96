"""Whether a request comes from a program of this machine, so that the providers' keys held here may be used for it."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.types import Scope

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
FORWARDED = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via"})
"""Headers by which a proxy says that it asks for somebody else."""


def is_local(scope: Scope, names: Sequence[str] = ()) -> bool:
    """Whether an HTTP request comes over loopback, for nobody else, and calls this server by a name of its own.

    ``names`` are further names of this server. A page that had its own name rebound to this machine (DNS rebinding)
    says that name in `Host`.
    """
    client = scope.get("client")
    if client is None or not _is_loopback(client[0]):
        return False
    headers = [(name.lower(), value) for name, value in scope["headers"]]
    if any(name in FORWARDED for name, _ in headers):
        return False
    hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
    return len(hosts) == 1 and _name(hosts[0]) in {*LOOPBACK_NAMES, *map(_name, names)}


def _is_loopback(address: str) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


def _name(host: str) -> str:
    """A host without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
