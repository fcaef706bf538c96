"""The catalog: an immutable snapshot of every server's tools, in one fixed order."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any, cast

from pegboard.cached_property import cached_property
from pegboard.catalog.names import PlainNames
from pegboard.catalog.summaries import summarize
from pegboard.catalog.tokens import BpeCounter, canonical_text
from pegboard.errors import CatalogError
from pegboard.model import Fingerprint, JsonObject, Server, Tool, ToolId
from pegboard.protocols import TokenCounter
from pegboard.sequence_change import SequenceChange, carried_over

ID, OWNER, SUMMARY = attrgetter("id"), attrgetter("id.server"), attrgetter("summary")
"""Read from thousands of tools without a step of Python for each."""
AT_ONCE = 512
"""Definitions that are written out at a time, to be counted."""
SETS = frozenset({"required", "enum", "type"})
"""Keywords of JSON Schema whose arrays have no order."""


def fingerprint(tool: Tool) -> Fingerprint:
    """SHA-256 over everything in a tool: a change of type, enum or annotation is a change (M5).

    The order of keys does not count, nor that of arrays that are sets in JSON Schema: some servers change it with each
    start.
    """
    if tool.fingerprint is None:
        object.__setattr__(tool, "fingerprint", _digest(tool))
    return cast("Fingerprint", tool.fingerprint)


def _digest(tool: Tool) -> Fingerprint:
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
    return Fingerprint(sys.intern(hashlib.sha256(_canonical(ordered(everything))).hexdigest()))


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
    def build(
        cls,
        servers: Iterable[tuple[Server, Sequence[Tool]]],
        *,
        counter: TokenCounter | None = None,
        before: Catalog | None = None,
    ) -> Catalog:
        """A catalog of these servers. Raises CatalogError if two tools share an id, or a tool names another server.

        ``before`` is an earlier catalog, of which as much is taken over as is the same.

        >>> len(Catalog.build([]))
        0
        """
        counter = counter or BpeCounter()
        groups: dict[str, tuple[Tool, ...]] = {}
        known: dict[str, Server] = {}
        for server, of_server in servers:
            known[server.name] = server
            if before is None or before.of_server(server.name) is not of_server:
                _check_owner(server, of_server)
                of_server = summarized(of_server, counter)
            groups[server.name] = groups.get(server.name, ()) + tuple(of_server)
        tools = tuple(chain.from_iterable(groups.values()))
        catalog = cls(tools=tools, servers=MappingProxyType(known), counter=counter)
        catalog.__dict__["_groups"] = groups
        if before is not None and before.tools == tools[: len(before)]:
            more = zip(map(ID, tools[len(before) :]), range(len(before), len(tools)), strict=True)
            catalog.__dict__["_places"] = before._places | dict(more)
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

    def with_token_counts(self, counts: Sequence[int]) -> Catalog:
        """The catalog, whose `token_counts`, in catalog order, are known: they are not counted again.

        >>> Catalog.build([]).with_token_counts([]).token_counts
        ()
        """
        if len(counts) != len(self):
            raise ValueError(f"{len(counts)} counts for {len(self)} tools")
        self.__dict__["token_counts"] = tuple(counts)
        return self

    def of_server(self, name: str) -> tuple[Tool, ...]:
        """The tools of a server, in the order it lists them.

        >>> Catalog.build([]).of_server("rail")
        ()
        """
        return self._groups.get(name, ())

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
    def derived(self) -> dict[Hashable, Any]:
        """What others compute from this catalog alone, by a key of theirs: in memory as long as the catalog, once for
        all boards that have it."""
        return {}

    @cached_property
    def _groups(self) -> Mapping[str, tuple[Tool, ...]]:
        groups: dict[str, list[Tool]] = {}
        for tool in self.tools:
            groups.setdefault(tool.server, []).append(tool)
        return {name: tuple(tools) for name, tools in groups.items()}

    @cached_property
    def position(self) -> Mapping[ToolId, int]:
        """Index of each tool in catalog order."""
        return MappingProxyType(self._places)

    @cached_property
    def ids(self) -> frozenset[ToolId]:
        """The id of every tool."""
        return frozenset(self._places)

    @cached_property
    def _places(self) -> dict[ToolId, int]:
        return dict(zip(map(ID, self.tools), range(len(self.tools)), strict=True))

    @cached_property
    def by_name(self) -> Mapping[str, tuple[Tool, ...]]:
        """Every tool with a name, in catalog order."""
        names: dict[str, list[Tool]] = {}
        for tool in self.tools:
            names.setdefault(tool.name, []).append(tool)
        return MappingProxyType({name: tuple(tools) for name, tools in names.items()})

    @cached_property
    def plain_names(self) -> PlainNames:
        """A unique name for each tool that every provider accepts; models call tools by it."""
        return PlainNames(self.position)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Changes whenever any tool, any server or their order changes."""
        digest = hashlib.sha256()
        for server in self.servers.values():
            digest.update(repr((server.name, server.description, server.instructions, server.version)).encode())
        digest.update("".join(self.fingerprints).encode())
        return Fingerprint(digest.hexdigest())

    @cached_property
    def fingerprints(self) -> tuple[Fingerprint, ...]:
        """That of each tool."""
        return tuple(map(fingerprint, self.tools))

    @cached_property
    def token_counts(self) -> tuple[int, ...]:
        """τ_i: tokens of each tool's canonical definition (Tool Attention eq. 1)."""
        return tuple(_counts(self.tools, self.counter))


