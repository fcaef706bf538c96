"""`pegboard route`: shows which tools one request would get, and why."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from pegboard.apps.cli.options import Catalogs, Configs, Json, Profile, Verbose, examples
from pegboard.apps.cli.output import cells, plain, print_json, stdout, table
from pegboard.apps.cli.route_items import Agents, KindsAsked, Skills, items_for, items_payload, show_items
from pegboard.apps.cli.tool_sources import LoadedTools
from pegboard.events import RouteDecided
from pegboard.model import Candidate
from pegboard.retrieval.no_match import shipped
from pegboard.routing.economics import Priced
from pegboard.routing.economics import terms as priced
from pegboard.routing.explain import Explanation, ToolExplanation

if TYPE_CHECKING:
    from pathlib import Path

    from pegboard.apps.cli.configs import Configured
    from pegboard.apps.cli.warm_board import Replaced
    from pegboard.apps.cli.way_costs import WayCosts

EXAMPLES = examples(
    "The tools for a request, from a file of tools",
    'pegboard route "open an issue about the login page" --catalog tools.json',
    "In words, from live servers, with a threshold on the cosine",
    'pegboard route "what changed on main?" --profile attention --explain',
    "By price, latency and failure, with every term",
    'pegboard route "what changed on main?" --profile ehrr --explain',
    "Which way would its tools reach Claude, and what would that be billed?",
    'pegboard route "what changed on main?" --explain --provider anthropic --model claude-sonnet-4-5',
    "Why was this tool not chosen?",
    'pegboard route "what changed on main?" --tool github/list_commits',
    "Which of my skills go with a request?",
    'pegboard route "fill in this PDF form" --skills ~/.claude/skills --kind skill',
)

RUNNERS_UP = 5
RUNNERS_UP_JSON = 20
"""Number of tools shown in addition to the selected ones."""

MEANING: Mapping[str, str] = {
    "cosine": "by meaning (cosine of query and tool)",
    "clause": "by its nearest clause (cosine of that clause and the tool)",
    "bm25": "by shared words (BM25F over name, description, parameters, server)",
    "name": "by its name (how much of the name a clause says, and how little else)",
    "named": "by its service, if the query names it",
    "server": "by its server's meaning (cosine of query and server)",
    "use": "by what such requests of the key led to before (change of its log-odds)",
    "keyword": "by keywords (1000 exact name, 100 in name, 10 in description, 1 in category)",
}
"""Explanation of each part of a score; other parts are shown by their name."""

BETTER: Mapping[str, str] = {
    "cosine": "a description in the users' words would rank it higher",
    "clause": "no single clause of the query is close to its description",
    "bm25": "the words of the query occur in none of its texts: add them with `aliases` in the configuration",
    "server": "the server's description says little or nothing about this",
    "keyword": "add words with `aliases` in the configuration",
}
"""Remedy for the part that lowers a tool's rank most."""

BEHIND = 5
"""A part whose rank is beyond this lowers the tool's rank."""


