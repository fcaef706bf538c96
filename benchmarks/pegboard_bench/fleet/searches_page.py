"""The section of `searches.json`: searches as models write them, over a fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

INTRODUCTION = """## Searches over a fleet

Written by `{command}`. {measured}.

{searches} searches as models write them, over the definitions of {tools} tools that the servers of
`scripts/install_fleet.py` list; {none} of them ask for what no server has. A developer of Pegboard wrote them, who knew
the tools. Whether a search means any tool at all is decided by a logistic regression: before
[decision 32](decisions/0032-nothing-fits.md) it was fitted on the half `fit`, since then on neither;
nothing was fitted on `show`, but its author saw how both halves were answered before spelling and named servers were
added. `detected` is the share of the searches without a fitting tool that found nothing, `false` the share of the
others that did.

| half | first place | first five | no match: detected | false |
|---|---|---|---|---|
{rows}
An exact name, in any case and with any separators, is first in {exact:.1%}; the first places are all taken by the tools
of a service that is named in {filled:.1%}.

| kind | searches | first place | first five |
|---|---|---|---|
{by_kind}"""


def section(written: Mapping[str, Any]) -> str:
    """The section of `searches.json` on the page of benchmarks."""
    shown = written["figures"]
    rows = "".join(
        f"| {name} | {shown[f'first/{name}']:.3f} | {shown[f'first_five/{name}']:.3f} |"
        f" {shown[f'no_match/detected/{name}']:.3f} | {shown[f'no_match/false/{name}']:.3f} |\n"
        for name in ("all", "fit", "show")
    )
    kinds = [name for name in written["tables"]["kinds"] if name != "none"]
    by_kind = "".join(
        f"| {kind} | {written['tables']['kinds'][kind]} | {shown[f'first/{kind}']:.3f} |"
        f" {shown[f'first_five/{kind}']:.3f} |\n"
        for kind in kinds
    )
    return INTRODUCTION.format(
        command=written["command"],
        measured=measured(written),
        searches=int(shown["searches"]),
        none=written["tables"]["kinds"]["none"],
        tools=int(shown["tools"]),
        rows=rows,
        exact=shown["first/exact_names"],
        filled=shown["filled/service"],
        by_kind=by_kind,
    )
