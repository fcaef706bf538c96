"""The catalog: an immutable snapshot of every server's tools, in one fixed order."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from pegboard.catalog.names import PlainNames
from pegboard.catalog.summaries import summarize
from pegboard.catalog.tokens import BpeCounter, canonical_text
from pegboard.errors import CatalogError
from pegboard.model import Fingerprint, JsonObject, Server, Tool, ToolId
from pegboard.protocols import TokenCounter

SETS = frozenset({"required", "enum", "type"})
"""Keywords of JSON Schema whose arrays have no order."""


def fingerprint(tool: Tool) -> Fingerprint:
    """SHA-256 over everything in a tool: a change of type, enum or annotation is a change (M5).

    The order of keys does not count, nor that of arrays that are sets in JSON Schema: some servers change it with each
    start.
    """
    everything = {
        "id": list(tool.id),
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": tool.annotations,
        "category": tool.category,
        "aliases": tool.aliases,
        "definition": tool.definition,
    }
    return Fingerprint(hashlib.sha256(_canonical(ordered(everything))).hexdigest())


def server_fingerprint(server: Server) -> Fingerprint:
    """SHA-256 over a server's texts for models; not its version, which changes with every release."""
    return Fingerprint(hashlib.sha256(_canonical([server.title, server.instructions])).hexdigest())


def _canonical(value: object) -> bytes:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "surrogatepass")


def ordered(value: Any, key: str = "") -> Any:
    """A definition, or its part under a key, with the arrays that are sets sorted."""
    if isinstance(value, Mapping):
        return {name: ordered(each, name) for name, each in value.items()}
    if isinstance(value, list | tuple):
        parts = [ordered(each) for each in value]
        return sorted(parts, key=_canonical) if key in SETS else parts
    return value


