"""Names on the wire, where all tools share one flat list of names (M10-M12)."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

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
    """A unique name for each tool that every provider accepts, computed on first use."""

    def __init__(self, tools: Collection[ToolId]) -> None:
        self._tools = tools

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
    def _names(self) -> Mapping[ToolId, str]:
        wished = {tool: plain_name(tool.name) for tool in self._tools}
        names = WireNames.build(self._tools, limit=LONGEST_NAME, renamed=wished).of
        plain = {tool: plain_name(name) for tool, name in names.items()}
        uses = Counter(plain.values())
        return {tool: name if uses[name] == 1 else hashed(name, tool, LONGEST_NAME) for tool, name in plain.items()}
