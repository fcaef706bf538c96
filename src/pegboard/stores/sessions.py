"""How every backend names and encodes sessions, and orders signing keys."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import lru_cache
from operator import attrgetter
from typing import Any

from pegboard.model import Session, SigningKey, ToolId


@lru_cache(maxsize=10_000)
def session_key(session: str, endpoint: str = "") -> str:
    """The key under which a session is stored, by the client's id and the endpoint: a toolset, or empty for the board.

    Whoever holds the id can act for the session, so only its hash is stored.
    """
    return hashlib.sha256(f"{endpoint}\0{session}".encode()).hexdigest()


def encode_session(session: Session) -> str:
    """All fields but the id and the version, as JSON."""
    fields: dict[str, Any] = {
        "enabled": [list(tool) for tool in session.enabled],
        "answered": sorted(session.answered),
        "notices": session.notices,
        "client": session.client,
        "replica": session.replica,
    }
    fields |= {"watched": list(session.watched)} if session.watched else {}
    fields |= {"level": session.level} if session.level else {}
    return json.dumps(fields, separators=(",", ":"))


def decode_session(key: str, version: int, state: str) -> Session:
    fields = json.loads(state)
    return Session(
        id=key,
        enabled=tuple(ToolId(*each) for each in fields["enabled"]),
        answered=frozenset(fields["answered"]),
        notices=fields["notices"],
        client=fields["client"],
        replica=fields.get("replica"),
        watched=tuple(fields.get("watched", ())),
        level=fields.get("level"),
        version=version,
    )


def signing_key(id: str, made: float, secret: str) -> SigningKey:  # noqa: A002
    """The signing key of a row, whose ``secret`` is hexadecimal."""
    return SigningKey(id=id, made=made, secret=bytes.fromhex(secret))


def in_order(keys: Iterable[SigningKey]) -> list[SigningKey]:
    """Oldest first, in the same order in every process."""
    return sorted(keys, key=attrgetter("made", "id"))
