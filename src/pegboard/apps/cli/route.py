"""`pegboard route`: what one request would be given, and why."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.apps.cli.options import Catalogs, Configs, Json, Profile, Verbose, examples
from pegboard.errors import PegboardError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pegboard.apps.cli.boards import Replaced
    from pegboard.apps.cli.configs import Configured
    from pegboard.apps.cli.sources import Loaded
    from pegboard.apps.cli.why import Reasons

CHECK = "`pegboard doctor` says what is wrong with each server."

EXAMPLES = examples(
    "The tools for a request, from a file of tools",
    'pegboard route "open an issue about the login page" --catalog tools.json',
    "In words, from live servers, with a threshold on the cosine",
    'pegboard route "what changed on main?" --profile attention --explain',
    "By price, latency and failure, with every term",
    'pegboard route "what changed on main?" --profile ehrr --explain',
    "Why was this tool not chosen?",
    'pegboard route "what changed on main?" --tool github/list_commits',
)


def route(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What a user would ask the agent.")],
    config: Configs = None,
    catalog: Catalogs = None,
    profile: Profile = None,
    k: Annotated[int | None, typer.Option("--k", min=1, help="At most this many tools.")] = None,
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="Least score, on the profile's own scale.")
    ] = None,
    recall: Annotated[
        float | None,
        typer.Option("--recall", help="Mean recall to reach with as few tools as that takes (profile hybrid)."),
    ] = None,
    budget: Annotated[
        int | None, typer.Option("--budget", min=0, help="Tokens that the definitions may take together.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say each part of the scores in words.")] = False,
    tool: Annotated[
        str | None,
        typer.Option("--tool", metavar="NAME", help="Say why this tool (name or server/name) was chosen or not."),
    ] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show which tools a request would be given, with their scores and why.

    Tools come from --config (live servers), --catalog (files), or both; without either, from the MCP clients that are
    configured on this machine.
    """
    from pegboard.apps.cli import output, routed
    from pegboard.apps.cli.configs import given, given_or_usual

    find = given if catalog else given_or_usual
    configured = find(config or [], profile=profile, k=k, threshold=threshold, recall=recall, budget=budget)
    loaded, reasons = asyncio.run(_decide(query, configured, catalog or [], context.obj))
    if as_json:
        output.print_json(routed.payload(loaded, reasons, tool))
    else:
        routed.show(loaded, reasons, tool, explain=explain)


async def _decide(
    query: str, configured: Configured, catalogs: Sequence[Path], replaced: Replaced
) -> tuple[Loaded, Reasons]:
    from pegboard.apps.cli.boards import warm_board
    from pegboard.apps.cli.sources import load
    from pegboard.apps.cli.why import Reasons
    from pegboard.model import AgentState, Turn

    settings, loaded = configured.settings, await load(configured, catalogs)
    if not len(loaded.catalog):
        raise PegboardError(" ".join(["There are no tools to choose from.", *loaded.lines()]), remedy=CHECK)
    board, _ = await warm_board(settings, loaded.catalog, replaced)
    scopes = frozenset(settings.scopes)
    turn = Turn.ask(query, scopes=scopes, state=AgentState(auth=scopes))
    decision, scores = await board.route(turn), await board.scores(turn)
    reasons = Reasons(
        board=board,
        decision=decision,
        order=await board.rank(turn),
        scores=scores,
        priced=await board.priced(turn),
    )
    return loaded, reasons
