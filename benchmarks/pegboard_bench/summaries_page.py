"""The section of `summaries.json`: what summaries by rule do to the profile `attention`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

TEXTS: Mapping[str, str] = {
    "description": "name and whole description",
    "default": "default: their first 60 tokens",
    "rule": "**by rule** (`pegboard summarize`)",
}
COLUMNS = ("f1@5", "f1_gated", "recall@5", "mrr")
SEED_LENGTH, SEED_POINTS = -63, 8
"""What Tool Attention §5.3 claims for summaries by an LLM, in per cent and in points of F1."""

INTRODUCTION = """## Summaries

Written by `{command}`; run it yourself with `PEGBOARD_DATA` set to a folder of sets.

{measured}. Tools are ranked by the cosine of the query with the summary (`attention`). F1@5 is that of the five best,
"F1 gated" that of at most ten tools above the best threshold of the paper's sweep, for each kind of text its own. A
query that needs one tool cannot have more than 0.333 of F1@5.
"""
READING = """The paper reports {length}% of length and +{points} points of F1 for summaries by LLM. Those above are by
rule, without any LLM. How many parameters a summary names was chosen on toolalpaca and nestful; that it has one
sentence, with these sets in view, so the figures are not wholly unseen. `hybrid`, the default profile, ranks by
descriptions and is not changed by summaries; what they shorten there is the overview of all tools (phase 1).
"""


def section(results: Mapping[str, Any]) -> str:
    figures, sets = results["figures"], results["tables"]["sets"]
    head = INTRODUCTION.format(command=results["command"], measured=measured(results))
    reading = READING.format(length=SEED_LENGTH, points=SEED_POINTS)
    return "\n".join([head, *(_set(name, sets[name], figures) for name in sets), reading])


def _set(name: str, about: Mapping[str, Any], figures: Mapping[str, float]) -> str:
    rows = [_row(name, text, figures) for text in TEXTS]
    points = [100 * figures[f"f1@5_{suffix}/{name}/rule"] for suffix in ("gain", "gain_low", "gain_high")]
    change = {text: figures[f"tokens/{name}/rule"] / figures[f"tokens/{name}/{text}"] - 1 for text in TEXTS}
    return "\n".join(
        [
            f"### Summaries: {name}\n",
            f"{about['tools']:,} tools, {about['queries']:,} queries.\n",
            "| text | tokens, mean | F1@5 | F1 gated | recall@5 | MRR |",
            "|---|" + "---:|" * 5,
            *rows,
            f"\nBy rule, against the default: {points[0]:+.1f} points of F1@5 [{points[1]:+.1f}, {points[2]:+.1f}], "
            f"{change['default']:+.0%} of length; {change['description']:+.0%} against whole descriptions.\n",
        ]
    )


def _row(name: str, text: str, figures: Mapping[str, float]) -> str:
    values = " | ".join(f"{figures[f'{column}/{name}/{text}']:.3f}" for column in COLUMNS)
    return f"| {TEXTS[text]} | {figures[f'tokens/{name}/{text}']:.1f} | {values} |"
