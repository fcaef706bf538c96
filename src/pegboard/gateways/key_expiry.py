"""Which tokens and keys end soon, said in time: by `pegboard keys list`, by `pegboard doctor`, and in the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pegboard.protocols import Clock
from pegboard.settings import Settings
from pegboard.settings.key_rotation import RotatedKey

LOGGER = logging.getLogger(__name__)

SOON = 14 * 86_400.0
"""Seconds before its end from which on a key is reported."""
EVERY = 12 * 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLifetime:
    """When a key of a ``section`` ends, in seconds since the epoch; None: never. ``previous`` is the key that it
    replaces."""

    section: Literal["access", "llm.keys"]
    name: str
    expires: float | None = None
    previous: bool = False

    def state(self, now: float) -> Literal["valid", "ends soon", "expired"]:
        if self.expires is None or now < self.expires - SOON:
            return "valid"
        return "ends soon" if now < self.expires else "expired"

    def sentence(self, now: float) -> str:
        """What to say of a key that ends soon, or has ended."""
        which = f"The {'previous ' if self.previous else ''}key [{self.section}.{self.name}]"
        at = datetime.fromtimestamp(self.expires or 0.0, UTC).isoformat(timespec="minutes").replace("+00:00", "Z")
        return f"{which} {'has ended' if self.state(now) == 'expired' else 'ends'} at {at}."


def lifetimes(settings: Settings) -> Iterator[KeyLifetime]:
    """Every configured token and key, with the one that it replaces."""
    for name, token in settings.access.items():
        yield from _of("access", name, token)
    for name, key in settings.llm.keys.items():
        yield from _of("llm.keys", name, key)


def ending(settings: Settings, now: float) -> list[KeyLifetime]:
    """The keys that end soon or have ended. A previous key is to end: that is no news."""
    return [each for each in lifetimes(settings) if not each.previous and each.state(now) != "valid"]


async def warn_of_expiry(settings: Callable[[], Settings], clock: Clock) -> None:
    """Say twice a day which keys end soon, until cancelled."""
    while True:
        now = clock.time()
        for each in ending(settings(), now):
            LOGGER.warning("%s `pegboard keys rotate %s` makes its successor.", each.sentence(now), each.name)
        await asyncio.sleep(EVERY)


def _of(section: Literal["access", "llm.keys"], name: str, key: RotatedKey) -> Iterator[KeyLifetime]:
    expires = None if key.expires is None else key.expires.timestamp()
    yield KeyLifetime(section=section, name=name, expires=expires)
    if key.previous_expires is not None:
        yield KeyLifetime(section=section, name=name, expires=key.previous_expires.timestamp(), previous=True)
