"""Measures requests in the shadow, and records requests as JSON lines for a later replay, with all that users say in
them.

Of the headers only the wishes that affect the selection and those that identify known agents are recorded; of keys only
their configured names.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import msgspec

from pegboard import operating_system
from pegboard.errors import ConfigError
from pegboard.events import ShadowMeasured
from pegboard.gateways.llm.formats.registry import counts
from pegboard.gateways.llm.selection.filter import RewrittenRequest
from pegboard.gateways.llm.selection.policy import Policy
from pegboard.stores.write_behind import WriteBehind

Shadow = asyncio.Task[RewrittenRequest]
"""The selection of a request's tools while the request is in flight."""
MOST_WAITING = 64 * 1024 * 1024
"""Bytes that may wait to be written; further records are dropped."""
NARROWING = frozenset({"k", "budget", "threshold", "never", "filter"})
OURS_ALONE = 0o600
ENCODER = msgspec.json.Encoder()


class RequestRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request whose answer is complete, as it was received: its body is ``body``, or ``raw`` if it is not text.

    ``key`` is the name of a key; ``owner`` is an alias of the conversation's owner, ``conversation`` of the name that
    the caller gave it; both change with every start. ``kept`` names the tools that were sent, or would have been in the
    shadow; None if none were selected. Tokens are those of the tools, before and after; 0 if not counted. ``answer`` is
    the answer's id.
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
    """A file of JSON lines that only its owner can read, written by a separate thread and rotated once. Close it at the
    end."""

    def __init__(self, path: Path, most: int) -> None:
        """Raises ConfigError if the file cannot be written."""
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
        self._behind: WriteBehind[RequestRecord] = WriteBehind(
            self._write, what=f"the record {str(path)!r}", most=MOST_WAITING
        )

    def put(self, recorded: RequestRecord) -> None:
        self._behind.put(recorded, len(recorded.body) + len(recorded.raw))

    def alias(self, owner: str) -> str:
        """An alias that distinguishes the owners of one run and reveals nothing else."""
        return hashlib.blake2b(owner.encode(), key=self._salt, digest_size=8).hexdigest()

    def close(self) -> None:
        self._behind.close()

    def _write(self, some: Sequence[RequestRecord]) -> None:
        for recorded in some:
            line = ENCODER.encode(recorded) + b"\n"
            size = self._path.stat().st_size if self._path.exists() else 0
            if size and size + len(line) > self._most:
                operating_system.replace_file(self._path, Path(f"{self._path}.1"))
            with self._opened() as file:
                file.write(line)

    def _opened(self) -> BinaryIO:
        """Open for appending; does not follow symbolic links. The caller closes it."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | operating_system.NO_FOLLOW
        file = os.fdopen(os.open(self._path, flags, OURS_ALONE), "ab")
        self._path.chmod(OURS_ALONE)
        return file


def narrowing(wishes: Mapping[str, str]) -> dict[str, str]:
    """The wishes that affect the selection; other headers may hold a key."""
    return {name: value for name, value in wishes.items() if name in NARROWING}


def text_or_raw(body: bytes) -> tuple[str, bytes]:
    """A body as the fields ``body`` and ``raw`` of a record."""
    try:
        return body.decode(), b""
    except UnicodeDecodeError:
        return "", body


def so_far(passing: RewrittenRequest, shadow: Shadow | None) -> RewrittenRequest:
    """The current knowledge of the request."""
    return shadow.result() if shadow is not None and shadow.done() and not shadow.cancelled() else passing


def measured(
    rewritten: RewrittenRequest, calls: Sequence[str], *, at: float, upstream: str, key: str | None, unmeasured: str
) -> ShadowMeasured:
    """The measurement of a request in the shadow; ``unmeasured`` says why there is none, if known."""
    request, filtered, treatment = rewritten.request, rewritten.filtered, rewritten.treatment
    event = ShadowMeasured(
        at=at,
        upstream=upstream,
        model=request.model if request else "",
        key=key or "",
        policy=fingerprint(treatment.policy) if treatment else "",
        unmeasured=unmeasured or rewritten.failure or ("" if filtered else "unknown"),
    )
    if request is None or filtered is None or event.unmeasured:
        return event
    called = tuple(name for name in calls if name in request.names)
    kept = {request.tools[place].name for place in filtered.reached}
    return replace(
        event,
        decision=filtered.decision.turn_id if filtered.decision else "",
        tools=len(request.tools),
        kept=len(filtered.kept.places),
        tokens_before=filtered.tokens_before,
        tokens_after=filtered.tokens_after,
        called=called,
        missed=tuple(name for name in called if name not in kept),
    )


def reason_not_to(path: str, status: int, *, ended: bool) -> str:
    """Why the outcome of a request says nothing about the model's calls; empty if it does."""
    if counts(path):
        return "no_model_asked"
    if not ended:
        return "broke_off"
    return "" if 200 <= status < 300 else f"status_{status}"


def fingerprint(policy: Policy) -> str:
    """Distinguishes policies, so that their measurements are not added up. Eight hexadecimal digits."""
    return hashlib.sha256(repr(policy).encode()).hexdigest()[:8]
