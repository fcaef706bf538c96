"""Entries of a registry for tests, and fifty real ones.

`data/registry/servers.json` has servers of the official MCP registry, up to three versions of each, as
`GET /v0/servers` answered them in 2025 and January 2026. They are from the snapshot that
github.com/TeamSparkAI/mcp-registry kept (`validation/server-registry.json`, commit 47443452). Data of the registry is
in the public domain (CC0 1.0, terms of the official registry, section 10).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pegboard.registry.registry_files import read_servers
from pegboard.registry.server_entries import OFFICIAL, ServerListing, listing
from pegboard.registry.snapshot import Gathered, Snapshot, read_snapshot, write_snapshot

REAL = Path(__file__).parent / "data" / "registry" / "servers.json"


def real_entries() -> list[dict[str, Any]]:
    return json.loads(REAL.read_text())["servers"]


def snapshot_of(path: Path, *more: dict[str, Any]) -> Snapshot:
    """A snapshot of the real entries and ``more``, at ``path``."""
    gathered = Gathered()
    gathered.add(read_servers(REAL))
    gathered.add(more)
    write_snapshot(path, gathered, "the registry")
    return read_snapshot(path)


def entry(
    name: str = "io.example/tides", version: str = "1.0.0", *, standing: Any = None, **more: Any
) -> dict[str, Any]:
    """A listing as a registry answers it."""
    server = {"name": name, "version": version, "description": "When the tide is high"} | more
    return {"server": server, "_meta": {OFFICIAL: {"status": "active"} | (standing or {})}}


def listed(name: str = "io.example/tides", version: str = "1.0.0", **more: Any) -> ServerListing:
    return listing(entry(name, version, **more))
