"""`pegboard scan`: which definitions seem poisoned, and where."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.apps.cli.options import Catalogs, Configs, Json, Verbose, examples
from pegboard.errors import PegboardError

if TYPE_CHECKING:
    from typing import Any

    from pegboard.apps.cli.sources import Loaded
    from pegboard.catalog import Catalog
    from pegboard.model import ToolId
    from pegboard.trust import Verdict

EXAMPLES = examples(
    "Do any tools of my MCP clients give orders to the model?",
    "pegboard scan",
    "A file of tools, with everything that was found",
    "pegboard scan --catalog tools.json --all",
    "Before a server is added: fail where something is suspicious",
    "pegboard scan --config new-server.json --fail",
)


def scan(
    config: Configs = None,
    catalog: Catalogs = None,
    every: Annotated[bool, typer.Option("--all", help="Also what was found and is not suspicious on its own.")] = False,
    fail: Annotated[bool, typer.Option("--fail", help="Exit with 1 where a definition is suspicious.")] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Look for hidden characters, orders to the model, and asks for secrets in definitions of tools.

    Each definition has a score from 0 to 1; from 0.5 on it is suspicious. The gateway looks at all that comes in by the
    same rules: the option `scan` says what it does then. Tools come from --config (live servers), --catalog (files), or
    both; without either, from the MCP clients that are configured on this machine.
    """
    from pegboard.apps.cli import output
    from pegboard.apps.cli.configs import given, given_or_usual
    from pegboard.apps.cli.sources import load

    configured = (given if catalog else given_or_usual)(config or [])
    loaded = asyncio.run(load(configured, catalog or []))
    if not len(loaded.catalog):
        raise PegboardError(
            " ".join(["There are no tools to look at.", *loaded.lines()]),
            remedy="`pegboard doctor` says what is wrong with each server.",
        )
    verdicts = _verdicts(loaded.catalog)
    shown = {tool: each for tool, each in verdicts.items() if each.suspicious or (every and each.findings)}
    suspicious = sum(each.suspicious for each in verdicts.values())
    if as_json:
        output.print_json(_payload(loaded, suspicious, shown))
    else:
        _show(loaded, suspicious, shown)
    if fail and suspicious:
        raise typer.Exit(1)


def _verdicts(catalog: Catalog) -> dict[ToolId, Verdict]:
    """Of all tools, and of what each server says of itself; the highest score first."""
    from pegboard.model import ToolId
    from pegboard.trust import scan as scanned
    from pegboard.trust import scan_server

    found = {tool.id: scanned(tool) for tool in catalog.tools}
    found |= {ToolId(name, ""): scan_server(server) for name, server in catalog.servers.items()}
    return dict(sorted(found.items(), key=lambda each: (-each[1].score, each[0])))


def _payload(loaded: Loaded, suspicious: int, shown: dict[ToolId, Verdict]) -> dict[str, Any]:
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


def _show(loaded: Loaded, suspicious: int, shown: dict[ToolId, Verdict]) -> None:
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