def route(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What a user would ask the agent.")],
    config: Configs = None,
    catalog: Catalogs = None,
    profile: Profile = None,
    k: Annotated[int | None, typer.Option("--k", min=1, help="At most this many tools.")] = None,
    threshold: Annotated[float | None, typer.Option("--threshold", help="Least score, on the profile's scale.")] = None,
    recall: Annotated[
        float | None,
        typer.Option("--recall", help="Mean recall to reach with as few tools as possible (profile hybrid)."),
    ] = None,
    budget: Annotated[
        int | None, typer.Option("--budget", min=0, help="Most tokens of all definitions together.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Explain each part of the score.")] = False,
    tool: Annotated[
        str | None,
        typer.Option("--tool", metavar="NAME", help="Explain why this tool (name or server/name) was selected or not."),
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            "--provider",
            metavar="NAME",
            help="Show what each way of sending the tools would be billed at this provider, and which one the cost "
            "rule would choose.",
        ),
    ] = None,
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="The model, for its cache prices.")] = "",
    skills: Skills = None,
    agents: Agents = None,
    kind: KindsAsked = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show which tools a request would be given, with their scores and why.

    Tools come from --config (live servers), --catalog (files), or both; without either, from the MCP clients that are
    configured on this machine. Skills (--skills) and agents (--agents) are found by words, in all that they say.
    """
    from pegboard.apps.cli.configs import for_tools

    items = items_for(query, skills or [], agents or [], kind or [])
    if kind and "tool" not in kind:
        print_json({"query": query, "items": items_payload(items)}) if as_json else show_items(items)
        return
    configured = for_tools(config, catalog, profile=profile, k=k, threshold=threshold, recall=recall, budget=budget)
    loaded, reasons = asyncio.run(_decide(query, configured, catalog or [], context.obj))
    costs = None if provider is None else _costs(reasons, provider, model)
    if as_json:
        more = {"items": items_payload(items)} if skills or agents else {}
        print_json(payload(loaded, reasons, tool) | more | ({} if costs is None else {"ways": costs.payload()}))
        return
    show(loaded, reasons, tool, explain=explain)
    if skills or agents:
        show_items(items)
    for line in () if costs is None else costs.lines():
        stdout().print(plain(line), soft_wrap=True)


def _costs(reasons: Explanation, provider: str, model: str) -> WayCosts:
    from pegboard.apps.cli.way_costs import way_costs

    return way_costs(reasons, provider, model)


async def _decide(
    query: str, configured: Configured, catalogs: Sequence[Path], replaced: Replaced
) -> tuple[LoadedTools, Explanation]:
    from pegboard.apps.cli.tool_sources import load_some
    from pegboard.apps.cli.warm_board import warm_board
    from pegboard.model import AgentState, Turn

    settings, loaded = configured.settings, await load_some(configured, catalogs, "to select from")
    board, _ = await warm_board(settings, loaded.catalog, replaced)
    scopes = frozenset(settings.scopes)
    turn = Turn.ask(query, scopes=scopes, state=AgentState(auth=scopes))
    return loaded, await board.explain(turn)


def _chance(reasons: Explanation) -> float | None:
    """The probability that any tool does what was asked; None for profiles that cannot tell, and without a query."""
    from pegboard.board_search import USUAL, chance_of_match
    from pegboard.retrieval.search_index import SearchIndex

    decision, catalog = reasons.decision, reasons.catalog
    if reasons.profile.ranker != "hybrid" or not decision.query.strip():
        return None
    index = SearchIndex(catalog.tools, catalog.servers)
    return chance_of_match(index, reasons.profile, decision, reasons.order[:USUAL], decision.query)


def _fits(chance: float) -> str:
    least = shipped().least
    if chance < least:
        return f"Nothing fits, probably: the chance that any tool does this is {chance:.2f}, below {least:.2f}."
    return f"The chance that any tool does this is {chance:.2f}; below {least:.2f}, searches say that nothing fits."


def payload(loaded: LoadedTools, reasons: Explanation, tool: str | None) -> dict[str, Any]:
    decision = reasons.decision
    made = {
        "query": decision.query,
        "profile": decision.profile,
        "scale": decision.scale,
        "active": [str(each) for each in decision.active],
        "candidates": [_row(reasons, candidate) for candidate in _shown(reasons, RUNNERS_UP_JSON)],
        "gated_out_by_state": [str(each) for each in decision.gated_out_by_state],
        "meets_target": decision.meets_target,
        "encoder": decision.encoder,
        "by_rank": decision.by_rank,
        "chance": None if (chance := _chance(reasons)) is None else round(chance, 3),
        "nothing_fits": chance is not None and chance < shipped().least,
        "latency_ms": round(decision.latency_ms, 3),
        "tokens": _tokens(reasons),
        "event": asdict(reasons.event),
    } | loaded.payload()
    if reasons.priced is not None:
        made |= {"economics": priced.payload(reasons.priced, RUNNERS_UP_JSON)}
    return made if tool is None else made | {"tool": [_verdict(each) for each in reasons.of_name(tool)]}


def show(loaded: LoadedTools, reasons: Explanation, tool: str | None, *, explain: bool) -> None:
    console = stdout()
    for line in loaded.lines():
        console.print(plain(line))
    decision = reasons.decision
    shown = _shown(reasons, RUNNERS_UP)
    parts = list(shown[0].parts) if shown and len(shown[0].parts) > 1 else []
    title = f"{len(decision.active)} of {len(reasons.catalog)} tools, profile {decision.profile}"
    made = table(title, "", ">#", "tool", f">{decision.scale}", *(f">{part}" for part in parts), ">tokens", "status")
    for candidate in shown:
        verdict = reasons.of_tool(candidate.tool)
        scores = [f"{candidate.parts[part]:.3f}" for part in parts]
        marks = ["●" if verdict.status == "active" else "", candidate.rank + 1, candidate.tool]
        made.add_row(
            *cells(*marks, f"{candidate.score:.3f}", *scores, f"{_tokens_of(reasons, candidate):,}"),
            verdict.status.replace("_", " "),
            style="bold" if verdict.status == "active" else "",
        )
    console.print(made)
    console.print(_summary(reasons))
    if explain:
        _explain(console, reasons)
    for verdict in reasons.of_name(tool) if tool else []:
        console.print(plain(f"{verdict.tool}: {verdict.status.replace('_', ' ')}. {verdict.why}"))


def _explain(console: Console, reasons: Explanation) -> None:
    if (chance := _chance(reasons)) is not None:
        console.print(plain(f"\n{_fits(chance)}"))
    if reasons.priced is not None:
        _explain_servers(console, reasons.priced)
    for candidate in _shown(reasons, 0 if reasons.priced is None else RUNNERS_UP):
        console.print(plain(f"\n{candidate.tool}: {reasons.of_tool(candidate.tool).why}"))
        for sentence in _sentences(candidate, reasons):
            console.print(plain(f"  {sentence}"))
    console.print(plain(f"\nEvent: {_event(reasons.event)}"))


def _event(event: RouteDecided) -> str:
    """The event's fields with single values; the lists of tools are in the table."""
    values = {name: value for name, value in asdict(event).items() if isinstance(value, str | int | float)}
    return ", ".join(f"{name} {value}" for name, value in values.items() if value != "")


