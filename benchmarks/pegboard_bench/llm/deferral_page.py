"""The section of `deferral.json`: what deferring tools adds to a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

TEXT = """## A request whose tools are deferred

Written by `{command}`. {measured}.

A request of Anthropic's Messages of 100 KB with 120 tools and a query that was never there before goes to a mock that
answers at once, directly and through `pegboard serve` with `ways = ["defer"]`: {rounds} rounds in which both and the
encoder alone (on one thread, {encoder:.1f} ms a query) take turns. It is to add at most 1.3 times what the encoder
takes, and 2 ms. Where the machine did other work meanwhile, all times are longer: compare the shares of what is
allowed, each of one round, and not the times with those of other sections.

| clients | added to a request, ms | share of what is allowed | least and most of the rounds |
|---|---|---|---|
"""


def section(results: Mapping[str, Any]) -> str:
    figures, tables = results["figures"], results["tables"]
    head = TEXT.format(
        command=results["command"], measured=measured(results), rounds=tables["rounds"], encoder=figures["encoder_ms"]
    )
    rows = [
        f"| {clients} | {figures[f'added_ms/{clients}']:.1f} | {figures[f'added_over_allowed/{clients}']:.2f} | "
        f"{min(each):.2f} to {max(each):.2f} |"
        for clients, each in tables["over_allowed"].items()
    ]
    return head + "\n".join(rows) + "\n"
