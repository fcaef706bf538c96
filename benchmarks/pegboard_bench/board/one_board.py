"""Figures of one board, in a process of its own: `python -m pegboard_bench.board.one_board KIND SIZE [DATA]`.

Prints JSON. Times are of the processor, in all threads, so that other programs on the machine change them little.
"""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pegboard import Board
from pegboard_bench.board.drawn_vectors import DrawnVectors
from pegboard_bench.board.tool_sets import new_tool, tools_of

CHANGES = 12
QUERY = "When is high tide at harbour number {number}, and who is on duty?"


def resident_mb(field: str = "VmRSS") -> float:
    """Memory of this process (Linux): now, or at its highest (`VmHWM`)."""
    status = Path("/proc/self/status").read_text("utf-8")
    return int(status.partition(f"{field}:")[2].split()[0]) / 1024


def cpu_ms(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def changed(size: int, data: Path | None) -> dict[str, float]:
    """A change and the next route, by kind of change; the route after that; the first route, of a board that is new.

    Each route is followed by giving its tools to a model. Memory is that of the whole process.
    """
    tools = tools_of(data, size)
    with TemporaryDirectory() as folder:
        board = Board(tools, encoder=DrawnVectors(), cache_dir=Path(folder), state_dir=Path(folder))
        del tools
        numbers = iter(range(10**6))

        def route() -> None:
            board.route_now(QUERY.format(number=next(numbers))).tools_for("openai")

        found = {"first_ms": cpu_ms(route), "tools": float(len(board.catalog))}
        gc.collect()
        found |= {"rss_mb": resident_mb()}
        changes: dict[str, Callable[[int], None]] = {
            "add": lambda number: board.add_tools([new_tool(number)]),
            "change": lambda number: board.add_tools([new_tool(number, "is low")]),
            "remove": lambda number: board.remove_tools([f"tide_table_{number}"]),
        }
        after: list[float] = []
        for kind, change in changes.items():
            times: list[float] = []
            for number in range(CHANGES):
                times.append(cpu_ms(partial(change, number)) + cpu_ms(route))
                after.append(cpu_ms(route))
            found |= {f"{kind}_ms": statistics.median(times), f"{kind}_worst_ms": max(times)}
        found |= {"route_ms": statistics.median(after), "peak_mb": resident_mb("VmHWM")}
        board.add_tools([new_tool(0)])
        board.search_now("tide table")
        searches = []
        for number in range(1, 4):
            board.add_tools([new_tool(number)])
            searches.append(cpu_ms(lambda: board.search_now("tide table")))
        board.close()
        return found | {"search_ms": statistics.median(searches)}


def by_words(size: int, data: Path | None) -> dict[str, float]:
    """The first decision while nothing is embedded: seconds of the processor, and of the clock, for the words alone."""
    tools = tools_of(data, size)
    with TemporaryDirectory() as folder:
        never = _Never()
        options: dict[str, Any] = {"cache_dir": Path(folder), "state_dir": Path(folder), "index_wait": 0.0}
        board = Board(tools, encoder=never, **options)
        clock, began = time.perf_counter(), time.process_time()
        decision = board.route_now(QUERY.format(number=1))
        found = {"words_cpu_s": time.process_time() - began, "words_s": time.perf_counter() - clock}
        if decision.ranked_by != "words":
            raise ValueError(f"ranked by {decision.ranked_by}")
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()
        board.close()
    return {}


class _Never(DrawnVectors):
    """Takes longer than the measurement."""

    async def encode(self, texts: Any) -> Any:
        await asyncio.sleep(5)
        return await super().encode(texts)


def main(kind: str, size: str, data: str = "") -> None:
    """Measure, and print the figures."""
    measure = {"changed": changed, "words": by_words}[kind]
    found = measure(int(size), Path(data) if data else None)
    if found:
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
