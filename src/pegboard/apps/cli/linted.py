"""Findings as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from pegboard.apps.cli.output import cells, plain, stdout, table
from pegboard.apps.cli.sources import Loaded
from pegboard.lint import LONG_TEXTS, RULES, Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Linted:
    """The findings of these rules, in the order in which they are shown."""

    loaded: Loaded
    findings: Sequence[Finding]
    rules: AbstractSet[str]

    @property
    def tokens(self) -> int:
        """Of all definitions."""
        return sum(self.loaded.catalog.token_counts)

    def of(self, rule: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.rule == rule]

    def spare(self, *rules: str) -> int:
        """Tokens that mending what these rules found would save."""
        return sum(finding.spare for finding in self.findings if finding.rule in rules)


def payload(linted: Linted) -> dict[str, Any]:
    return {
        "tools": len(linted.loaded.catalog),
        "tokens": linted.tokens,
        "tools_with_findings": len({finding.tool for finding in linted.findings}),
        "long_text_tokens": linted.spare(*LONG_TEXTS),
        "duplicate_tokens": linted.spare("duplicate"),
        "rules": {rule: len(linted.of(rule)) for rule in RULES if rule in linted.rules},
        "findings": [_finding(finding) for finding in linted.findings],
    } | linted.loaded.payload()


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "server": finding.tool.server,
        "tool": finding.tool.name,
        "says": finding.says,
        "remedy": finding.remedy,
        "tokens": finding.tokens,
        "spare_tokens": finding.spare,
    }


def show(linted: Linted, most: int) -> None:
    """A table for each rule that found something, with at most so many rows (0 means all); then the sums."""
    console = stdout()
    for line in linted.loaded.lines():
        console.print(plain(line))
    for rule in RULES:
        if findings := linted.of(rule):
            console.print(_table(rule, findings, most))
            console.print(plain("\n".join(_below(findings, most)) + "\n"))
    console.print(plain("\n".join(_summary(linted))))


def _table(rule: str, findings: Sequence[Finding], most: int) -> Table:
    """Grouped by server, the server with the most findings first."""
    made = table(f"{rule} ({len(findings)}): {RULES[rule]}", "server", "tool", ">tokens", "finding")
    before = ""
    for finding in findings[: most or None]:
        server = finding.tool.server
        made.add_row(*cells("" if server == before else server, finding.tool.name, f"{finding.tokens:,}", finding.says))
        before = server
    return made


def _below(findings: Sequence[Finding], most: int) -> Iterator[str]:
    if most and len(findings) > most:
        yield f"… and {len(findings) - most:,} more (--show 0 shows all)."
    yield f"→ {findings[0].remedy}"


def _summary(linted: Linted) -> Iterator[str]:
    concerned = len({finding.tool for finding in linted.findings})
    yield (
        f"{len(linted.loaded.catalog):,} tools of {linted.tokens:,} tokens: {len(linted.findings):,} findings in "
        f"{concerned:,} tools."
    )
    if long := linted.spare(*LONG_TEXTS):
        yield f"Texts beyond the limits cost {long:,} tokens in every request that carries all tools."
    if twice := linted.spare("duplicate"):
        yield f"Second tools for the same job cost {twice:,} tokens."
