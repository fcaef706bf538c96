"""`pegboard shadow`: shows what filtering would have saved and lost."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from pegboard.apps.cli.options import Configs, Json, Verbose, examples
from pegboard.apps.cli.output import cells, plain, print_json, stdout, table
from pegboard.proportions import Share, wilson
from pegboard.telemetry.shadow_counts import RouteCounts

EXAMPLES = examples(
    "What would have been saved, and which calls would have been lost?",
    "pegboard shadow",
    "The tools with the most misses, as JSON",
    "pegboard shadow --tools 50 --json",
    "Remove all counts",
    "pegboard shadow --forget",
)

NOTHING = (
    "No shadow request has been counted on this machine. With shadow = true under [llm.policy], `pegboard serve` "
    "counts what filtering would do."
)
Row = tuple[RouteCounts, str, int, int]
"""A route, a tool, its calls and its misses."""


def shadow(
    config: Configs = None,
    tools: Annotated[
        int, typer.Option("--tools", min=0, help="Number of tools to show, those with the most misses.")
    ] = 10,
    forget: Annotated[bool, typer.Option("--forget", help="Remove all counts.")] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what filtering would have done to shadow requests: tokens saved, and tool calls lost.

    With shadow = true in a policy of the LLM gateway, requests are forwarded unchanged. A model's call of a tool that
    would have been removed is a miss; recall is the share of calls that are not misses, with its 95% interval. Counts
    are kept per upstream, model, key and policy, on this machine.
    """
    from pegboard.apps.cli.configs import own_files_agreed
    from pegboard.settings import load_settings
    from pegboard.telemetry.shadow_counts import FILE, ShadowCounts

    counts = ShadowCounts(load_settings(config or own_files_agreed()).state_dir / FILE)
    if forget:
        removed = counts.forget()
        if as_json:
            print_json({"removed": removed})
        else:
            sys.stdout.write(f"Removed: the counts of {removed:,} requests.\n")
    elif as_json:
        print_json(payload(counts.read(), tools))
    else:
        show(counts.read(), tools)


def payload(routes: Sequence[RouteCounts], most: int) -> dict[str, Any]:
    return {
        "routes": [_route(route) for route in routes],
        "tools": [
            _names(route) | {"tool": tool, "calls": called, "missed": missed, "recall": interval(called, missed)}
            for route, tool, called, missed in missed_most(routes, most)
        ],
    }


def _route(route: RouteCounts) -> dict[str, Any]:
    return _names(route) | {
        "requests": route.requests,
        "measured": route.measured,
        "unmeasured": dict(route.unmeasured),
        "tools": route.tools,
        "kept": route.kept,
        "tokens_before": route.tokens_before,
        "tokens_after": route.tokens_after,
        "calls": route.called,
        "missed": route.missed,
        "recall": interval(route.called, route.missed),
        "first": route.first,
        "last": route.last,
    }


def _names(route: RouteCounts) -> dict[str, Any]:
    return {"upstream": route.upstream, "model": route.model, "key": route.key, "policy": route.policy}


def missed_most(routes: Sequence[RouteCounts], most: int) -> list[Row]:
    rows = [(route, tool, *counted) for route in routes for tool, counted in route.calls.items()]
    return sorted(rows, key=lambda row: (-row[3], -row[2], row[1]))[:most]


def show(routes: Sequence[RouteCounts], most: int) -> None:
    console = stdout()
    if not routes:
        console.print(plain(NOTHING), soft_wrap=True)
        return
    made = table(
        "Requests in the shadow",
        *("upstream", "model", "key", "policy", "last", ">requests", ">measured", ">tools", ">kept"),
        *(">tokens", ">saved", ">calls", ">missed", ">recall [95%]"),
    )
    for route in routes:
        made.add_row(*cells(*_cells(route)))
    console.print(made)
    if rows := [row for row in missed_most(routes, most) if row[3]]:
        made = table("Missed most", "tool", "upstream", "model", "policy", ">calls", ">missed", ">recall [95%]")
        for route, tool, called, missed in rows:
            told = (tool, route.upstream, route.model, route.policy, called, missed, said(called, missed))
            made.add_row(*cells(*told))
        console.print()
        console.print(made)
    for reason, requests in _unmeasured(routes).items():
        console.print(plain(f"Not measured, {reason}: {requests:,} requests."))


def _cells(route: RouteCounts) -> list[object]:
    saved = route.tokens_before - route.tokens_after
    last = datetime.fromtimestamp(route.last, UTC)
    return [
        *(route.upstream, route.model or "-", route.key or "-", route.policy or "-", f"{last:%Y-%m-%d %H:%M}"),
        *(f"{route.requests:,}", f"{route.measured:,}"),
        *(_mean(route.tools, route.measured), _mean(route.kept, route.measured)),
        *(f"{route.tokens_before:,}", f"{saved / route.tokens_before:.1%}" if route.tokens_before else "-"),
        *(f"{route.called:,}", f"{route.missed:,}", said(route.called, route.missed)),
    ]


def _mean(total: int, of: int) -> str:
    return f"{total / of:.1f}" if of else "-"


def _unmeasured(routes: Sequence[RouteCounts]) -> dict[str, int]:
    added: dict[str, int] = {}
    for route in routes:
        for reason, requests in route.unmeasured.items():
            added[reason] = added.get(reason, 0) + requests
    return dict(sorted(added.items()))


def interval(called: int, missed: int) -> list[float] | None:
    """Counterfactual recall with its interval; None without calls."""
    share = wilson(called - missed, called)
    return None if share is None else rounded(share)


def said(called: int, missed: int) -> str:
    share = wilson(called - missed, called)
    return "-" if share is None else f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}]"


def rounded(share: Share) -> list[float]:
    return [round(each, 4) for each in (share.value, share.low, share.high)]
