"""The work of `pegboard index`, and what it says of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pegboard.apps.cli.boards import Replaced, counting
from pegboard.apps.cli.configs import Configured
from pegboard.apps.cli.output import plain, stdout
from pegboard.apps.cli.sources import Loaded, load
from pegboard.bench.progress import bar
from pegboard.compose import build, opened_parts
from pegboard.errors import PegboardError
from pegboard.model import ToolId
from pegboard.retrieval import CachedEncoder, Progress, RankerKind, Retriever, ranker
from pegboard.seams import VectorIndex
from pegboard.settings.vectors import IndexKind

LASTING: IndexKind = "chroma"
"""The index that outlives a process; the others are built from the embeddings in each."""
NOTHING: frozenset[ToolId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """``embedded`` counts texts, of which a tool has one or two; ``added`` and ``removed`` are tools of the index."""

    loaded: Loaded
    profile: str
    index: IndexKind
    embedded: int
    added: int
    removed: int
    seconds: float


async def run(configured: Configured, catalogs: Sequence[Path], replaced: Replaced, batch: int) -> Indexed:
    """Raises PegboardError where there are no tools, StoreError where the index cannot be used."""
    settings, loaded = configured.settings, await load(configured, catalogs)
    if not len(loaded.catalog):
        raise PegboardError(
            " ".join(["There are no tools to index.", *loaded.lines()]),
            remedy="`pegboard doctor` says what is wrong with each server.",
        )
    started = time.perf_counter()
    async with opened_parts(settings, **(replaced or {})) as parts:
        encoder = counting(parts.encoder)
        board = build(settings, loaded.catalog, parts=parts)
        index = parts.index("") if settings.index == LASTING else None
        documents = CachedEncoder(encoder, parts.embeddings)
        retriever = Retriever(
            board.catalog.tools,
            board.catalog.servers,
            documents=documents,
            queries=documents,
            index=index,
            chunk=batch,
        )
        before = await _held(index)
        with bar("indexing tools") as progress:
            await _fill(retriever, board.profile.ranker, progress)
        after = await _held(index)
    return Indexed(
        loaded=replace(loaded, catalog=board.catalog),
        profile=board.profile.name,
        index=settings.index,
        embedded=encoder.texts,
        added=len(after - before),
        removed=len(before - after),
        seconds=time.perf_counter() - started,
    )


async def _held(index: VectorIndex | None) -> frozenset[ToolId]:
    return NOTHING if index is None else await index.ids()


async def _fill(retriever: Retriever, kind: RankerKind, progress: Progress) -> None:
    """What the profile's ranker will look for; an index that fails is an error here."""
    if kind == "hybrid":
        await retriever.warm(progress)
        await retriever.server_vectors()
    else:
        await ranker(kind, retriever).warm(progress)


def payload(outcome: Indexed) -> dict[str, Any]:
    return {
        "tools": len(outcome.loaded.catalog),
        "profile": outcome.profile,
        "index": outcome.index,
        "texts_embedded": outcome.embedded,
        "tools_added": outcome.added,
        "tools_removed": outcome.removed,
        "seconds": round(outcome.seconds, 3),
    } | outcome.loaded.payload()


def show(outcome: Indexed) -> None:
    console = stdout()
    for line in outcome.loaded.lines():
        console.print(plain(line))
    embedded = f"{outcome.embedded:,} texts embedded" if outcome.embedded else "nothing had to be embedded"
    console.print(plain(f"{len(outcome.loaded.catalog):,} tools in {outcome.seconds:.1f} s: {embedded}."))
    if outcome.index == LASTING:
        console.print(plain(f"The index has {outcome.added:,} tools more than before, and lost {outcome.removed:,}."))
