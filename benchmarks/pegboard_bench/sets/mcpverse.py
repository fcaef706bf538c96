"""MCPVerse: questions that people wrote for real MCP servers, over what those servers list."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence

from pegboard_bench.sets.livemcp_catalog import Pair, owners
from pegboard_bench.sets.mcpverse_servers import MCPVERSE, SOURCES, catalog
from pegboard_bench.sets.recipe import CATALOG, QUERIES, Converted, Recipe, Repository, Sources, query

QUESTIONS = "mcpverse/data/mcpverse_benchmark.csv"
FULL = Repository(
    name=MCPVERSE.name,
    commit="8f091c15a343ce37461d3c2fbc4bc3d572a123aa",
    date="2025",
    licence=MCPVERSE.licence,
)
"""The commit with all 282 questions, before those that depend on time were taken out."""
CODE = "code * N"
"""The tool of tasks for a code interpreter."""
TIMES = re.compile(r"\s*\*\s*\d+\s*$")


def convert(sources: Sources) -> Converted:
    tools = catalog(sources)
    servers = owners(tools)
    queries = []
    unknown: Counter[str] = Counter()
    code = 0
    for row in csv.DictReader(io.StringIO(sources["questions"].text(QUESTIONS))):
        if row["tool"].strip() == CODE:
            code += 1
            continue
        named = [each.strip() for each in row["MCP"].split("+")]
        names = list(dict.fromkeys(TIMES.sub("", each).strip().split("/")[-1] for each in row["tool"].split("+")))
        labels = [_label(name, named, servers.get(name, ())) for name in names]
        unknown.update(f"{row['MCP']}:{name}" for name, label in zip(names, labels, strict=True) if label is None)
        if all(labels):
            known = [label for label in labels if label is not None]
            queries.append(query(row["question_id"], row["question"].strip(), known, category=row["complexity"]))
    return Converted(
        files={CATALOG: tools, QUERIES: queries},
        left_out=[
            f"{code} tasks for a code interpreter, which have no MCP tool.",
            *(f"{count} with the label {name!r}: no tool has the name." for name, count in unknown.items()),
        ],
    )


def _label(name: str, named: Sequence[str], candidates: Sequence[str]) -> Pair | None:
    """The tool of a named server, or the only tool of this name where the server's column is wrong."""
    for server in named:
        if server in candidates:
            return server, name
    return (candidates[0], name) if len(candidates) == 1 else None


RECIPE = Recipe(
    name="mcpverse",
    title="MCPVerse",
    sources={"questions": FULL, **SOURCES},
    convert=convert,
    licence="Apache-2.0 and MIT; variflight's server has no licence",
    redistributable=False,
    conversion="The repository publishes no lists of tools, so they come from: LiveMCPBench (25 servers), "
    "ToolSDK's registry (6, without schemas), the servers' own sources in the repository (4, parsed and "
    "not run), Toucan's crawl of Smithery (2), and what servers from npm and PyPI list when they are "
    "started (5). Nothing could be had of 23 other servers. A question is kept only if every tool of "
    "its solution was found; where the column of servers is wrong, the only tool of that name counts.",
    noise="L2 questions are two L1 questions one after the other, so that they overlap with them: use L1 and "
    "L3 for tests of significance. Several labels are odd (the number of branches: git_diff_unstaged). "
    "The texts of tools are of another day than the questions. Many servers are LiveMCPBench's too, so "
    "the tools are not independent of livemcp's; the questions are.",
)
