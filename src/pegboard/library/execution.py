"""Results and outcomes of executed calls."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import GeneratorType
from typing import Any, Literal

from pydantic_core import to_jsonable_python

from pegboard.errors import PegboardError, UpstreamError
from pegboard.model import Outcome, Result, ToolId

CONTAINERS = frozenset({dict, list, tuple, GeneratorType})
DEEPEST = 100
"""Levels of a value in which generators are looked for."""


def result_of_value(tool: ToolId, value: object) -> Result:
    """The result of a function: text as it is, anything else as JSON."""
    if isinstance(value, Result):
        return value
    plain = _plain(value)
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    return Result(tool=tool, content=({"type": "text", "text": text},), structured=plain)


def _plain(value: object) -> Any:
    """A value as JSON has it, whatever it is, as the function has run: bytes that are no text as what can be read of
    them, within other values as base64; what contains itself, or is too deep, as Python shows it.

    Raises what a generator raises: then the function has failed.
    """
    if isinstance(value, bytes | bytearray):
        return value.decode(errors="replace")
    known = _drained(value, ())
    for mode in ("utf8", "base64"):
        with suppress(ValueError, RecursionError):
            return to_jsonable_python(known, fallback=_said, bytes_mode=mode)
    return _as_text(value, repr)


def _drained(value: Any, within: tuple[int, ...]) -> Any:
    """A value with lists for its generators, which can be read but once. ``within`` are the ids of what contains it."""
    if type(value) not in CONTAINERS or id(value) in within or len(within) > DEEPEST:
        return value
    inside = (*within, id(value))
    if type(value) is dict:
        return {key: _drained(each, inside) if type(each) in CONTAINERS else each for key, each in value.items()}
    return [_drained(each, inside) if type(each) in CONTAINERS else each for each in value]


def _said(value: object) -> str:
    return _as_text(value, str)


def _as_text(value: object, convert: Callable[[object], str]) -> str:
    try:
        return convert(value)
    except Exception:  # noqa: BLE001 - whatever it raises, the function has run
        return object.__repr__(value)


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
