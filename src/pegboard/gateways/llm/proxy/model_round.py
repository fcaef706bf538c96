"""One of the requests that a round trip sends for a client's request, and what came of it so far."""

from __future__ import annotations

from dataclasses import dataclass

from pegboard.gateways.llm.formats.streams import events_in, tokens_of
from pegboard.token_usage import TokenUsage


@dataclass(slots=True, kw_only=True)
class ModelRound:
    """``asked`` is the size of the request in bytes; ``status`` is 0 until an answer begins. ``used`` is what the
    provider counted so far."""

    asked: int
    status: int = 0
    streamed: bool = False
    used: TokenUsage | None = None
    ended: bool = False
    _came: int = 0
    _events: int = 0

    @property
    def said(self) -> int:
        """About how many tokens came."""
        return tokens_of(self._came, self._events, streamed=self.streamed)

    def feed(self, piece: bytes) -> None:
        self._came += len(piece)
        self._events += events_in(piece)
