"""NESTFUL: requests whose answer is a sequence of nested calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.sets.recipe import CATALOG, QUERIES, Converted, Recipe, Repository, Sources, query, tool

PARTS = {
    "rapidapi": "executable/executable",
    "glaive": "non-executable/non-executable-glaive",
    "sgd": "non-executable/non-executable-sgd",
}
RESULT = "var_result"
"""A pseudo-call that names the result."""


def convert(sources: Sources) -> Converted:
    files = sources["NESTFUL"]
    catalog = []
    queries = []
    left_out = []
    for part, path in PARTS.items():
        servers: dict[str, str] = {}
        for each in files.json(f"data/{path}-spec.json"):
            if each["name"] in servers:
                continue
            servers[each["name"]] = _server(part, each)
            catalog.append(tool(servers[each["name"]], None, each["name"], each["description"], _schema(each)))
        for number, each in enumerate(files.json(f"data/{path}-data.json")):
            names = list(dict.fromkeys(call["name"] for call in each["output"] if call["name"] != RESULT))
            relevant = [(servers[name], name) for name in names if name in servers]
            left_out += [
                f"The label {name!r} of {part}-{number}: no tool has the name." for name in names if name not in servers
            ]
            queries.append(query(f"{part}-{number}", each["input"].strip(), relevant, category=part))
    return Converted(files={CATALOG: catalog, QUERIES: queries}, left_out=left_out)


def _server(part: str, row: Mapping[str, Any]) -> str:
    """The host's first name, or the part where there is no host."""
    return str(row["host"]).removesuffix(".p.rapidapi.com") if "host" in row else part


def _schema(row: Mapping[str, Any]) -> dict[str, Any]:
    parameters = row.get("query_parameters") or row.get("parameters") or {}
    properties = {}
    for name, each in parameters.items():
        properties[name] = {key: value for key, value in each.items() if key != "required"}
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name, each in parameters.items() if each.get("required")],
    }


RECIPE = Recipe(
    name="nestful",
    title="NESTFUL",
    sources={
        "NESTFUL": Repository(
            name="IBM/NESTFUL",
            commit="053cbde0446dddd31e8293f179085e1b39ab79b5",
            date="2024-09-19",
            licence="Apache-2.0",
        )
    },
    convert=convert,
    licence="Apache-2.0",
    redistributable=True,
    conversion="A server is the RapidAPI host of a tool (the executable part), or its source. A schema is made of "
    "`query_parameters` or `parameters`. `relevant` has the distinct functions of the nested calls.",
    noise="The glaive part is synthetic; requests were written so that they need all labelled functions. Small.",
)
