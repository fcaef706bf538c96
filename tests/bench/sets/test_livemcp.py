"""LiveMCPBench's annotations and traces as three sets."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from git_mirrors import rows
from pegboard_bench.sets import livemcp, livemcp_catalog

Built = Callable[..., Path]
SERVERS = {
    "filesystem": ("write_file", "list"),
    "desktop-commander": ("write_file",),
    "fetch": ("fetch",),
    "biomcp": ("fetch", "think"),
    "docs": ("create", "fill"),
}

pytestmark = pytest.mark.requirement("bench.public-sets")


def task(name: str, tools: Sequence[str], steps: Sequence[str] = ()) -> dict[str, Any]:
    numbered = {"Tools": tools, "Steps": steps}
    notes = {
        name: "\n".join(f"{number}. {line} " for number, line in enumerate(lines, 1))
        for name, lines in numbered.items()
    }
    return {"task_id": name, "Question": f"Do {name} ", "category": "Office", "Annotator Metadata": notes}


def call(number: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {
        "role": "assistant",
        "tool_calls": [{"id": number, "function": {"name": name, "arguments": json.dumps(arguments)}}],
    }


def answer(name: str, text: str, *, failed: bool = False) -> dict[str, Any]:
    content = f"meta=None content=[TextContent(text={text!r})] isError={failed}"
    return {"role": "tool", "tool_call_id": name, "content": content}


def offer(*tools: tuple[str, str]) -> str:
    return "matched_tools:\n" + "".join(f"- server_name: {server}\n  tool_name: {name}\n" for server, name in tools)


def files(tasks: Sequence[dict[str, Any]], traces: dict[str, Sequence[dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    tools = [
        {
            "description": f"{server} server",
            "tools": {server: {"tools": [{"name": name, "description": name, "inputSchema": {}} for name in names]}},
        }
        for server, names in SERVERS.items()
    ]
    played = [{"task_id": each["task_id"], "messages": traces.get(each["task_id"], ())} for each in tasks]
    judged = [{"task_id": each["task_id"], "task_success": "failure"} for each in tasks]
    content = {
        livemcp_catalog.TOOLS: tools,
        livemcp_catalog.TASKS: tasks,
        livemcp_catalog.TRACES: played,
        livemcp.ANNOTATION: judged,
    }
    return {livemcp_catalog.SOURCE: content}


def test_a_name_of_several_servers_is_that_of_a_server_the_task_needs_anyway_or_that_was_executed(built: Built) -> None:
    tasks = [
        task("anyway", ["think", "fetch"]),
        task("executed", ["fetch", "no such tool"]),
        task("uncertain", ["fetch"]),
        task("same", ["list", "write_file"]),
    ]
    done = [call("1", "execute-tool", server_name="fetch", tool_name="fetch", params={}), answer("1", "page")]
    folder = built(livemcp.TASKS_RECIPE, files(tasks, {"executed": done}))
    found = {row["id"]: (row["relevant"], row.get("any_of")) for row in rows(folder / "queries.jsonl.gz")}

    assert found == {
        "anyway": ([["biomcp", "think"], ["biomcp", "fetch"]], None),
        "executed": ([["fetch", "fetch"]], None),
        "same": (
            [["filesystem", "list"], ["filesystem", "write_file"]],
            [[["desktop-commander", "write_file"], ["filesystem", "write_file"]]],
        ),
    }
    page = (folder / "SOURCE.md").read_text()
    assert "The label 'no such tool' of executed: no tool has the name." in page
    assert "The task uncertain: no label is certain." in page


def test_steps_are_paired_with_tools_where_there_are_as_many_and_repeated_ones_are_left_out(built: Built) -> None:
    tasks = [
        task("one", ["create", "fill"], ["Create a document", "Fill it"]),
        task("two", ["create", "fill"], ["create a document.", "Write into it"]),
        task("more", ["create"], ["Think", "Create"]),
        task("042825-misaligned", ["create", "fill", "think"], ["Make one", "Fill in", "Report"]),
    ]
    folder = built(livemcp.STEPS_RECIPE, files(tasks, {}))

    assert [(row["id"], row["query"]) for row in rows(folder / "queries.jsonl.gz")] == [
        ("one#s0", "Create a document"),
        ("one#s1", "Fill it"),
        ("two#s1", "Write into it"),
        ("042825-misaligned#s0", "Make one"),
        ("042825-misaligned#s1", "Fill in"),
    ]


def test_a_tool_is_credited_to_the_last_route_that_offered_it_before_its_first_success(built: Built) -> None:
    asked = "<tool_assistant>\nserver: {0}\n</tool_assistant>"
    trace = [
        call("1", "route", query=asked.format("documents")),
        answer("1", offer(("docs", "create"), ("docs", "fill"))),
        call("2", "execute-tool", server_name="docs", tool_name="create", params={}),
        answer("2", "broken", failed=True),
        call("3", "route", query=asked.format("new documents")),
        answer("3", offer(("docs", "create"))),
        call("4", "execute-tool", server_name="docs", tool_name="create", params={}),
        answer("4", "done"),
        call("5", "execute-tool", server_name="docs", tool_name="fill", params={}),
        answer("5", "the search timed out"),
    ]
    folder = built(livemcp.ROUTES_RECIPE, files([task("one", ["create"])], {"one": trace}))

    assert [(row["id"], row["query"], row["relevant"]) for row in rows(folder / "queries.jsonl.gz")] == [
        ("one#r1", "server: new documents", [["docs", "create"]])
    ]
    assert rows(folder / "pooled_routes.jsonl.gz") == [
        {
            "task_id": "one",
            "question": "Do one ",
            "routes": ["server: documents", "server: new documents"],
            "annotated": [["docs", "create"]],
            "any_of": [],
            "agent_task_success": "failure",
        }
    ]
