"""The tools of LiveMCPBench and what its annotators wrote, shared by the sets that are made of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pegboard_bench.sets.recipe import Files, Repository, Row, tool

REPOSITORY = Repository(
    name="icip-cas/LiveMCPBench",
    commit="a928e57d1ee7a25579b9a7036030faffff72d15b",
    date="2025-08-18",
    licence="Apache-2.0",
)
SOURCE = "LiveMCPBench"
LICENCE = "Apache-2.0"
TOOLS = "tools/LiveMCPTool/tools.json"
TASKS = "annotated_data/all_annotations.json"
TRACES = "baseline/output/claude-sonnet-4-20250514_Qwen3-Embedding-0.6B.json"

Pair = tuple[str, str]
"""Server and name."""

INTERCHANGEABLE = frozenset({"desktop-commander", "filesystem"})
"""Servers whose tools of one name do the same."""

NUMBER = re.compile(r"^\s*\d+\.\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What one task needs: certain tools, groups of which one is needed (``uncertain`` are those that no certain tool
    belongs to), names that no tool has."""

    relevant: tuple[Pair, ...]
    any_of: tuple[tuple[Pair, ...], ...]
    uncertain: tuple[tuple[Pair, ...], ...]
    unknown: tuple[str, ...]


def catalog(files: Files) -> list[Row]:
    return [
        tool(server, entry["description"], each["name"], each["description"], each["inputSchema"])
        for entry in files.json(TOOLS)
        for server, listed in entry["tools"].items()
        for each in listed["tools"]
    ]


def owners(rows: Iterable[Row]) -> dict[str, tuple[str, ...]]:
    """The servers of each name, sorted."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        found[row["name"]].add(row["server"])
    return {name: tuple(sorted(servers)) for name, servers in found.items()}


def listed(text: str) -> list[str]:
    """The lines of a numbered list, without numbers."""
    lines = (NUMBER.sub("", line).strip() for line in text.strip().splitlines())
    return [line for line in lines if line]


def labels(task: Mapping[str, Any], servers: Mapping[str, tuple[str, ...]], executed: Collection[Pair]) -> Labels:
    """The annotated names of a task as tools.

    A name of several servers is that of the only one that also has an annotated tool of a unique name, else of the only
    one whose tool the published agent executed, else a group.
    """
    names = list(dict.fromkeys(listed(task["Annotator Metadata"]["Tools"])))
    known = [name for name in names if name in servers]
    certain = {servers[name][0] for name in known if len(servers[name]) == 1}
    relevant: list[Pair] = []
    any_of: list[tuple[Pair, ...]] = []
    for name in known:
        server = _server(name, servers[name], certain, executed)
        if server is not None:
            relevant.append((server, name))
        if (group := _group(name, servers[name], server)) is not None:
            any_of.append(group)
    return Labels(
        relevant=tuple(relevant),
        any_of=tuple(any_of),
        uncertain=tuple(group for group in any_of if not set(group) & set(relevant)),
        unknown=tuple(name for name in names if name not in servers),
    )


def _server(name: str, candidates: tuple[str, ...], certain: Collection[str], executed: Collection[Pair]) -> str | None:
    if len(candidates) == 1:
        return candidates[0]
    for likely in (
        [server for server in candidates if server in certain],
        [server for server in candidates if (server, name) in executed],
    ):
        if len(likely) == 1:
            return likely[0]
    return None


def _group(name: str, candidates: tuple[str, ...], server: str | None) -> tuple[Pair, ...] | None:
    """Tools of which any one will do: all candidates of an uncertain name, or the interchangeable ones."""
    if server is None:
        return tuple((each, name) for each in candidates)
    return interchangeable(server, name, candidates)


def interchangeable(server: str, name: str, candidates: Iterable[str]) -> tuple[Pair, ...] | None:
    """The tools that do the same as this one, if there are others."""
    if server not in INTERCHANGEABLE:
        return None
    same = tuple((each, name) for each in candidates if each in INTERCHANGEABLE)
    return same if len(same) > 1 else None
