"""What the servers of a fleet say of themselves and their tools, in one file: searches are measured without them.

    python -m pegboard_bench.fleet.snapshot CONFIG    # writes fleet_tools.jsonl.gz beside this module

One line of JSON a server: its name, version, instructions and tools. Of an input schema only what a search reads is
kept: the names of the arguments, whether they are required, their type, description and values.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import typer

from pegboard.catalog import Catalog
from pegboard.catalog.ingest import tool_from_mcp
from pegboard.model import Server, ServerName, Tool
from pegboard.settings import load_settings
from pegboard.settings.server_spec import ServerSpec
from pegboard_bench.fleet.gateways import listed, server

NAME = "fleet_tools.jsonl.gz"
OF_TOOL = ("name", "title", "description", "annotations")
OF_ARGUMENT = ("type", "description", "enum", "items")


async def taken(name: str, spec: ServerSpec) -> dict[str, Any]:
    """A server's line of the snapshot."""
    async with server(spec) as client:
        info = client.server_info
        return {
            "name": name,
            "title": (info.title if info else "") or "",
            "version": info.version if info else "",
            "instructions": client.instructions or "",
            "tools": [_kept(tool) for tool in sorted(await listed(client), key=lambda tool: str(tool["name"]))],
        }


def catalog() -> Catalog:
    """The fleet as it was when the snapshot was taken."""
    data = gzip.decompress((files("pegboard_bench.fleet") / NAME).read_bytes())
    return Catalog.build(_read(json.loads(line)) for line in data.decode().splitlines())


def _read(line: Mapping[str, Any]) -> tuple[Server, list[Tool]]:
    tools = [tool_from_mcp(line["name"], each) for each in line["tools"]]
    server = Server(
        name=ServerName(line["name"]),
        description=line["title"],
        title=line["title"],
        version=line["version"],
        instructions=line["instructions"],
    )
    return server, tools


def _kept(tool: Mapping[str, Any]) -> dict[str, Any]:
    schema = tool.get("inputSchema") or {}
    properties = {
        name: {key: of[key] for key in OF_ARGUMENT if key in of and (key != "items" or _is_plain(of[key]))}
        for name, of in (schema.get("properties") or {}).items()
        if isinstance(of, Mapping)
    }
    kept = {"type": "object", "properties": properties} | (
        {"required": schema["required"]} if schema.get("required") else {}
    )
    return {key: tool[key] for key in OF_TOOL if tool.get(key)} | {"inputSchema": kept}


def _is_plain(items: object) -> bool:
    return isinstance(items, Mapping) and set(items) <= {"type", "enum"}


async def _all(specs: Mapping[str, ServerSpec]) -> list[dict[str, Any]]:
    return [await taken(name, spec) for name, spec in sorted(specs.items())]


def main(config: Path) -> Path:
    lines = asyncio.run(_all(load_settings([config]).enabled_servers))
    text = "".join(json.dumps(line, ensure_ascii=False, sort_keys=True) + "\n" for line in lines)
    path = Path(__file__).with_name(NAME)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    typer.echo(f"{len(lines)} servers, {sum(len(line['tools']) for line in lines)} tools: {path}")
    return path


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ".demo/fleet.json"))
