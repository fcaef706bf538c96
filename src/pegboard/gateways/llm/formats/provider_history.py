"""What the gateway needs from a wire format whose provider keeps answers, which requests continue by their ids.

Without I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pegboard.gateways.llm.formats.protocol import LlmRequest, OpenCall
from pegboard.gateways.llm.formats.tool_search import Document, FunctionCall, Hides


class HistoryCodec(Protocol):
    """The support for answers that the provider keeps in one wire format."""

    def left_open(self, answer: Document, hides: Hides) -> list[tuple[str, FunctionCall]]:
        """The calls of an answer that the client is not shown but the provider keeps, each with the type of its
        item."""
        ...

    def continuing(self, request: LlmRequest, answer: str, results: Sequence[tuple[OpenCall, str]]) -> bytes:
        """The body of a request that continues this answer and brings the results of calls in it, before all else."""
        ...
