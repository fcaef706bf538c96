"""Digests of texts in which the scanner found nothing, so that each is read once: servers repeat what they say."""

from __future__ import annotations

from hashlib import blake2b

from pegboard.trust.definition_texts import PlacedText
from pegboard.trust.findings import ARGUMENTS, HINTS, NAME

MOST = 32_768
"""Texts that are remembered at most; some 4 MB."""


class HarmlessTexts:
    """Remembers texts by place, as far as rules differ by place. Any number of threads may use it at the same time."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._digests: set[bytes] = set()

    def has(self, said: PlacedText) -> bool:
        return _digest(said) in self._digests

    def add(self, said: PlacedText) -> None:
        if len(self._digests) >= self._most:
            self._digests.clear()
        self._digests.add(_digest(said))

    def clear(self) -> None:
        self._digests.clear()


def _digest(said: PlacedText) -> bytes:
    where = said.where
    place = b"hint" if where.startswith(HINTS) and where.endswith(NAME) else b""
    return blake2b(
        said.raw.encode("utf-8", "surrogatepass"),
        digest_size=16,
        person=b"argument" if where.startswith(ARGUMENTS) else place,
    ).digest()