@dataclass(frozen=True)
class Catalog:
    """Servers in the order they were configured, each with its tools in the order it lists them.

    Compare two catalogs by `fingerprint`; build a changed one with `with_server` and `without_server`.

    >>> from pegboard.model import ServerName
    >>> from pegboard.testing import fake_tool
    >>> catalog = Catalog.build([(Server(name=ServerName("rail")), [fake_tool("timetable", server="rail")])])
    >>> len(catalog), ToolId("rail", "timetable") in catalog
    (1, True)
    """

    tools: tuple[Tool, ...]
    servers: Mapping[str, Server]
    counter: TokenCounter = field(default_factory=BpeCounter)

    @classmethod
    def build(cls, servers: Iterable[tuple[Server, Sequence[Tool]]], *, counter: TokenCounter | None = None) -> Catalog:
        """A catalog of these servers. Raises CatalogError if two tools share an id, or a tool names another server.

        >>> len(Catalog.build([]))
        0
        """
        counter = counter or BpeCounter()
        tools: list[Tool] = []
        known: dict[str, Server] = {}
        for server, of_server in servers:
            known[server.name] = server
            _check_owner(server, of_server)
            tools.extend(
                tool if tool.summary else replace(tool, summary=summarize(tool, counter)) for tool in of_server
            )
        catalog = cls(tools=tuple(tools), servers=MappingProxyType(known), counter=counter)
        if len(catalog.position) != len(tools):
            raise CatalogError(
                f"Duplicate tools: {_repeated(tools)}.",
                remedy="A server may list each tool name only once; rename one.",
            )
        return catalog

    def with_server(self, server: Server, tools: Sequence[Tool]) -> Catalog:
        """The catalog with this server added, or replaced in its place.

        >>> from pegboard.model import ServerName
        >>> list(Catalog.build([]).with_server(Server(name=ServerName("rail")), []).servers)
        ['rail']
        """
        groups = {name: (known, self.of_server(name)) for name, known in self.servers.items()}
        groups[server.name] = (server, tuple(tools))
        return Catalog.build(groups.values(), counter=self.counter)

    def without_server(self, name: str) -> Catalog:
        """The catalog without this server; unchanged if there is none of that name.

        >>> len(Catalog.build([]).without_server("rail").servers)
        0
        """
        groups = [(known, self.of_server(each)) for each, known in self.servers.items() if each != name]
        return Catalog.build(groups, counter=self.counter)

    def of_server(self, name: str) -> tuple[Tool, ...]:
        """The tools of a server, in the order it lists them.

        >>> Catalog.build([]).of_server("rail")
        ()
        """
        return tuple(tool for tool in self.tools if tool.server == name)

    def __getitem__(self, tool: ToolId) -> Tool:
        try:
            return self.tools[self.position[tool]]
        except KeyError:
            raise CatalogError(
                f"No tool {str(tool)!r} in the catalog.", remedy="Search for it by what it does."
            ) from None

    def __contains__(self, tool: object) -> bool:
        return tool in self.position

    def __len__(self) -> int:
        return len(self.tools)

    async def definition(self, tool: ToolId) -> JsonObject:
        """The tool's definition as it arrived (the in-memory DefinitionSource). Raises CatalogError for an unknown
        tool.

        >>> import asyncio
        >>> from pegboard.model import ServerName
        >>> from pegboard.testing import fake_tool
        >>> catalog = Catalog.build([(Server(name=ServerName("rail")), [fake_tool("timetable", server="rail")])])
        >>> asyncio.run(catalog.definition(ToolId("rail", "timetable")))["name"]
        'timetable'
        """
        return self[tool].definition

    @cached_property
    def position(self) -> Mapping[ToolId, int]:
        """Index of each tool in catalog order."""
        return MappingProxyType({tool.id: index for index, tool in enumerate(self.tools)})

    @cached_property
    def by_name(self) -> Mapping[str, tuple[Tool, ...]]:
        """Every tool with a name, in catalog order."""
        names: dict[str, list[Tool]] = {}
        for tool in self.tools:
            names.setdefault(tool.name, []).append(tool)
        return MappingProxyType({name: tuple(tools) for name, tools in names.items()})

    @cached_property
    def plain_names(self) -> Mapping[ToolId, str]:
        """A unique name for each tool that every provider accepts; models call tools by it."""
        return PlainNames(self.position)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Changes whenever any tool, any server or their order changes."""
        digest = hashlib.sha256()
        for server in self.servers.values():
            digest.update(repr((server.name, server.description, server.instructions, server.version)).encode())
        for tool in self.tools:
            digest.update(fingerprint(tool).encode())
        return Fingerprint(digest.hexdigest())

    @cached_property
    def token_counts(self) -> tuple[int, ...]:
        """τ_i: tokens of each tool's canonical definition (Tool Attention eq. 1)."""
        return tuple(self.counter.count([canonical_text(tool) for tool in self.tools]))


def counted_before(catalog: Catalog, before: Catalog) -> Catalog:
    """The catalog, which takes the token counts of unchanged tools from the one ``before`` it."""
    if "token_counts" in before.__dict__ and "token_counts" not in catalog.__dict__:
        known = {id(tool): count for tool, count in zip(before.tools, before.token_counts, strict=True)}
        new = [tool for tool in catalog.tools if id(tool) not in known]
        known |= dict(zip(map(id, new), catalog.counter.count([canonical_text(tool) for tool in new]), strict=True))
        catalog.__dict__["token_counts"] = tuple(known[id(tool)] for tool in catalog.tools)
    return catalog


def _check_owner(server: Server, tools: Sequence[Tool]) -> None:
    for tool in tools:
        if tool.server != server.name:
            raise CatalogError(
                f"Tool {str(tool.id)!r} is listed under server {server.name!r}.",
                remedy="A tool's id names the server that lists it.",
            )


def _repeated(tools: Iterable[Tool]) -> str:
    return ", ".join(str(tool) for tool, times in Counter(tool.id for tool in tools).items() if times > 1)
