"""What runs of the tuning are compared on: requests that the encoder is not tuned on, and that judge nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tuning.pairs import CATALOGS, document_of, is_held_out, read

WRITTEN = Path(__file__).parent / "written"
LABELLED = {"stabletoolbench": True, "toolalpaca": False, "nestful": False}
"""Sets with labels, and whether a share of their queries was tuned on."""
MOST = 400
"""Queries of a set."""
FIRST = 5
SEED = 42

Tools = dict[tuple[str, str], str]
Encode = Callable[[list[str]], list[tuple[np.ndarray, list[np.ndarray]]]]
"""From texts to the vector of each, (d,), and those of its clauses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Requests over tools: texts of both, and the places of the tools that serve each request."""

    name: str
    tools: list[str]
    queries: list[str]
    wanted: list[frozenset[int]]


def boards(data: Path) -> Iterator[Board]:
    """One for each set, and one of the requests kept for fitting, with all servers that they are about."""
    for name, partly in LABELLED.items():
        tools = {(tool["server"], tool["name"]): document_of(tool) for tool in read(data / name / "catalog.jsonl.gz")}
        rows = [row for row in read(data / name / "queries.jsonl.gz") if not partly or is_held_out(row["id"])]
        yield board(name, tools, [(row["query"], row["relevant"]) for row in rows])
    lines = [line for path in sorted(WRITTEN.glob("fit-*.jsonl.gz")) for line in read(path)]
    asked = [(line["query"], [tool[1:] for tool in line["tools"]]) for line in lines]
    servers = {server for _, relevant in asked for server, _ in relevant}
    every = (tool for name in CATALOGS for tool in read(data / name / "catalog.jsonl.gz"))
    yield board(
        "written",
        {(tool["server"], tool["name"]): document_of(tool) for tool in every if tool["server"] in servers},
        asked,
    )


def board(name: str, tools: Tools, asked: Sequence[tuple[str, Sequence[Sequence[str]]]]) -> Board:
    places = {key: place for place, key in enumerate(tools)}
    sample = random.Random(SEED).sample(asked, min(MOST, len(asked)))  # noqa: S311  # a sample, no secret
    wanted = [(text, frozenset(places[server, tool] for server, tool in relevant)) for text, relevant in sample]
    return Board(
        name=name,
        tools=list(tools.values()),
        queries=[text for text, _ in wanted],
        wanted=[of_query for _, of_query in wanted],
    )


def recalls(of: Sequence[Board], encode: Encode) -> Iterator[tuple[Board, float]]:
    """Each board's mean recall@5, by the mean of the cosine to the whole request and to its nearest clause."""
    for each in of:
        tools = np.stack([vector for vector, _ in encode(each.tools)])
        found = 0.0
        for wanted, (whole, parts) in zip(each.wanted, encode(each.queries), strict=True):
            nearest = (np.stack(parts) @ tools.T).max(axis=0) if parts else tools @ whole
            first = np.argsort(-(tools @ whole + nearest), kind="stable")[:FIRST]
            found += len(wanted.intersection(first.tolist())) / len(wanted)
        yield each, found / len(each.queries)
