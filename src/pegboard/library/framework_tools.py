"""The tool objects of agent frameworks, told by the package of their class: none of these packages is imported here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from pegboard.library.named_arguments import Function, with_keywords
from pegboard.model import JsonObject

MOST_KINDS = 1024
"""Classes whose package is remembered: agents read the same few in every turn."""
ANY: JsonObject = {"type": "object", "properties": {}}


class FrameworkTool(NamedTuple):
    """What a model reads of a tool, and how to call it outside of its framework, if that is possible."""

    name: str
    description: str
    schema: JsonObject
    run: Function | None = None

    @property
    def definition(self) -> dict[str, Any]:
        """In the form of MCP's `tools/list`."""
        return {"name": self.name, "description": self.description, "inputSchema": self.schema}


def framework_tool(tool: object) -> FrameworkTool | None:
    """The tool of a framework; None for anything else, and for hosted tools, which have no schema to rank."""
    kind: Any = type(tool)
    return next((found for read in _readers_of(kind) if (found := read(tool)) is not None), None)


def packages_of(kind: type) -> Iterator[str]:
    """The packages of a class and of the classes that it derives from."""
    for each in kind.__mro__[:-1]:
        yield each.__module__.partition(".")[0]


@lru_cache(maxsize=MOST_KINDS)
def _readers_of(kind: type) -> tuple[Callable[[Any], FrameworkTool | None], ...]:
    """Several where a program's own package has the name of another framework's, such as `agents`."""
    return tuple(READERS[package] for package in dict.fromkeys(packages_of(kind)) if package in READERS)


def _openai_agents(tool: Any) -> FrameworkTool | None:
    if not hasattr(tool, "params_json_schema"):
        return None

    def run(arguments: JsonObject) -> Any:
        from agents.tool_context import ToolContext

        text = json.dumps(dict(arguments))
        context = ToolContext(None, tool_name=tool.name, tool_call_id="pegboard", tool_arguments=text)
        return tool.on_invoke_tool(context, text)

    return FrameworkTool(tool.name, tool.description or "", tool.params_json_schema or ANY, run)


def _pydantic_ai(tool: Any) -> FrameworkTool | None:
    """A `Tool`, a `ToolDefinition`, or a `ToolsetTool`; tools that need the context of a run are called by it alone."""
    if (schema := getattr(tool, "function_schema", None)) is not None:
        run = None if schema.takes_ctx else with_keywords(tool.function)
        return FrameworkTool(tool.name, tool.description or "", schema.json_schema, run)
    definition = getattr(tool, "tool_def", tool)
    if not hasattr(definition, "parameters_json_schema"):
        return None
    return FrameworkTool(definition.name, definition.description or "", definition.parameters_json_schema or ANY)


def _google(tool: Any) -> FrameworkTool | None:
    declare = getattr(tool, "_get_declaration", None)
    declaration = declare() if declare is not None else None
    if declaration is None:
        return None
    schema = declaration.parameters_json_schema
    if schema is None and declaration.parameters is not None:
        schema = declaration.parameters.json_schema.model_dump(mode="json", exclude_none=True, by_alias=True)
    run = with_keywords(tool.func) if hasattr(tool, "func") else None
    return FrameworkTool(tool.name, declaration.description or tool.description or "", schema or ANY, run)


def _llama_index(tool: Any) -> FrameworkTool | None:
    metadata: Any = getattr(tool, "metadata", None)
    if not hasattr(metadata, "get_parameters_dict"):
        return None

    async def run(arguments: JsonObject) -> Any:
        call = getattr(tool, "acall", None)
        output = await call(**arguments) if call is not None else tool(**arguments)
        return getattr(output, "raw_output", output)

    return FrameworkTool(metadata.get_name(), metadata.description or "", metadata.get_parameters_dict(), run)


def _autogen(tool: Any) -> FrameworkTool | None:
    if not hasattr(tool, "run_json"):
        return None

    def run(arguments: JsonObject) -> Any:
        from autogen_core import CancellationToken

        return tool.run_json(arguments, CancellationToken())

    schema = tool.schema
    return FrameworkTool(schema["name"], schema.get("description", ""), schema.get("parameters") or ANY, run)


def _agent_framework(tool: Any) -> FrameworkTool | None:
    if not hasattr(tool, "parameters") or not hasattr(tool, "invoke"):
        return None
    run = with_keywords(tool.func) if getattr(tool, "func", None) is not None else None
    return FrameworkTool(tool.name, tool.description or "", tool.parameters() or ANY, run)


def _crewai(tool: Any) -> FrameworkTool | None:
    if not hasattr(tool, "args_schema"):
        return None
    schema = tool.args_schema.model_json_schema() if tool.args_schema is not None else ANY
    return FrameworkTool(tool.name, _crewai_description(tool.description or ""), schema, with_keywords(tool.run))


def _crewai_description(text: str) -> str:
    """What the author wrote: crewai puts the name and the schema before it."""
    return text.rpartition("Tool Description: ")[2]


def _strands(tool: Any) -> FrameworkTool | None:
    specification = getattr(tool, "tool_spec", None)
    if not isinstance(specification, Mapping):
        return None
    schema = specification.get("inputSchema") or {}
    run = with_keywords(tool) if callable(tool) else None
    return FrameworkTool(tool.tool_name, specification.get("description", ""), schema.get("json", schema) or ANY, run)


def _haystack(tool: Any) -> FrameworkTool | None:
    if not hasattr(tool, "parameters") or not hasattr(tool, "invoke"):
        return None
    return FrameworkTool(tool.name, tool.description or "", tool.parameters or ANY, with_keywords(tool.invoke))


def _smolagents(tool: Any) -> FrameworkTool | None:
    inputs = getattr(tool, "inputs", None)
    if not isinstance(inputs, Mapping):
        return None
    properties = {name: {**said, "type": _json_type(said.get("type"))} for name, said in inputs.items()}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: {k: v for k, v in of.items() if v is not None} for name, of in properties.items()},
        "required": [name for name, said in inputs.items() if not said.get("nullable")],
    }
    return FrameworkTool(tool.name, tool.description or "", schema, with_keywords(tool))


def _json_type(kind: Any) -> Any:
    """smolagents writes `any` where JSON Schema says nothing."""
    return None if kind == "any" else kind


def _dspy(tool: Any) -> FrameworkTool | None:
    if not hasattr(tool, "func") or not hasattr(tool, "args"):
        return None
    schema = {"type": "object", "properties": dict(tool.args or {})}
    return FrameworkTool(tool.name, tool.desc or "", schema, with_keywords(tool))


READERS: Mapping[str, Callable[[Any], FrameworkTool | None]] = {
    "agent_framework": _agent_framework,
    "agents": _openai_agents,
    "autogen_core": _autogen,
    "crewai": _crewai,
    "dspy": _dspy,
    "google": _google,
    "haystack": _haystack,
    "llama_index": _llama_index,
    "pydantic_ai": _pydantic_ai,
    "smolagents": _smolagents,
    "strands": _strands,
}
"""Packages to what reads their tools."""
