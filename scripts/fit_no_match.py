"""Fits the probability that any tool fits a search, and writes src/pegboard/retrieval/no_match.json.

    python scripts/fit_no_match.py --data SETS

Boards of some of a set's servers are asked requests whose tools are on them and requests whose tools are not
(`pegboard_bench.no_match.boards`). The sets are those of `fit_fusion.py`, with fewer servers: none that the benchmark
scores takes part. Only requests with whole servers off are fitted on: with single tools off, others of the same server
do nearly the same, and labels no longer say whether nothing fits. The bound is set so that, on the average of these
sets, few requests with a tool are told that nothing fits.

Searches over the recorded fleet that were written for this take part as they are (`tuning/written/searches.jsonl`);
none of them is one of the benchmark's.

Words that name services are those of the catalogs' servers that other servers' tools seldom use, and well-known
products (`tuning/services.txt`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from fit_fusion import UNTOUCHED, stored, written
from pegboard.compose import Parts, build_routing, default_parts
from pegboard.evaluation.datasets import CATALOG, QUERIES, ToolSet
from pegboard.model import Turn
from pegboard.retrieval import OnnxEncoder
from pegboard.retrieval.name_words import LEADING_VERBS, VERBS
from pegboard.retrieval.no_match import SIGNALS, NoMatch
from pegboard.retrieval.search_index import LOOKED_AT, SearchIndex, is_named
from pegboard.retrieval.service_names import may_name
from pegboard.retrieval.speller import common_words
from pegboard.retrieval.words import raw_words
from pegboard.settings import load_settings
from pegboard_bench.fleet.snapshot import catalog
from pegboard_bench.no_match.boards import AskedBoard, same_jobs, without_servers
from tuning.pairs import CATALOGS, is_held_out, read
from tuning.short import short_requests

OUT = Path(__file__).parents[1] / "src" / "pegboard" / "retrieval" / "no_match.json"
SEED = 5
MOST_TOOLS, LARGEST = {"written": 850, "stabletoolbench": 450}, {"written": 25, "stabletoolbench": 20}
"""Tools of a set, and of one of its servers."""
WEIGHTS = {"searches": 2.0, "written": 1.0, "short": 1.0, "toolalpaca": 0.5, "nestful": 0.5, "stabletoolbench": 0.5}
"""What a set counts: searches are short, and for tools of MCP servers more often than for web APIs."""
SEARCHES = Path(__file__).parent / "tuning" / "written" / "searches.jsonl"
KNOWN = Path(__file__).parent / "tuning" / "services.txt"
FALSE = 0.06
"""The mean share of the fitting sets' requests with a tool that are told that nothing fits."""
STRENGTH = 0.5
"""Inverse strength of the ridge, on standardized signals (scikit-learn's `C`)."""
OWN, OWN_IF_COMMON = 0.3, 0.5
"""Of the servers that use a word, the least share that it names."""
MOST_WORDS = 3
"""Words of a server's name; of more, none is its name."""

Row = dict[str, Any]


def services(data: Path) -> list[str]:
    """Words that name services; an ordinary word only if a curated catalog has a server of that name."""
    named: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    used: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for folder in CATALOGS:
        for tool in read(data / folder / CATALOG):
            server = (folder, tool["server"])
            for word in {*raw_words(tool["name"]), *raw_words(tool["description"] or "")}:
                used[word].add(server)
            words = [word for word in dict.fromkeys(raw_words(tool["server"].rpartition("/")[2])) if may_name(word)]
            for word in words if len(words) <= MOST_WORDS else ():
                named[word].add(server)
    of_catalogs = {word for word, servers in named.items() if _is_service(word, servers, used[word])}
    return sorted(of_catalogs.union(KNOWN.read_text("utf-8").splitlines()))


def _is_service(word: str, servers: set[tuple[str, str]], users: set[tuple[str, str]]) -> bool:
    share = len(servers) / len(servers | users)
    if word in VERBS or word in LEADING_VERBS or not servers & users:
        return False
    curated = any(catalog != "catalog_toolsdk" for catalog, _ in servers)
    return share >= OWN and (word not in common_words() or (curated and share >= OWN_IF_COMMON))


def prepared(data: Path, work: Path) -> Iterator[ToolSet]:
    draw = random.Random(SEED)  # noqa: S311 - a sample, no secret
    for name in UNTOUCHED:
        yield stored(work / name, read(data / name / CATALOG), read(data / name / QUERIES))
    everything = [tool for name in CATALOGS for tool in read(data / name / CATALOG)]
    tools, asked = some(everything, list(written()), "written", draw)
    distinct = list({(tool["server"], tool["name"]): tool for tool in tools}.values())
    yield stored(work / "written", distinct, asked)
    yield stored(work / "short", distinct, list(short_requests(distinct, 42)))
    held_out = [query for query in read(data / "stabletoolbench" / QUERIES) if is_held_out(query["id"])]
    tools, asked = some(read(data / "stabletoolbench" / CATALOG), held_out, "stabletoolbench", draw)
    yield stored(work / "stabletoolbench", tools, asked)


