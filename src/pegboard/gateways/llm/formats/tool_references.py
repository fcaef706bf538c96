"""What deferral needs from a wire format: deferred tools, references to them in the history, and search results.

Clients do not see the gateway's searches, so no history they send has one. Every request therefore gets its references
again, at the same places: computed from the history alone, and so the same from any replica and after any restart.
Without I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_search import Document, FunctionCall, SearchTool

Found = tuple[str, ...] | str
"""The result of a search: the names of the tools found, or a text that says why there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredTools:
    """Which tools are sent and how. Of the ``kept`` places only those ``loaded`` are in the prompt.

    ``search`` is the tool by which the model finds the others. ``pushed`` are the places of deferred tools to be
    referred to after a message of the user, by the message's number among those with any text from the user.
    """

    loaded: frozenset[int]
    kept: frozenset[int]
    search: SearchTool
    pushed: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceExchange:
    """An answer whose searches the gateway ran itself, with the results."""

    answer: Document
    results: Sequence[tuple[FunctionCall, Found]]


class DeferralCodec(Protocol):
    """The support for deferred tools in one wire format."""

    def closed(self, request: LlmRequest) -> str:
        """Why the request's tools cannot be deferred; empty if they can."""
        ...

    def may_push(self, request: LlmRequest) -> bool:
        """Whether references may follow the user's messages, which the model did not search for itself."""
        ...

    def deferred(self, request: LlmRequest, tools: DeferredTools) -> bytes:
        """The body with these tools, and references to those pushed and to those that the history called."""
        ...

    def call_name(self, search: SearchTool) -> str:
        """The name of the model's calls of the search."""
        ...

    def continued(self, body: bytes, request: LlmRequest, exchanges: Sequence[ReferenceExchange]) -> bytes:
        """The body of a request with these exchanges appended to its conversation."""
        ...

    def brought(self, body: bytes) -> frozenset[str]:
        """The names of the tools that searches in the conversation of this body bring, if it brings definitions."""
        ...
