"""StableToolBench: requests made from APIs of RapidAPI, over those APIs and others of the same place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pegboard_bench.sets.recipe import CATALOG, QUERIES, Converted, Files, Recipe, Repository, Row, Sources, query, tool

PARTS = ("G1_instruction", "G1_category", "G1_tool", "G2_instruction", "G2_category", "G3_instruction")
CORPORA = ("datasets/ToolBenchG3/corpus.jsonl", "datasets/ToolLens/corpus.jsonl")
DESCRIBED = re.compile(
    r"category_name:(.*?), tool_name:(.*?), api_name:(.*?), api_description:(.*?), required_params: (\[.*?\]), "
    r"optional_params: (\[.*?\]), return_schema: ",
    re.DOTALL,
)
"""A tool in the corpora of COLT: one text."""
TYPES = {"STRING": "string", "NUMBER": "number", "BOOLEAN": "boolean", "ARRAY": "array", "OBJECT": "object"}


def convert(sources: Sources) -> Converted:
    files = sources["StableToolBench"]
    catalog: dict[tuple[str, str], Row] = {}
    queries = []
    for part in PARTS:
        for each in files.json(f"solvable_queries/test_instruction/{part}.json"):
            for listed in each["api_list"]:
                row = _row(listed)
                catalog.setdefault((row["server"], row["name"]), row)
            relevant = [tuple(label) for label in each["relevant APIs"]]
            queries.append(query(f"{part}-{each['query_id']}", each["query"].strip(), relevant, category=part))
    others: dict[tuple[str, str], Row] = {}
    for each in _others(sources["COLT"]):
        others[each["server"], each["name"]] = each
    for key, row in others.items():
        catalog.setdefault(key, row)
    return Converted(
        files={CATALOG: list(catalog.values()), QUERIES: queries},
        left_out=["The rest of ToolBench's 16,000 APIs: no public repository has them."],
    )


def _others(files: Files) -> Iterator[Row]:
    """What COLT lists; of a tool that it lists twice, the later text counts."""
    for path in CORPORA:
        for line in files.text(path).splitlines():
            if found := DESCRIBED.match(json.loads(line)["text"]):
                category, name, api, text, required, optional = found.groups()
                parameters = {"required_parameters": json.loads(required), "optional_parameters": json.loads(optional)}
                about = {"category_name": category, "tool_name": name, "api_name": api, "api_description": text}
                yield _row(about | parameters)


def _row(row: Mapping[str, Any]) -> Row:
    about = f"RapidAPI category: {row['category_name']}"
    return tool(row["tool_name"], about, row["api_name"], row["api_description"], _schema(row))


def _schema(row: Mapping[str, Any]) -> dict[str, Any]:
    properties = {}
    for each in (*row["required_parameters"], *row["optional_parameters"]):
        properties[each["name"]] = _property(each)
    required = [each["name"] for each in row["required_parameters"]]
    return {"type": "object", "properties": properties, "required": required}


def _property(parameter: Mapping[str, Any]) -> dict[str, Any]:
    found = {"type": TYPES.get(str(parameter["type"]).upper(), "string")}
    if parameter.get("description"):
        found["description"] = parameter["description"]
    if parameter.get("default") not in ("", None):
        found["default"] = parameter["default"]
    return found


RECIPE = Recipe(
    name="stabletoolbench",
    title="StableToolBench's solvable queries on a catalog of RapidAPI",
    sources={
        "StableToolBench": Repository(
            name="THUNLP-MT/StableToolBench",
            commit="aa4ed9f4737ad98bd706663f01d63623c3427812",
            date="2025-04-15",
            licence="Apache-2.0",
        ),
        "COLT": Repository(
            name="quchangle1/COLT",
            commit="bbec292c38cabe3fbae098f50cc31b2e9f7e8fca",
            date="2024-11-06",
            licence="none given",
        ),
    },
    convert=convert,
    licence="Apache-2.0; the distractors from COLT have no licence",
    redistributable=False,
    conversion="A server is RapidAPI's tool, a name its API. Schemas are made of the required and optional "
    "parameters (RapidAPI's types as JSON types). The catalog has the candidates of every query, and as "
    "distractors those of two corpora of COLT.",
    noise="ChatGPT wrote the queries from the labelled APIs; others of the same tool would often do as well. "
    "Many descriptions are empty or junk. G2 and G3 mix unrelated APIs in one request.",
)
