"""`pegboard summarize`: a short line a tool, phrased as users ask for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.apps.cli.options import Catalogs, Configs, Json, Verbose, examples

if TYPE_CHECKING:
    from pegboard.apps.cli.boards import Replaced
    from pegboard.apps.cli.configs import Configured
    from pegboard.apps.cli.summarized import Outcome
    from pegboard.apps.cli.summarizing import Asked

EXAMPLES = examples(
    "What would summaries by rule look like, and how short?",
    "pegboard summarize --dry-run",
    "Write them; `[summaries] file` in pegboard.toml uses them",
    "pegboard summarize --config pegboard.toml --out summaries.jsonl",
    "Do they find tools better? With labelled queries",
    "pegboard summarize --catalog tools.jsonl --queries queries.jsonl",
)


def summarize(
    context: typer.Context,
    config: Configs = None,
    catalog: Catalogs = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Where the summaries go; else the configured file, or summaries.jsonl."
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries",
            metavar="FILE",
            help="Labelled queries, as in `pegboard rank`: F1 before and after is measured.",
        ),
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="By rule, even where an LLM is configured.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Ask the LLM also where the file has a summary that still fits.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing and ask no LLM: show what would be.")
    ] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Write a summary of each tool: its name and at most 60 tokens in the words of whoever asks for it.

    An LLM writes them where `[summaries]` names one; what it does not answer well, and everything where there is none,
    is done by rule. Lengths stand beside those of now, and with --queries so does retrieval by the profile attention.
    """
    from pegboard.apps.cli import output, summarized
    from pegboard.apps.cli.configs import given, given_or_usual
    from pegboard.apps.cli.summarizing import Asked

    configured = (given if catalog else given_or_usual)(config or [])
    asked = Asked(
        catalogs=tuple(catalog or ()),
        trusted=bool(config),
        out=out or configured.settings.summaries.file or Path("summaries.jsonl"),
        queries=queries,
        rules=rules,
        again=again,
        dry_run=dry_run,
    )
    outcome = asyncio.run(_summarize(configured, asked, context.obj))
    if as_json:
        output.print_json(summarized.payload(outcome))
    else:
        summarized.show(outcome)


async def _summarize(configured: Configured, asked: Asked, replaced: Replaced) -> Outcome:
    from pegboard.apps.cli.summarizing import summaries_of

    return await summaries_of(configured, asked, replaced)
