"""The section of `skills.json`: what the bodies of skills add to their descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

HEAD = """## Skills

Written by `{command}`. {measured}.

{requests:.0f} requests for {skills:.0f} public skills, written and labelled by hand from the names of the folders
before any ranking was made; nothing was fitted on them. A request counts where a skill that would do is among the first
k that `Board(skills=…)` finds by words. The labels are one person's, and other skills may do too. Sources, read on the
machine that measures and not passed on: {sources}.

| searched | recall@1 | recall@3 | recall@5 (95%) | recall@10 | MRR | nothing found |
|---|---:|---:|---:|---:|---:|---:|
{rows}

At five, bodies add {gain:+.1%} (95%: {low:+.1%} to {high:+.1%}, paired). Skills are found
by words, not by meaning. What is not among the first five:

| request | would do | place by bodies | by descriptions |
|---|---|---:|---:|
{missed}
"""
TITLES = {"bodies": "name, description and body", "descriptions": "name and description"}


def section(results: Mapping[str, Any]) -> str:
    figures, tables = results["figures"], results["tables"]
    return HEAD.format(
        command=results["command"],
        measured=measured(results),
        requests=figures["requests"],
        skills=figures["skills"],
        sources="; ".join(f"{each['origin']}, {each['licence']}" for each in tables["sources"]),
        rows="\n".join(_row(way, title, figures) for way, title in TITLES.items()),
        gain=figures["gain@5"],
        low=figures["gain@5_low"],
        high=figures["gain@5_high"],
        missed="\n".join(_missed(tables["missed"])),
    )


def _row(way: str, title: str, figures: Mapping[str, float]) -> str:
    def share(cut: int) -> str:
        return f"{figures[f'recall@{cut}/{way}']:.1%}"

    interval = f"{figures[f'recall@5_low/{way}']:.1%} to {figures[f'recall@5_high/{way}']:.1%}"
    mrr, nothing = figures[f"mrr/{way}"], figures[f"nothing/{way}"]
    return f"| {title} | {share(1)} | {share(3)} | {share(5)} ({interval}) | {share(10)} | {mrr:.3f} | {nothing:.0f} |"


def _missed(missed: Mapping[str, list[Mapping[str, Any]]]) -> list[str]:
    """A row for each request that a way missed; `first five` where the other did not."""
    places = {way: {row["request"]: row["rank"] or "none" for row in missed[way]} for way in TITLES}
    wanted = {row["request"]: row["skills"] for way in TITLES for row in missed[way]}
    return [
        f"| {request} | {', '.join(f'`{each}`' for each in skills)} | "
        + " | ".join(str(places[way].get(request, "first five")) for way in TITLES)
        + " |"
        for request, skills in wanted.items()
    ]
