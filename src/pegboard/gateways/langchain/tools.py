"""LangChain's tools as the board's, and the board's as LangChain's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool

from pegboard.library import Board
from pegboard.model import Result, Tool, ToolId
from pegboard.wire_formats import ANYTHING

AGENT = "agent"
"""The server that tools registered with the agent are of."""


def board_tool(tool: BaseTool) -> Tool:
    """A registered tool as the model sees it: without the arguments that are injected."""
    function = convert_to_openai_tool(tool)["function"]
    definition = {
        "name": tool.name,
        "description": function.get("description", ""),
        "inputSchema": function.get("parameters") or dict(ANYTHING),
    }
    return Tool(
        id=ToolId(AGENT, tool.name),
        description=definition["description"],
        input_schema=definition["inputSchema"],
        definition=definition,
    )


def langchain_tool(tool: Tool, name: str, board: Board) -> BaseTool:
    """A tool of the board's as the model is shown it, which calls its function or server."""

    def call_now(**arguments: Any) -> tuple[Any, Result]:
        return _answer(board.call_now(tool.id, arguments))

    async def call(**arguments: Any) -> tuple[Any, Result]:
        return _answer(await board.call(tool.id, arguments))

    return StructuredTool(
        name=name,
        description=tool.description or tool.name,
        args_schema=dict(tool.input_schema or ANYTHING),
        func=call_now,
        coroutine=call,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _answer(result: Result) -> tuple[Any, Result]:
    """The content that the model is given, and the whole result for programs. Raises ToolException for an error."""
    if result.is_error:
        raise ToolException(result.text)
    if all(block.get("type") == "text" for block in result.content):
        return result.text, result
    return [_block(block) for block in result.content], result


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block of MCP's content as LangChain has it; one that LangChain has not is told as text."""
    match block:
        case {"type": "text", "text": text}:
            return {"type": "text", "text": text}
        case {"type": "image" | "audio" as kind, "data": data, "mimeType": mime}:
            return {"type": kind, "base64": data, "mime_type": mime}
        case {"type": "resource", "resource": {"text": text}}:
            return {"type": "text", "text": text}
        case {"type": "resource_link", "uri": uri}:
            return {"type": "text", "text": str(uri)}
    return {"type": "text", "text": f"[{block.get('type')}]"}
