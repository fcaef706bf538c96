"""The retrieval benchmark of graph-tool-call: short requests over MCP tools and two REST interfaces."""

from __future__ import annotations

from pegboard_bench.sets.openapi import operations
from pegboard_bench.sets.recipe import CATALOG, QUERIES, Converted, Files, Recipe, Repository, Row, Sources, query, tool

SERVERS = ("docker", "filesystem", "git", "github", "playwright", "shell")
SPECIFICATIONS = {"kubernetes": "k8s_core_v1", "github_rest": "github_subset"}
"""OpenAPI documents by the name of their server here."""
QUESTIONS = {
    "multi_mcp": ("playwright", "filesystem", "github"),
    "mixed_mcp": ("filesystem", "github"),
    "playwright": ("playwright",),
    "cli_agent": ("filesystem", "git", "docker", "shell", "github"),
    "k8s": ("kubernetes",),
    "github": ("github_rest",),
}
"""The servers that each file of questions is about."""


def convert(sources: Sources) -> Converted:
    files = sources["graph-tool-call"]
    tools = _tools(files)
    known = {(row["server"], row["name"]) for row in tools}
    queries = []
    left_out = []
    seen = set()
    for name, servers in QUESTIONS.items():
        for number, each in enumerate(files.json(f"benchmarks/ground_truth/{name}.json")["queries"]):
            labels = [
                (server, label) for label in each["expected_tools"] for server in servers if (server, label) in known
            ]
            asked = (each["query"].strip(), tuple(labels))
            if asked in seen:
                left_out.append(f"{name}-{number}: the same request is there already.")
            elif labels:
                seen.add(asked)
                queries.append(query(f"{name}-{number}", each["query"].strip(), labels, category=name))
            else:
                left_out.append(f"{name}-{number}: it has no label.")
    return Converted(files={CATALOG: tools, QUERIES: queries}, left_out=left_out)


def _tools(files: Files) -> list[Row]:
    rows = []
    for server in SERVERS:
        listed = files.json(f"benchmarks/mcp_tools/{server}.json")
        about = listed["description"]
        rows += [
            tool(server, about, each["name"], each["description"], each.get("inputSchema")) for each in listed["tools"]
        ]
    for server, name in SPECIFICATIONS.items():
        document = files.json(f"benchmarks/specs/{name}.json")
        rows += [
            tool(server, None, *operation)
            for operation in operations(document, keys=("type", "enum", "default"), bodies=True)
        ]
    return rows


RECIPE = Recipe(
    name="graphtoolcall",
    title="graph-tool-call retrieval benchmark",
    sources={
        "graph-tool-call": Repository(
            name="SonAIengine/graph-tool-call",
            commit="f8bec761d83993d77bd9c65940e7a0fbbd467cee",
            date="2026-08-18",
            licence="MIT",
        )
    },
    convert=convert,
    licence="MIT",
    redistributable=True,
    conversion="All sources are pooled into one catalog (their authors evaluate each file on its own). A label is "
    "looked up among the servers that the file of its question is about.",
    noise="Short imperative requests by the vendor of a competing product. Pooling makes `github` (MCP) "
    "ambiguous beside `github_rest`, and `git` beside `github`: evaluate a `category` over its own "
    "servers where that matters. The schemas of GitHub, filesystem, git, docker and shell are "
    "shortened, those of playwright whole.",
)
