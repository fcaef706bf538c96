"""`pegboard scan`: scans definitions for poisoning."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.apps.cli.options import Catalogs, Configs, Json, Verbose, examples

if TYPE_CHECKING:
    from typing import Any

    from pegboard.apps.cli.tool_sources import LoadedTools
    from pegboard.catalog import Catalog
    from pegboard.model import ToolId
    from pegboard.trust import ScanResult

EXAMPLES = examples(
    "Do any tools of my MCP clients give instructions to the model?",
    "pegboard scan",
    "A file of tools, with all findings",
    "pegboard scan --catalog tools.json --all",
    "Before adding a server: fail if a definition is suspicious",
    "pegboard scan --config new-server.json --fail",
)


def scan(
    config: Configs = None,
    catalog: Catalogs = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also show findings that are not suspicious on their own.")
    ] = False,
    fail: Annotated[bool, typer.Option("--fail", help="Exit with 1 if a definition is suspicious.")] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Scan tool definitions for hidden characters, instructions to the model, and requests for secrets.

    Each definition gets a score from 0 to 1; it is suspicious at 0.5 or more. The gateway applies the same rules to
    everything that servers send; the option `scan` says what it does with findings. Tools come from --config (live
    servers), --catalog (files), or both; without either, from the MCP clients that are configured on this machine.
    """
    from pegboard.apps.cli import output
    from pegboard.apps.cli.configs import for_tools
    from pegboard.apps.cli.tool_sources import load_some

    configured = for_tools(config, catalog)
    loaded = asyncio.run(load_some(configured, catalog or [], "to scan"))
    verdicts = _verdicts(loaded.catalog)
    shown = {tool: each for tool, each in verdicts.items() if each.suspicious or (every and each.findings)}
    suspicious = sum(each.suspicious for each in verdicts.values())
    if as_json:
        output.print_json(_payload(loaded, suspicious, shown))
    else:
        _show(loaded, suspicious, shown)
    if fail and suspicious:
        raise typer.Exit(1)


def _verdicts(catalog: Catalog) -> dict[ToolId, ScanResult]:
    """Verdicts on all tools and on each server's own texts, the highest score first."""
    from pegboard.model import ToolId
    from pegboard.trust import scan as scanned
    from pegboard.trust import scan_server

    found = {tool.id: scanned(tool) for tool in catalog.tools}
    found |= {ToolId(name, ""): scan_server(server) for name, server in catalog.servers.items()}
    return dict(sorted(found.items(), key=lambda each: (-each[1].score, each[0])))


def _payload(loaded: LoadedTools, suspicious: int, shown: dict[ToolId, ScanResult]) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "tools": len(loaded.catalog),
        "suspicious": suspicious,
        "definitions": [
            {
                "server": tool.server,
                "tool": tool.name,
                "score": round(verdict.score, 3),
                "suspicious": verdict.suspicious,
                "findings": [asdict(each) for each in verdict.findings],
            }
            for tool, verdict in shown.items()
        ],
    } | loaded.payload()


def _show(loaded: LoadedTools, suspicious: int, shown: dict[ToolId, ScanResult]) -> None:
    from pegboard.apps.cli.output import cells, plain, stdout, table

    console = stdout()
    for line in loaded.lines():
        console.print(plain(line))
    if shown:
        made = table("", "server", "tool", ">score", "rule", "where", "found")
        for tool, verdict in shown.items():
            first = (tool.server, tool.name or "(what it says of itself)", f"{verdict.score:.2f}")
            for each in verdict.findings:
                made.add_row(*cells(*first, each.rule, each.where, each.excerpt))
                first = ("", "", "")
        console.print(made)
    console.print(plain(f"{suspicious:,} suspicious definitions among {len(loaded.catalog):,} tools."))
