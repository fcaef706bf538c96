"""What `call_tool` needs from a wire format, in addition to `tool_search.py`. Without I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pegboard.gateways.llm.formats.call_translation import Reader
from pegboard.gateways.llm.formats.json_reader import object_of, read, text_of
from pegboard.gateways.llm.formats.json_spans import Edit
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_search import Document
from pegboard.model import Tool

UNFIT_WORDS = (b'"strict"', b'"custom"', b'"allowed_callers"')
"""Each definition that cannot be called through another tool contains one of these."""
Spot = Callable[[str], Edit]
"""Makes the edit that inserts a text directly before what the user says in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTool:
    """`call_tool` as a request offers it, under a name that no other tool has."""

    name: str
    description: str
    breakpoint: bytes | None = None


class Translator(Protocol):
    """Translates calls in a streamed answer to native ones as soon as each is complete. Everything else passes
    unchanged."""

    def feed(self, piece: bytes) -> bytes:
        """The output for this chunk."""
        ...

    def finish(self) -> bytes:
        """The rest of the output at the end of the stream."""
        ...


class CallToolCodec(Protocol):
    """The support for `call_tool` in one wire format. Edits apply to the request's body."""

    @property
    def takes_any_text(self) -> bool:
        """Whether arguments are a string, which may hold any text."""
        ...

    def described(self, tool: Tool) -> Tool:
        """The tool as shown to the model: with a JSON Schema, if the format has another kind of schema."""
        ...

    def closed(self, request: LlmRequest) -> str:
        """Why the request's tools cannot be called through another tool; empty if they can."""
        ...

    def offer(self, tool: CallTool) -> bytes:
        """The tool as an entry of the request's array of tools."""
        ...

    def tools(self, request: LlmRequest, entry: bytes) -> list[Edit]:
        """Replaces the tools of the request, except those that stay, by this entry."""
        ...

    def calls(self, request: LlmRequest, own: str) -> list[Edit]:
        """Turns calls in the history into calls of ``own``, and their results into its results."""
        ...

    def spots(self, request: LlmRequest) -> Sequence[Spot]:
        """One spot for each message in which the user says something, in order."""
        ...

    def translated(self, answer: Document, reader: Reader) -> Document:
        """A complete answer with native calls; the same object if it has no call to translate."""
        ...

    def translator(self, reader: Reader) -> Translator: ...


def unfit(request: LlmRequest) -> str:
    """Why tools of a request cannot be called through another tool; empty if all can.

    A provider only enforces what it sees in a definition.
    """
    for tool in request.tools:
        if tool.stays or not any(word in tool.definition for word in UNFIT_WORDS):
            continue
        said = object_of(read(request.text[slice(*tool.span)]))
        if said.get("strict") is True or object_of(said.get("function")).get("strict") is True:
            return f"{tool.name!r} is strict"
        if text_of(said.get("type")) == "custom" and "input_schema" not in said:
            return f"{tool.name!r} takes free text"
        if said.get("allowed_callers"):
            return f"{tool.name!r} is called by other tools"
    return ""
