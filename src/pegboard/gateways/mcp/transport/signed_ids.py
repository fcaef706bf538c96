"""Signs what clients hand back: session ids and request states.

A session belongs to the holder that began it. Its id ends in a code computed from a server secret, the holder, and the
id, so a holder of another token cannot use it. The secrets are in the store, so that all processes can verify each
other's ids. They are rotated; each one is kept for as long as a session that it signed may last.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from uuid import uuid4

from mcp.server.context import ServerRequestContext
from mcp.server.request_state import (
    AESGCMRequestStateCodec,
    InvalidRequestState,
    RequestStateCodec,
    RequestStateSecurity,
)

from pegboard.errors import PegboardError, StoreError
from pegboard.gateways.mcp.transport.auth import HOLDER_KEY, Holder
from pegboard.model import SigningKey
from pegboard.protocols import Clock, SigningKeys

LOGGER = logging.getLogger(__name__)

DAY = 86_400.0
ROTATION = 7 * DAY
"""Seconds after which a new secret is created."""
KNOWN_TO_ALL = 120.0
"""Seconds until every process has read a new secret; nothing is signed with it earlier."""
RENEWAL = 30.0
LEAST_PAUSE = 1.0
"""Minimum seconds between two reads of the store that unknown ids can trigger."""
LONGEST = 3650 * DAY
SECRET_BYTES = 32
CODE_LENGTH = 32
SEPARATOR = "."
"""Separates the transport's session id from its code."""


class Signing:
    """The secrets that this process knows. While the store is down, it uses its own one and shares it later.

    ``lasting`` is the lifetime of a session, in seconds.
    """

    def __init__(self, store: SigningKeys, clock: Clock, *, lasting: float) -> None:
        self._store = store
        self._clock = clock
        self._kept = min(lasting, LONGEST) + ROTATION + KNOWN_TO_ALL
        self._keys: tuple[SigningKey, ...] = ()
        self._renewed = float("-inf")
        self._renewing = asyncio.Lock()

    async def run(self) -> None:
        """Keep the secrets up to date, until cancelled."""
        while True:
            await asyncio.sleep(RENEWAL)
            await self.renew()

    async def renew(self) -> None:
        """Read the secrets, and create one if none is young enough."""
        now = self._clock.time()
        self._renewed = self._clock.monotonic()
        forget = now - self._kept
        try:
            known = await self._store.share(self._keys, forget=forget)  # again, in case the store has lost them
            if not any(now - key.made < ROTATION for key in known):
                known = await self._store.share([_new(now)], forget=forget)
        except PegboardError as error:
            if not self._keys:
                self._keys = (_new(now),)
                level = logging.DEBUG if isinstance(error, StoreError) else logging.WARNING
                LOGGER.log(level, "Sessions will not survive this process: %s", error)
            return
        self._keys = tuple(known)

    def session(self, id: str, holder: Holder) -> str:  # noqa: A002
        """The session id that the client gets, signed for this holder."""
        return f"{id}{SEPARATOR}{_code(self._ring[0], holder, id)}"

    async def owns(self, holder: Holder, session: str) -> bool:
        """Whether this holder began the session with this id."""
        if self._signed(holder, session):
            return True
        async with self._renewing:  # perhaps signed with a secret that another process has just created
            if self._clock.monotonic() - self._renewed >= LEAST_PAUSE:
                await self.renew()
        return self._signed(holder, session)

    @property
    def states(self) -> RequestStateSecurity:
        """How request states are sealed (MCP 2026-07-28): only the holder who made the request can use them, and only
        where it was made."""
        return RequestStateSecurity(codec=_States(self), bind_principal=_principal)

    def said_by(self, state: object) -> str:
        """What a sealed request state says, whoever brings it and with whatever request; empty for anything else."""
        try:
            return str(json.loads(self.codec.unseal(str(state)))["s"])
        except (InvalidRequestState, ValueError, KeyError, TypeError):
            return ""

    @property
    def codec(self) -> RequestStateCodec:
        return _codec(tuple(key.secret for key in self._ring))

    @property
    def _ring(self) -> Sequence[SigningKey]:
        """All secrets, the signing one first: the youngest that all processes know."""
        known_to_all = self._clock.time() - KNOWN_TO_ALL
        signs = next((key for key in reversed(self._keys) if key.made <= known_to_all), self._keys[0])
        return signs, *(key for key in self._keys if key is not signs)

    def _signed(self, holder: Holder, session: str) -> bool:
        id, _, code = session.partition(SEPARATOR)  # noqa: A001
        shown = code.encode("utf-8", "replace")
        return any(hmac.compare_digest(_code(key, holder, id).encode(), shown) for key in self._keys)


def inner(session: str) -> str:
    """The transport's own id of a session."""
    return session.partition(SEPARATOR)[0]


class _States:
    """The SDK's sealing, with the current secrets."""

    def __init__(self, signing: Signing) -> None:
        self._signing = signing

    def seal(self, payload: bytes) -> str:
        return self._signing.codec.seal(payload)

    def unseal(self, token: str) -> bytes:
        return self._signing.codec.unseal(token)


def _new(now: float) -> SigningKey:
    return SigningKey(id=uuid4().hex, made=now, secret=secrets.token_bytes(SECRET_BYTES))


def _code(key: SigningKey, holder: Holder, id: str) -> str:  # noqa: A002
    signed = "\0".join(("session", *holder.identity, id)).encode("utf-8", "replace")
    return hmac.new(key.secret, signed, hashlib.sha256).hexdigest()[:CODE_LENGTH]


def _principal(ctx: ServerRequestContext[Any, Any]) -> str:
    """The gateway of the request, and the holder of its token if one is required."""
    holder: Holder | None = None if ctx.request is None else ctx.request.scope.get(HOLDER_KEY)
    return "\0".join((ctx.lifespan_context.name, *(() if holder is None else holder.identity)))


@lru_cache(maxsize=8)
def _codec(ring: tuple[bytes, ...]) -> RequestStateCodec:
    return AESGCMRequestStateCodec(ring)
