"""The figures of docs/coding-agents.md, between two marks, from the results file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

FIGURES = re.compile(r"(<!-- figures -->\n).*?(<!-- /figures -->)", re.DOTALL)
HEAD = """\
| agent | MCP tools | prompts that lost a tool | tasks failed | definitions, of the direct bill | billed, of directly |
|---|---|---|---|---|---|
"""


def with_figures(page: str, found: Mapping[str, Any]) -> str:
    rows = "\n".join(_rows(found))
    return FIGURES.sub(lambda marks: f"{marks[1]}{HEAD}{rows}\n{marks[2]}", page)


def _rows(found: Mapping[str, Any]) -> Iterator[str]:
    figures = found["figures"]
    for name, agent in found["tables"]["agents"].items():
        for count in (each for each in ("0", "60", "300") if each in agent):
            lost, failed = (figures[f"{figure}/{name}/{count}"] for figure in ("prompts_lost", "tasks_failed"))
            over = figures.get(f"billed_over_direct/{name}/{count}")
            prompts, billed = agent[count]["prompts"], "directly refused" if over is None else f"{over:.0%}"
            share = figures.get(f"definitions_share/{name}/{count}")
            definitions = "" if share is None else f"{share:.0%}"
            yield f"| {agent['title']} | {count} | {lost:.0f} of {prompts} | {failed:.0f} | {definitions} | {billed} |"
