"""What a deployment knows of its own queries: a labelled file, or which calls served a request."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pegboard.bench.datasets import Query, read_queries
from pegboard.catalog import Catalog
from pegboard.errors import CatalogError, ConfigError
from pegboard.model import ToolId

LEAST = 20
"""Fewer queries than this say nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Queries whose labels are all on the board; how many were left out, and how many labels were."""

    queries: tuple[Query, ...]
    left_out: int
    unknown: int


def evidence(queries: Sequence[Query], catalog: Catalog) -> Evidence:
    """What can be learnt from over this catalog. Raises ConfigError where that is too little."""
    known = [_known(query, catalog) for query in queries]
    usable = tuple(query for query in known if query.text.strip() and (query.relevant or query.any_of))
    unknown = sum(_labels(before) - _labels(after) for before, after in zip(queries, known, strict=True))
    if len(usable) < LEAST:
        raise ConfigError(
            f"{len(usable)} of {len(queries)} queries can be learnt from, and {LEAST} are the least"
            + (f"; {unknown} labels name tools that are not on the board." if unknown else "."),
            remedy="Label more requests of your users, 100 to 200 are good; until then what ships is the best guess.",
        )
    return Evidence(queries=usable, left_out=len(queries) - len(usable), unknown=unknown)


def read_labelled(path: Path) -> tuple[Query, ...]:
    """A file of `{"id": …, "query": …, "relevant": [[server, name], …], "any_of": […]}` lines, also as .gz."""
    return read_queries(path)


def read_observed(path: Path) -> tuple[Query, ...]:
    """A file of `{"query": …, "called": [[server, name], …], "failed": […]}` lines: what was called and did not fail.

    Raises CatalogError naming the file and the line.
    """
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
            return tuple(_observed(line, path, number) for number, line in enumerate(lines, 1) if line.strip())
    except (OSError, EOFError, UnicodeDecodeError) as error:
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


def _known(query: Query, catalog: Catalog) -> Query:
    """The query with the labels that are on the board."""
    groups = (tuple(tool for tool in group if tool in catalog) for group in query.any_of)
    relevant = tuple(tool for tool in query.relevant if tool in catalog)
    return replace(query, relevant=relevant, any_of=tuple(group for group in groups if group))


def _labels(query: Query) -> int:
    return len(query.relevant) + sum(map(len, query.any_of))
