"""graph-tool-call: BM25 and a graph of tools, one ingest a server; the variant `minilm` adds embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from graph_tool_call import ToolGraph

from .minilm import MiniLM
from .protocol import PeerTool, Search, serve


def build(tools: Sequence[PeerTool], k: int, variant: str) -> Search:
    graph = ToolGraph()
    for server in dict.fromkeys(tool.server for tool in tools):
        graph.ingest_mcp_tools([tool.definition() for tool in tools if tool.server == server], server_name=server)
    if variant == "minilm":
        graph.enable_embedding(MiniLM().embed)

    def search(text: str) -> list[str]:
        return [tool.name for tool in graph.retrieve(text, top_k=k)]

    return search


if __name__ == "__main__":
    serve("graph-tool-call", build)
