"""Names on the wire, where all tools share one flat list of names (M10-M12)."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pegboard.cached_property import cached_property
from pegboard.model import ToolId
from pegboard.wire_formats import LONGEST_NAME, plain_name

SEPARATOR = "__"
PROTOCOL_LIMIT = 128
FORBIDDEN = re.compile(r"[^A-Za-z0-9_.-]")
HASH_LENGTH = 8
NOTHING: Mapping[ToolId, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class WireNames:
    """A reversible naming of tools. The server of a name is looked up, never parsed from it (M10).

    A unique name stays as it is. A name that several servers share, or that Pegboard uses itself, becomes
    ``server__name`` for each of them, so that the result does not depend on who connected first; so does a name that
    looks like another tool's ``server__name``. A configured name replaces the tool's own, under the same rules.
    """

    of: Mapping[ToolId, str]
    tool: Mapping[str, ToolId]
    shared: Mapping[str, tuple[ToolId, ...]]
    full: Mapping[str, ToolId]

    @classmethod
    def build(
        cls,
        tools: Iterable[ToolId],
        *,
        reserved: frozenset[str] = frozenset(),
        limit: int = PROTOCOL_LIMIT,
        renamed: Mapping[ToolId, str] = NOTHING,
    ) -> WireNames:
        """Names of at most ``limit`` characters, none of them ``reserved``; ``renamed`` has the configured names."""
        ids = list(tools)
        wished = {tool: renamed.get(tool, tool.name) for tool in ids}
        plain = {tool: fit(name, tool, limit) for tool, name in wished.items()}
        uses = Counter(plain.values())
        prefixed = {tool: fit(f"{tool.server}{SEPARATOR}{name}", tool, limit) for tool, name in wished.items()}
        taken = {name for name, times in uses.items() if times == 1} - reserved - set(prefixed.values())
        names = {tool: name if name in taken else prefixed[tool] for tool, name in plain.items()}
        while clashing := _clashing(names, reserved):
            names |= {tool: hashed(names[tool], tool, limit) for tool in clashing}
        shared: dict[str, list[ToolId]] = {}
        for tool in ids:
            for name in {tool.name, wished[tool]} - {names[tool]}:
                shared.setdefault(name, []).append(tool)
        return cls(
            of=MappingProxyType(names),
            tool=MappingProxyType({name: tool for tool, name in names.items()}),
            shared=MappingProxyType({name: tuple(of_name) for name, of_name in shared.items()}),
            full=MappingProxyType({str(tool): tool for tool in ids}),
        )

    def resolve(self, name: str) -> ToolId | None:
        """The tool of a wire name, of ``server/name``, or of an own or configured name that only one tool has."""
        if name in self.tool:
            return self.tool[name]
        if name in self.full:
            return self.full[name]
        candidates = self.shared.get(name, ())
        return candidates[0] if len(candidates) == 1 else None


def _clashing(names: Mapping[ToolId, str], reserved: frozenset[str]) -> list[ToolId]:
    """Tools whose name is not unique. A name that ends in its tool's own hash stays; one chosen to imitate it
    changes."""
    uses = Counter(names.values())
    return [
        tool
        for tool, name in names.items()
        if (uses[name] > 1 or name in reserved) and not name.endswith(f"_{identity_hash(tool)}")
    ]


def fit(name: str, tool: ToolId, limit: int) -> str:
    """The name in the protocol's characters, at most ``limit`` of them (MCP 2025-11-25, tool names)."""
    clean = FORBIDDEN.sub("_", name) or "_"
    return clean if len(clean) <= limit else hashed(clean, tool, limit)


def hashed(name: str, tool: ToolId, limit: int) -> str:
    """The start of the name and a hash of the tool's identity: a stable short form."""
    return f"{name[: limit - HASH_LENGTH - 1]}_{identity_hash(tool)}"


def identity_hash(tool: ToolId) -> str:
    return hashlib.sha256("\0".join(tool).encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]


