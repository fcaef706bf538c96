"""ratel-ai: `bm25`, its default, or `hybrid` (RRF with embeddings, by the MiniLM that it runs itself)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ratel_ai import ExecutableTool, ToolCatalog

from .minilm import model_folder
from .protocol import PeerTool, Search, serve

BATCH = 8
"""It pads every text of a batch to the longest: large batches of tools take minutes and gigabytes."""


def build(tools: Sequence[PeerTool], k: int, variant: str) -> Search:
    loop = asyncio.new_event_loop()
    embedding = {"local": model_folder(), "pooling": "mean"} if variant == "hybrid" else None
    catalog = ToolCatalog(method=variant, embedding=embedding)
    for start in range(0, len(tools), BATCH):
        loop.run_until_complete(_register(catalog, tools[start : start + BATCH]))

    async def found(text: str) -> list[str]:
        return [hit.tool_id for hit in await catalog.search_async(text, k)]

    return lambda text: loop.run_until_complete(found(text))


async def _register(catalog: ToolCatalog, tools: Sequence[PeerTool]) -> None:
    await catalog.register([_executable(tool) for tool in tools])


def _executable(tool: PeerTool) -> ExecutableTool:
    return ExecutableTool(
        id=tool.uid,
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema,
        execute=lambda _arguments: None,
    )


if __name__ == "__main__":
    serve("ratel-ai", build)
