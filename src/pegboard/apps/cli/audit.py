"""`pegboard audit`: what tool definitions cost."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.apps.cli.audit_exposure import ExposureCost
from pegboard.apps.cli.options import Catalogs, Configs, Json, Verbose, examples
from pegboard.apps.cli.output import cells, plain, print_json, stdout, table
from pegboard.apps.cli.tool_sources import LoadedTools
from pegboard.catalog import BpeCounter, Catalog, canonical_text

if TYPE_CHECKING:
    from pathlib import Path

    from pegboard.apps.cli.configs import Configured

WINDOW = 200_000
"""Tokens of the context window to which shares refer."""
TURNS = 30
"""Turns of a session."""
MILLION = 1_000_000

EXAMPLES = examples(
    "What do the servers of my MCP clients cost?",
    "pegboard audit",
    "Only these servers, at 15 USD per million tokens",
    "pegboard audit --config .mcp.json --price 15",
    "Tools in a file, for a program to read",
    "pegboard audit --catalog tools.json --json",
)

MONEY = (">USD a turn", f">USD {TURNS} turns", ">cached")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrice:
    """``input`` is USD per million input tokens; ``read`` and ``write`` are multiples of it for the prompt cache."""

    input: float = 3.0
    read: float = 0.1
    write: float = 1.25

    def turn(self, tokens: float) -> float:
        """USD a turn without a cache."""
        return tokens * self.input / MILLION

    def session(self, tokens: float) -> float:
        """USD for a session without a cache."""
        return TURNS * self.turn(tokens)

    def cached_session(self, tokens: float) -> float:
        """USD for a session whose first turn writes the cache and whose other turns read it."""
        return self.turn(tokens) * (self.write + (TURNS - 1) * self.read)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tax:
    """The tokens that the tools of one server, or of all, add to every request."""

    name: str
    tools: int
    tokens: int
    o200k: int
    largest: str
    largest_tokens: int

    @property
    def mean(self) -> float:
        return self.tokens / self.tools if self.tools else 0.0

    @property
    def share(self) -> float:
        """Of the context window."""
        return self.tokens / WINDOW


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    taxes: Sequence[Tax]
    exposed: ExposureCost
    price: TokenPrice
    loaded: LoadedTools

    @property
    def total(self) -> Tax:
        return total(self.taxes)


def taxes(catalog: Catalog) -> list[Tax]:
    """One a server, the most expensive first."""
    o200k = BpeCounter("o200k_base").count([canonical_text(tool) for tool in catalog.tools])
    rows: Mapping[str, list[tuple[int, int, str]]] = {name: [] for name in catalog.servers}
    for tool, tokens, other in zip(catalog.tools, catalog.token_counts, o200k, strict=True):
        rows[tool.server].append((tokens, other, tool.name))
    return sorted((_tax(name, of_server) for name, of_server in rows.items()), key=lambda tax: -tax.tokens)


def total(taxes: Iterable[Tax]) -> Tax:
    every = list(taxes)
    largest = max(every, key=lambda tax: tax.largest_tokens, default=None)
    return Tax(
        name="total",
        tools=sum(tax.tools for tax in every),
        tokens=sum(tax.tokens for tax in every),
        o200k=sum(tax.o200k for tax in every),
        largest=f"{largest.name}/{largest.largest}" if largest else "",
        largest_tokens=largest.largest_tokens if largest else 0,
    )


def _tax(name: str, rows: list[tuple[int, int, str]]) -> Tax:
    largest_tokens, _, largest = max(rows, default=(0, 0, ""))
    return Tax(
        name=name,
        tools=len(rows),
        tokens=sum(tokens for tokens, _, _ in rows),
        o200k=sum(other for _, other, _ in rows),
        largest=largest,
        largest_tokens=largest_tokens,
    )


def cost(price: TokenPrice, tokens: float) -> dict[str, float]:
    """USD, as the audit prints them."""
    return {
        "turn": round(price.turn(tokens), 6),
        "session": round(price.session(tokens), 6),
        "session_cached": round(price.cached_session(tokens), 6),
    }


def audit(
    config: Configs = None,
    catalog: Catalogs = None,
    price: Annotated[float, typer.Option("--price", min=0, max=MILLION, help="USD per million input tokens.")] = 3.0,
    cache_read: Annotated[
        float,
        typer.Option(
            "--cache-read", min=0, max=100, help="Price of a token read from the prompt cache, relative to --price."
        ),
    ] = 0.1,
    cache_write: Annotated[
        float,
        typer.Option(
            "--cache-write", min=0, max=100, help="Price of a token written to the prompt cache, relative to --price."
        ),
    ] = 1.25,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what tool definitions cost, per server: the tokens that every request carries, and their price.

    Without --config and --catalog, the usual files of MCP clients are read. A session has 30 turns; with a prompt
    cache, its first turn writes the definitions and the others read them. The result is compared with what Pegboard
    would send instead, including its own tools.
    """
    from pegboard.apps.cli.configs import Configured, given_or_usual
    from pegboard.settings import load_settings

    configured = Configured(settings=load_settings()) if catalog and not config else given_or_usual(config or [])
    made = asyncio.run(_audit(configured, catalog or [], TokenPrice(input=price, read=cache_read, write=cache_write)))
    if as_json:
        print_json(payload(made))
    else:
        show(made)
    if not made.total.tools:
        raise typer.Exit(1)


