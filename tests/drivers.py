"""The foreign MCP clients of the benchmarks, as they are installed in this checkout."""

from __future__ import annotations

from pathlib import Path

from pegboard_bench.fleet.sdk_clients import Driver, Step, Target, drivers

ROOT = Path(__file__).parents[1]
DRIVERS = drivers(ROOT / ".demo" / "clients", Path(__file__).parent / "clients")

__all__ = ["DRIVERS", "Driver", "Step", "Target"]
