"""ToolSDK's MCP registry: names and descriptions that its maintainers got by starting the packages."""

from __future__ import annotations

from pegboard_bench.sets.recipe import CATALOG, Converted, Files, Recipe, Repository, Row, Sources, tool

INDEX = "indexes/packages-list.json"
SOURCE = "toolsdk-mcp-registry"
REPOSITORY = Repository(
    name="toolsdk-ai/toolsdk-mcp-registry",
    commit="4bfe8262c554f8fb866b48cce910dd6ba20eece1",
    date="2026-07-28",
    licence="MIT",
)


def convert(sources: Sources) -> Converted:
    files = sources[SOURCE]
    packages = files.json(INDEX)
    rows = tools(files)
    empty = sum(not entry.get("tools") for entry in packages.values())
    return Converted(
        files={CATALOG: rows},
        left_out=[f"{empty:,} of {len(packages):,} packages: the registry has no tools of them."],
    )


def tools(files: Files) -> list[Row]:
    """Every tool of the registry, in the order of its index."""
    import json

    listed = {name: entry for name, entry in files.json(INDEX).items() if entry.get("tools")}
    descriptions = files.read_all([f"packages/{entry['path']}" for entry in listed.values()])
    return [
        tool(name, json.loads(description).get("description"), each["name"], each.get("description"), None)
        for (name, entry), description in zip(listed.items(), descriptions, strict=True)
        for each in entry["tools"].values()
    ]


RECIPE = Recipe(
    name="catalog_toolsdk",
    title="ToolSDK MCP registry",
    sources={SOURCE: REPOSITORY},
    convert=convert,
    licence="MIT",
    redistributable=True,
    conversion="A catalog only. A server is the name of an npm or PyPI package; the registry publishes names and "
    "descriptions, no schemas.",
    noise="Real results of `tools/list`; many tiny or abandoned servers, and Chinese descriptions.",
)
