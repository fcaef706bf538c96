"""Tool-retrieval sets: a folder with `catalog.jsonl.gz` and `queries.jsonl.gz`."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.catalog import Catalog
from pegboard.catalog.ingest import read_catalog
from pegboard.catalog.ingest.files import GZIP_MAGIC
from pegboard.errors import CatalogError
from pegboard.model import ToolId

CATALOG = "catalog.jsonl.gz"
QUERIES = "queries.jsonl.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A request and what serves it: every tool of ``relevant``, and one of each group of ``any_of``."""

    id: str
    text: str
    relevant: tuple[ToolId, ...] = ()
    any_of: tuple[tuple[ToolId, ...], ...] = ()
    category: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSet:
    name: str
    catalog: Catalog
    queries: tuple[Query, ...]


def read_set(folder: Path) -> ToolSet:
    """A set with its queries. Raises CatalogError naming the file and the line."""
    catalog = read_catalog(folder / CATALOG)
    queries = read_queries(folder / QUERIES)
    check_labels(queries, catalog, folder)
    return ToolSet(name=folder.name, catalog=catalog, queries=queries)


def check_labels(queries: Sequence[Query], catalog: Catalog, source: Path) -> None:
    """Raises CatalogError for a label that is not in the catalog."""
    for query in queries:
        unknown = [tool for tool in (*query.relevant, *sum(query.any_of, ())) if tool not in catalog]
        if unknown:
            raise CatalogError(
                f"Query {query.id!r} of {str(source)!r} names {str(unknown[0])!r}, which is not in the catalog.",
                remedy="A set's labels and its catalog have to be of one snapshot.",
            )


def read_queries(path: Path) -> tuple[Query, ...]:
    """Labelled queries, plain or gzip. Raises CatalogError naming the file and the line."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if data.startswith(GZIP_MAGIC) else data).decode("utf-8")
        lines = enumerate(text.split("\n"), 1)
        return tuple(_query(line, f"{path}, line {number},") for number, line in lines if line.strip())
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise CatalogError(
            f"Cannot read {str(path)!r}: {error}.", remedy=f"A set is a folder with {CATALOG} and {QUERIES}."
        ) from error


def _query(line: str, where: str) -> Query:
    try:
        row = json.loads(line)
        return Query(
            id=row["id"],
            text=row["query"],
            relevant=_tools(row.get("relevant")),
            any_of=tuple(_tools(group) for group in row.get("any_of") or ()),
            category=row.get("category") or "",
        )
    except (ValueError, TypeError, KeyError) as error:
        raise CatalogError(
            f"{where} is not a query: {type(error).__name__}: {error}.",
            remedy='Expected {"id": …, "query": …, "relevant": [[server, name], …]}.',
        ) from error


def _tools(pairs: Any) -> tuple[ToolId, ...]:
    return tuple(ToolId(server, name) for server, name in pairs or ())