def _explain_servers(console: Console, made: Priced) -> None:
    for place in priced.servers_shown(made, RUNNERS_UP):
        console.print(plain(f"\nserver {made.names[place]}: {priced.server_verdict(made, place)}"))
        for line in priced.server_lines(made, place):
            console.print(plain(f"  {line}"))


def _sentences(candidate: Candidate, reasons: Explanation) -> list[str]:
    if reasons.priced is None:
        return list(sentences(candidate, reasons.order))
    return list(priced.tool_lines(reasons.priced, reasons.catalog.position[candidate.tool]))


def _shown(reasons: Explanation, runners_up: int) -> list[Candidate]:
    """The active tools and the best of the others, best first."""
    active = set(reasons.decision.active)
    others = [candidate.tool for candidate in reasons.order if candidate.tool not in active]
    shown = active | set(others[:runners_up])
    return [candidate for candidate in reasons.order if candidate.tool in shown]


def _summary(reasons: Explanation) -> str:
    tokens = _tokens(reasons)
    decision = reasons.decision
    target = "" if decision.meets_target else "The recall target was not reached within k and the budget.\n"
    if decision.by_rank:
        target = f"Nothing is fitted for the encoder {decision.encoder}: the best tools were selected by rank.\n"
    return (
        f"{target}Phase 1, summaries of all tools: {tokens['phase1']:,} tokens. Phase 2, definitions of the active "
        f"tools: {tokens['phase2']:,}. All definitions: {tokens['all']:,}."
    )


def _row(reasons: Explanation, candidate: Candidate) -> dict[str, Any]:
    verdict = reasons.of_tool(candidate.tool)
    catalog = reasons.catalog
    terms = {} if reasons.priced is None else priced.tool_terms(reasons.priced, catalog.position[candidate.tool])
    return {
        "tool": str(candidate.tool),
        "server": candidate.tool.server,
        "name": candidate.tool.name,
        "rank": candidate.rank + 1,
        "score": round(candidate.score, 6),
        "parts": {part: round(value, 6) for part, value in candidate.parts.items()},
        "tokens": _tokens_of(reasons, candidate),
        "active": verdict.status == "active",
        "status": verdict.status,
        "why": verdict.why,
        "explanation": _sentences(candidate, reasons),
    } | ({"terms": terms} if terms else {})


def _verdict(verdict: ToolExplanation) -> dict[str, Any]:
    made: dict[str, Any] = {"tool": verdict.tool, "status": verdict.status, "why": verdict.why}
    if verdict.candidate is not None:
        made |= {"rank": verdict.candidate.rank + 1, "score": round(verdict.candidate.score, 6)}
    return made | ({"suggestions": list(verdict.suggestions)} if verdict.suggestions else {})


def _tokens(reasons: Explanation) -> dict[str, int]:
    return {
        "phase1": reasons.decision.phase1_tokens,
        "phase2": reasons.decision.phase2_tokens,
        "all": sum(reasons.catalog.token_counts),
    }


def _tokens_of(reasons: Explanation, candidate: Candidate) -> int:
    catalog = reasons.catalog
    return catalog.token_counts[catalog.position[candidate.tool]]


def sentences(candidate: Candidate, order: Sequence[Candidate]) -> Iterator[str]:
    """Each part of the score with its value and rank among all tools, and a remedy for the worst part."""
    places = {part: _place(part, value, order) for part, value in candidate.parts.items()}
    for part, value in candidate.parts.items():
        same = len({other.parts[part] for other in order}) == 1
        place = "the same for all" if same else f"number {places[part]} of {len(order)}"
        yield f"{value:.3f} {MEANING.get(part, f'by {part}')}: {place}"
    worst = max(places, key=lambda part: places[part], default="")
    if worst in BETTER and places[worst] > BEHIND:
        yield f"Its weakest part is {worst}: {BETTER[worst]}."


def _place(part: str, value: float, order: Sequence[Candidate]) -> int:
    return 1 + sum(other.parts[part] > value for other in order)
