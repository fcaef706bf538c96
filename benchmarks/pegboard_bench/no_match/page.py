"""The section of `no_match.json`: requests that no tool fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

INTRODUCTION = """## Requests that no tool fits

Written by `{command}`. {measured}.

A search says "nothing fits" where the probability that any tool does is below {least:.2f}. Weights and bound were
fitted on toolalpaca, nestful, stabletoolbench and requests for the public catalogs (`scripts/fit_no_match.py`), on none
of the sets below. `servers off`: boards of up to half of a set's servers; a request whose tools are there must not be
told that nothing fits, one must whose tools, and those that do the same job, are not. `tools off`: only the tools of
the request are taken off the whole board and others of the same servers stay, which often do nearly the same; few of
these can be told. Labels are incomplete: another tool may do the job, so that `recall` is a lower bound. `precision` is
for as many requests of one kind as of the other. Whatever is said, the nearest tools are shown.

| set | | requests | recall | false alarms | precision | AUC |
|---|---|---|---|---|---|---|
{rows}"""


def section(written: Mapping[str, Any]) -> str:
    """The section of `no_match.json` on the page of benchmarks."""
    shown = written["figures"]
    names = [name.removeprefix("asked/") for name in shown if name.startswith("asked/")]
    rows = "".join(_row(name, shown) for name in sorted(names))
    return INTRODUCTION.format(
        command=written["command"], measured=measured(written), least=written["tables"]["least"], rows=rows
    )


def _row(name: str, shown: Mapping[str, float]) -> str:
    of_set, _, off = name.partition("/")

    def spread(figure: str) -> str:
        low, high = shown[f"{figure}_low/{name}"], shown[f"{figure}_high/{name}"]
        return f"{shown[f'{figure}/{name}']:.3f} [{low:.3f}, {high:.3f}]"

    return (
        f"| {of_set} | {off.replace('_', ' ') or 'every search'} | {shown[f'asked/{name}']:.0f} | {spread('recall')} |"
        f" {spread('false')} | {shown[f'precision/{name}']:.3f} | {shown[f'auc/{name}']:.3f} |\n"
    )
