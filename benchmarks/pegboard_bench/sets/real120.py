"""real120: 120 tools of six kinds of real servers, the testbed of Tool Attention rebuilt without invented tools."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from pegboard_bench.sets import go_tools, graphtoolcall, mcpproxy_golden
from pegboard_bench.sets.mcpverse_servers import STARTED
from pegboard_bench.sets.python_tools import Definition
from pegboard_bench.sets.recipe import (
    CATALOG,
    LISTING,
    QUERIES,
    Converted,
    Files,
    Package,
    Recipe,
    Repository,
    Row,
    Source,
    Sources,
    tool,
)

CORE_CATALOG = "catalog_core.jsonl.gz"
CORE_QUERIES = "queries_core.jsonl.gz"
SNAPSHOTS = "pkg/github/__toolsnaps__"
SLACK = "pkg/server/server.go"
SOURCES: dict[str, Source] = {
    **mcpproxy_golden.RECIPE.sources,
    **graphtoolcall.RECIPE.sources,
    "github": Repository(
        name="github/github-mcp-server",
        commit="64a49f34d076b6f5917dae1424521d43c7bcae84",
        date="2026-08-20",
        licence="MIT",
    ),
    "slack": Repository(
        name="korotovsky/slack-mcp-server",
        commit="b24b1b08af740d5c710f556d45a5b8ba3acc0ebc",
        date="2026-03-03",
        licence="MIT",
    ),
    "filesystem": STARTED["filesystem"],
    "fetch": STARTED["fetch"],
    "mongodb": Package(
        registry="npm",
        name="mongodb-mcp-server",
        version="3.0.4",
        program="mongodb-mcp-server",
        licence="Apache-2.0",
        variables={"MDB_MCP_TELEMETRY": "disabled"},
    ),
    "playwright": Package(
        registry="npm", name="@playwright/mcp", version="0.0.83", program="playwright-mcp", licence="Apache-2.0"
    ),
    "jira": Package(
        registry="pypi",
        name="mcp-atlassian",
        version="0.23.1",
        program="mcp-atlassian",
        licence="MIT",
        variables={"JIRA_URL": "https://jira.invalid", "JIRA_PERSONAL_TOKEN": "none"},
    ),
}

ABOUT = {
    "github": "GitHub's official MCP server",
    "filesystem": "Node.js server implementing Model Context Protocol (MCP) for filesystem operations.",
    "mongodb": "MongoDB MCP Server",
    "slack": None,
    "fetch": "A Model Context Protocol server that provides web content fetching capabilities.",
    "playwright": "A Model Context Protocol (MCP) server that provides browser automation capabilities using "
    "Playwright.",
    "jira": "mcp-atlassian (Jira part)",
}
"""What is said of each server."""
BORROWED = (("mcpproxy", mcpproxy_golden.RECIPE), ("gtc", graphtoolcall.RECIPE))
"""The sets whose queries are taken, by the first part of their ids here."""
PLACES = {"filesystem": "filesystem", "github": "github", "playwright": "web", "fetch": "web"}
"""Servers of those sets, and where their tools are here."""

FIELDS = "status,assignee,description,summary,versions,issuetype,updated,labels,priority,created,reporter"
"""Jira's default fields in the order of the figures: its server takes them from a set."""


def convert(sources: Sources) -> Converted:
    found = {
        "github": _snapshots(sources["github"]),
        "slack": _by_name(go_tools.definitions(sources["slack"].text(SLACK))),
        **{name: _listed(sources[name]) for name in ("filesystem", "fetch", "mongodb", "playwright")},
        "jira": _as_written(_listed(sources["jira"])),
    }
    chosen = tomllib.loads(files("pegboard_bench.sets").joinpath("real120.toml").read_text("utf-8"))
    borrowed = [(prefix, recipe.name, recipe.convert(sources).files[QUERIES]) for prefix, recipe in BORROWED]
    near = _catalog(chosen["near"], found)
    core = _catalog(chosen["core"], found)
    return Converted(
        files={
            CATALOG: near,
            QUERIES: list(_queries(borrowed, near)),
            CORE_CATALOG: core,
            CORE_QUERIES: list(_queries(borrowed, core)),
        },
        left_out=["Requests for Slack, Jira and the database: no source has any."],
    )


