"""One route in a process of its own: `python -m pegboard_bench.warm_start CATALOG CACHE_DIR TEXT`."""

from __future__ import annotations

import sys
from pathlib import Path

from pegboard.catalog.ingest import read_catalog
from pegboard.compose import build_routing
from pegboard.routing_board import route_now
from pegboard.settings import load_settings


def main(catalog: str, cache: str, text: str) -> None:
    settings = load_settings(cache_dir=Path(cache), encoder_threads=1)
    route_now(build_routing(settings, read_catalog(Path(catalog))), text)
    sys.stdout.write("routed\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