def continued(catalog: Catalog, before: Catalog) -> Catalog:
    """The catalog, which takes what is known of unchanged tools from the one ``before`` it: fingerprints, token
    counts, names."""
    old, new = before.__dict__, catalog.__dict__
    if catalog is before:
        return catalog
    if "token_counts" in old and "token_counts" not in new:
        new["token_counts"] = carried_over(
            before.tools, before.token_counts, catalog.tools, lambda came: _counts(came, catalog.counter)
        )
    if "fingerprints" in old and "fingerprints" not in new:
        new["fingerprints"] = carried_over(
            before.tools, before.fingerprints, catalog.tools, lambda came: [fingerprint(tool) for tool in came]
        )
    if "plain_names" in old and before.plain_names.are_computed and "plain_names" not in new:
        change = SequenceChange.of(before.tools, catalog.tools)
        gone, came = (set(map(ID, change.middle(each.tools))) for each in (before, catalog))
        new["plain_names"] = PlainNames(catalog.position, before.plain_names, gone - came, came - gone)
    return catalog


def look_through(tools: Sequence[Tool], counter: TokenCounter) -> None:
    """Compute what a catalog needs to know of each tool. Run it on a thread: thousands take a second, and catalogs are
    built on the event loop (P25)."""
    _counts(tools, counter)
    for tool in tools:
        fingerprint(tool)


def with_labels(tool: Tool, **labels: Any) -> Tool:
    """The tool with another ``summary``, ``category`` or ``aliases``; the same one if these are its own. What was
    computed of it stays known: its tokens are those of its definition, and a summary is not in its fingerprint."""
    if all(getattr(tool, name) == value for name, value in labels.items()):
        return tool
    labelled = replace(tool, **labels)
    object.__setattr__(labelled, "counted", tool.counted)
    if labels.keys() == {"summary"}:
        object.__setattr__(labelled, "fingerprint", tool.fingerprint)
    return labelled


def _counts(tools: Sequence[Tool], counter: TokenCounter) -> list[int]:
    found = [tool.counted[1] if tool.counted is not None and tool.counted[0] == counter else None for tool in tools]
    new = [place for place, count in enumerate(found) if count is None]
    for start in range(0, len(new), AT_ONCE):
        part = new[start : start + AT_ONCE]
        for place, count in zip(part, counter.count([canonical_text(tools[each]) for each in part]), strict=True):
            found[place] = count
            object.__setattr__(tools[place], "counted", (counter, count))
    return [count for count in found if count is not None]


def summarized(tools: Sequence[Tool], counter: TokenCounter) -> tuple[Tool, ...]:
    """The tools, those without a summary with one; the same objects if all have one."""
    if all(map(SUMMARY, tools)):
        return tuple(tools)
    return tuple(tool if tool.summary else replace(tool, summary=summarize(tool, counter)) for tool in tools)


def _check_owner(server: Server, tools: Sequence[Tool]) -> None:
    if set(map(OWNER, tools)) <= {server.name}:
        return
    for tool in tools:
        if tool.server != server.name:
            raise CatalogError(
                f"Tool {str(tool.id)!r} is listed under server {server.name!r}.",
                remedy="A tool's id names the server that lists it.",
            )


def _repeated(tools: Iterable[Tool]) -> str:
    return ", ".join(str(tool) for tool, times in Counter(tool.id for tool in tools).items() if times > 1)
