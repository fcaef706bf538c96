"""A routing decision as a table and as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from pegboard.apps.cli import explain as words
from pegboard.apps.cli import priced
from pegboard.apps.cli.output import cells, plain, stdout, table
from pegboard.apps.cli.sources import Loaded
from pegboard.apps.cli.why import Reasons, Verdict
from pegboard.model import Candidate
from pegboard.routing.economics import Priced

RUNNERS_UP = 5
RUNNERS_UP_JSON = 20
"""Tools shown beyond those that were chosen."""


def payload(loaded: Loaded, reasons: Reasons, tool: str | None) -> dict[str, Any]:
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
        "latency_ms": round(decision.latency_ms, 3),
        "tokens": _tokens(reasons),
    } | loaded.payload()
    if reasons.priced is not None:
        made |= {"economics": priced.payload(reasons.priced, RUNNERS_UP_JSON)}
    return made if tool is None else made | {"tool": [_verdict(each) for each in reasons.of_name(tool)]}


def show(loaded: Loaded, reasons: Reasons, tool: str | None, *, explain: bool) -> None:
    console = stdout()
    for line in loaded.lines():
        console.print(plain(line))
    decision = reasons.decision
    shown = _shown(reasons, RUNNERS_UP)
    parts = list(shown[0].parts) if shown and len(shown[0].parts) > 1 else []
    title = f"{len(decision.active)} of {len(reasons.board.catalog)} tools, profile {decision.profile}"
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


def _explain(console: Console, reasons: Reasons) -> None:
    if reasons.priced is not None:
        _explain_servers(console, reasons.priced)
    for candidate in _shown(reasons, 0 if reasons.priced is None else RUNNERS_UP):
        console.print(plain(f"\n{candidate.tool}: {reasons.of_tool(candidate.tool).why}"))
        for sentence in _sentences(candidate, reasons):
            console.print(plain(f"  {sentence}"))


def _explain_servers(console: Console, made: Priced) -> None:
    for place in priced.servers_shown(made, RUNNERS_UP):
        console.print(plain(f"\nserver {made.names[place]}: {priced.server_verdict(made, place)}"))
        for line in priced.server_lines(made, place):
            console.print(plain(f"  {line}"))


def _sentences(candidate: Candidate, reasons: Reasons) -> list[str]:
    if reasons.priced is None:
        return list(words.sentences(candidate, reasons.order))
    return list(priced.tool_lines(reasons.priced, reasons.board.catalog.position[candidate.tool]))


def _shown(reasons: Reasons, runners_up: int) -> list[Candidate]:
    """The active tools and the best of the others, best first."""
    active = set(reasons.decision.active)
    others = [candidate.tool for candidate in reasons.order if candidate.tool not in active]
    shown = active | set(others[:runners_up])
    return [candidate for candidate in reasons.order if candidate.tool in shown]


def _summary(reasons: Reasons) -> str:
    tokens = _tokens(reasons)
    decision = reasons.decision
    target = "" if decision.meets_target else "The recall target was not reached within k and the budget.\n"
    if decision.by_rank:
        target = f"Nothing is fitted for the encoder {decision.encoder}: its best tools were taken, by rank.\n"
    return (
        f"{target}Phase 1, summaries of all tools: {tokens['phase1']:,} tokens. Phase 2, definitions of the active "
        f"tools: {tokens['phase2']:,}. All definitions: {tokens['all']:,}."
    )


def _row(reasons: Reasons, candidate: Candidate) -> dict[str, Any]:
    verdict = reasons.of_tool(candidate.tool)
    catalog = reasons.board.catalog
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


def _verdict(verdict: Verdict) -> dict[str, Any]:
    made: dict[str, Any] = {"tool": verdict.tool, "status": verdict.status, "why": verdict.why}
    if verdict.candidate is not None:
        made |= {"rank": verdict.candidate.rank + 1, "score": round(verdict.candidate.score, 6)}
    return made | ({"suggestions": list(verdict.suggestions)} if verdict.suggestions else {})


def _tokens(reasons: Reasons) -> dict[str, int]:
    return {
        "phase1": reasons.decision.phase1_tokens,
        "phase2": reasons.decision.phase2_tokens,
        "all": sum(reasons.board.catalog.token_counts),
    }


def _tokens_of(reasons: Reasons, candidate: Candidate) -> int:
    catalog = reasons.board.catalog
    return catalog.token_counts[catalog.position[candidate.tool]]
