"""The strict upstreams refuse what they should: what the other tests lean on."""

from __future__ import annotations

from typing import Any

import pytest

from strict_upstreams import PROBLEMS

SAID: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}]}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
FLAT = {"type": "function", "name": "f", "parameters": {"type": "object"}}
TOOL = {"name": "f", "input_schema": {"type": "object"}}
DEFERRED = {**TOOL, "name": "d", "defer_loading": True}
SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
MARK = {"cache_control": {"type": "ephemeral"}}
CONTENTS = {"contents": [{"parts": [{"text": "Hello"}]}]}
DECLARED = {"functionDeclarations": [{"name": "f"}]}
REFERS = [{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "tool_reference", "tool_name": "gone"}]}]
SEARCHED = {"type": "server_tool_use", "id": "s", "name": SEARCH["name"], "input": {"query": "d"}}
FOUND = {
    "type": "tool_search_tool_result",
    "tool_use_id": "s",
    "content": {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": "d"}],
    },
}


def having(*blocks: dict[str, Any], role: str = "assistant") -> dict[str, Any]:
    return {"messages": [*SAID["messages"], {"role": role, "content": list(blocks)}]}


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("openai_chat", SAID),
        ("openai_chat", SAID | {"tools": [FUNCTION], "tool_choice": {"type": "function", "function": {"name": "f"}}}),
        ("openai_chat", SAID | {"functions": [{"name": "f"}], "function_call": {"name": "f"}}),
        ("openai_responses", {"input": "Hello", "tools": [FLAT, {"type": "web_search"}], "tool_choice": "required"}),
        ("openai_responses", {"input": "Hello", "tools": [FLAT | {"defer_loading": True}, {"type": "tool_search"}]}),
        ("anthropic", SAID | {"tools": [TOOL | MARK], "tool_choice": {"type": "tool", "name": "f"}}),
        ("anthropic", SAID | {"tools": [SEARCH | MARK, DEFERRED]}),
        ("anthropic", having(SEARCHED, FOUND) | {"tools": [SEARCH, DEFERRED]}),
        ("anthropic", having(SEARCHED, FOUND) | {"tools": [SEARCH, TOOL, DEFERRED | {"defer_loading": False}]}),
        ("gemini", CONTENTS | {"tools": [DECLARED], "tool_config": {"function_calling_config": {"mode": "ANY"}}}),
    ],
)
def test_what_is_documented_passes(provider: str, body: dict[str, Any]) -> None:
    assert PROBLEMS[provider](body) == []


@pytest.mark.requirement("anthropic.defer-loading")
@pytest.mark.requirement("openai.tool-choice")
@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("openai_chat", {}),
        ("openai_chat", SAID | {"tools": []}),
        ("openai_chat", SAID | {"tools": None}),
        ("openai_chat", SAID | {"tool_choice": "auto"}),
        ("openai_chat", SAID | {"parallel_tool_calls": True}),
        ("openai_chat", SAID | {"tools": [FUNCTION, FUNCTION]}),
        ("openai_chat", SAID | {"tools": [{"type": "function", "function": {"name": "has blanks"}}]}),
        ("openai_chat", SAID | {"tools": [FUNCTION], "tool_choice": {"type": "function", "function": {"name": "g"}}}),
        ("openai_chat", SAID | {"tools": [FUNCTION], "tool_choice": "any"}),
        (
            "openai_chat",
            SAID
            | {
                "tools": [FUNCTION],
                "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
            },
        ),
        ("openai_chat", SAID | {"function_call": "auto"}),
        ("openai_chat", {"messages": [{"role": "tool", "tool_call_id": "1", "content": "x"}]}),
        ("openai_responses", {"input": "Hello", "tools": []}),
        ("openai_responses", {"input": "Hello", "tool_choice": "required"}),
        ("openai_responses", {"input": "Hello", "tools": [FUNCTION]}),
        ("openai_responses", {"input": "Hello", "tools": [FLAT | {"defer_loading": True}]}),
        ("openai_responses", {"input": "Hello", "tools": [FLAT], "tool_choice": {"type": "function", "name": "g"}}),
        ("anthropic", SAID | {"tools": [{"name": "f"}]}),
        ("anthropic", SAID | {"tools": [{"name": "f", "input_schema": {}}]}),
        ("anthropic", SAID | {"tools": [TOOL, TOOL]}),
        ("anthropic", SAID | {"tool_choice": {"type": "auto"}}),
        ("anthropic", SAID | {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "g"}}),
        ("anthropic", SAID | {"tools": [DEFERRED]}),
        ("anthropic", SAID | {"tools": [TOOL, DEFERRED]}),
        ("anthropic", SAID | {"tools": [SEARCH, DEFERRED | MARK]}),
        ("anthropic", SAID | {"tools": [SEARCH | {"defer_loading": True}, TOOL]}),
        ("anthropic", SAID | {"tools": [SEARCH | {"name": "search"}, DEFERRED]}),
        ("anthropic", SAID | {"tools": [SEARCH, DEFERRED], "tool_choice": {"type": "tool", "name": "d"}}),
        ("anthropic", having(SEARCHED, FOUND) | {"tools": [DEFERRED | {"defer_loading": False}]}),
        ("anthropic", having(SEARCHED, FOUND) | {"tools": [SEARCH, TOOL]}),
        ("anthropic", having(SEARCHED) | {"tools": [SEARCH, DEFERRED]}),
        ("anthropic", having(FOUND) | {"tools": [SEARCH, DEFERRED]}),
        ("anthropic", having(SEARCHED, FOUND, role="user") | {"tools": [SEARCH, DEFERRED]}),
        ("anthropic", SAID | {"tools": [TOOL | {"name": f"f{n}"} | MARK for n in range(5)]}),
        ("anthropic", {"messages": [{"role": "user", "content": REFERS}], "tools": [TOOL]}),
        ("anthropic", {"messages": [{"role": "user", "content": REFERS}]}),
        ("gemini", CONTENTS | {"tools": [{"functionDeclarations": []}]}),
        ("gemini", CONTENTS | {"tools": [{}]}),
        ("gemini", CONTENTS | {"tools": [DECLARED, DECLARED]}),
        ("gemini", CONTENTS | {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}),
        (
            "gemini",
            CONTENTS
            | {
                "tools": [DECLARED],
                "toolConfig": {"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["f"]}},
            },
        ),
        (
            "gemini",
            CONTENTS
            | {
                "tools": [DECLARED],
                "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["g"]}},
            },
        ),
        ("gemini", CONTENTS | {"tools": [DECLARED], "cachedContent": "caches/1"}),
    ],
)
def test_what_would_be_a_400_is_a_problem(provider: str, body: dict[str, Any]) -> None:
    assert PROBLEMS[provider](body) != []


def test_a_client_may_search_for_deferred_tools_itself_and_bring_tools_in_an_item() -> None:
    own = TOOL | {"name": "ToolSearch"}
    assert PROBLEMS["anthropic"](SAID | {"tools": [own, DEFERRED]}) == []
    assert PROBLEMS["anthropic"](SAID | {"tools": [TOOL, DEFERRED]}) != []
    added = {"type": "additional_tools", "role": "developer", "tools": [FLAT]}
    assert PROBLEMS["openai_responses"]({"input": [added], "tool_choice": "auto"}) == []
    assert PROBLEMS["openai_responses"]({"input": [], "tool_choice": "auto"}) != []