def searched_fleet() -> AskedBoard:
    """The recorded fleet with the searches that were written for this fit."""
    asked = [json.loads(line) for line in SEARCHES.read_text("utf-8").splitlines()]
    return AskedBoard(
        board=catalog(),
        fitting=tuple(each["query"] for each in asked if each["tools"]),
        unfitting=tuple(each["query"] for each in asked if not each["tools"]),
    )


def some(tools: Sequence[Row], queries: Sequence[Row], name: str, draw: random.Random) -> tuple[list[Row], list[Row]]:
    """The tools of random servers that the queries need, and the queries that need no others."""
    sizes = Counter(tool["server"] for tool in tools)
    needed = sorted({server for query in queries for server, _ in query["relevant"] if sizes[server] <= LARGEST[name]})
    draw.shuffle(needed)
    kept: set[str] = set()
    taken = 0
    for server in needed:
        if taken + sizes[server] <= MOST_TOOLS[name]:
            kept.add(server)
            taken += sizes[server]
    return [tool for tool in tools if tool["server"] in kept], [
        query for query in queries if all(server in kept for server, _ in query["relevant"])
    ]


async def signals(boards: Sequence[AskedBoard], known: NoMatch, parts: Parts) -> tuple[np.ndarray, np.ndarray]:
    """The signals of every request that names no tool, shape (n, signals), and whether some tool fits, shape (n,)."""
    rows, fits = [], []
    for each in boards:
        routing = build_routing(load_settings(profile="hybrid"), each.board, parts=parts)
        await routing.warm()
        index = SearchIndex(each.board.tools, each.board.servers, known)
        for text, fitting in [(text, True) for text in each.fitting] + [(text, False) for text in each.unfitting]:
            query = index.corrected(text)
            best = index.ordered(query, (await routing.search(Turn.ask(query))).candidates)
            if not any(map(is_named, best[:LOOKED_AT])):
                found = index.signals(query, best)
                rows.append([found[name] for name in SIGNALS])
                fits.append(fitting)
    return np.array(rows), np.array(fits)


def fit(sets: Mapping[str, tuple[np.ndarray, np.ndarray]], names: Sequence[str]) -> Row:
    """Logistic regression; both kinds of requests of a set count the same."""
    x = np.concatenate([rows for rows, _ in sets.values()])
    y = np.concatenate([fits for _, fits in sets.values()])
    counts = [WEIGHTS[name] * np.where(fits, 0.5 / fits.sum(), 0.5 / (~fits).sum()) for name, (_, fits) in sets.items()]
    weight = np.concatenate(counts)
    centre, spread = x.mean(axis=0), x.std(axis=0)
    model = LogisticRegression(C=STRENGTH, max_iter=3000)
    model.fit((x - centre) / spread, y, sample_weight=weight / weight.mean())
    coefficients = model.coef_[0] / spread
    fitted = {
        "intercept": round(float(model.intercept_[0] - coefficients @ centre), 4),
        "weights": {name: round(float(value), 4) for name, value in zip(SIGNALS, coefficients, strict=True)},
    }
    known = NoMatch(**fitted, least=0.0, services=frozenset())
    chances = {
        name: np.array([known.chance(dict(zip(SIGNALS, row, strict=True))) for row in rows])
        for name, (rows, _) in sets.items()
    }
    fitted["least"] = round(_bound({name: chances[name][fits] for name, (_, fits) in sets.items()}), 3)
    reached = {
        name: {
            "requests": len(fits),
            "recall": round(float((chances[name][~fits] < fitted["least"]).mean()), 3),
            "false": round(float((chances[name][fits] < fitted["least"]).mean()), 3),
        }
        for name, (_, fits) in sets.items()
    }
    return fitted | {"fitted_on": reached, "services": list(names)}


def _bound(fitting: Mapping[str, np.ndarray]) -> float:
    """The highest bound below which the requests with a tool stay rare enough."""
    bounds = np.arange(0.01, 0.5, 0.005)
    false = [
        np.average([(of < bound).mean() for of in fitting.values()], weights=[WEIGHTS[name] for name in fitting])
        for bound in bounds
    ]
    return float(bounds[max(0, int(np.searchsorted(false, FALSE, side="right")) - 1)])


async def fitted(data: Path, cache: Path) -> Row:
    names = services(data)
    known = NoMatch(intercept=0.0, weights=dict.fromkeys(SIGNALS, 0.0), least=0.0, services=frozenset(names))
    parts = default_parts(load_settings(profile="hybrid", cache_dir=cache))
    sets = {"searches": await signals([searched_fleet()], known, parts)}
    with tempfile.TemporaryDirectory() as work:
        for of_set in prepared(data, Path(work)):
            boards = without_servers(of_set, await same_jobs(of_set.catalog, parts), SEED)
            sets[of_set.name] = await signals(boards, known, parts)
            print(f"fit_no_match: {of_set.name}: {len(sets[of_set.name][1])} requests", file=sys.stderr, flush=True)
    return fit(sets, names) | {
        "encoder": OnnxEncoder().model,
        "command": "python scripts/fit_no_match.py",
        "seed": SEED,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    data = os.environ.get("PEGBOARD_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None, help="sets; default: PEGBOARD_DATA")
    parser.add_argument("--cache", type=Path, help="folder for embeddings; a second fit then takes minutes")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        result = asyncio.run(fitted(args.data, args.cache or Path(temporary)))
    args.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
