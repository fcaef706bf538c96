"""The section of `langchain_own.json`: which of LangChain's tests fail with our middleware, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard_bench.langchain_own.reasons import REASONS, reason_of
from pegboard_bench.results import measured

HEAD = """## LangChain's own tests

Written by `{command}`. {measured}.

The {tests:.0f} tests of agents in the source distribution of langchain {langchain}, with `ToolAttentionMiddleware()`
put before the middleware of every agent that they make. The same with a middleware that has the same hooks and does
nothing says which tests any such middleware fails.

| every agent has | tests that fail |
|---|---:|
| nothing more | {nothing:.0f} |
| a middleware that does nothing | {idle:.0f} |
| ours | {pegboard:.0f} |

{new:.0f} fail with ours and not without: {any:.0f} of them with the idle one too. By reason:

{reasons}
"""


def section(results: Mapping[str, Any]) -> str:
    figures, tables = results["figures"], results["tables"]
    new = [{**row, "reason": row["reason"] or reason_of(row["test"], row["said"])} for row in tables["new"]]
    return HEAD.format(
        command=results["command"],
        measured=measured(results),
        langchain=tables["langchain"],
        reasons="\n\n".join(_reason(key, new) for key in (*REASONS, "") if _of(key, new)),
        **{name.rpartition("/")[2]: value for name, value in figures.items()},
    )


def _of(key: str, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["reason"] == key]


def _reason(key: str, rows: Sequence[Mapping[str, Any]]) -> str:
    tests = _of(key, rows)
    said = REASONS.get(key, "The reason is not known.")
    return "\n".join([f"**{len(tests)}.** {said}", "", *(f"- `{row['test']}`" for row in tests)])
