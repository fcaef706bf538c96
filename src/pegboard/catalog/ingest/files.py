"""Catalog files. The format is detected from the content, not the name."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from pegboard.catalog.catalog import Catalog
from pegboard.catalog.ingest._fields import mapping
from pegboard.catalog.ingest.jsonl import servers_from_jsonl, servers_from_rows
from pegboard.catalog.ingest.mcp import tools_from_list_result
from pegboard.catalog.ingest.provider_tools import tools_from_anthropic, tools_from_gemini, tools_from_openai
from pegboard.errors import CatalogError
from pegboard.model import Server, ServerName, Tool

GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The tools arrays of one provider, recognized by having one of ``keys`` and none of ``foreign``."""

    provider: str
    keys: frozenset[str]
    foreign: frozenset[str] = frozenset()
    read: Callable[[str, Sequence[object]], list[Tool]]

    def fits(self, keys: Set[str]) -> bool:
        return not self.keys.isdisjoint(keys) and self.foreign.isdisjoint(keys)


SHAPES: tuple[Shape, ...] = (
    Shape(
        provider="OpenAI",
        keys=frozenset({"function", "parameters", "type"}),
        foreign=frozenset({"inputSchema"}),
        read=tools_from_openai,
    ),
    Shape(provider="Anthropic", keys=frozenset({"input_schema"}), read=tools_from_anthropic),
    Shape(
        provider="Gemini",
        keys=frozenset({"functionDeclarations", "function_declarations"}),
        read=tools_from_gemini,
    ),
)
"""One row per provider; if several fit an array, the last one counts. An array that fits none is an MCP listing."""


def known() -> str:
    names = [each.provider for each in SHAPES]
    return f"JSON lines of tools, a tools/list answer, or an {', '.join(names[:-1])} or {names[-1]} tools array"


def read_catalog(path: Path) -> Catalog:
    """The catalog in a file (plain or gzip). Raises CatalogError that names the file."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if data.startswith(GZIP_MAGIC) else data).decode("utf-8-sig")
    except OSError as error:
        raise CatalogError(f"Cannot read {str(path)!r}: {error}.", remedy="Check the path and its rights.") from error
    except (UnicodeDecodeError, EOFError, zlib.error) as error:
        raise CatalogError(f"{str(path)!r} is not UTF-8 text: {error}.", remedy=f"Expected {known()}.") from error
    server = path.name.split(".")[0] or "catalog"
    return parse_catalog(text, source=str(path), server=server)


def parse_catalog(text: str, *, source: str, server: str) -> Catalog:
    """A catalog from text in any known format; tools of a format without servers get ``server``."""
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if document is None or (isinstance(document, dict) and "server" in document and "name" in document):
        groups = servers_from_jsonl(text.split("\n"), source)
    elif isinstance(document, list) and document and all(isinstance(row, dict) and "server" in row for row in document):
        groups = servers_from_rows((f"{source}, entry {number},", row) for number, row in enumerate(document, start=1))
    else:
        groups = [(Server(name=ServerName(server)), _tools(document, source, server))]
    catalog = Catalog.build(groups)
    if not catalog.tools:
        raise CatalogError(f"{source!r} holds no tools.", remedy=f"Expected {known()}.")
    return catalog


def _tools(document: object, source: str, server: str) -> list[Tool]:
    entries = document if isinstance(document, list) else _entries(document)
    if not isinstance(entries, list):
        raise CatalogError(f"{source!r} is not in a known format.", remedy=f"Expected {known()}.")
    return tools_of_any_format(server, entries)


def _entries(document: object) -> object:
    body = mapping(document, "The document")
    result = body.get("result")
    return (result if isinstance(result, dict) else body).get("tools")


def tools_of_any_format(server: str, entries: Sequence[object]) -> list[Tool]:
    """Tools in the format of OpenAI, Anthropic, Gemini or MCP, which is detected from their keys."""
    keys = {key for entry in entries if isinstance(entry, dict) for key in entry}
    for shape in reversed(SHAPES):
        if shape.fits(keys):
            return shape.read(server, entries)
    return tools_from_list_result(server, [{"tools": list(entries)}])
