"""The golden set of mcpproxy-go: 45 tools of seven reference servers, 47 graded queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.sets.recipe import CATALOG, QUERIES, Converted, Recipe, Repository, Sources, query, tool

CORPUS = "specs/083-discovery-profiler/datasets/corpus_v2.tools.json"
GOLDEN = "specs/065-evaluation-foundation/datasets/retrieval_golden_v1.json"
BEST = 2
"""The highest grade; 1 is an acceptable tool, 0 a hard negative."""


def convert(sources: Sources) -> Converted:
    files = sources["mcpproxy-go"]
    catalog = [
        tool(each["server"], None, each["tool"], each["description"], each["schema"])
        for each in files.json(CORPUS)["tools"]
    ]
    queries = [query(each["id"], each["query"], _relevant(each)) for each in files.json(GOLDEN)["queries"]]
    return Converted(files={CATALOG: catalog, QUERIES: queries})


def _relevant(row: Mapping[str, Any]) -> list[list[str]]:
    """The best tools, or the acceptable ones where no tool is graded best."""
    for grade in (BEST, BEST - 1):
        if found := [label["tool_id"].split(":", 1) for label in row["labels"] if label["relevance"] == grade]:
            return found
    return []


RECIPE = Recipe(
    name="mcpproxy_golden",
    title="mcpproxy-go D1 golden set",
    sources={
        "mcpproxy-go": Repository(
            name="smart-mcp-proxy/mcpproxy-go",
            commit="20a3e5094ad613cf0b153648b19e13fd6ef1615d",
            date="2026-08-22",
            licence="MIT",
        )
    },
    convert=convert,
    licence="MIT",
    redistributable=True,
    conversion="`relevant` has the labels graded 2, and those graded 1 only where no 2 exists. Hard negatives "
    "(grade 0) are not carried over.",
    noise="Small; written by the vendor of a competing gateway, as its own regression set, by the rule that a "
    "query never names the tool. Very probably written with the help of a model. Its servers "
    "(filesystem, git, fetch, time) are among those of LiveMCPBench and MCPVerse too.",
)
