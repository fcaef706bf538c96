"""The section of `simulate.json`: routing where servers differ in price, latency and failure."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import Any

from pegboard_bench.results import measured
from pegboard_bench.simulate import calibrated_page, conclusions, paper
from pegboard_bench.simulate.pictures import by_difference, cumulative
from pegboard_bench.simulate.texts import (
    CATEGORIES,
    CATEGORIES_HEAD,
    GRID,
    GRID_HEAD,
    INTRODUCTION,
    LEARNT,
    PAPER,
    POLICIES,
    READING,
    SET,
)

WIDTH = 120
METRICS: Mapping[str, tuple[str, str]] = {
    "success": ("success", ".3f"),
    "invalid_calls": ("C-Inv", ",.0f"),
    "tokens": ("tokens", ",.0f"),
    "cost_usd": ("cost", ".2f"),
    "seconds_to_success": ("seconds to success", ".2f"),
    "utility": ("utility a call", ".3f"),
    "mrr": ("MRR", ".3f"),
    "recall@3": ("recall@3", ".3f"),
}


def section(results: Mapping[str, Any]) -> str:
    tables = results["tables"]
    parts = [
        INTRODUCTION.format(
            command=results["command"],
            measured=measured(results),
            worlds=tables["worlds"],
            tasks=tables["tasks"]["tasks"],
            routes=tables["tasks"]["routes"],
        ),
        *(_set(asked, tables) for asked in tables["policies"]),
        _paper(tables),
        calibrated_page.part(tables, results["figures"]),
        _categories(tables),
        _grid(tables),
        _learnt(tables),
        READING.format(
            points="\n".join(
                _wrapped(f"- {point}", indent="  ")
                for point in (
                    *conclusions.ehrr(tables),
                    conclusions.where_it_loses(tables),
                    conclusions.as_it_learns(tables),
                    conclusions.economics(tables),
                )
            ),
            cut="\n\n".join(_wrapped(each) for each in conclusions.cut(tables)),
        ),
    ]
    return "".join(parts)


def _wrapped(text: str, indent: str = "") -> str:
    return fill(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def _set(asked: str, tables: Mapping[str, Any]) -> str:
    policies = tables["policies"][asked]
    rows = [
        f"| {title} | {' | '.join(_value(policies[policy][metric], form) for metric, (_, form) in METRICS.items())} |"
        for policy, title in POLICIES.items()
        if policy in policies
    ]
    return SET.format(asked=asked, number=tables["tasks"][asked], rows="\n".join(rows), picture=cumulative(asked))


def _value(each: list[float], form: str) -> str:
    mean, low, high = (format(value, form) for value in each)
    return f"{mean} [{low}, {high}]"


def _paper(tables: Mapping[str, Any]) -> str:
    pairs = {asked: tables["pairs"][f"{asked}/h1/copies1"] for asked in tables["policies"]}
    compared = [
        pairs["tasks"]["ehrr_over_rag_mcp"],
        pairs["routes"]["ehrr_over_rag_mcp"],
        pairs["routes"]["ehrr_over_rag_mcp_task_text"],
    ]
    rows = [
        f"| {METRICS[metric][0]} | {qwen:+.1%} / {claude:+.1%} | "
        f"{' | '.join(conclusions.signed(each[metric]) for each in compared)} |"
        for metric, (qwen, claude) in paper.OVER_RAG.items()
    ]
    policies = tables["policies"]
    ablations = [
        f"| `{policy}` | {_known(paper.SUCCESS.get(policy))} | {mrr:.2f} | "
        + " | ".join(
            _value(policies[asked][policy][metric], ".3f") for asked in policies for metric in ("success", "mrr")
        )
        + " |"
        for policy, mrr in paper.MRR.items()
    ]
    return PAPER.format(rows="\n".join(rows), ablations="\n".join(ablations), recall=paper.RECALL_3)


def _known(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _categories(tables: Mapping[str, Any]) -> str:
    rows = []
    for name, policies in tables["categories"]["tasks"].items():
        category = name.partition(" ")[0]
        qwen, claude = paper.SUCCESS_BY_CATEGORY.get(category, (0.0, 0.0))
        over_qwen, over_claude = paper.OVER_RAG_BY_CATEGORY.get(category, (0.0, 0.0))
        values = [
            f"{qwen:.2f} / {claude:.2f}",
            f"{over_qwen:+.0%} / {over_claude:+.0%}",
            *(
                _value(policies[policy]["success"], ".2f")
                for policy in ("ehrr", "rag_mcp", "hybrid", "hybrid_economics", "saturation")
            ),
            *(f"{policies[policy]['invalid_calls'][0]:.0f}" for policy in ("ehrr", "rag_mcp", "hybrid")),
        ]
        rows.append(f"| {name} | {' | '.join(values)} |")
    return CATEGORIES.format(head=CATEGORIES_HEAD, rows="\n".join(rows))


def _grid(tables: Mapping[str, Any]) -> str:
    rows = []
    for label, pairs in tables["pairs"].items():
        asked, level, copies = label.split("/")
        values = [
            f"{tables['grid'][label]['rag_mcp']['success'][0]:.3f}",
            *(
                conclusions.signed(pairs[name]["success_points"], share=False)
                for name in ("ehrr_over_rag_mcp", "hybrid_over_rag_mcp", "hybrid_economics_over_hybrid")
            ),
            conclusions.signed(pairs["ehrr_over_rag_mcp"]["cost_usd"]),
        ]
        place = (asked, copies.removeprefix("copies"), level.removeprefix("h"))
        rows.append(f"| {' | '.join(place)} | {' | '.join(values)} |")
    pictures = "\n".join(f"![success on {asked}]({by_difference(asked)})" for asked in tables["policies"])
    return GRID.format(head=GRID_HEAD, rows="\n".join(rows), pictures=pictures)


def _learnt(tables: Mapping[str, Any]) -> str:
    rows = []
    for title in POLICIES:
        values = [
            _before_and_after(title, before.get(asked, {}), after.get(asked, {}))
            for before, after in (("policies", "learnt"), ("several", "several_learnt"))
            for before, after in ((tables[before], tables[after]),)
            for asked in tables["policies"]
        ]
        if any(values):
            rows.append(f"| `{title}` | {' | '.join(values)} |")
    return LEARNT.format(passes=max(tables["passes"].values()), rows="\n".join(rows))


def _before_and_after(policy: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if policy not in before:
        return ""
    return f"{before[policy]['success'][0]:.3f} → {after[policy]['success'][0]:.3f}"
