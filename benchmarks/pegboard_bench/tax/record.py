"""What live servers list, as a file that the benchmark reads again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from pegboard.catalog import Catalog


def write(catalog: Catalog, path: Path) -> None:
    """Definitions as JSON lines, gzip by the name's end, the same bytes for the same definitions."""
    lines = []
    for tool in catalog.tools:
        server = catalog.servers[tool.server]
        row = {
            "server": tool.server,
            "server_description": server.description or server.instructions,
            "server_version": server.version,
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.input_schema,
            "output_schema": tool.output_schema,
        }
        lines.append(json.dumps({key: value for key, value in row.items() if value}, ensure_ascii=False))
    data = ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
