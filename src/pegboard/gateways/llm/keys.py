"""Keys of the gateway itself: who shows one is let in, under its policy. Only their hashes are known here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


class Keys:
    """The configured keys. Without any, everybody may use the gateway."""

    def __init__(self, configured: Mapping[str, KeySettings]) -> None:
        self._names = {each.hash: name for name, each in configured.items()}
        self._configured = configured

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
        return self.name_of(text) is not None

    def none_of_ours(self, headers: Headers) -> Headers:
        """The headers without those that show a key of ours: providers are not told it."""
        if not self._names:
            return headers
        return [
            each for each in headers if each[0].lower() not in SHOWN_IN or not self.is_ours(each[1].decode("latin-1"))
        ]

    def check(self, key: str | None, upstream: str) -> None:
        """Raises NotForThis where the key is not meant for an upstream."""
        allowed = ("*",) if key is None else self._configured[key].upstreams
        if not any(fnmatchcase(upstream, pattern) for pattern in allowed):
            raise NotForThis(
                f"The key {key!r} is not for the upstream {upstream!r}.", remedy="Ask who runs the gateway."
            )


def _hash_of(shown: str) -> str:
    scheme, _, rest = shown.partition(" ")
    return hashed((rest if scheme.lower() == "bearer" else shown).strip())
