"""Keys of the gateway itself: who shows one is let in, under its policy. Only their hashes are known here.

No key of the LLM gateway and no token of the MCP gateway is passed on to a provider, wherever a client put it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase

from pegboard.errors import PegboardError
from pegboard.gateways.keys import hashed
from pegboard.gateways.llm.upstream import Headers
from pegboard.settings.llm import KeySettings

SHOWN_IN = (b"x-pegboard-key", b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key")
"""Headers in which a key may come, the first that is one of ours counts: SDKs have one place each."""


class NotAllowed(PegboardError):  # noqa: N818
    code = "not_allowed"
    http_status = 401


class NotForThis(NotAllowed):
    http_status = 403


IsToken = Callable[[str], bool]
"""Whether a text is a token of the MCP gateway."""
COOKIE = b"cookie"
OUR_COOKIES = "pegboard"
"""How the names of Pegboard's cookies begin."""


class Keys:
    """The configured keys. Without any, everybody may use the gateway, but for the providers' keys that it holds."""

    def __init__(self, configured: Mapping[str, KeySettings], is_token: IsToken = lambda text: False) -> None:
        self._names = {each.hash: name for name, each in configured.items()}
        self._configured = configured
        self._is_token = is_token

    def holder(self, headers: Iterable[tuple[bytes, bytes]], query_key: str | None = None) -> str | None:
        """The name of the key that a request shows; None where none is needed. Raises NotAllowed."""
        if not self._names:
            return None
        found = {name.lower(): value for name, value in headers}
        shown = [value.decode("latin-1") for name in SHOWN_IN if (value := found.get(name)) is not None]
        for text in (*shown, query_key or ""):
            if (name := self.name_of(text)) is not None:
                return name
        raise NotAllowed(
            "This gateway needs a key of its own." if not shown else "The key is none of this gateway's.",
            remedy="Send one that `pegboard keys new` made, where the provider's key would be.",
        )

    def name_of(self, shown: str) -> str | None:
        """The name of the key that a text is, if it is one of ours."""
        return self._names.get(_hash_of(shown)) if self._names else None

    def is_ours(self, text: str) -> bool:
        """Whether a text is a key of ours, or a token of the MCP gateway."""
        return self.name_of(text) is not None or self._is_token(_bare(text))

    def none_of_ours(self, headers: Headers) -> Headers:
        """The headers without those that show a key or a token of ours, and without our cookies."""
        kept: Headers = []
        for name, value in headers:
            lower = name.lower()
            if lower == COOKIE:
                value = self._cookies(value)
                if not value:
                    continue
            elif lower in SHOWN_IN and self.is_ours(value.decode("latin-1")):
                continue
            kept.append((name, value))
        return kept

    def shows_token(self, headers: Headers) -> bool:
        """Whether a request shows a token of the MCP gateway where a provider's key would be."""
        return any(
            name.lower() in SHOWN_IN and self._is_token(_bare(value.decode("latin-1"))) for name, value in headers
        )

    def _cookies(self, value: bytes) -> bytes:
        pairs = [pair.strip() for pair in value.decode("latin-1").split(";")]
        kept = [pair for pair in pairs if pair and not self._is_our_cookie(pair)]
        return value if len(kept) == len(pairs) else "; ".join(kept).encode("latin-1")

    def _is_our_cookie(self, pair: str) -> bool:
        name, _, content = pair.partition("=")
        return name.lower().startswith(OUR_COOKIES) or self.is_ours(content)

    def check(self, key: str | None, upstream: str) -> None:
        """Raises NotForThis where the key is not meant for an upstream."""
        allowed = ("*",) if key is None else self._configured[key].upstreams
        if not any(fnmatchcase(upstream, pattern) for pattern in allowed):
            raise NotForThis(
                f"The key {key!r} is not for the upstream {upstream!r}.", remedy="Ask who runs the gateway."
            )


def _hash_of(shown: str) -> str:
    return hashed(_bare(shown))


def _bare(shown: str) -> str:
    """A key without the scheme before it."""
    scheme, _, rest = shown.partition(" ")
    return (rest if scheme.lower() == "bearer" else shown).strip()
