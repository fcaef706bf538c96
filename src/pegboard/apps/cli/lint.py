"""`pegboard lint`: finds tools that retrieval will miss, and tools that cost more than they need to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from pegboard.apps.cli.options import Catalogs, Configs, Json, Profile, Verbose, examples
from pegboard.apps.cli.output import cells, plain, print_json, stdout, table
from pegboard.apps.cli.tool_sources import LoadedTools
from pegboard.errors import ConfigError
from pegboard.lint import LONG_TEXTS, RULES, LintFinding

if TYPE_CHECKING:
    from pathlib import Path

    from pegboard.apps.cli.configs import Configured
    from pegboard.apps.cli.warm_board import Replaced
    from pegboard.catalog import Catalog
    from pegboard.lint import LintLimits, Subject
    from pegboard.settings import Settings

EXAMPLES = examples(
    "What is wrong with the tools of my MCP clients?",
    "pegboard lint",
    "Every finding of two rules, for tools of at least 300 tokens",
    "pegboard lint --config .mcp.json --rule long-schema --rule duplicate --min-tokens 300 --show 0",
    "Before a release of a server: fail if a tool is outranked for its own name or has no description",
    "pegboard lint --catalog tools.json --fail-on lost-name --fail-on no-description",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """The findings of these rules, in the order of display."""

    loaded: LoadedTools
    findings: Sequence[LintFinding]
    rules: AbstractSet[str]

    @property
    def tokens(self) -> int:
        """Tokens of all definitions."""
        return sum(self.loaded.catalog.token_counts)

    def of(self, rule: str) -> list[LintFinding]:
        return [finding for finding in self.findings if finding.rule == rule]

    def spare(self, *rules: str) -> int:
        """Tokens that fixing the findings of these rules would save."""
        return sum(finding.spare for finding in self.findings if finding.rule in rules)


def lint(
    context: typer.Context,
    config: Configs = None,
    catalog: Catalogs = None,
    rule: Annotated[
        list[str] | None,
        typer.Option("--rule", metavar="RULE", help="Only this rule. Can be given more than once."),
    ] = None,
    min_tokens: Annotated[
        int, typer.Option("--min-tokens", min=0, help="Only tools whose definition has at least this many tokens.")
    ] = 0,
    max_description: Annotated[
        int, typer.Option("--max-description", min=1, help="Most tokens of a description.")
    ] = 150,
    max_schema: Annotated[int, typer.Option("--max-schema", min=1, help="Most tokens of a schema.")] = 500,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on", metavar="RULE", help="Exit with 1 if this rule finds something; `any` means every rule."
        ),
    ] = None,
    show: Annotated[int, typer.Option("--show", min=0, help="Most findings shown per rule; 0 shows all.")] = 10,
    profile: Profile = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Find tools outranked for their own name, duplicates, weak names and descriptions, and long texts.

    Each finding names the tool, the problem, the remedy, and the tokens of the tool's definition. Tools come from
    --config (live servers), --catalog (files), or both; without either, from the MCP clients that are configured on
    this machine. Exits with 1 if a rule of --fail-on finds something.
    """
    from pegboard.apps.cli.configs import for_tools
    from pegboard.lint import LintLimits, chosen

    rules = chosen(rule or [])
    failing = rules if "any" in (fail_on or []) else chosen(fail_on) if fail_on else frozenset()
    if left_out := sorted(failing - rules):
        raise ConfigError(
            f"--fail-on {left_out[0]} cannot fail: --rule leaves that rule out.",
            remedy=f"Add --rule {left_out[0]}, or leave --rule out.",
        )
    configured = for_tools(config, catalog, profile=profile)
    limits = LintLimits(description=max_description, schema=max_schema, tokens=min_tokens)
    made = asyncio.run(_lint(configured, catalog or [], rules, limits, context.obj))
    if as_json:
        print_json(payload(made))
    else:
        print_findings(made, show)
    if any(finding.rule in failing for finding in made.findings):
        raise typer.Exit(1)


