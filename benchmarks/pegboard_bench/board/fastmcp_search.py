"""FastMCP's tool search after one tool was added, in its own environment: tools as JSON on stdin, figures on stdout.

Its index is built by the first search after a change, of all tools (`BM25SearchTransform`).
"""

import asyncio
import json
import statistics
import sys
import time
from typing import Any

from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool

CHANGES = 3


def tool(said: dict[str, Any]) -> Tool:
    return Tool(name=said["name"], description=said["description"], parameters=said["schema"])


async def main() -> None:
    tools = [tool(each) for each in json.load(sys.stdin)]
    transform = BM25SearchTransform(max_results=5)
    await transform._search(tools, "high tide at a harbour")
    times: list[float] = []
    after: list[float] = []
    for number in range(CHANGES):
        new = {"name": f"tide_table_{number}", "description": f"When the tide is high at {number}", "schema": {}}
        tools = [*tools, tool(new)]
        for kept in (times, after):
            began = time.process_time()
            await transform._search(tools, "high tide at a harbour")
            kept.append((time.process_time() - began) * 1000)
    sys.stdout.write(json.dumps({"add_ms": statistics.median(times), "search_ms": statistics.median(after)}) + "\n")


asyncio.run(main())
