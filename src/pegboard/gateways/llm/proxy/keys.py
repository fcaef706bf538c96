"""The gateway's own keys: a valid key admits a request under the key's policy. Only hashes of keys are stored.

No key of the LLM gateway and no token of the MCP gateway is forwarded to a provider, wherever a client put it. Requests
from this machine may use the provider keys that the gateway holds.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.types import Scope

from pegboard.clock import SYSTEM_CLOCK
from pegboard.errors import PegboardError
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.llm.formats.registry import key_headers
from pegboard.gateways.llm.proxy.model_upstream import Headers
from pegboard.protocols import Clock
from pegboard.settings.llm import KeySettings

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
FORWARDED = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via"})
"""Headers by which a proxy says that it forwards a request."""
OWN_HEADER = b"x-pegboard-key"
IsToken = Callable[[str], bool]
"""Returns whether a text is a token of the MCP gateway."""
COOKIE = b"cookie"
OUR_COOKIES = "pegboard"
"""Prefix of the names of Pegboard's cookies."""


class NotAllowed(PegboardError):  # noqa: N818
    code = "not_allowed"
    http_status = 401


class NotForThis(NotAllowed):
    http_status = 403


class Keys:
    """The configured keys. Without any, everybody may use the gateway, except for the provider keys that it holds."""

    def __init__(
        self,
        configured: Mapping[str, KeySettings],
        is_token: IsToken = lambda text: False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._clock = clock
        self._names: dict[str, str] = {}
        self._ends: dict[str, float] = {}
        for name, each in configured.items():
            for hash_, end in ((each.hash, each.expires), (each.previous, each.previous_expires)):
                if hash_ is not None:
                    self._names[hash_] = name
                    self._ends[hash_] = math.inf if end is None else end.timestamp()
        self._configured = configured
        self._is_token = is_token

    def holder(self, headers: Iterable[tuple[bytes, bytes]], query_key: str | None = None) -> str | None:
        """The name of the key in a request; None if no key is needed. Raises NotAllowed."""
        if not self._names:
            return None
        found = {name.lower(): value for name, value in headers}
        shown = [value.decode("latin-1") for name in _shown_in() if (value := found.get(name)) is not None]
        for text in (*shown, query_key or ""):
            if (name := self.name_of(text)) is not None:
                return name
        if any(self._known(text) for text in (*shown, query_key or "")):
            raise NotAllowed("The key has expired.", remedy="Ask the gateway's operator for a new one.")
        raise NotAllowed(
            "This gateway requires one of its own keys." if not shown else "The key is not one of this gateway's.",
            remedy="Send a key made with `pegboard keys new` in place of the provider's key.",
        )

    def name_of(self, shown: str) -> str | None:
        """The name of this key if it is one of the gateway's, and valid now."""
        return self._known(shown) if self._names and self._clock.time() < self._ends.get(_hash_of(shown), 0) else None

    def _known(self, shown: str) -> str | None:
        """The name of this key, valid or not."""
        return self._names.get(_hash_of(shown)) if self._names else None

    def is_ours(self, text: str) -> bool:
        """Whether a text is a key of the gateway, valid or not, or a token of the MCP gateway."""
        return self._known(text) is not None or self._is_token(_bare(text))

    def owner(self, upstream: str, key: str | None, headers: Headers, query_key: str | None = None) -> str:
        """The owner of conversations with an upstream: a hash of the name of the gateway ``key`` and of the other
        credentials in a request. A key counts by its name alone, so that conversations outlive its rotation."""
        shown_in = key_headers()
        shown = sorted(value for name, value in headers if name.lower() in shown_in)
        others = [value for value in shown if key is None or self._known(value.decode("latin-1")) != key]
        parsed = [upstream.encode(), (key or "").encode(), *others, *([query_key.encode()] if query_key else ())]
        return hashlib.sha256(b"\0".join(parsed)).hexdigest()

    def none_of_ours(self, headers: Headers) -> Headers:
        """The headers without the gateway's keys, tokens and cookies."""
        kept: Headers = []
        shown_in = _shown_in()
        for name, value in headers:
            lower = name.lower()
            if lower == COOKIE:
                value = self._cookies(value)
                if not value:
                    continue
            elif lower in shown_in and self.is_ours(value.decode("latin-1")):
                continue
            kept.append((name, value))
        return kept

    def shows_token(self, headers: Headers) -> bool:
        """Whether a request has a token of the MCP gateway in place of a provider's key."""
        shown_in = _shown_in()
        return any(
            name.lower() in shown_in and self._is_token(_bare(value.decode("latin-1"))) for name, value in headers
        )

    def _cookies(self, value: bytes) -> bytes:
        pairs = [pair.strip() for pair in value.decode("latin-1").split(";")]
        kept = [pair for pair in pairs if pair and not self._is_our_cookie(pair)]
        return value if len(kept) == len(pairs) else "; ".join(kept).encode("latin-1")

    def _is_our_cookie(self, pair: str) -> bool:
        name, _, content = pair.partition("=")
        return name.lower().startswith(OUR_COOKIES) or self.is_ours(content)

    def check(self, key: str | None, upstream: str) -> None:
        """Raises NotForThis if the key is not valid for an upstream."""
        allowed = ("*",) if key is None else self._configured[key].upstreams
        if not any(fnmatchcase(upstream, pattern) for pattern in allowed):
            raise NotForThis(
                f"The key {key!r} is not valid for the upstream {upstream!r}.", remedy="Ask the gateway's operator."
            )


def _shown_in() -> tuple[bytes, ...]:
    """Headers that may hold a key: SDKs use one each. The first valid key counts."""
    return (OWN_HEADER, *key_headers())


def _hash_of(shown: str) -> str:
    return hashed(_bare(shown))


def _bare(shown: str) -> str:
    """A key without its scheme."""
    scheme, _, rest = shown.partition(" ")
    return (rest if scheme.lower() == "bearer" else shown).strip()


def is_local(scope: Scope, names: Sequence[str] = ()) -> bool:
    """Whether an HTTP request comes over loopback, is not forwarded, and addresses this server by one of its names.

    ``names`` are additional names of this server. A page that has rebound its own name to this machine (DNS rebinding)
    sends that name as `Host`.
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
    """The host name without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
