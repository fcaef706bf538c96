"""`pegboard lint`: which tools will not be found, and which cost more than they need to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.apps.cli.options import Catalogs, Configs, Json, Profile, Verbose, examples
from pegboard.errors import PegboardError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from pegboard.apps.cli.boards import Replaced
    from pegboard.apps.cli.configs import Configured
    from pegboard.apps.cli.linted import Linted
    from pegboard.catalog import Catalog
    from pegboard.lint import Finding, Limits, Subject
    from pegboard.settings import Settings

EXAMPLES = examples(
    "What is wrong with the tools of my MCP clients?",
    "pegboard lint",
    "Every finding of two rules, for tools of at least 300 tokens",
    "pegboard lint --config .mcp.json --rule long-schema --rule duplicate --min-tokens 300 --show 0",
    "Before a server is released: fail where a tool loses its own name or has no description",
    "pegboard lint --catalog tools.json --fail-on lost-name --fail-on no-description",
)


def lint(
    context: typer.Context,
    config: Configs = None,
    catalog: Catalogs = None,
    rule: Annotated[
        list[str] | None,
        typer.Option("--rule", metavar="RULE", help="Only this rule. Can be given more than once."),
    ] = None,
    min_tokens: Annotated[
        int, typer.Option("--min-tokens", min=0, help="Only tools whose definition takes at least this many tokens.")
    ] = 0,
    max_description: Annotated[
        int, typer.Option("--max-description", min=1, help="Tokens from which on a description is long.")
    ] = 150,
    max_schema: Annotated[
        int, typer.Option("--max-schema", min=1, help="Tokens from which on a schema is long.")
    ] = 500,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on", metavar="RULE", help="Exit with 1 where this rule finds something; `any` means every rule."
        ),
    ] = None,
    show: Annotated[int, typer.Option("--show", min=0, help="Findings shown of each rule; 0 shows all.")] = 10,
    profile: Profile = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Find tools that lose to others on their own name, duplicates, weak names and descriptions, and long texts.

    Each finding says which tool, what is wrong, how to mend it, and what the tool's definition costs in tokens. Tools
    come from --config (live servers), --catalog (files), or both; without either, from the MCP clients that are
    configured on this machine. Exit code 1 where a rule of --fail-on finds something.
    """
    from pegboard.apps.cli import linted, output
    from pegboard.apps.cli.configs import given, given_or_usual
    from pegboard.lint import Limits, chosen

    failing = chosen([] if "any" in (fail_on or []) else fail_on or []) if fail_on else frozenset()
    rules = chosen(rule or [])
    configured = (given if catalog else given_or_usual)(config or [], profile=profile)
    limits = Limits(description=max_description, schema=max_schema, tokens=min_tokens)
    made = asyncio.run(_lint(configured, catalog or [], rules, limits, context.obj))
    if as_json:
        output.print_json(linted.payload(made))
    else:
        linted.show(made, show)
    if any(finding.rule in failing for finding in made.findings):
        raise typer.Exit(1)


async def _lint(
    configured: Configured, catalogs: Sequence[Path], rules: AbstractSet[str], limits: Limits, replaced: Replaced
) -> Linted:
    from pegboard.apps.cli.linted import Linted
    from pegboard.apps.cli.sources import load
    from pegboard.lint import BOARD_RULES, in_order, subjects, tool_findings

    loaded = await load(configured, catalogs)
    if not len(loaded.catalog):
        raise PegboardError(
            " ".join(["There are no tools to look at.", *loaded.lines()]),
            remedy="`pegboard doctor` says what is wrong with each server.",
        )
    tools = subjects(loaded.catalog)
    found = tool_findings(tools, limits, rules)
    if rules & BOARD_RULES:
        found += await _of_board(configured.settings, loaded.catalog, tools, rules, replaced)
    return Linted(loaded=loaded, findings=in_order(found, limits), rules=rules)


async def _of_board(
    settings: Settings, catalog: Catalog, tools: Sequence[Subject], rules: AbstractSet[str], replaced: Replaced
) -> list[Finding]:
    from pegboard.apps.cli.boards import warm_board
    from pegboard.bench.progress import bar
    from pegboard.lint import board_findings
    from pegboard.model import AgentState, Turn

    board, _ = await warm_board(settings, catalog, replaced)
    scopes = frozenset(settings.scopes)
    turn = Turn.ask("", scopes=scopes, state=AgentState(auth=scopes))
    with bar("asking for each tool") as progress:
        return await board_findings(board, turn, tools, rules, progress)
