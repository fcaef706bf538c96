"""SOURCE.md of a built set: where it is from, under which licence, what was read, written and left out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pegboard_bench.sets.recipe import CATALOG, QUERIES, Converted, Files, Recipe

if TYPE_CHECKING:
    from pegboard_bench.sets.folder import Content

SOURCE_PAGE = "SOURCE.md"
BUILT_BY = "Built by `pegboard-bench sets fetch"
LISTED = 12
"""Files of a source that are listed one by one; more have one checksum together."""

PAGE = """# {title}

{built_by} {name}` from public sources; the conversion is `pegboard_bench/sets`.

Licence: {licence}. {passing_on}

## Sources

{sources}

## Conversion

{conversion}

## Known label noise

{noise}

## Left out

{left_out}

## Counts

{counts}

## Files

| file | rows | SHA-256 of the text |
|---|---|---|
{files}
"""


def source_page(
    recipe: Recipe, converted: Converted, sources: Mapping[str, Files], contents: Mapping[str, Content]
) -> str:
    passing_on = (
        "It may be passed on under that licence."
        if recipe.redistributable
        else ("It is converted on your machine and may not be passed on.")
    )
    return PAGE.format(
        title=recipe.title,
        built_by=BUILT_BY,
        name=recipe.name,
        licence=recipe.licence,
        passing_on=passing_on,
        sources="\n\n".join(_source(files) for files in sources.values()),
        conversion=recipe.conversion,
        noise=recipe.noise,
        left_out="\n".join(f"- {each}" for each in converted.left_out) or "Nothing.",
        counts=_counts(converted),
        files="\n".join(f"| {name} | {found.rows:,} | `{found.sha256}` |" for name, found in contents.items()),
    )


def _source(files: Files) -> str:
    digests = files.digests
    head = f"- {files.source.origin}, licence {files.source.licence}"
    if len(digests) > LISTED:
        together = "".join(f"{digest}  {path}\n" for path, digest in sorted(digests.items()))
        return f"{head}\n    - {len(digests):,} files, together `{hashlib.sha256(together.encode()).hexdigest()}`"
    return "\n".join([head, *(f"    - {path} `{digest}`" for path, digest in digests.items())])


def _counts(converted: Converted) -> str:
    tools = converted.files.get(CATALOG, ())
    servers = {row["server"] for row in tools}
    schemas = sum(row["input_schema"] is not None for row in tools)
    said = f"{len(tools):,} tools of {len(servers):,} servers, {schemas:,} of them with a schema"
    queries = converted.files.get(QUERIES, ())
    if not queries:
        return f"{said}."
    labels = sum(len(row["relevant"]) for row in queries)
    return f"{said}; {len(queries):,} queries with {labels:,} labels, {labels / len(queries):.2f} each."
