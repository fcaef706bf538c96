"""real120: tools of six servers from four kinds of places, and queries borrowed from other sets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from git_mirrors import rows
from pegboard_bench.sets import go_tools, graphtoolcall, mcpproxy_golden, real120

Built = Callable[..., Path]

GO = """
const (
    ToolHistory = "conversations_history"
)
func tools() {
    s.AddTool(mcp.NewTool(ToolHistory, // the "first"
        mcp.WithDescription("Gets messages, " + `by channel ("id")`),
        mcp.WithReadOnlyHintAnnotation(true),
        mcp.WithString("limit",
            mcp.DefaultString("1d"),
            mcp.Description("How many, e.g. \\"50\\""),
        ),
        mcp.WithBoolean("all", mcp.Required(), mcp.DefaultBool(false)),
    ), handler)
    s.AddTool(mcp.NewTool("other"), handler)
}
"""
CHOSEN = """
[[near]]
server = "slack"
upstream = "slack"
tools = ["conversations_history"]
[[near]]
server = "web"
upstream = "playwright"
tools = ["browser_click"]
[[core]]
server = "github"
upstream = "github"
tools = ["get_me"]
"""

pytestmark = pytest.mark.requirement("bench.public-sets")


def test_go_calls_are_read_with_their_constants_joined_strings_and_defaults() -> None:
    history, other = go_tools.definitions(GO)

    assert history == (
        "conversations_history",
        'Gets messages, by channel ("id")',
        {
            "type": "object",
            "properties": {
                "limit": {"type": "string", "description": 'How many, e.g. "50"', "default": "1d"},
                "all": {"type": "boolean", "default": False},
            },
            "required": ["all"],
        },
    )
    assert other == ("other", "", {"type": "object", "properties": {}, "required": []})


def test_what_jiras_server_leaves_out_of_its_list_is_put_back() -> None:
    fields = ",".join(reversed(real120.FIELDS.split(",")))
    properties = {
        "fields": {"type": "string", "default": fields},
        "limit": {"default": None, "type": "integer", "minimum": 1},
    }
    listed = {"search": ("search", "Finds", {"properties": properties, "type": "object"})}

    assert real120._as_written(listed)["search"][2] == {
        "properties": {
            "fields": {"type": "string", "default": real120.FIELDS},
            "limit": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None},
        },
        "type": "object",
    }


def test_chosen_tools_and_queries_of_which_every_label_is_there_are_taken(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real120.toml").write_text(CHOSEN)
    monkeypatch.setattr(real120, "files", lambda _package: tmp_path)
    schema = {"type": "object"}
    files: dict[str, dict[str, Any]] = {
        name: {"tools": [{"name": "browser_click", "description": " Clicks ", "inputSchema": schema}]}
        for name in ("filesystem", "fetch", "mongodb", "playwright", "jira")
    }
    snapshot = {"name": "get_me", "description": "Me", "inputSchema": schema}
    files["github"] = {
        f"{real120.SNAPSHOTS}/get_me_ff_new.snap": snapshot | {"description": "Another me"},
        f"{real120.SNAPSHOTS}/get_me.snap": snapshot,
    }
    files["slack"] = {real120.SLACK: GO}
    golden = [{"id": "g", "query": "go", "labels": [{"tool_id": "git:log", "relevance": 2}]}]
    files["mcpproxy-go"] = {mcpproxy_golden.CORPUS: {"tools": []}, mcpproxy_golden.GOLDEN: {"queries": golden}}
    clicks = {"description": "", "tools": [{"name": "browser_click", "description": "c"}]}
    graph: dict[str, Any] = {f"benchmarks/mcp_tools/{server}.json": clicks for server in graphtoolcall.SERVERS}
    graph |= {f"benchmarks/specs/{name}.json": {"paths": {}} for name in graphtoolcall.SPECIFICATIONS.values()}
    graph |= {f"benchmarks/ground_truth/{name}.json": {"queries": []} for name in graphtoolcall.QUESTIONS}
    asked = [{"query": "Click it", "expected_tools": ["browser_click"]}]
    graph["benchmarks/ground_truth/playwright.json"] = {"queries": asked}
    files["graph-tool-call"] = graph
    folder = built(real120.RECIPE, files)

    near = rows(folder / "catalog.jsonl.gz")
    assert [(row["server"], row["name"], row["upstream_server"]) for row in near] == [
        ("slack", "conversations_history", "slack"),
        ("web", "browser_click", "playwright"),
    ]
    assert rows(folder / "catalog_core.jsonl.gz")[0]["description"] == "Me"
    assert rows(folder / "queries.jsonl.gz") == [
        {
            "id": "gtc:playwright-0",
            "query": "Click it",
            "relevant": [["web", "browser_click"]],
            "kind": "user",
            "category": "graphtoolcall",
        }
    ]
    assert rows(folder / "queries_core.jsonl.gz") == []
