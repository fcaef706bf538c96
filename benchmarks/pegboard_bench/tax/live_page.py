"""The section of `live.json`: what a model called, beside what is projected."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import Any

from pegboard_bench.results import measured
from pegboard_bench.tax.methods import title

INTRODUCTION = """## A live model

Written by `make bench-live` (`pegboard bench --part model --model-url URL`; with `PEGBOARD_DATA` for real120).
{measured}.

The model is {model}. It is asked for single-step tasks of the tools tax, {answers} a testbed, at temperature 0, with
the definitions that a method sends in its first request; its first call is looked at, its arguments are not. *Offered*
is the share of tasks whose tool was among the definitions, *right* the share on which the model called it, *of those
offered* the one by the other; a name that the model knows only from a summary is no right call. *Refused* were prompts
that the endpoint called too long. Tokens are those that the endpoint
counted, with its own vocabulary; seconds are a median, and what stays the same from prompt to prompt is read once.

"""


def section(results: Mapping[str, Any]) -> str:
    beds = results["tables"]["testbeds"]
    answers = max(of["answers"] for methods in beds.values() for of in methods.values())
    head = INTRODUCTION.format(measured=measured(results), model=results["tables"]["model"], answers=answers)
    paragraphs = [fill(part, 120, break_on_hyphens=False, break_long_words=False) for part in head.split("\n\n")]
    done, planned = sum(map(len, beds.values())), results["tables"]["planned"]
    if done < planned:
        paragraphs.insert(-1, f"Not measured in this run, which was ended before: {planned - done} of {planned} rows.")
    return "\n\n".join(paragraphs) + "\n".join(_bed(bed, methods) for bed, methods in beds.items())


def _bed(bed: str, methods: Mapping[str, Any]) -> str:
    rows = [f"| {title(name)} | {_cells(of)} |" for name, of in methods.items()]
    return (
        f"### {bed}\n\n{_compared(methods)}"
        "| | tokens | refused | offered | right | of those offered | seconds |\n|---|---:|---:|---:|---:|---:|---:|\n"
        + "\n".join(rows)
        + "\n"
    )


def _compared(methods: Mapping[str, Any]) -> str:
    """Everything against what Pegboard sends, in a sentence."""
    full, ours = methods.get("full"), methods.get("hybrid")
    if full is None or ours is None:
        return ""
    gets = f"calls the right tool in {full['right'][0]:.0%}" if full["refused"][0] < 1 else "refuses all"
    sentence = (
        f"With every definition in the prompt this model {gets} of the tasks, with those that `hybrid` sends it calls "
        f"the right one in {ours['right'][0]:.0%}."
    )
    return fill(sentence, 120) + "\n\n"


def _cells(of: Mapping[str, Any]) -> str:
    right, low, high = of["right"]
    offered = of["offered"][0]
    if of["refused"][0] == 1:
        return f"– | 100% | {offered:.0%} | – | – | –"
    share = f"{right / offered:.0%}" if offered else "–"
    tokens = "–" if of["prompt_tokens"] is None else f"{of['prompt_tokens']:,.0f}"
    return (
        f"{tokens} | {of['refused'][0]:.0%} | {offered:.0%} | {right:.0%} [{low:.0%}, {high:.0%}] | "
        f"{share} | {of['seconds']:.1f}"
    )