class PlainNames(Mapping[ToolId, str]):
    """A unique name for each tool that every provider accepts, computed on first use, or changed from those ``before``
    it: the names of tools of which only ``gone`` and ``new`` ones differ."""

    def __init__(
        self,
        tools: Collection[ToolId],
        before: PlainNames | None = None,
        gone: Iterable[ToolId] = (),
        new: Iterable[ToolId] = (),
    ) -> None:
        self._tools = tools
        if before is not None and before.are_computed and before._distinct is not None:
            self._distinct = before._distinct.changed(gone, new)
            if self._distinct is not None:
                self.__dict__["_names"] = self._distinct.names

    @property
    def are_computed(self) -> bool:
        """Whether the names are known, so that they take no time."""
        return "_names" in self.__dict__

    def __getitem__(self, tool: ToolId) -> str:
        return self._names[tool]

    def __iter__(self) -> Iterator[ToolId]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __reduce__(self) -> tuple[type[dict[ToolId, str]], tuple[dict[ToolId, str]]]:
        """Pickled and copied as a plain dictionary, without the catalog."""
        return dict, (dict(self),)

    @cached_property
    def _distinct(self) -> DistinctNames | None:
        return DistinctNames({}, {}, frozenset(), {}).changed((), self._tools)

    @cached_property
    def _names(self) -> Mapping[ToolId, str]:
        if self._distinct is not None:
            return self._distinct.names
        wished = {tool: plain_name(tool.name) for tool in self._tools}
        names = WireNames.build(self._tools, limit=LONGEST_NAME, renamed=wished).of
        plain = {tool: plain_name(name) for tool, name in names.items()}
        uses = Counter(plain.values())
        return {tool: name if uses[name] == 1 else hashed(name, tool, LONGEST_NAME) for tool, name in plain.items()}


@dataclass(frozen=True, slots=True)
class DistinctNames:
    """The ``names`` of a catalog in which no tool needs a hash to be distinct, and all of them as a set, ``taken``.

    ``own`` has the tools of each plain name, ``prefixed`` how many tools have each name with their server's before it.
    """

    names: Mapping[ToolId, str]
    own: Mapping[str, tuple[ToolId, ...]]
    taken: frozenset[str]
    prefixed: Mapping[str, int]

    def changed(self, gone: Iterable[ToolId], new: Iterable[ToolId]) -> DistinctNames | None:
        """Those of a catalog from which tools went and to which others came; None if one would need a hash."""
        names, own, prefixed = dict(self.names), dict(self.own), dict(self.prefixed)
        taken, touched = set(self.taken), set[str]()
        for tool in gone:
            plain, full = _plain_and_full(tool)
            taken.discard(names.pop(tool))
            own[plain] = tuple(other for other in own[plain] if other != tool)
            prefixed[full] -= 1
            touched |= {plain, full}
        for tool in new:
            plain, full = _plain_and_full(tool)
            own[plain] = (*own.get(plain, ()), tool)
            prefixed[full] = prefixed.get(full, 0) + 1
            touched |= {plain, full}
        again = [(tool, plain) for plain in touched for tool in own.get(plain, ())]
        for tool, _ in again:
            taken.discard(names.pop(tool, ""))
        for tool, plain in again:
            alone = len(own[plain]) == 1 and not prefixed.get(plain)
            name = plain_name(plain if alone else _plain_and_full(tool)[1])
            if name in taken:
                return None
            taken.add(name)
            names[tool] = name
        return DistinctNames(names, {plain: tools for plain, tools in own.items() if tools}, frozenset(taken), prefixed)


def _plain_and_full(tool: ToolId) -> tuple[str, str]:
    """The tool's name as every provider accepts it, and with its server's before it."""
    wished = plain_name(tool.name)
    return fit(wished, tool, LONGEST_NAME), fit(f"{tool.server}{SEPARATOR}{wished}", tool, LONGEST_NAME)
