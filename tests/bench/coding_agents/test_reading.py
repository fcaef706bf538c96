"""Which tools a model sees in a request, and what its prompt is made of, in each wire format."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard_bench.coding_agents.atlassian import TOOLS, is_one
from pegboard_bench.coding_agents.request_view import blocks, visible, without_servers

FUNCTION = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
SPACE = {"type": "namespace", "name": "files", "tools": [{"type": "function", "name": "read"}]}


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"messages": [], "tools": [FUNCTION]}, {"bash"}),
        ({"messages": [], "tools": [{"name": "Bash"}, {"name": "Later", "defer_loading": True}]}, {"Bash"}),
        ({"input": [], "tools": [{"type": "web_search"}, SPACE]}, {"web_search", "files.read"}),
        ({"input": [{"type": "additional_tools", "tools": [SPACE]}]}, {"files.read"}),
        ({"contents": [], "tools": [{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}]}, {"a", "b"}),
        ({"input": "Hello"}, set()),
    ],
)
def test_a_model_sees_the_tools_that_are_not_deferred(body: dict[str, Any], names: set[str]) -> None:
    assert visible(body) == names


def test_without_servers_a_request_has_all_but_the_definitions_of_mcp_tools() -> None:
    ours, server = {"type": "function", "name": "shell"}, {"type": "function", "name": TOOLS[0]}
    listed = {"type": "function", "function": {"name": f"atlassian_{TOOLS[0]}"}}
    space = {"type": "namespace", "name": "mcp__atlassian", "tools": [server]}
    added = {"type": "additional_tools", "tools": [SPACE, space]}
    said = {"role": "user", "content": "Hello"}

    assert without_servers({"messages": [said], "tools": [FUNCTION, listed]}) == {
        "messages": [said],
        "tools": [FUNCTION],
    }
    assert without_servers({"input": [added, said], "tools": [ours, SPACE, space]}) == {
        "input": [added | {"tools": [SPACE]}, said],
        "tools": [ours, SPACE],
    }
    declared = [{"name": "read_file"}, {"name": f"mcp_atlassian_{TOOLS[0]}"}]
    assert without_servers({"contents": [said], "tools": [{"functionDeclarations": declared}]}) == {
        "contents": [said],
        "tools": [{"functionDeclarations": declared[:1]}],
    }


def test_a_prompt_is_tools_then_system_then_messages_and_marks_are_where_the_client_set_them() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    body = {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"} | mark]}],
        "system": [{"type": "text", "text": "You are"} | mark],
        "tools": [{"name": "Bash"}],
    }
    texts, marks = blocks(body)

    assert [text.partition('"Bash"')[1] or text.partition("You are")[1] or "said" for text in texts] == [
        "Bash" and '"Bash"',
        "You are",
        "said",
    ]
    assert [mark.block for mark in marks] == [2, 3]
    assert not any("cache_control" in text for text in texts)


def test_a_message_that_is_a_string_is_the_same_prompt_as_one_block_of_text() -> None:
    """Claude Code's system message is a block with a breakpoint at first, and a string in the next request."""
    block = {"type": "text", "text": "Ready", "cache_control": {"type": "ephemeral"}}
    first = {"role": "system", "content": [block], "output_config": {"effort": "high"}}

    assert blocks({"messages": [first]})[0] == blocks({"messages": [first | {"content": "Ready"}]})[0]


def test_what_stands_beside_a_text_stays_part_of_the_prompt() -> None:
    calls = [{"id": "1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]
    texts, _ = blocks({"messages": [{"role": "assistant", "content": "Let me see", "tool_calls": calls}]})

    assert "bash" in texts[0]


def test_a_deferred_definition_stands_where_it_was_first_referred_to() -> None:
    found = {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "tool_reference", "tool_name": "Later"}]}
    body = {
        "tools": [{"name": "Search"}, {"name": "Later", "defer_loading": True}],
        "messages": [{"role": "user", "content": [found, {"type": "text", "text": "Loaded"}]}],
    }
    texts, _ = blocks(body)

    assert ["Later" in text for text in texts] == [False, True, True, False]


def test_what_claude_code_tells_its_provider_alone_is_no_part_of_a_prompt() -> None:
    system = [{"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.330.{each};"} for each in "ab"]
    first, second = ({"messages": [], "system": [each, {"type": "text", "text": "You are"}]} for each in system)
    assert blocks(first) == blocks(second)


def test_numbers_that_differ_from_run_to_run_are_no_part_of_a_prompt() -> None:
    first, second = ({"input": [{"type": "function_call", "id": id_, "call_id": id_}]} for id_ in ("a", "b"))
    assert blocks(first) == blocks(second)


@pytest.mark.parametrize("written", ["mcp__atlassian__{}", "mcp_atlassian_{}", "atlassian_{}", "mcp__atlassian.{}"])
def test_a_tool_of_the_mcp_server_is_known_in_every_agents_spelling(written: str) -> None:
    assert len(TOOLS) == len(set(TOOLS)) == 60
    assert all(is_one(written.format(name)) for name in TOOLS)
    assert not any(map(is_one, ("Bash", "read_file", "list_mcp_resources", "mcp__atlassian__other")))
