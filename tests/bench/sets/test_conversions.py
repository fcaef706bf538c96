"""Every conversion on a few rows of the form that its source has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from git_mirrors import rows
from pegboard.evaluation.datasets import read_set
from pegboard_bench.sets import (
    catalog_docker,
    catalog_toolsdk,
    graphtoolcall,
    mcpproxy_golden,
    metatool,
    nestful,
    seal_tools,
    stabletoolbench,
    toolalpaca,
)

Built = Callable[..., Path]
OBJECT = {"type": "object", "properties": {}}

pytestmark = pytest.mark.requirement("bench.public-sets")


def test_the_best_grade_is_the_label_and_the_next_best_where_there_is_none(built: Built) -> None:
    tools = [
        {"server": "desk", "tool": name, "description": f" {name} ", "schema": OBJECT, "tool_id": f"desk:{name}"}
        for name in ("lamp", "fan", "clock")
    ]
    grades = {"a": {"lamp": 2, "fan": 1, "clock": 0}, "b": {"fan": 1, "clock": 0}}
    queries = [
        {
            "id": name,
            "query": name,
            "labels": [{"tool_id": f"desk:{tool}", "relevance": grade} for tool, grade in of.items()],
        }
        for name, of in grades.items()
    ]
    folder = built(
        mcpproxy_golden.RECIPE,
        {"mcpproxy-go": {mcpproxy_golden.CORPUS: {"tools": tools}, mcpproxy_golden.GOLDEN: {"queries": queries}}},
    )

    assert [row["relevant"] for row in rows(folder / "queries.jsonl.gz")] == [[["desk", "lamp"]], [["desk", "fan"]]]
    assert rows(folder / "catalog.jsonl.gz")[0] == {
        "server": "desk",
        "server_description": None,
        "name": "lamp",
        "description": "lamp",
        "input_schema": OBJECT,
    }


def test_a_sample_of_the_single_queries_and_all_of_the_others_are_taken(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metatool, "QUERIES_IN_ALL", 4)
    single = "Query,Tool\n" + "".join(f'"query {number}, please ",lamp\n' for number in range(9)) + "of no tool,gone\n"
    files = {
        metatool.SINGLE: single,
        metatool.MULTI: [{"query": "both", "tool": ["lamp", "Big"]}],
        metatool.PLUGINS: {"lamp": "Light "},
        metatool.MERGED: {"Big": "Light and sound"},
    }
    folder = built(metatool.RECIPE, {"MetaTool": files})
    queries = rows(folder / "queries.jsonl.gz")

    assert [row["category"] for row in queries] == ["single"] * 3 + ["multi"]
    assert all(row["query"] == f"query {row['id'].removeprefix('single-')}, please" for row in queries[:3])
    assert queries[3]["relevant"] == [["lamp", "lamp"], ["Big", "Big"]]
    assert "6 single-tool queries: of 9, 3 were drawn" in (folder / "SOURCE.md").read_text()


def test_labels_are_looked_up_on_the_servers_of_their_file_and_repeated_requests_are_left_out(built: Built) -> None:
    files: dict[str, Any] = {
        f"benchmarks/mcp_tools/{server}.json": {
            "description": server,
            "tools": [{"name": "create_issue", "description": "Opens", "inputSchema": OBJECT}],
        }
        for server in graphtoolcall.SERVERS
    }
    operation = {
        "operationId": "createRepo",
        "summary": "Create it.",
        "description": "A new one.",
        "parameters": [{"name": "page", "schema": {"type": "integer", "default": 1, "format": "int32"}}],
        "requestBody": {
            "content": {
                "application/json": {"schema": {"properties": {"name": {"type": "string"}}, "required": ["name"]}}
            }
        },
    }
    shared = [{"name": "owner", "required": True, "description": "x" * 500, "schema": {"type": "string"}}]
    paths = {"/repos": {"parameters": shared, "post": operation, "head": {"operationId": "no tool"}}}
    for name in graphtoolcall.SPECIFICATIONS.values():
        files[f"benchmarks/specs/{name}.json"] = {"paths": paths}
    for name in graphtoolcall.QUESTIONS:
        files[f"benchmarks/ground_truth/{name}.json"] = {"queries": []}
    asked = [{"query": "Open an issue", "expected_tools": ["create_issue"]}] * 2
    files["benchmarks/ground_truth/playwright.json"] = {"queries": asked}
    folder = built(graphtoolcall.RECIPE, {"graph-tool-call": files})
    operations = [row for row in rows(folder / "catalog.jsonl.gz") if row["server"] == "github_rest"]

    assert [row["relevant"] for row in rows(folder / "queries.jsonl.gz")] == [[["playwright", "create_issue"]]]
    assert [row["name"] for row in operations] == ["createRepo"]
    assert operations[0]["description"] == "Create it. A new one."
    assert operations[0]["input_schema"] == {
        "type": "object",
        "properties": {
            "owner": {"type": "string", "description": "x" * 400},
            "page": {"type": "integer", "default": 1},
            "name": {"type": "string"},
        },
        "required": ["owner", "name"],
    }


def test_dockers_arguments_become_a_schema_where_the_server_has_none_of_its_own(built: Built) -> None:
    arguments = [{"name": "at", "type": "array", "items": {"type": "string"}, "desc": "When", "optional": True}]
    tools = [
        {"name": "own", "description": "o", "inputSchema": OBJECT},
        {"name": "made", "description": "m", "arguments": [*arguments, {"name": "who", "type": "string"}]},
        {"name": "none", "description": "n"},
    ]
    files = {
        "servers/desk/tools.json": tools,
        "servers/desk/server.yaml": "about:\n  title: Desk\n  description: A desk\n",
        "servers/empty/tools.json": [],
        "servers/empty/server.yaml": "about:\n  description: Nothing\n",
    }
    folder = built(catalog_docker.RECIPE, {catalog_docker.SOURCE: files})
    own, made, none = rows(folder / "catalog.jsonl.gz")

    assert (own["input_schema"], none["input_schema"], own["server_description"]) == (OBJECT, None, "A desk")
    assert made["input_schema"] == {
        "type": "object",
        "properties": {
            "at": {"type": "array", "items": {"type": "string"}, "description": "When"},
            "who": {"type": "string"},
        },
        "required": ["who"],
    }


def test_packages_of_which_the_registry_has_tools_are_a_catalog(built: Built) -> None:
    index = {
        "@desk/lamp": {"path": "home/lamp.json", "tools": {"on": {"name": "on", "description": "Light "}}},
        "@desk/none": {"path": "home/none.json"},
    }
    files = {catalog_toolsdk.INDEX: index, "packages/home/lamp.json": {"description": "A lamp"}}
    folder = built(catalog_toolsdk.RECIPE, {catalog_toolsdk.SOURCE: files})

    assert rows(folder / "catalog.jsonl.gz") == [
        {
            "server": "@desk/lamp",
            "server_description": "A lamp",
            "name": "on",
            "description": "Light",
            "input_schema": None,
        }
    ]


def test_seal_tools_are_drawn_and_their_types_are_json_types(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal_tools, "QUERIES_IN_ALL", 2)
    parameters = {
        "title": {"type": "str", "description": "t", "example": "x"},
        "year": {"type": "int", "description": "y"},
    }
    tool = {
        "api_name": "film",
        "api_description": "d",
        "field": "Arts/Film",
        "parameters": parameters,
        "required": ["title"],
    }
    files = {"Seal-Tools_Dataset/tool.jsonl": json.dumps(tool)}
    for part in seal_tools.PARTS:
        row = {"id": f"{part}-easy-0", "query": " q ", "calling": [{"api": "film"}, {"api": "film"}]}
        files[f"Seal-Tools_Dataset/{part}.jsonl"] = json.dumps(row) + "\n"
    folder = built(seal_tools.RECIPE, {"Seal-Tools": files})
    queries = rows(folder / "queries.jsonl.gz")

    assert len(queries) == 2
    assert queries == sorted(queries, key=lambda row: row["id"])
    assert queries[0]["relevant"] == [["Arts/Film", "film"]]
    assert rows(folder / "catalog.jsonl.gz")[0]["input_schema"] == {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "t"},
            "year": {"type": "integer", "description": "y"},
        },
        "required": ["title"],
    }


def test_candidates_come_before_the_distractors_of_another_corpus(built: Built) -> None:
    listed = {
        "category_name": "Data",
        "tool_name": "Search",
        "api_name": "news",
        "api_description": "News",
        "required_parameters": [{"name": "q", "type": "STRING", "description": "", "default": "x"}],
        "optional_parameters": [{"name": "n", "type": "ENUM", "description": "How many", "default": ""}],
    }
    row = {"query_id": 7, "query": "q", "api_list": [listed], "relevant APIs": [["Search", "news"]] * 2}
    files: dict[str, Any] = {f"solvable_queries/test_instruction/{part}.json": [] for part in stabletoolbench.PARTS}
    files["solvable_queries/test_instruction/G3_instruction.json"] = [row]
    text = (
        "category_name:{}, tool_name:{}, api_name:{}, api_description:{}, required_params: [], optional_params: [], "
        "return_schema: x"
    )
    corpus = [
        text.format("Food", "Bar", "list", "a, b"),
        text.format("Data", "Search", "news", "other"),
        text.format("Food", "Bar", "list", "later"),
    ]
    lines = "\n".join(json.dumps({"text": each}) for each in corpus)
    others = {stabletoolbench.CORPORA[0]: lines, stabletoolbench.CORPORA[1]: lines}
    folder = built(stabletoolbench.RECIPE, {"StableToolBench": files, "COLT": others})
    tools = rows(folder / "catalog.jsonl.gz")

    assert [(tool["server"], tool["description"]) for tool in tools] == [("Search", "News"), ("Bar", "later")]
    assert tools[0]["input_schema"]["properties"] == {
        "q": {"type": "string", "default": "x"},
        "n": {"type": "string", "description": "How many"},
    }
    assert rows(folder / "queries.jsonl.gz")[0]["relevant"] == [["Search", "news"]]
    assert "may not be passed on" in (folder / "SOURCE.md").read_text()


def test_functions_have_a_schema_where_the_document_names_them(built: Built) -> None:
    operation = {"operationId": "on", "parameters": [{"name": "room", "required": True, "schema": {"type": "string"}}]}
    interface = {
        "Name": "Lamp",
        "Description": "Lamps",
        "Documentation": json.dumps({"paths": {"/on": {"post": operation}}}),
        "Function_Description": {"on": "Light\nParameters: {}", "off": "Dark\nParameters: {}", "components": "formats"},
        "Instructions": ["Light in the hall", "Sing"],
        "Golden_Answers": [[{"Action": "on"}, {"Action": "on"}], [{"Action": "sing"}]],
    }
    files = {"data/eval_real.json": [interface], "data/eval_simulated.json": []}
    folder = built(toolalpaca.RECIPE, {"ToolAlpaca": files})
    on, off = rows(folder / "catalog.jsonl.gz")

    assert (on["description"], off["input_schema"]) == ("Light", None)
    assert on["input_schema"] == {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]}
    assert [row["relevant"] for row in rows(folder / "queries.jsonl.gz")] == [[["Lamp", "on"]]]
    assert "The label 'sing' of eval_real-Lamp-1: no tool has the name." in (folder / "SOURCE.md").read_text()


def test_the_result_of_nested_calls_is_no_label(built: Built) -> None:
    tool = {
        "name": "find",
        "description": "Finds",
        "host": "maps.p.rapidapi.com",
        "query_parameters": {"q": {"type": "string", "required": True, "enum": ["a"]}},
    }
    asked = {"input": "Find it", "output": [{"name": "find"}, {"name": "find"}, {"name": "var_result"}]}
    files: dict[str, Any] = {}
    for part, path in nestful.PARTS.items():
        files[f"data/{path}-spec.json"] = [tool] if part == "rapidapi" else []
        files[f"data/{path}-data.json"] = [asked] if part == "rapidapi" else []
    folder = built(nestful.RECIPE, {"NESTFUL": files})

    assert [row["relevant"] for row in rows(folder / "queries.jsonl.gz")] == [[["maps", "find"]]]
    assert rows(folder / "catalog.jsonl.gz")[0]["input_schema"] == {
        "type": "object",
        "properties": {"q": {"type": "string", "enum": ["a"]}},
        "required": ["q"],
    }
    assert len(read_set(folder).queries) == 1