async def _lint(
    configured: Configured, catalogs: Sequence[Path], rules: AbstractSet[str], limits: LintLimits, replaced: Replaced
) -> LintReport:
    from pegboard.apps.cli.tool_sources import load_some
    from pegboard.lint import BOARD_RULES, in_order, subjects, tool_findings

    loaded = await load_some(configured, catalogs, "to check")
    tools = subjects(loaded.catalog)
    found = tool_findings(tools, limits, rules)
    if rules & BOARD_RULES:
        found += await _of_board(configured.settings, loaded.catalog, tools, rules, replaced)
    return LintReport(loaded=loaded, findings=in_order(found, limits), rules=rules)


async def _of_board(
    settings: Settings, catalog: Catalog, tools: Sequence[Subject], rules: AbstractSet[str], replaced: Replaced
) -> list[LintFinding]:
    from pegboard.apps.cli.warm_board import warm_board
    from pegboard.evaluation.progress_bar import bar
    from pegboard.lint import board_findings
    from pegboard.model import AgentState, Turn

    board, _ = await warm_board(settings, catalog, replaced)
    scopes = frozenset(settings.scopes)
    turn = Turn.ask("", scopes=scopes, state=AgentState(auth=scopes))
    with bar("asking for each tool") as progress:
        return await board_findings(board, turn, tools, rules, progress)


def payload(linted: LintReport) -> dict[str, Any]:
    return {
        "tools": len(linted.loaded.catalog),
        "tokens": linted.tokens,
        "tools_with_findings": len({finding.tool for finding in linted.findings}),
        "long_text_tokens": linted.spare(*LONG_TEXTS),
        "duplicate_tokens": linted.spare("duplicate"),
        "rules": {rule: len(linted.of(rule)) for rule in RULES if rule in linted.rules},
        "findings": [_finding(finding) for finding in linted.findings],
    } | linted.loaded.payload()


def _finding(finding: LintFinding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "server": finding.tool.server,
        "tool": finding.tool.name,
        "says": finding.says,
        "remedy": finding.remedy,
        "tokens": finding.tokens,
        "spare_tokens": finding.spare,
    }


def print_findings(linted: LintReport, most: int) -> None:
    """Print a table for each rule with findings, with at most ``most`` rows (0 means all), then the sums."""
    console = stdout()
    for line in linted.loaded.lines():
        console.print(plain(line))
    for rule in RULES:
        if findings := linted.of(rule):
            console.print(_table(rule, findings, most))
            console.print(plain("\n".join(_below(findings, most)) + "\n"))
    console.print(plain("\n".join(_summary(linted))))


def _table(rule: str, findings: Sequence[LintFinding], most: int) -> Table:
    """Grouped by server, the server with the most findings first."""
    made = table(f"{rule} ({len(findings)}): {RULES[rule]}", "server", "tool", ">tokens", "finding")
    before = ""
    for finding in findings[: most or None]:
        server = finding.tool.server
        made.add_row(*cells("" if server == before else server, finding.tool.name, f"{finding.tokens:,}", finding.says))
        before = server
    return made


def _below(findings: Sequence[LintFinding], most: int) -> Iterator[str]:
    if most and len(findings) > most:
        yield f"… and {len(findings) - most:,} more (--show 0 shows all)."
    yield f"→ {findings[0].remedy}"


def _summary(linted: LintReport) -> Iterator[str]:
    concerned = len({finding.tool for finding in linted.findings})
    yield (
        f"{len(linted.loaded.catalog):,} tools of {linted.tokens:,} tokens: {len(linted.findings):,} findings in "
        f"{concerned:,} tools."
    )
    if long := linted.spare(*LONG_TEXTS):
        yield f"Texts beyond the limits cost {long:,} tokens in every request that carries all tools."
    if twice := linted.spare("duplicate"):
        yield f"Second tools for the same job cost {twice:,} tokens."
