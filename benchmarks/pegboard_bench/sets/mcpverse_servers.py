"""Where the tools of MCPVerse's servers are had from: its repository does not publish them."""

from __future__ import annotations

from typing import Any

from pegboard_bench.sets import catalog_toolsdk, livemcp_catalog, python_tools
from pegboard_bench.sets.recipe import LISTING, Package, Repository, Row, Source, Sources, tool

LIVE = {
    "12306-mcp": "12306-mcp",
    "Bazi": "Bazi",
    "airbnb": "airbnb",
    "arxiv-mcp-server": "arxiv-mcp-server",
    "biomcp": "biomcp",
    "calculator": "calculator",
    "claudedesktopcommander": "desktop-commander",
    "context7": "Context7",
    "datagov": "datagov",
    "excel": "excel",
    "howtocook-mcp": "howtocook-mcp",
    "investor": "investor",
    "kospi-kosdaq": "kospi-kosdaq",
    "mcp-deepwiki": "mcp-deepwiki",
    "mcp-server-chart": "mcp-server-chart",
    "memory": "memory",
    "metmuseum-mcp": "met-museum",
    "mindmap": "mindmap",
    "opgg-mcp": "opgg-mcp",
    "simple-arxiv": "mcp-simple-arxiv",
    "time": "time",
    "whois": "whois",
    "wikipedia": "wikipedia",
    "wuwa-mcp": "wuwa-mcp",
    "yahoo-finance": "yahoo-finance",
}
"""Servers of LiveMCPBench, by their names in MCPVerse."""
REGISTERED = {
    "anilist": "anilist-mcp",
    "appinsightmcp": "@jeromyfu/app-insight-mcp",
    "bilibili": "@wangshunnn/bilibili-mcp-server",
    "mcp-server-hotnews": "@wopal/mcp-server-hotnews",
    "puppeteer": "@modelcontextprotocol/server-puppeteer",
    "weibo": "mcp-server-weibo",
}
"""Packages of ToolSDK's registry, which has no schemas."""
OWN = "mcpverse/servers"
OWN_SOURCES = {
    "dataset-viewer": ("dataset-viewer/src/dataset_viewer/server.py", python_tools.literals),
    "paper_search_server": ("paper-search-mcp/paper_search_mcp/server.py", python_tools.functions),
    "sqlite": ("sqlite/src/mcp_server_sqlite/server.py", python_tools.literals),
    "world_bank": ("world_bank_mcp_server/src/world_bank_mcp_server/server.py", python_tools.literals),
}
"""Servers whose source is in MCPVerse's repository."""
CRAWLED = {
    "mcp-visit-korea": "mcp_servers/0822.@pjookim_mcp-visit-korea_labeled.json",
    "mcp_weather_server": "mcp_servers/0113.@isdaniel_mcp_weather_server_labeled.json",
}
"""Servers that Toucan's authors asked on Smithery."""
MCPVERSE = Repository(
    name="SenseTime-FVG/mcpverse",
    commit="66d20f125bc732091c6e212b5eb729a54925e20a",
    date="2025-12-26",
    licence="Apache-2.0",
)
TOUCAN = Repository(
    name="TheAgentArk/Toucan", commit="a1976dea7688c0f36533aa6e3a3fa4c27e017b4b", date="2025-12-16", licence="MIT"
)
STARTED = {
    "amap-maps": Package(
        registry="npm",
        name="@amap/amap-maps-mcp-server",
        version="0.0.8",
        program="mcp-amap",
        licence="MIT",
        variables={"AMAP_MAPS_API_KEY": "none"},
    ),
    "fetch": Package(
        registry="pypi", name="mcp-server-fetch", version="2026.10.10", program="mcp-server-fetch", licence="MIT"
    ),
    "filesystem": Package(
        registry="npm",
        name="@modelcontextprotocol/server-filesystem",
        version="2026.8.31",
        program="mcp-server-filesystem",
        licence="MIT",
        arguments=("{folder}",),
    ),
    "git": Package(
        registry="pypi", name="mcp-server-git", version="2026.10.10", program="mcp-server-git", licence="MIT"
    ),
    "variflight": Package(
        registry="npm",
        name="@variflight-ai/variflight-mcp",
        version="1.0.3",
        program="variflight-mcp",
        licence="none given",
        variables={"X_VARIFLIGHT_KEY": "none"},
    ),
}
SOURCES: dict[str, Source] = {
    "mcpverse": MCPVERSE,
    livemcp_catalog.SOURCE: livemcp_catalog.REPOSITORY,
    catalog_toolsdk.SOURCE: catalog_toolsdk.REPOSITORY,
    "Toucan": TOUCAN,
    **STARTED,
}


def catalog(sources: Sources) -> list[Row]:
    """The tools of every server that can be had, by the names of the servers."""
    rows = [*_live(sources), *_registered(sources), *_own(sources), *_crawled(sources), *_started(sources)]
    return sorted(rows, key=lambda row: str(row["server"]))


def _live(sources: Sources) -> list[Row]:
    names = {theirs: ours for ours, theirs in LIVE.items()}
    rows = livemcp_catalog.catalog(sources[livemcp_catalog.SOURCE])
    return [row | {"server": names[row["server"]]} for row in rows if row["server"] in names]


def _registered(sources: Sources) -> list[Row]:
    names = {theirs: ours for ours, theirs in REGISTERED.items()}
    rows = catalog_toolsdk.tools(sources[catalog_toolsdk.SOURCE])
    return [
        row | {"server": names[row["server"]], "server_description": None} for row in rows if row["server"] in names
    ]


def _own(sources: Sources) -> list[Row]:
    files = sources["mcpverse"]
    return [
        tool(server, None, *definition)
        for server, (path, definitions) in OWN_SOURCES.items()
        for definition in definitions(files.read(f"{OWN}/{path}"))
    ]


def _crawled(sources: Sources) -> list[Row]:
    rows = []
    for server, path in CRAWLED.items():
        found = sources["Toucan"].json(path)["metadata"]
        about = found["server_info_crawled"]["overview"]
        rows += [
            tool(server, about, each["name"], each["description"], _as_stored(each["input_schema"]))
            for each in found["remote_server_response"]["tools"]
        ]
    return rows


def _as_stored(value: Any) -> Any:
    """A schema with its keys as Smithery gives them: by length, then by bytes (the order of PostgreSQL's jsonb)."""
    if isinstance(value, list):
        return [_as_stored(each) for each in value]
    if isinstance(value, dict):
        return {key: _as_stored(value[key]) for key in sorted(value, key=lambda key: (len(key.encode()), key.encode()))}
    return value


def _started(sources: Sources) -> list[Row]:
    return [
        tool(server, None, each["name"], each.get("description"), each["inputSchema"])
        for server in STARTED
        for each in sources[server].json(LISTING)["tools"]
    ]
