"""Converts LangChain's tools into the board's, and the board's into LangChain's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from pegboard.gateways.langchain.shaped_messages import conversation_of
from pegboard.library import Board
from pegboard.library.board_results import READ_RESULT
from pegboard.library.given_tools import AGENT
from pegboard.model import JsonObject, Result, Tool, ToolId
from pegboard.wire_formats import ANYTHING

RUNTIME = "runtime"
"""An argument of this name is injected whether it is annotated or not; LangChain hides it from models only if it is."""


def board_tool(tool: BaseTool) -> Tool:
    """A registered tool as the model sees it: without injected arguments."""
    function = convert_to_openai_tool(tool)["function"]
    schema = function.get("parameters") or dict(ANYTHING)
    definition = {
        "name": tool.name,
        "description": function.get("description", ""),
        "inputSchema": schema if isinstance(tool.args_schema, dict) else _without(RUNTIME, schema),
    }
    return Tool(
        id=ToolId(AGENT, tool.name),
        description=definition["description"],
        input_schema=definition["inputSchema"],
        definition=definition,
    )


def _without(name: str, schema: JsonObject) -> dict[str, Any]:
    said = dict(schema)
    said["properties"] = {each: of for each, of in (schema.get("properties") or {}).items() if each != name}
    if "required" in schema:
        said["required"] = [each for each in schema["required"] if each != name]
    return said


def fitting(tool: BaseTool | None, arguments: JsonObject) -> JsonObject:
    """The arguments coerced to the tool's own schema as LangChain does it, such as "41" to an integer; unchanged if
    that fails.

    Only used for the check: the tool is called with the model's arguments, and LangChain coerces them again.
    """
    schema = _own_model(tool)
    if schema is None:
        return arguments
    try:
        fits = schema.model_validate(dict(arguments)).model_dump(mode="json", by_alias=True, exclude_unset=True)
    except (ValidationError, PydanticSerializationError):
        return arguments
    return {**arguments, **fits}


def is_refused_by(tool: BaseTool | None, arguments: JsonObject) -> bool:
    """Whether LangChain itself refuses these arguments: it checks those of tools whose schema is a class."""
    schema = _own_model(tool)
    if schema is None:
        return False
    try:
        schema.model_validate(dict(arguments))
    except ValidationError:
        return True
    return False


def _own_model(tool: BaseTool | None) -> type[BaseModel] | None:
    schema = None if tool is None or isinstance(tool.args_schema, dict) else tool.tool_call_schema
    return schema if isinstance(schema, type) and issubclass(schema, BaseModel) else None


class BoardTool(BaseTool):
    """A tool of the board, which calls its function or server. Arguments come as one mapping, so they may have any
    names, including those that LangChain uses itself. Results are whole: the middleware shapes those of all tools."""

    board: Any
    id: Any
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: bool | str | Callable[[ToolException], str] | None = True

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self._parse_input(tool_input, tool_call_id),), {}

    def _run(self, arguments: dict[str, Any], /, *, config: RunnableConfig) -> tuple[Any, Result]:
        if self.id == READ_RESULT:
            return _answer(self.board.results.read_now(arguments, session=conversation_of(config)))
        return _answer(self.board.call_now(self.id, arguments, results="whole"))

    async def _arun(self, arguments: dict[str, Any], /, *, config: RunnableConfig) -> tuple[Any, Result]:
        if self.id == READ_RESULT:
            return _answer(await self.board.results.read(arguments, session=conversation_of(config)))
        return _answer(await self.board.call(self.id, arguments, results="whole"))


def langchain_tool(tool: Tool, name: str, board: Board) -> BaseTool:
    """A tool of the board as the model sees it."""
    return BoardTool(
        name=name,
        description=tool.description or tool.name,
        args_schema=dict(tool.input_schema or ANYTHING),
        board=board,
        id=tool.id,
    )


def _answer(result: Result) -> tuple[Any, Result]:
    """The content for the model, and the whole result for programs. Raises ToolException for an error."""
    if result.is_error:
        raise ToolException(result.text)
    if all(block.get("type") == "text" for block in result.content):
        return result.text, result
    return [_block(block) for block in result.content], result


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    """An MCP content block in LangChain's form; unknown kinds become text."""
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
