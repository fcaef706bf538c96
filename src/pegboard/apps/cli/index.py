"""`pegboard index`: computes and stores the vectors of all tools in advance."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from pegboard.apps.cli.configs import Configured
from pegboard.apps.cli.index_build import BUILD_EXAMPLES, VERIFY_EXAMPLES, build, verify
from pegboard.apps.cli.options import Catalogs, Configs, Json, Profile, Verbose, examples, refuse_before_command
from pegboard.apps.cli.output import plain, print_json, stdout
from pegboard.apps.cli.tool_sources import LoadedTools, load_some
from pegboard.apps.cli.warm_board import Replaced, counting
from pegboard.compose import build_routing, opened_parts
from pegboard.evaluation.progress_bar import bar
from pegboard.model import ToolId
from pegboard.protocols import VectorIndex
from pegboard.retrieval import CachedEncoder, Progress, RankerKind, Retriever, ranker
from pegboard.settings.retrieval import LASTING, IndexKind

EXAMPLES = examples(
    "Embed the tools of all configured servers, so that the gateway starts warm",
    "pegboard index --config pegboard.toml",
    "After an interruption, the same command continues",
    "pegboard index --config pegboard.toml --batch 16",
)

NOTHING: frozenset[ToolId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """``embedded`` counts texts, one or two per tool; ``added`` and ``removed`` count tools of the index."""

    loaded: LoadedTools
    profile: str
    index: IndexKind
    embedded: int
    added: int
    removed: int
    seconds: float


app = typer.Typer(rich_markup_mode="markdown", add_completion=False, invoke_without_command=True)
app.command("build", epilog=BUILD_EXAMPLES)(build)
app.command("verify", epilog=VERIFY_EXAMPLES)(verify)


@app.callback(epilog=EXAMPLES)
def index(
    context: typer.Context,
    config: Configs = None,
    catalog: Catalogs = None,
    profile: Profile = None,
    batch: Annotated[
        int,
        typer.Option(
            "--batch",
            min=1,
            help="Texts that are embedded and stored together; an interruption loses at most one batch.",
        ),
    ] = 64,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Embed every tool into the configured store of embeddings, and into the index if that is a server.

    Existing vectors are neither computed nor sent again, so that the next run continues an interrupted one.
    """
    if context.invoked_subcommand is not None:
        refuse_before_command(context)
        return
    from pegboard.apps.cli.configs import for_tools

    configured = for_tools(config, catalog, profile=profile)
    outcome = asyncio.run(run(configured, catalog or [], context.obj, batch))
    if as_json:
        print_json(payload(outcome))
    else:
        show(outcome)


async def run(configured: Configured, catalogs: Sequence[Path], replaced: Replaced, batch: int) -> IndexReport:
    """Embed the tools. Raises PegboardError if there are no tools, StoreError if the index cannot be used."""
    settings, loaded = configured.settings, await load_some(configured, catalogs, "to index")
    started = time.perf_counter()
    async with opened_parts(settings, **(replaced or {})) as parts:
        encoder = counting(parts.encoder)
        board = build_routing(settings, loaded.catalog, parts=parts)
        index = parts.index("") if settings.index in LASTING else None
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
    return IndexReport(
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
    """Embed what the profile's ranker needs; a failing index is an error here."""
    if kind == "hybrid":
        await retriever.warm(progress)
        await retriever.server_vectors()
    else:
        await ranker(kind, retriever).warm(progress)


def payload(outcome: IndexReport) -> dict[str, Any]:
    return {
        "tools": len(outcome.loaded.catalog),
        "profile": outcome.profile,
        "index": outcome.index,
        "texts_embedded": outcome.embedded,
        "tools_added": outcome.added,
        "tools_removed": outcome.removed,
        "seconds": round(outcome.seconds, 3),
    } | outcome.loaded.payload()


def show(outcome: IndexReport) -> None:
    console = stdout()
    for line in outcome.loaded.lines():
        console.print(plain(line))
    embedded = f"{outcome.embedded:,} texts embedded" if outcome.embedded else "nothing had to be embedded"
    console.print(plain(f"{len(outcome.loaded.catalog):,} tools in {outcome.seconds:.1f} s: {embedded}."))
    if outcome.index in LASTING:
        console.print(plain(f"Added {outcome.added:,} tools to the index, removed {outcome.removed:,}."))
