"""What people have as tools: functions, schemas of any provider, catalogs. All become tools of one server, `local`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic_core import ArgsKwargs

from pegboard.catalog import Catalog
from pegboard.catalog.ingest import read_catalog, tools_of_any_format
from pegboard.errors import CatalogError
from pegboard.model import JsonObject, Server, ServerName, Tool, ToolId

LOCAL = "local"

Function = Callable[[JsonObject], Any]
"""Takes a call's arguments; gives a value, or something to await."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Tools, grouped by their servers, and for some of them what is done when they are called."""

    groups: tuple[tuple[Server, tuple[Tool, ...]], ...] = ()
    functions: Mapping[ToolId, Function] = field(default_factory=dict)


def given_tools(tools: object) -> Given:
    """The tools in a catalog, in a file of any known format, or in a sequence.

    In a sequence each is a function, whose signature and docstring describe it; a schema as any provider has it; such a
    schema and what to call with its arguments, in a pair; or a `Tool`. Raises CatalogError for anything else.
    """
    if isinstance(tools, Catalog):
        return Given(groups=_grouped(tools.tools, tools.servers))
    if isinstance(tools, str | Path):
        catalog = read_catalog(Path(tools))
        return Given(groups=_grouped(catalog.tools, catalog.servers))
    if not isinstance(tools, Iterable) or isinstance(tools, Mapping):
        raise CatalogError(
            f"Tools are given as {type(tools).__name__}.", remedy="Give a list of tools, a catalog, or a file's path."
        )
    found: list[Tool] = []
    functions: dict[ToolId, Function] = {}
    for each in tools:
        of_entry, function = _entry(each)
        found += of_entry
        if function is not None:
            functions[of_entry[0].id] = function
    return Given(groups=_grouped(found, {}), functions=functions)


def _entry(each: object) -> tuple[Sequence[Tool], Function | None]:
    match each:
        case Tool():
            return [each], None
        case (schema, function) if callable(function):
            tools = _schemas(schema)
            if len(tools) != 1:
                raise CatalogError(f"A function is given with {len(tools)} tools.", remedy="Give it with its own.")
            return tools, _keywords(function)
        case Mapping():
            return _schemas(each), None
        case _ if callable(each):
            return _function(each)
    raise CatalogError(
        f"A tool is given as {type(each).__name__}.", remedy="Give a function, a schema, a pair of both, or a Tool."
    )


def _schemas(schema: object) -> list[Tool]:
    return [schema] if isinstance(schema, Tool) else tools_of_any_format(LOCAL, [schema])


def _function(function: Callable[..., Any]) -> tuple[Sequence[Tool], Function]:
    """A function as a tool: its name, its docstring, and the schema of its arguments, by which they are converted."""
    name = getattr(function, "__name__", type(function).__name__)
    adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", function))
    definition = {
        "name": name,
        "description": inspect.getdoc(function) or "",
        "inputSchema": adapter.json_schema(),
    }
    return tools_of_any_format(LOCAL, [definition]), lambda said: adapter.validate_python(ArgsKwargs((), dict(said)))


def _keywords(function: Callable[..., Any]) -> Function:
    return lambda arguments: function(**arguments)


def _grouped(tools: Iterable[Tool], servers: Mapping[str, Server]) -> tuple[tuple[Server, tuple[Tool, ...]], ...]:
    groups: dict[str, list[Tool]] = {name: [] for name in servers}
    for tool in tools:
        groups.setdefault(tool.server, []).append(tool)
    return tuple(
        (servers.get(name) or Server(name=ServerName(name)), tuple(of_server)) for name, of_server in groups.items()
    )
