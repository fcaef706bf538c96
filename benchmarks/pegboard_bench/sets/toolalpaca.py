"""ToolAlpaca's evaluation sets: real and simulated APIs, instructions that a model wrote and people checked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pegboard_bench.sets.openapi import operations
from pegboard_bench.sets.recipe import CATALOG, QUERIES, Converted, Recipe, Repository, Row, Sources, query, tool

PARTS = ("eval_real", "eval_simulated")
COMPONENTS = "components"
"""Beside the functions: the output formats that they share."""


def convert(sources: Sources) -> Converted:
    files = sources["ToolAlpaca"]
    catalog: dict[tuple[str, str], Row] = {}
    queries = []
    left_out = []
    for part in PARTS:
        for interface in files.json(f"data/{part}.json"):
            server = interface["Name"]
            for row in _tools(interface):
                catalog.setdefault((server, row["name"]), row)
            asked = zip(interface["Instructions"], interface["Golden_Answers"], strict=True)
            for number, (text, calls) in enumerate(asked):
                asked_as = f"{part}-{server}-{number}"
                labels = dict.fromkeys((server, call["Action"]) for call in calls)
                known = [label for label in labels if label in catalog]
                left_out += [
                    f"The label {name!r} of {asked_as}: no tool has the name."
                    for _, name in labels
                    if (server, name) not in catalog
                ]
                if known:
                    queries.append(query(asked_as, text.strip(), known, category=part))
                else:
                    left_out.append(f"{asked_as}: it has no label.")
    return Converted(files={CATALOG: list(catalog.values()), QUERIES: queries}, left_out=left_out)


def _tools(interface: Mapping[str, Any]) -> list[Row]:
    schemas = {name: schema for name, _, schema in _operations(interface)}
    return [
        tool(interface["Name"], interface["Description"], name, _text(described), schemas.get(name))
        for name, described in interface["Function_Description"].items()
        if name != COMPONENTS
    ]


def _operations(interface: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    return operations(json.loads(interface["Documentation"]), keys=("type", "enum", "format"), bodies=False)


def _text(described: str) -> str:
    """What comes before the parameters."""
    return described.partition("\nParameters:")[0]


RECIPE = Recipe(
    name="toolalpaca",
    title="ToolAlpaca's evaluation sets",
    sources={
        "ToolAlpaca": Repository(
            name="tangqiaoyu/ToolAlpaca",
            commit="189069998d64a7baf1b4a1c3c4b2e75eb9d05532",
            date="2024-07-04",
            licence="Apache-2.0",
        )
    },
    convert=convert,
    licence="Apache-2.0",
    redistributable=True,
    conversion="A server is an API, a name one of its functions; schemas are made of the parameters of the API's "
    "OpenAPI document, where a function has a name there. `relevant` has the actions of the golden "
    "answers. The training data is not used.",
    noise="A small catalog. A model wrote the instructions and people checked them; golden answers may "
    "contain second tries.",
)