async def _audit(configured: Configured, catalogs: Sequence[Path], price: TokenPrice) -> AuditReport:
    from pegboard.apps.cli.audit_exposure import exposed
    from pegboard.apps.cli.tool_sources import load

    loaded = await load(configured, catalogs)
    return AuditReport(
        taxes=taxes(loaded.catalog),
        exposed=await exposed(loaded.catalog, configured.settings),
        price=price,
        loaded=loaded,
    )


def payload(audit: AuditReport) -> dict[str, Any]:
    return {
        "total_tokens": audit.total.tokens,
        "total_tokens_o200k": audit.total.o200k,
        "total_tools": audit.total.tools,
        "window_share": round(audit.total.share, 4),
        "cost_usd": cost(audit.price, audit.total.tokens),
        "servers": [_server(audit, tax) for tax in audit.taxes],
        "pegboard": _pegboard(audit),
        "assumptions": {
            "usd_per_million_tokens": audit.price.input,
            "cache_read": audit.price.read,
            "cache_write": audit.price.write,
            "turns": TURNS,
            "window": WINDOW,
            "encoding": "cl100k_base",
        },
    } | audit.loaded.payload()


def _server(audit: AuditReport, tax: Tax) -> dict[str, Any]:
    return {
        "name": tax.name,
        "tools": tax.tools,
        "tokens": tax.tokens,
        "tokens_o200k": tax.o200k,
        "mean_tokens": round(tax.mean, 1),
        "largest_tool": {"name": tax.largest, "tokens": tax.largest_tokens},
        "window_share": round(tax.share, 4),
        "cost_usd": cost(audit.price, tax.tokens),
    }


def _pegboard(audit: AuditReport) -> dict[str, Any]:
    sent = audit.exposed
    made: dict[str, Any] = {"mode": sent.mode, "tokens": sent.tokens, "cost_usd": cost(audit.price, sent.tokens)}
    if sent.mode == "eager":
        return made
    return made | {
        "definitions": dict(sent.definitions),
        "phase1_tokens": sent.phase1,
        "search_round_trip_tokens": round(sent.search),
        "describe_tokens": round(sent.describe),
        "saved_tokens": audit.total.tokens - sent.tokens,
    }


def show(audit: AuditReport) -> None:
    console = stdout()
    for line in audit.loaded.lines():
        console.print(plain(line))
    made = table("", "server", ">tools", ">tokens", ">mean", "largest tool", f">of {WINDOW // 1000}k", *MONEY)
    for tax in audit.taxes:
        made.add_row(*cells(*_row(audit, tax)))
    made.add_section()
    made.add_row(*cells(*_row(audit, audit.total)), style="bold")
    console.print(made)
    console.print(plain("\n" + "\n".join(_sentences(audit))))


def _row(audit: AuditReport, tax: Tax) -> list[str]:
    prices = cost(audit.price, tax.tokens)
    largest = f"{tax.largest} ({tax.largest_tokens:,})" if tax.tools else ""
    counted = [tax.name, f"{tax.tools:,}", f"{tax.tokens:,}", f"{tax.mean:,.0f}", largest, f"{tax.share:.1%}"]
    return [*counted, f"{prices['turn']:.4f}", f"{prices['session']:.2f}", f"{prices['session_cached']:.2f}"]


def _sentences(audit: AuditReport) -> list[str]:
    price, sent, whole = audit.price, audit.exposed, audit.total
    assumed = (
        f"Tokens by cl100k ({whole.o200k:,} by o200k). Price: {price.input:g} USD per million input tokens; cached, "
        f"the first turn writes at {price.write:g} times that and the other {TURNS - 1} read at {price.read:g} times."
    )
    if not whole.tools:
        return ["No tools were counted."]
    if sent.mode == "eager":
        return [
            assumed,
            "This board is so small that Pegboard would list all its tools: searching would cost more.",
        ]
    prices = cost(price, sent.tokens)
    return [
        assumed,
        f"With Pegboard every turn carries {sent.tokens:,} tokens ({len(sent.definitions)} tools, of which "
        f"{sent.phase1:,} tokens are the summary of all the others), {_than_now(sent.tokens, whole.tokens)}: "
        f"{prices['turn']:.4f} USD a turn, {prices['session']:.2f} in {TURNS} turns, "
        f"{prices['session_cached']:.2f} cached.",
        f"If a tool must be found first, a search adds about {sent.search:,.0f} tokens (call and result), and a full "
        f"definition {sent.describe:,.0f}.",
    ]


def _than_now(sent: int, now: int) -> str:
    """The relative difference, rounded towards zero, so that it never says 100% less.

    >>> _than_now(747, 240_369)
    '99.6% less'
    """
    change = sent / now - 1
    tenths = math.floor(abs(change) * 1000)
    return f"{tenths / 10:g}% {'less' if change < 0 else 'more'}"