def _catalog(chosen: Sequence[Mapping[str, Any]], found: Mapping[str, Mapping[str, Definition]]) -> list[Row]:
    return [
        tool(each["server"], ABOUT[each["upstream"]], *found[each["upstream"]][name])
        | {"upstream_server": each["upstream"]}
        for each in chosen
        for name in each["tools"]
    ]


def _queries(borrowed: Iterable[tuple[str, str, Sequence[Row]]], catalog: Sequence[Row]) -> Iterator[Row]:
    """The queries whose every label is a tool of the catalog, with the names of this set."""
    known = {(row["server"], row["name"]) for row in catalog}
    for prefix, origin, rows in borrowed:
        for row in rows:
            labels = [(PLACES.get(server), name) for server, name in row["relevant"]]
            if all(label in known for label in labels):
                renamed = {"id": f"{prefix}:{row['id']}", "relevant": [list(label) for label in labels]}
                yield row | renamed | {"category": origin}


def _snapshots(repository: Files) -> dict[str, Definition]:
    """The wire definitions that the server's own tests compare with; the file of a tool's own name comes first."""
    paths = sorted(repository.paths(SNAPSHOTS), key=lambda path: "_ff_" in path)
    tools: dict[str, Definition] = {}
    for content in repository.read_all(paths):
        each = json.loads(content)
        tools.setdefault(each["name"], (each["name"], each["description"], each["inputSchema"]))
    return tools


def _listed(package: Files) -> dict[str, Definition]:
    tools = package.json(LISTING)["tools"]
    return _by_name((each["name"], each.get("description") or "", each["inputSchema"]) for each in tools)


def _as_written(tools: Mapping[str, Definition]) -> dict[str, Definition]:
    """Jira's tools as its server's functions say: optional parameters may be null, which the server leaves out when it
    lists them."""
    found = {}
    for name, text, schema in tools.values():
        properties = {key: _parameter(key, value) for key, value in schema.get("properties", {}).items()}
        found[name] = (name, text, {key: properties if key == "properties" else schema[key] for key in schema})
    return found


def _parameter(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    if name == "fields" and sorted(str(schema.get("default")).split(",")) == sorted(FIELDS.split(",")):
        return {**schema, "default": FIELDS}
    if "default" in schema and schema["default"] is None and "type" in schema:
        kind = {key: schema[key] for key in schema if key not in ("default", "description", "title", "examples")}
        rest = {key: schema[key] for key in schema if key not in kind}
        return {"anyOf": [kind, {"type": "null"}], **rest}
    return dict(schema)


def _by_name(definitions: Iterable[Definition]) -> dict[str, Definition]:
    return {definition[0]: definition for definition in definitions}


RECIPE = Recipe(
    name="real120",
    title="real120: six kinds of real servers, 120 tools",
    sources=SOURCES,
    convert=convert,
    licence="MIT and Apache-2.0",
    redistributable=True,
    conversion="The testbed of Tool Attention (table 2) with real tools instead of generated ones: GitHub 30 (the "
    "snapshots of its server's own tests), filesystem 10, database 20 (MongoDB), Slack 15 (read from "
    "its Go source, as its server lists nothing without a workspace), web 10 (Playwright 9, fetch 1) "
    "and Jira 35 (mcp-atlassian). `catalog.jsonl.gz` has the tools whose token sums come nearest to the "
    "paper's, `catalog_core.jsonl.gz` the most central of each server; which those are is our choice "
    "(`real120.toml`, CC-BY-4.0). Queries are borrowed from mcpproxy_golden and graphtoolcall where "
    "every label is a tool here.",
    noise="Real schemas are smaller than the paper's averages: only the database and the web reach them. "
    "Queries cover the filesystem, the web and GitHub alone.",
)
