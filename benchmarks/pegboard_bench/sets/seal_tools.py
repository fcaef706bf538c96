"""Seal-Tools: tools and requests that a model wrote, in thousands."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from pegboard_bench.sets.recipe import CATALOG, QUERIES, Converted, Files, Recipe, Repository, Row, Sources, query, tool

FOLDER = "Seal-Tools_Dataset"
PARTS = ("test_out_domain", "test_in_domain", "dev")
QUERIES_IN_ALL = 2000
SEED = 42
TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def convert(sources: Sources) -> Converted:
    files = sources["Seal-Tools"]
    tools = _lines(files, "tool")
    servers = {each["api_name"]: each["field"] for each in tools}
    catalog = [tool(each["field"], None, each["api_name"], each["api_description"], _schema(each)) for each in tools]
    queries = [_query(row, servers) for part in PARTS for row in _lines(files, part)]
    random.Random(SEED).shuffle(queries)  # noqa: S311
    taken = sorted(queries[:QUERIES_IN_ALL], key=lambda row: str(row["id"]))
    return Converted(
        files={CATALOG: catalog, QUERIES: taken},
        left_out=[
            f"{len(queries) - len(taken)} queries: of {len(queries):,}, {len(taken):,} were drawn (seed {SEED}).",
            "The queries of train.jsonl.",
        ],
    )


def _lines(files: Files, name: str) -> list[Any]:
    return [json.loads(line) for line in files.text(f"{FOLDER}/{name}.jsonl").split("\n") if line.strip()]


def _query(row: Mapping[str, Any], servers: Mapping[str, str]) -> Row:
    names = dict.fromkeys(call["api"] for call in row["calling"])
    relevant = [(servers[name], name) for name in names]
    return query(row["id"], row["query"].strip(), relevant, category=row["id"].rsplit("-", 1)[0])


def _schema(row: Mapping[str, Any]) -> dict[str, Any]:
    properties = {
        name: {"type": TYPES[each["type"]], "description": each["description"]}
        for name, each in row["parameters"].items()
    }
    return {"type": "object", "properties": properties, "required": row["required"]}


RECIPE = Recipe(
    name="seal_tools",
    title="Seal-Tools",
    sources={
        "Seal-Tools": Repository(
            name="fairyshine/Seal-Tools",
            commit="ce753ecd60ed08dd376984035de531ab8421f1c6",
            date="2024-11-05",
            licence="Apache-2.0",
        )
    },
    convert=convert,
    licence="Apache-2.0",
    redistributable=True,
    conversion="A server is a tool's `field` (domain), its name `api_name`; the schema is made of its parameters. "
    "`relevant` has the distinct calls.",
    noise="A model wrote tools and queries (self-instruct). Many near-synonyms (getFilmDetails, getFilmInfo, "
    "getMovieInfo) have one label, so that the first place is partly arbitrary. No real APIs.",
)
