"""Fits the fusion of the hybrid ranker and its calibration, and writes src/pegboard/retrieval/fusion.json.

    python scripts/fit_fusion.py --data SETS

Fitted on queries that the encoder was not tuned on: the held-out ones of stabletoolbench, toolalpaca, nestful,
requests written for tools of the public catalogs (`scripts/tuning/written/fit-*`), and short ones made of the names of
the same servers' tools (`scripts/tuning/short.py`). Each set counts the same; the short ones, which nobody asked, take
part in the weights alone, and not in what a share of the relevance is worth. seal_tools
is left out: its queries are single requests put in a row, and make clauses count more than anyone's writing does. None
of the sets that the benchmark scores takes part, nor any other of their families.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pegboard.compose import build_routing, default_parts
from pegboard.evaluation.datasets import CATALOG, QUERIES, ToolSet, read_set
from pegboard.retrieval import OnnxEncoder
from pegboard.retrieval.fusion_fit import Example, fit
from pegboard.retrieval.intents import clauses
from pegboard.settings import load_settings
from tuning.pairs import CATALOGS, is_held_out, read
from tuning.short import short_requests

OUT = Path(__file__).parents[1] / "src" / "pegboard" / "retrieval" / "fusion.json"
ABLATED = Path(__file__).parents[1] / "src" / "pegboard" / "evaluation" / "ablations.json"
WRITTEN = Path(__file__).parent / "tuning" / "written"
PARTLY_TUNED = ("stabletoolbench",)
UNTOUCHED = ("toolalpaca", "nestful")
MODELS = {"hybrid": ("cosine", "clause", "bm25", "server", "name"), "words": ("bm25", "name")}
GIVEN = {"named": 3.0}
"""Parts with a given weight, of `hybrid`. Few of these requests name a service, so that a fit would give it the weight
that it has among hundreds of tools; 3 is enough among thousands (docs/decisions/0028-named-services.md).
"""
MOST = 400
"""Queries of a set: more would change little and cost minutes."""
SEED = 42

Row = dict[str, Any]


def prepared(data: Path, work: Path) -> Iterator[ToolSet]:
    """The sets that are fitted on, with the servers that their queries need and no others."""
    for name in (*PARTLY_TUNED, *UNTOUCHED):
        queries = [
            query for query in read(data / name / QUERIES) if name not in PARTLY_TUNED or is_held_out(query["id"])
        ]
        yield stored(work / name, read(data / name / CATALOG), queries)
    tools = [tool for name in CATALOGS for tool in read(data / name / CATALOG)]
    asked = list(written())
    yield stored(work / "written", tools, asked)
    servers = {server for query in asked for server, _ in query["relevant"]}
    there = list({(tool["server"], tool["name"]): tool for tool in tools if tool["server"] in servers}.values())
    yield stored(work / "short", there, list(short_requests(there, SEED)))


def written() -> Iterator[Row]:
    lines = (line for path in sorted(WRITTEN.glob("fit-*.jsonl.gz")) for line in read(path))
    for number, line in enumerate(lines):
        yield {"id": str(number), "query": line["query"], "relevant": [tool[1:] for tool in line["tools"]]}


def stored(folder: Path, tools: Sequence[Row], queries: Sequence[Row]) -> ToolSet:
    """A sample of the queries, over the tools of every server that one of the queries needs."""
    asked = random.Random(SEED).sample(queries, min(MOST, len(queries)))  # noqa: S311  # a sample, no secret
    needed = {server for query in queries for server, _ in query["relevant"]}
    distinct = {(tool["server"], tool["name"]): tool for tool in tools if tool["server"] in needed}
    folder.mkdir()
    write(folder / CATALOG, distinct.values())
    write(folder / QUERIES, asked)
    return read_set(folder)


def write(path: Path, rows: Iterable[Row]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)


async def examples(of_set: ToolSet, cache: Path) -> list[Example]:
    """What the hybrid ranker sees of each query; all queries of a set together count 1."""
    settings = load_settings(profile="hybrid", cache_dir=cache)
    board = build_routing(settings, of_set.catalog, parts=default_parts(settings, encoder=OnnxEncoder()))
    await board.warm(lambda done, total: say(f"{of_set.name}: {done} of {total} texts") if done % 512 == 0 else None)
    found = []
    for query in of_set.queries:
        goals = [frozenset([of_set.catalog.position[tool]]) for tool in query.relevant]
        parts = (await board.scores(query.text)).parts
        found.append(
            Example(parts=parts, goals=goals, clauses=len(clauses(query.text)), weight=1 / len(of_set.queries))
        )
    return found


async def fitted(data: Path, cache: Path) -> tuple[Row, Row]:
    """Fusions without each of the parts, for the benchmark; and what is shipped."""
    with tempfile.TemporaryDirectory() as work:
        chosen = list(prepared(data, Path(work)))
    *asked, made = [await examples(of_set, cache) for of_set in chosen]
    seen = [example for of_set in asked for example in of_set]
    models = {name: fit(seen, parts, for_weights=made).written() for name, parts in MODELS.items()}
    every = MODELS["hybrid"]
    without = {part: fit(seen, [each for each in every if each != part], for_weights=made).written() for part in every}
    without["named"] = models["hybrid"] | {"weights": dict(models["hybrid"]["weights"])}
    for fusion in (models["hybrid"], *(without[part] for part in every)):
        fusion["weights"] |= GIVEN
    return without, models | {
        "given": GIVEN,
        "fitted_on": {of_set.name: len(of_set.queries) for of_set in chosen},
        "encoder": OnnxEncoder().model,
        "command": "python scripts/fit_fusion.py",
        "seed": SEED,
    }


def say(message: str) -> None:
    print(f"fit_fusion: {message}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    data = os.environ.get("PEGBOARD_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None, help="sets; default: PEGBOARD_DATA")
    parser.add_argument("--cache", type=Path, help="folder for embeddings; a second fit then takes seconds")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--ablations", type=Path, default=ABLATED)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        without, shipped = asyncio.run(fitted(args.data, args.cache or Path(temporary)))
    for path, result in ((args.out, shipped), (args.ablations, without)):
        path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        say(f"written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
