"""Catalogs of a given size: real tools, server by server, then short ones made from them."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

SENTENCE = 60
"""Characters of the description of a made tool."""
Row = Mapping[str, Any]
"""A line of a catalog file: a tool with its server."""


def real_rows(catalog: Path, seed: int) -> list[Row]:
    """The tools of a catalog file whose names, descriptions and schemas differ, with their servers in random order."""
    lines = [json.loads(line) for line in gzip.decompress(catalog.read_bytes()).decode().splitlines()]
    servers: dict[str, dict[str, Row]] = {}
    seen: set[str] = set()
    for row in lines:
        said = json.dumps([row["name"], row.get("description"), row.get("input_schema")], sort_keys=True)
        if said not in seen:
            seen.add(said)
            servers.setdefault(row["server"], {}).setdefault(row["name"], row)
    names = sorted(servers)
    random.Random(seed).shuffle(names)  # noqa: S311 - the same order each time, no secret
    return [row for name in names for row in servers[name].values()]


def made_rows(models: Sequence[Row]) -> Iterator[Row]:
    """Short tools without end, each from a real one: its name with a number, the beginning of its description, and no
    parameters. The two texts of such a tool are one."""
    for copy in count(1):
        for place, model in enumerate(models):
            name = f"{model['name']}_{copy}_{place}"
            description = " ".join(str(model.get("description") or "").split())[:SENTENCE].rpartition(" ")[0]
            yield {
                "server": f"copies{'abcdefghij'[copy % 10]}",
                "name": name,
                "description": description,
                "input_schema": {"type": "object"},
            }


def rows_of(catalog: Path, size: int, seed: int) -> tuple[list[Row], int]:
    """``size`` tools, and how many of them are real."""
    real = real_rows(catalog, seed)
    return [*islice(chain(real, made_rows(real)), size)], min(size, len(real))


def write_catalog(rows: Sequence[Row], path: Path) -> None:
    """As a file that `pegboard index build --catalog` reads; the same bytes for the same tools."""
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode(), compresslevel=1, mtime=0))
