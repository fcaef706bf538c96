"""Parses tool definitions. Only `read_catalog` does I/O: it opens the one file it is given."""

from pegboard.catalog.ingest.files import parse_catalog, read_catalog, tools_of_any_format
from pegboard.catalog.ingest.jsonl import servers_from_jsonl
from pegboard.catalog.ingest.mcp import tool_from_mcp, tools_from_list_result
from pegboard.catalog.ingest.provider_tools import tools_from_anthropic, tools_from_gemini, tools_from_openai

__all__ = [
    "parse_catalog",
    "read_catalog",
    "servers_from_jsonl",
    "tool_from_mcp",
    "tools_from_anthropic",
    "tools_from_gemini",
    "tools_from_list_result",
    "tools_from_openai",
    "tools_of_any_format",
]
