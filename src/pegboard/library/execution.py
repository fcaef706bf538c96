"""Results and outcomes of executed calls."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from pydantic_core import to_jsonable_python

from pegboard.errors import PegboardError, UpstreamError
from pegboard.model import Outcome, Result, ToolId


def result_of_value(tool: ToolId, value: object) -> Result:
    """The result of a function: text as it is, anything else as JSON."""
    if isinstance(value, Result):
        return value
    plain = _plain(value)
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    return Result(tool=tool, content=({"type": "text", "text": text},), structured=plain)


def _plain(value: object) -> Any:
    """A value as JSON has it, whatever it is, as the function has run: bytes that are no text as what can be read of
    them, within other values as base64; what contains itself as Python shows it."""
    if isinstance(value, bytes | bytearray):
        return value.decode(errors="replace")
    for mode in ("utf8", "base64"):
        with suppress(ValueError):
            return to_jsonable_python(value, fallback=str, bytes_mode=mode)
    return repr(value)


def result_of_server(tool: ToolId, answer: Mapping[str, Any]) -> Result:
    """The result of an MCP server, with all its content blocks (M7, M8)."""
    return Result(
        tool=tool,
        content=tuple(answer.get("content") or ()),
        structured=answer.get("structuredContent"),
        is_error=bool(answer.get("isError")),
    )


def result_of_error(tool: ToolId | None, error: Exception) -> Result:
    """An error as a result: Pegboard's own errors as JSON in the shape of Tool Attention §5.5, others by type and
    message."""
    said = (
        error.payload() if isinstance(error, PegboardError) else {"error": type(error).__name__, "message": str(error)}
    )
    text = json.dumps(said, ensure_ascii=False)
    return Result(tool=tool, content=({"type": "text", "text": text},), structured=None, is_error=True)


def outcome(tool: ToolId, seconds: float, *, failed: bool, error: Exception | None = None) -> Outcome:
    """The outcome for statistics: no answer counts as the server's failure, an error answer as the tool's."""
    fault: Literal["server", "tool"] = "server" if _never_answered(error) else "tool"
    return Outcome(tool=tool, success=not failed, latency_ms=seconds * 1000, failure=fault if failed else None)


def _never_answered(error: Exception | None) -> bool:
    """Does not import the MCP SDK: its errors can only occur once it is loaded. Earlier versions lack the name."""
    return isinstance(error, (UpstreamError, getattr(sys.modules.get("mcp"), "MCPError", UpstreamError)))


def is_control_flow(error: Exception) -> bool:
    """Whether an exception pauses or leaves a graph of LangGraph, as `interrupt` does: it is no failure, and has to
    reach the graph. Does not import LangGraph, as it can only occur once that is loaded."""
    kind = getattr(sys.modules.get("langgraph.errors"), "GraphBubbleUp", None)
    return kind is not None and isinstance(error, kind)
