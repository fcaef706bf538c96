"""Tools that the caller passes: functions, schemas of any provider, tools of agent frameworks, catalogs.

Tools without a server belong to `local`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

from pydantic import PydanticUserError, TypeAdapter
from pydantic_core import ArgsKwargs

from pegboard.catalog import BpeCounter, Catalog, summarize
from pegboard.catalog.ingest import read_catalog, tools_of_any_format
from pegboard.errors import CatalogError
from pegboard.library.framework_tools import framework_tool
from pegboard.library.named_arguments import Function, by_name, check_names, with_keywords
from pegboard.model import Server, ServerName, Tool, ToolId

LOCAL = "local"
AGENT = "agent"
"""The server of tools that a LangChain agent has itself."""
ID = attrgetter("id")


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenTools:
    """Tools grouped by server, and the functions that execute some of them."""

    groups: tuple[tuple[Server, tuple[Tool, ...]], ...] = ()
    functions: Mapping[ToolId, Function] = field(default_factory=dict)


def given_tools(tools: object) -> GivenTools:
    """The tools of a catalog, a file in any known format, or a sequence.

    Each element of a sequence is a function, described by its signature and docstring; a schema in any provider's form;
    a pair of a schema and a callable; a `Tool`; or a tool of an agent framework. Raises CatalogError for anything else.
    """
    if isinstance(tools, GivenTools):
        return tools
    if isinstance(tools, Catalog):
        return GivenTools(groups=_grouped(tools.tools, tools.servers))
    if isinstance(tools, str | Path):
        catalog = read_catalog(Path(tools))
        return GivenTools(groups=_grouped(catalog.tools, catalog.servers))
    if not isinstance(tools, Iterable) or isinstance(tools, Mapping):
        raise CatalogError(
            f"Tools were given as {type(tools).__name__}.", remedy="Give a list of tools, a catalog, or a file path."
        )
    found: list[Tool] = []
    functions: dict[ToolId, Function] = {}
    for each in tools:
        of_entry, function = _entry(each)
        found += of_entry
        if function is not None:
            functions[of_entry[0].id] = function
    return GivenTools(groups=_grouped(found, {}), functions=functions)


def joined(given: GivenTools, more: GivenTools) -> GivenTools:
    """Both; a tool of ``more`` replaces one of the same id in its place."""
    groups = {server.name: (server, tools) for server, tools in given.groups}
    for server, tools in more.groups:
        known, before = groups.get(server.name, (server, ()))
        kept = dict(zip(map(ID, before), before, strict=True)) | {tool.id: tool for tool in tools}
        groups[server.name] = (known, tuple(kept.values()))
    functions = dict(given.functions)
    for tool in (tool for _, tools in more.groups for tool in tools):
        functions.pop(tool.id, None)
    return GivenTools(groups=tuple(groups.values()), functions=functions | dict(more.functions))


def without(given: GivenTools, names: Collection[str]) -> GivenTools:
    """The tools except those of these names or ids, or of one. Raises CatalogError for one that is not there."""
    asked = frozenset([names] if isinstance(names, str) else names)
    full = {ToolId(name[:at], name[at + 1 :]) for name in asked for at, sign in enumerate(name) if sign == "/"}
    ids = [tool for _, tools in given.groups for tool in map(ID, tools)]
    gone = {tool for tool in ids if tool.name in asked} | (full.intersection(ids) if full else set())
    if missing := asked - {each for tool in gone for each in (tool.name, str(tool))}:
        raise CatalogError(
            f"No tool of your own is named {', '.join(map(repr, sorted(missing)))}.",
            remedy="Remove tools by the names that you gave them.",
        )
    servers = {tool.server for tool in gone}
    groups = tuple(
        (server, tuple(tool for tool in tools if tool.id not in gone) if server.name in servers else tools)
        for server, tools in given.groups
    )
    functions = dict(given.functions)
    for tool in gone:
        functions.pop(tool, None)
    return GivenTools(groups=groups, functions=functions)


def _entry(each: object) -> tuple[Sequence[Tool], Function | None]:
    match each:
        case Tool():
            return [each], None
        case (schema, function) if callable(function):
            tools = _schemas(schema)
            if len(tools) != 1:
                raise CatalogError(f"A function was paired with {len(tools)} tools.", remedy="Pair it with one tool.")
            return tools, with_keywords(function)
        case Mapping():
            return _schemas(each), None
    if (of_framework := framework_tool(each)) is not None:
        return tools_of_any_format(LOCAL, [of_framework.definition]), of_framework.run
    if callable(each):
        return _function(each)
    raise CatalogError(
        f"A tool was given as {type(each).__name__}.",
        remedy="Give a function, a schema, a pair of both, a Tool, or a tool of an agent framework.",
    )


def _schemas(schema: object) -> list[Tool]:
    return [schema] if isinstance(schema, Tool) else tools_of_any_format(LOCAL, [schema])


def _function(function: Callable[..., Any]) -> tuple[Sequence[Tool], Function]:
    """A function as a tool: its name, its docstring, and the schema of its arguments, which also converts them. Raises
    CatalogError."""
    name, description = _described(function)
    called = _readable(function)
    check_names(called, name)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", by_name(called)))
        schema = adapter.json_schema()
    except (PydanticUserError, NameError, TypeError) as error:
        raise CatalogError(
            f"The function {name!r} has no schema: {str(error).partition('. ')[0]}.",
            remedy="Annotate its parameters with types that JSON has, or pair a schema with the function.",
        ) from error
    definition = {"name": name, "description": description, "inputSchema": schema}
    return tools_of_any_format(LOCAL, [definition]), lambda said: adapter.validate_python(ArgsKwargs((), dict(said)))


def _described(function: Callable[..., Any]) -> tuple[str, str]:
    """Its name and docstring: of a `partial` those that it was given, else its function's; of an object that can be
    called, without a name, its class's."""
    if not isinstance(function, partial):
        return getattr(function, "__name__", type(function).__name__), inspect.getdoc(function) or ""
    name, description = _described(function.func)
    own = vars(function)
    return own.get("__name__", name), inspect.cleandoc(own.get("__doc__") or description)


def _readable(function: Callable[..., Any]) -> Callable[..., Any]:
    """What pydantic can read, which is functions, methods and classes: of an object that can be called its `__call__`,
    also within a `partial`."""
    if isinstance(function, partial):
        return partial(_readable(function.func), *function.args, **function.keywords)
    if isinstance(function, type) or inspect.isroutine(function):
        return function
    return cast("Callable[..., Any]", cast("Any", function).__call__)


def _grouped(tools: Iterable[Tool], servers: Mapping[str, Server]) -> tuple[tuple[Server, tuple[Tool, ...]], ...]:
    """By server, each tool with its summary: catalogs of changed tools then have the same objects for the others."""
    groups: dict[str, list[Tool]] = {name: [] for name in servers}
    counter = BpeCounter()
    for tool in tools:
        summarized = tool if tool.summary else replace(tool, summary=summarize(tool, counter))
        groups.setdefault(tool.server, []).append(summarized)
    return tuple(
        (servers.get(name) or Server(name=ServerName(name)), tuple(of_server)) for name, of_server in groups.items()
    )
