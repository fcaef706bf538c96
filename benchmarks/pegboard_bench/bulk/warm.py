"""Starts of a board with and without shards, each in a process of its own: `warm.py CATALOG [SHARDS]` prints JSON."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pegboard.apps.cli.warm_board import counting
from pegboard.catalog.ingest import read_catalog
from pegboard.compose import build_routing, opened_parts
from pegboard.settings import load_settings

QUERY = "create an issue in the tracker for the crash"


async def started(catalog: Path, shards: Path | None) -> dict[str, float]:
    """Seconds until a board with an empty store of its own is ready; texts given to the encoder until then, and by one
    decision; tools."""
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder:
        given = (shards,) if shards else None
        settings = load_settings(cache_dir=Path(folder), state_dir=Path(folder), index_shards=given)
        tools = read_catalog(catalog)
        began, cpu = time.perf_counter(), time.process_time()
        async with opened_parts(settings) as parts:
            encoder = counting(parts.encoder)
            board = build_routing(settings, tools, parts=replace(parts, encoder=encoder))
            await board.warm()
            found = {
                "seconds": time.perf_counter() - began,
                "cpu_s": time.process_time() - cpu,
                "texts": encoder.texts,
                "tools": len(tools),
            }
            await board.route(QUERY)
            return found | {"texts_a_decision": encoder.texts - found["texts"]}


def apart(catalog: Path, shards: Path | None) -> dict[str, float]:
    """The same in a new process."""
    words = [str(catalog), *([str(shards)] if shards else [])]
    done = subprocess.run(
        [sys.executable, "-m", "pegboard_bench.bulk.warm", *words], check=True, stdout=subprocess.PIPE
    )
    return dict(json.loads(done.stdout))


def main(catalog: str, shards: str = "") -> None:
    found = asyncio.run(started(Path(catalog), Path(shards) if shards else None))
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
