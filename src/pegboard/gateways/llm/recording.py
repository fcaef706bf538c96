"""Requests as JSON lines, to be run through another configuration later: with all that users say in them.

Of the headers nothing is kept but the wishes that narrow what is picked and those that known agents are told by, and of
keys the names that we gave them.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from pegboard.errors import ConfigError
from pegboard.stores.behind import Behind

MOST_WAITING = 64 * 1024 * 1024
"""Bytes that may wait to be written; what comes then is left out."""
NARROWING = frozenset({"k", "budget", "threshold", "never", "filter"})
OURS_ALONE = 0o600
ENCODER = msgspec.json.Encoder()


class Recorded(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request whose answer came to its end, as it came to us: its body is ``body``, or ``raw`` where that is no text.

    ``key`` is the name of a key; ``owner`` stands for whose conversations these are, ``conversation`` for the name that
    the caller gave to this one; both differ with every start.
    ``kept`` names the tools that were sent, or that would have been in the shadow; None where they were not picked.
    Tokens are those of the tools, before and after; 0 where they were not counted. ``answer`` is the answer's id.
    """

    at: float
    upstream: str
    path: str
    outcome: str
    key: str = ""
    owner: str = ""
    conversation: str = ""
    policy: str = ""
    wishes: dict[str, str] = msgspec.field(default_factory=dict)
    client: dict[str, str] = msgspec.field(default_factory=dict)
    body: str = ""
    raw: bytes = b""
    kept: list[str] | None = None
    tokens_before: int = 0
    tokens_after: int = 0
    called: list[str] = msgspec.field(default_factory=list)
    answer: str = ""

    @property
    def whole_body(self) -> bytes:
        return self.raw or self.body.encode()


class Recorder:
    """A file of JSON lines that only its owner can read, written on a thread of its own, and so is the one before it
    once a new one is begun. Close it in the end."""

    def __init__(self, path: Path, most: int) -> None:
        """Raises ConfigError for a file that cannot be written."""
        self._path = path
        self._most = most
        self._salt = secrets.token_bytes(16)
        try:
            self._opened().close()
        except OSError as error:
            raise ConfigError(
                f"Requests cannot be recorded to {str(path)!r}: {error.strerror}.",
                remedy="Name another file in llm.record, or leave it out.",
            ) from error
        self._behind: Behind[Recorded] = Behind(self._write, what=f"the record {str(path)!r}", most=MOST_WAITING)

    def put(self, recorded: Recorded) -> None:
        self._behind.put(recorded, len(recorded.body) + len(recorded.raw))

    def alias(self, owner: str) -> str:
        """Tells the owners of one run apart, and nothing else of them."""
        return hashlib.blake2b(owner.encode(), key=self._salt, digest_size=8).hexdigest()

    def close(self) -> None:
        self._behind.close()

    def _write(self, some: Sequence[Recorded]) -> None:
        for recorded in some:
            line = ENCODER.encode(recorded) + b"\n"
            size = self._path.stat().st_size if self._path.exists() else 0
            if size and size + len(line) > self._most:
                self._path.replace(f"{self._path}.1")
            with self._opened() as file:
                file.write(line)

    def _opened(self) -> BinaryIO:
        """At its end; a link is not followed. The caller closes it."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        file = os.fdopen(os.open(self._path, flags, OURS_ALONE), "ab")
        self._path.chmod(OURS_ALONE)
        return file


def narrowing(wishes: Mapping[str, str]) -> dict[str, str]:
    """The wishes of a request that say what is picked: among the others is a key."""
    return {name: value for name, value in wishes.items() if name in NARROWING}


def text_or_raw(body: bytes) -> tuple[str, bytes]:
    """A body as the one or the other field of a record."""
    try:
        return body.decode(), b""
    except UnicodeDecodeError:
        return "", body
