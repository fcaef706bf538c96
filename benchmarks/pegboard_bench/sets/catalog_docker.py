"""Docker's MCP registry: the tools that it stores for servers that cannot be listed without configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from pegboard_bench.sets.recipe import CATALOG, Converted, Files, Recipe, Repository, Row, Sources, tool

SOURCE = "mcp-registry"
REPOSITORY = Repository(
    name="docker/mcp-registry", commit="818bf169b365e7b7d5b117352e32757c54844718", date="2026-07-08", licence="MIT"
)
FILE = "tools.json"
DESCRIPTION = re.compile(r"^  description: *(.+)$", re.MULTILINE)


def convert(sources: Sources) -> Converted:
    files = sources[SOURCE]
    listed = _listed(files)
    empty = [server for server, found in listed.items() if not found]
    return Converted(files={CATALOG: tools(files)}, left_out=[f"{len(empty)} servers whose {FILE} is empty."])


def tools(files: Files) -> list[Row]:
    rows = []
    for server, listed in _listed(files).items():
        if listed:
            about = _about(files.text(f"servers/{server}/server.yaml"))
            rows += [tool(server, about, each["name"], each["description"], _schema(each)) for each in listed]
    return rows


def _listed(files: Files) -> dict[str, list[Any]]:
    """What the registry stores of each server, by the name of its folder."""
    paths = [PurePosixPath(path) for path in files.paths("servers")]
    return {path.parent.name: files.json(str(path)) or [] for path in paths if path.name == FILE}


def _about(text: str) -> str | None:
    """The description of a server as it stands on its line: of a block it has the sign alone, as was published."""
    found = DESCRIPTION.search(text)
    return found[1] if found else None


def _schema(row: Mapping[str, Any]) -> Any:
    """The server's own, or one made of the registry's list of arguments, or none where there is no list."""
    if "inputSchema" in row:
        return row["inputSchema"]
    if "arguments" not in row:
        return None
    properties = {}
    for each in row["arguments"]:
        properties[each["name"]] = {key: each[key] for key in ("type", "items") if key in each}
        if each.get("desc"):
            properties[each["name"]]["description"] = each["desc"]
    required = [each["name"] for each in row["arguments"] if not each.get("optional")]
    return {"type": "object", "properties": properties, "required": required}


RECIPE = Recipe(
    name="catalog_docker",
    title="Docker MCP registry",
    sources={SOURCE: REPOSITORY},
    convert=convert,
    licence="MIT",
    redistributable=True,
    conversion="A catalog only. Schemas are the servers' own where the registry has them, else made of its list of "
    "`arguments`; a tool without either has none (302 of zscaler). Docker's generated catalog with the "
    "tools of all servers is not in the repository.",
    noise="Few servers have very many tools.",
)
