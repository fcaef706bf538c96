"""One labelled set of a user's own: every method on it, as a table, a results file and a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pegboard.compose import default_parts
from pegboard.evaluation import methods
from pegboard.evaluation.datasets import ToolSet
from pegboard.evaluation.progress_bar import bar
from pegboard.settings import Settings
from pegboard_bench import quality, results
from pegboard_bench.results import measured

SEED = 20260728
SHOWN = ("recall@1", "recall@3", "recall@5", "recall@10", "full@10", "mrr", "ndcg@5")
METHODS = ("hybrid", "attention", "semantic", "keyword", "attention_ungated", "bm25f", "bm25")
"""Methods in the order of the table; `bm25` is there where its package is."""
PAGE = """# {name}

Written by `{command}`. {measured}. {queries:,} labelled queries over {tools:,} tools of {servers:,} servers.

Means over all queries, with 95% intervals of a bootstrap over queries (2,000 draws). `hybrid`, `attention_ungated`,
`bm25f` and `bm25` rank every tool; `attention`, `semantic` and `keyword` only those that their profile selects.

| method | {metrics} |
|---{rules}|
{rows}
"""


async def run(dataset: ToolSet, settings: Settings, *, out: Path, command: str) -> Path:
    """Measure every method on the set, and write `set_NAME.json`."""
    parts = default_parts(settings)
    try:
        searches = {
            name: search
            for name, search in (await methods.searches(dataset.catalog, settings, parts)).items()
            if name in METHODS
        }
        with bar(dataset.name) as progress:
            rows = await quality.measure(dataset, searches, progress)
    finally:
        await parts.close()
    summary = quality.summarize(dataset.name, rows, seed=SEED)
    table = {
        method: {metric: quality.rounded(summary.means[metric, method]) for metric in SHOWN}
        for method in METHODS
        if method in rows
    }
    return results.write(
        f"set_{dataset.name}",
        command=command,
        seed=SEED,
        figures={f"{metric}/{method}": values[0] for method, row in table.items() for metric, values in row.items()},
        tables={
            "set": dataset.name,
            "queries": len(dataset.queries),
            "tools": len(dataset.catalog),
            "servers": len(dataset.catalog.servers),
            "methods": table,
        },
        folder=out,
    )


def page(found: Mapping[str, Any]) -> str:
    """The page of a results file."""
    tables = found["tables"]
    rows = [
        f"| `{method}` | {' | '.join(_cell(row[metric]) for metric in SHOWN)} |"
        for method, row in tables["methods"].items()
    ]
    return PAGE.format(
        name=tables["set"],
        command=found["command"],
        measured=measured(found),
        queries=tables["queries"],
        tools=tables["tools"],
        servers=tables["servers"],
        metrics=" | ".join(SHOWN),
        rules="|---" * len(SHOWN),
        rows="\n".join(rows),
    )


def show(found: Mapping[str, Any]) -> None:
    """The table on a terminal."""
    from rich.table import Table

    from pegboard.apps.cli.output import stdout

    tables = found["tables"]
    table = Table("method", *SHOWN, title=f"{tables['set']}: {tables['queries']} queries over {tables['tools']} tools")
    for method, row in tables["methods"].items():
        table.add_row(method, *(f"{row[metric][0]:.3f}" for metric in SHOWN))
    stdout().print(table)


def _cell(values: list[float]) -> str:
    mean, low, high = values
    return f"{mean:.3f} [{low:.3f}, {high:.3f}]"
