"""Labelled and observed queries, and tool-retrieval sets: folders with a catalog and with `queries.jsonl`, plain or
gzip."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pegboard.catalog import Catalog
from pegboard.catalog.ingest import read_catalog
from pegboard.catalog.ingest.files import GZIP_MAGIC
from pegboard.errors import CatalogError, ConfigError
from pegboard.model import ToolId

CATALOG = "catalog.jsonl.gz"
QUERIES = "queries.jsonl.gz"

CATALOGS = (CATALOG, "catalog.jsonl", "catalog.json", "tools.json")
QUERY_FILES = (QUERIES, "queries.jsonl")
"""Names of the files of a set, in the order in which they are looked for."""

LEAST = 20
"""Fewest queries that a calibration accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A request and the tools it needs: every tool of ``relevant``, and one tool of each group in ``any_of``."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Queries reduced to the labels that are on the board. ``left_out`` counts queries, ``unknown`` counts labels."""

    queries: tuple[Query, ...]
    left_out: int
    unknown: int


def read_set(folder: Path) -> ToolSet:
    """The catalog and the queries of a set. Raises CatalogError naming the file and the line."""
    catalog = read_catalog(_first(folder, CATALOGS))
    queries = read_queries(_first(folder, QUERY_FILES))
    check_labels(queries, catalog, folder)
    return ToolSet(name=folder.resolve().name, catalog=catalog, queries=queries)


def is_set(folder: Path) -> bool:
    """Whether a folder has the files of a set."""
    return all(_first(folder, names).is_file() for names in (CATALOGS, QUERY_FILES))


def _first(folder: Path, names: Sequence[str]) -> Path:
    """The first of these files that is there, else the first."""
    return next((folder / name for name in names if (folder / name).is_file()), folder / names[0])


def check_labels(queries: Sequence[Query], catalog: Catalog, source: Path) -> None:
    """Raises CatalogError for a label that is not in the catalog."""
    for query in queries:
        unknown = [tool for tool in (*query.relevant, *sum(query.any_of, ())) if tool not in catalog]
        if unknown:
            same = next((str(tool.id) for tool in catalog.tools if tool.name == unknown[0].name), "")
            raise CatalogError(
                f"Query {query.id!r} of {str(source)!r} names {str(unknown[0])!r}, which is not in the catalog.",
                remedy=f"Did you mean {same!r}?" if same else "Use a catalog and labels from the same snapshot.",
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


def read_observed(path: Path) -> tuple[Query, ...]:
    """Queries of `{"query": …, "called": [[server, name], …], "failed": […]}` lines: what was called without failing.

    Raises CatalogError naming the file and the line.
    """
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
            return tuple(_observed(line, path, number) for number, line in enumerate(lines, 1) if line.strip())
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise CatalogError(
            f"Cannot read {str(path)!r}: {error}.", remedy="Check the path given with --observed."
        ) from error


def _observed(line: str, path: Path, number: int) -> Query:
    try:
        row = json.loads(line)
        failed = set(_tools(row.get("failed")))
        served = [tool for tool in dict.fromkeys(_tools(row["called"])) if tool not in failed]
        return Query(id=str(number), text=str(row["query"]), relevant=tuple(served))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CatalogError(
            f"{path}, line {number}, is not an observation: {type(error).__name__}: {error}.",
            remedy='Expected {"query": …, "called": [[server, name], …], "failed": [[server, name], …]}.',
        ) from error


def _tools(pairs: Any) -> tuple[ToolId, ...]:
    return tuple(ToolId(server, name) for server, name in pairs or ())


def evidence(queries: Sequence[Query], catalog: Catalog) -> Evidence:
    """The queries that a calibration over this catalog can use. Raises ConfigError if there are fewer than `LEAST`."""
    known = [_known(query, catalog) for query in queries]
    usable = tuple(query for query in known if query.text.strip() and (query.relevant or query.any_of))
    unknown = sum(_labels(before) - _labels(after) for before, after in zip(queries, known, strict=True))
    if len(usable) < LEAST:
        raise ConfigError(
            f"Only {len(usable)} of {len(queries)} queries are usable, and a calibration needs at least {LEAST}"
            + (f"; {unknown} labels name tools that are not on the board." if unknown else "."),
            remedy="Label more of your users' requests: 100 to 200 work well. Until then, keep what ships.",
        )
    return Evidence(queries=usable, left_out=len(queries) - len(usable), unknown=unknown)


def _known(query: Query, catalog: Catalog) -> Query:
    """The query without the labels that are not in the catalog."""
    groups = (tuple(tool for tool in group if tool in catalog) for group in query.any_of)
    relevant = tuple(tool for tool in query.relevant if tool in catalog)
    return replace(query, relevant=relevant, any_of=tuple(group for group in groups if group))


def _labels(query: Query) -> int:
    return len(query.relevant) + sum(map(len, query.any_of))
