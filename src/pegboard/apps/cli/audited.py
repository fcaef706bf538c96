"""An audit as a table and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pegboard.apps.cli.exposed import Exposed
from pegboard.apps.cli.output import cells, plain, stdout, table
from pegboard.apps.cli.sources import Loaded
from pegboard.apps.cli.tax import TURNS, WINDOW, Price, Tax, cost, total

MONEY = (">USD a turn", f">USD {TURNS} turns", ">cached")


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    taxes: Sequence[Tax]
    exposed: Exposed
    price: Price
    loaded: Loaded

    @property
    def total(self) -> Tax:
        return total(self.taxes)


def payload(audit: Audit) -> dict[str, Any]:
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


def _server(audit: Audit, tax: Tax) -> dict[str, Any]:
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


def _pegboard(audit: Audit) -> dict[str, Any]:
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


def show(audit: Audit) -> None:
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


def _row(audit: Audit, tax: Tax) -> list[str]:
    prices = cost(audit.price, tax.tokens)
    largest = f"{tax.largest} ({tax.largest_tokens:,})" if tax.tools else ""
    counted = [tax.name, f"{tax.tools:,}", f"{tax.tokens:,}", f"{tax.mean:,.0f}", largest, f"{tax.share:.1%}"]
    return [*counted, f"{prices['turn']:.4f}", f"{prices['session']:.2f}", f"{prices['session_cached']:.2f}"]


def _sentences(audit: Audit) -> list[str]:
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
            "This board is so small that Pegboard would pass it through unchanged: searching would cost more.",
        ]
    prices = cost(price, sent.tokens)
    return [
        assumed,
        f"With Pegboard every turn carries {sent.tokens:,} tokens ({len(sent.definitions)} tools, of which "
        f"{sent.phase1:,} tokens are the summary of all the others), {_than_now(sent.tokens, whole.tokens)}: "
        f"{prices['turn']:.4f} USD a turn, {prices['session']:.2f} in {TURNS} turns, "
        f"{prices['session_cached']:.2f} cached.",
        f"Where a tool has to be found, a search adds about {sent.search:,.0f} tokens (call and result), and a full "
        f"definition {sent.describe:,.0f}.",
    ]


def _than_now(sent: int, now: int) -> str:
    """Rounded towards nothing: whatever is sent, it is never 100% less.

    >>> _than_now(747, 240_369)
    '99.6% less'
    """
    change = sent / now - 1
    tenths = math.floor(abs(change) * 1000)
    return f"{tenths / 10:g}% {'less' if change < 0 else 'more'}"
