"""`pegboard index build` and `verify`: shards of vectors for many tools, which gateways map into memory."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from pegboard.apps.cli.options import Catalogs, Configs, Json, Verbose, examples
from pegboard.apps.cli.output import plain, print_json, stdout
from pegboard.apps.cli.tool_sources import load_some
from pegboard.compose import as_configured, summaries
from pegboard.compose.shard_jobs import build_index
from pegboard.errors import PegboardError
from pegboard.evaluation.progress_bar import bar
from pegboard.stores.vector_shards import changed_files, read_manifest

BUILD_EXAMPLES = examples(
    "Embed and scan a registry with two processes; after an interruption, the same command continues",
    "pegboard index build --catalog registry.jsonl.gz --out shards --workers 2",
    "The same as tasks on a Ray cluster, whose nodes share the folder",
    "RAY_ADDRESS=ray://head:10001 pegboard index build --catalog registry.jsonl.gz --out /mnt/shards --engine ray",
)
VERIFY_EXAMPLES = examples("Is every file as it was written?", "pegboard index verify shards")


def build(
    context: typer.Context,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the shards; finished ones are kept.")],
    config: Configs = None,
    catalog: Catalogs = None,
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="Where shards are made: on this machine, or as Ray tasks.")
    ] = "local",
    workers: Annotated[int, typer.Option(min=1, help="Processes that make shards, each with one core.")] = 1,
    shard_size: Annotated[int, typer.Option(min=1, help="Tools of one shard.")] = 2_000,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Embed, scan and compare every tool of a catalog, and write shards that `index_shards` maps into gateways.

    The files depend on the tools and the encoder alone: not on the engine, the number of workers, or interruptions.
    """
    from pegboard.apps.cli.configs import for_tools

    started = time.perf_counter()
    configured = for_tools(config, catalog)
    settings = configured.settings
    loaded = asyncio.run(load_some(configured, catalog or [], "to index"))
    with bar("indexing tools") as progress:
        manifest = build_index(
            settings,
            as_configured(summaries(settings).put_on(loaded.catalog), settings),
            out,
            engine=engine,
            workers=workers,
            shard_size=shard_size,
            encoder=(context.obj or {}).get("encoder"),
            progress=progress,
        )
    said = {
        "tools": manifest.tools,
        "vectors": sum(shard.vectors for shard in manifest.shards),
        "shards": len(manifest.shards),
        "suspicious": sum(shard.flagged for shard in manifest.shards),
        "duplicates": sum(len(group) - 1 for group in manifest.duplicates),
        "encoder": asdict(manifest.space),
        "seconds": round(time.perf_counter() - started, 3),
    }
    if as_json:
        print_json(said | loaded.payload())
        return
    console = stdout()
    for line in loaded.lines():
        console.print(plain(line))
    console.print(
        plain(
            f"Tools: {said['tools']:,}; vectors: {said['vectors']:,}; shards: {said['shards']:,}; "
            f"{said['seconds']:.1f} s.\n"
            f"Suspicious: {said['suspicious']:,} (*.findings.jsonl); "
            f"the same as another tool: {said['duplicates']:,} (manifest.json)."
        )
    )
    console.print(plain(f'Gateways use them with `index_shards = ["{out}"]`.'))


def verify(
    folder: Annotated[Path, typer.Argument(help="Folder of `pegboard index build`.")],
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Compare every file of the shards with the checksum that it was written with; exit with 1 if one differs."""
    manifest = read_manifest(folder)
    changed = sorted(changed_files(folder, manifest))
    if as_json:
        print_json({"shards": len(manifest.shards), "tools": manifest.tools, "changed": changed})
    elif not changed:
        stdout().print(plain(f"Every file is as it was written. Shards: {len(manifest.shards):,}."))
    if changed and not as_json:
        raise PegboardError(
            f"Changed or missing: {', '.join(changed)}.", remedy="Remove them, and run `pegboard index build` again."
        )
    if changed:
        raise typer.Exit(1)
