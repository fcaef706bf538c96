"""Catalog files: which format a file is in is read off its content, not its name."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from pathlib import Path

from pegboard.catalog.catalog import Catalog
from pegboard.catalog.ingest._fields import mapping
from pegboard.catalog.ingest.anthropic import tools_from_anthropic
from pegboard.catalog.ingest.gemini import tools_from_gemini
from pegboard.catalog.ingest.jsonl import servers_from_jsonl
from pegboard.catalog.ingest.mcp import tools_from_list_result
from pegboard.catalog.ingest.openai import tools_from_openai
from pegboard.errors import CatalogError
from pegboard.model import Server, ServerName, Tool

GZIP_MAGIC = b"\x1f\x8b"
FORMATS = "JSON lines of tools, a tools/list answer, or an OpenAI, Anthropic or Gemini tools array"


def read_catalog(path: Path) -> Catalog:
    """The catalog in a file (plain or gzip). Raises CatalogError with the file's name for anything unusable."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if data.startswith(GZIP_MAGIC) else data).decode("utf-8-sig")
    except OSError as error:
        raise CatalogError(f"Cannot read {str(path)!r}: {error}.", remedy="Check the path and its rights.") from error
    except (UnicodeDecodeError, EOFError, zlib.error) as error:
        raise CatalogError(f"{str(path)!r} is not UTF-8 text: {error}.", remedy=f"Expected {FORMATS}.") from error
    server = path.name.split(".")[0] or "catalog"
    return parse_catalog(text, source=str(path), server=server)


def parse_catalog(text: str, *, source: str, server: str) -> Catalog:
    """Tools in any known format; those of a format without servers get ``server``."""
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if document is None or (isinstance(document, dict) and "server" in document and "name" in document):
        groups = servers_from_jsonl(text.split("\n"), source)
    else:
        groups = [(Server(name=ServerName(server)), _tools(document, source, server))]
    catalog = Catalog.build(groups)
    if not catalog.tools:
        raise CatalogError(f"{source!r} holds no tools.", remedy=f"Expected {FORMATS}.")
    return catalog


def _tools(document: object, source: str, server: str) -> list[Tool]:
    entries = document if isinstance(document, list) else _entries(document)
    if not isinstance(entries, list):
        raise CatalogError(f"{source!r} is in no known format.", remedy=f"Expected {FORMATS}.")
    return tools_of_any_format(server, entries)


def _entries(document: object) -> object:
    body = mapping(document, "The document")
    result = body.get("result")
    return (result if isinstance(result, dict) else body).get("tools")


def tools_of_any_format(server: str, entries: Sequence[object]) -> list[Tool]:
    """Tools as OpenAI, Anthropic, Gemini or MCP have them; which it is, is read off their keys."""
    keys = {key for entry in entries if isinstance(entry, dict) for key in entry}
    if keys & {"functionDeclarations", "function_declarations"}:
        return tools_from_gemini(server, entries)
    if "input_schema" in keys:
        return tools_from_anthropic(server, entries)
    if keys & {"function", "parameters", "type"} and "inputSchema" not in keys:
        return tools_from_openai(server, entries)
    return tools_from_list_result(server, [{"tools": list(entries)}])
