"""One board of the tools of many catalogs: scored sets on it show what ranking is worth among thousands of tools.

Copies of one tool stand in several catalogs. Copies of a labelled tool answer its query as well as it does; tools of
the other catalogs that copy a tool of the sets are left out, so that no unlabelled copy takes a place.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pegboard.catalog import Catalog
from pegboard.catalog.ingest import read_catalog
from pegboard.evaluation.datasets import CATALOG, Query, ToolSet
from pegboard.model import Server, Tool, ToolId
from pegboard.retrieval.tool_texts import full

OTHERS = ("catalog_klavis", "catalog_docker", "catalog_toolsdk")
"""Catalogs without queries."""
ALIKE = 0.4
"""Tools of one name whose descriptions share this part of their words (Jaccard) are copies of each other."""
WORD = re.compile(r"\w+")


class Copies:
    """Finds the copies of a tool among these: the same name, whatever its spelling, and a similar description."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._by_name: defaultdict[str, list[Tool]] = defaultdict(list)
        for tool in tools:
            self._by_name[_compact(tool.name)].append(tool)

    def of(self, tool: Tool) -> Iterator[ToolId]:
        asked = _words(tool)
        for other in self._by_name.get(_compact(tool.name), ()):
            known = _words(other)
            if asked == known or len(asked & known) >= ALIKE * len(asked | known):
                yield other.id


def wide_sets(data: Path, sets: Sequence[ToolSet], *, longest: int = 0) -> list[ToolSet]:
    """The same queries on one board: the tools of all sets, and those of the catalogs `OTHERS` that copy none.

    Of the latter only those whose text has fewer than ``longest`` characters, if that is not 0.
    """
    scored = _together([each.catalog for each in sets])
    copies = Copies([tool for _, tools in scored.values() for tool in tools])
    others = [read_catalog(data / name / CATALOG) for name in OTHERS if (data / name / CATALOG).is_file()]
    kept = [_kept(other, copies, longest) for other in others]
    catalog = Catalog.build(_together([Catalog.build(scored.values()), *kept]).values())
    return [
        ToolSet(
            name=each.name,
            catalog=catalog,
            queries=tuple(_asked(query, each.catalog, copies) for query in each.queries),
        )
        for each in sets
    ]


def _together(catalogs: Sequence[Catalog]) -> Mapping[str, tuple[Server, list[Tool]]]:
    """The tools of each server, from all catalogs that have it; of two tools with one id the first stays."""
    found: dict[str, tuple[Server, list[Tool]]] = {}
    known: set[ToolId] = set()
    for tool, server in ((tool, catalog.servers[tool.server]) for catalog in catalogs for tool in catalog.tools):
        if tool.id not in known:
            known.add(tool.id)
            found.setdefault(server.name, (server, []))[1].append(tool)
    return found


def _kept(catalog: Catalog, copies: Copies, longest: int) -> Catalog:
    short = [tool for tool in catalog.tools if not longest or len(full(tool)) < longest]
    kept = [tool for tool in short if next(copies.of(tool), None) is None]
    return replace(catalog, tools=tuple(kept))


def _asked(query: Query, catalog: Catalog, copies: Copies) -> Query:
    """The query with the copies of its tools among its answers."""
    groups = tuple(tuple(dict.fromkeys((tool, *copies.of(catalog[tool])))) for tool in query.relevant)
    either = tuple(
        tuple(dict.fromkeys(copy for tool in group for copy in (tool, *copies.of(catalog[tool]))))
        for group in query.any_of
    )
    grouped = {tool for group in query.any_of for tool in group}
    single = tuple(group for group, tool in zip(groups, query.relevant, strict=True) if tool not in grouped)
    return replace(query, any_of=(*either, *single))


def _compact(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _words(tool: Tool) -> frozenset[str]:
    return frozenset(WORD.findall(tool.description.casefold()))
