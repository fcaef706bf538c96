"""What the request says about its tools is obeyed, whatever is relevant."""

from __future__ import annotations

import json
from typing import Any

import pytest

from model_bodies import (
    CHOOSING,
    FORMATS,
    NAMES,
    REQUIRING,
    after_a_call,
    anthropic_tool,
    asking,
    filtered,
    forcing,
    function,
    names_of,
    parsed,
)
from pegboard.gateways.llm.formats.tool_choice import apply_tool_choice, left_alone, moved_breakpoints
from strict_upstreams import PROBLEMS

formats = pytest.mark.parametrize("name", FORMATS)
MARK = {"type": "ephemeral"}
LONG_MARK = {"type": "ephemeral", "ttl": "1h"}
SEARCH = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}


def having_found(*names: str, nested: bool) -> list[dict[str, Any]]:
    """What a search adds to a conversation: the provider's own, or one of the client's."""
    found = [{"type": "tool_reference", "tool_name": name} for name in names]
    if not nested:
        return [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": found}]}]
    search = {"type": "server_tool_use", "id": "s1", "name": SEARCH["name"], "input": {"pattern": "a"}}
    content = {"type": "tool_search_tool_search_result", "tool_references": found}
    result = {"type": "tool_search_tool_result", "tool_use_id": "s1", "content": content}
    return [{"role": "assistant", "content": [search, result]}]


@pytest.mark.requirement("P8")
@formats
def test_a_tool_that_has_to_be_called_stays_whatever_is_relevant(name: str) -> None:
    body = asking(name, **forcing(name, "delta"))

    out = filtered(name, body, "alpha")

    assert names_of(name, out) == ["alpha", "delta"]
    assert PROBLEMS[name](out) == []


@pytest.mark.requirement("P8")
def test_a_function_of_old_that_has_to_be_called_stays() -> None:
    functions = [{"name": name} for name in NAMES]
    body = {"messages": [{"role": "user", "content": "x"}], "functions": functions, "function_call": {"name": "beta"}}

    assert filtered("openai_chat", body, "alpha")["functions"] == [{"name": "alpha"}, {"name": "beta"}]


@pytest.mark.requirement("P9")
@formats
@pytest.mark.parametrize("when_none", ["all", "none"])
def test_where_a_call_is_required_and_nothing_is_relevant_nothing_is_filtered(name: str, when_none: Any) -> None:
    body = asking(name, **REQUIRING[name])

    assert filtered(name, body, when_none=when_none) == body


@pytest.mark.requirement("P9", "P15")
def test_where_a_call_is_required_a_hosted_tool_does_not_stand_in_for_the_callers() -> None:
    body = asking("openai_responses", tool_choice="required")
    body["tools"].append({"type": "web_search"})

    assert filtered("openai_responses", body, when_none="none") == body


@pytest.mark.requirement("openai.tool-choice")
@pytest.mark.requirement("P10", "P12")
@formats
def test_with_no_tool_left_the_fields_that_need_tools_go_too(name: str) -> None:
    out = filtered(name, asking(name, model="m", **CHOOSING[name]), when_none="none")

    assert out.keys() == asking(name, model="m").keys() - {"tools"}
    assert PROBLEMS[name](out) == []


@pytest.mark.requirement("openai.tool-choice")
@pytest.mark.requirement("P10")
def test_with_no_function_left_only_what_configures_functions_goes() -> None:
    retrieval = {"retrievalConfig": {"languageCode": "nb"}}
    body = asking("gemini", toolConfig={"functionCallingConfig": {"mode": "AUTO"}} | retrieval)
    body["tools"].append({"googleSearch": {}})

    out = filtered("gemini", body, when_none="none")

    assert out["tools"] == [{"googleSearch": {}}]
    assert out["toolConfig"] == retrieval


@pytest.mark.requirement("P11")
@formats
def test_without_a_word_on_calling_tools_they_are_filtered(name: str) -> None:
    assert parsed(name, asking(name)).choice.mode == "auto"
    assert names_of(name, filtered(name, asking(name), "beta", "delta")) == ["beta", "delta"]


@pytest.mark.requirement("P12")
@formats
def test_where_nothing_is_relevant_everything_passes(name: str) -> None:
    assert filtered(name, asking(name)) == asking(name)


@pytest.mark.requirement("P13")
@formats
def test_a_tool_that_was_called_stays(name: str) -> None:
    out = filtered(name, after_a_call(name, "gamma"), "alpha")

    assert names_of(name, out) == ["alpha", "gamma"]
    assert PROBLEMS[name](out) == []


@pytest.mark.requirement("P13")
def test_a_function_of_old_that_was_called_stays() -> None:
    said = {"role": "assistant", "content": None, "function_call": {"name": "gamma", "arguments": "{}"}}
    body = {"messages": [{"role": "user", "content": "x"}, said], "functions": [{"name": name} for name in NAMES]}

    assert [each["name"] for each in filtered("openai_chat", body, "alpha")["functions"]] == ["alpha", "gamma"]


@pytest.mark.requirement("P14")
@formats
def test_while_the_history_holds_calls_some_tool_stays(name: str) -> None:
    """Also where the tool that was called is not offered any more."""
    body = after_a_call(name, "retired")

    assert filtered(name, body, when_none="none") == body


HOSTED: dict[str, list[dict[str, Any]]] = {
    "openai_chat": [{"type": "web_search_preview", "search_context_size": "low"}],
    "openai_responses": [
        {"type": "web_search"},
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "computer_use_preview", "display_width": 1024, "display_height": 768, "environment": "mac"},
        {"type": "mcp", "server_label": "archive", "server_url": "https://archive.example/mcp"},
    ],
    "anthropic": [
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "mcp_toolset", "mcp_server_name": "archive"},
    ],
    "gemini": [{"googleSearch": {}}, {"codeExecution": {}}],
}


@pytest.mark.requirement("P15")
@formats
def test_hosted_tools_pass_through(name: str) -> None:
    body = asking(name)
    body["tools"] = [*HOSTED[name], *body["tools"]]

    out = filtered(name, body, "beta")

    assert out["tools"][: len(HOSTED[name])] == HOSTED[name]
    assert "beta" in names_of(name, out)
    assert "gamma" not in names_of(name, out)


@pytest.mark.requirement("P15")
def test_a_group_that_loses_its_declarations_keeps_what_is_hosted_in_it() -> None:
    body = asking("gemini")
    body["tools"] = [{"codeExecution": {}, "functionDeclarations": [{"name": "alpha"}]}, *body["tools"]]

    out = filtered("gemini", body | {"contents": body["contents"]}, "beta")

    assert out["tools"] == [{"codeExecution": {}}, {"functionDeclarations": [{"name": "beta"}]}]


@pytest.mark.requirement("P17")
@formats
def test_of_one_name_twice_each_is_a_tool_and_both_stay_where_the_name_must(name: str) -> None:
    twice = asking(name, tools=["alpha", "beta", "alpha"])
    request = parsed(name, twice)

    assert len(request.tools) == 3
    assert apply_tool_choice(request, {0: "relevant"}).places == (0,)
    assert names_of(name, filtered(name, twice | forcing(name, "alpha"), "beta")) == ["alpha", "beta", "alpha"]


@pytest.mark.requirement("P18")
@formats
def test_tools_stay_in_the_order_they_came_in(name: str) -> None:
    request = parsed(name, asking(name))

    assert apply_tool_choice(request, {3: "best", 1: "second", 0: "third"}).places == (0, 1, 3)


@pytest.mark.requirement("P20")
def test_the_breakpoint_of_a_dropped_tool_moves_to_the_last_kept_one_before_it() -> None:
    tools = [anthropic_tool(name) for name in NAMES[:3]] + [anthropic_tool("delta", cache_control=LONG_MARK)]

    out = filtered("anthropic", asking("anthropic") | {"tools": tools}, "alpha", "beta")

    assert out["tools"] == [anthropic_tool("alpha"), anthropic_tool("beta", cache_control=LONG_MARK)]


@pytest.mark.requirement("P20")
def test_a_breakpoint_that_falls_on_one_is_one_with_it_and_one_without_a_tool_before_it_goes() -> None:
    tools = [
        anthropic_tool("alpha", cache_control=LONG_MARK),
        anthropic_tool("beta", cache_control=MARK),
        anthropic_tool("gamma", cache_control=MARK),
    ]

    out = filtered("anthropic", asking("anthropic") | {"tools": tools}, "beta")

    assert out["tools"] == [anthropic_tool("beta", cache_control=MARK)]


@pytest.mark.requirement("P20", "P21")
def test_no_breakpoint_moves_to_a_deferred_tool() -> None:
    tools = [
        SEARCH,
        anthropic_tool("alpha"),
        anthropic_tool("beta", defer_loading=True),
        anthropic_tool("gamma", cache_control=MARK),
    ]
    body = asking("anthropic") | {"tools": tools}

    out = filtered("anthropic", body, "alpha")

    assert out["tools"] == [SEARCH, anthropic_tool("alpha", cache_control=MARK), tools[2]]
    assert PROBLEMS["anthropic"](out) == []


@pytest.mark.requirement("P20")
def test_a_breakpoint_takes_the_place_of_one_that_was_null() -> None:
    tools = [anthropic_tool("alpha", cache_control=None), anthropic_tool("beta", cache_control=MARK)]

    request = parsed("anthropic", asking("anthropic") | {"tools": tools})

    assert moved_breakpoints(request, (0,)) == {0: b'{"type": "ephemeral"}'}
    assert filtered("anthropic", asking("anthropic") | {"tools": tools}, "alpha")["tools"] == [
        anthropic_tool("alpha", cache_control=MARK)
    ]


@pytest.mark.requirement("P20")
def test_breakpoints_move_in_chat_requests_that_have_them_too() -> None:
    tools = [function("alpha"), function("beta") | {"cache_control": MARK}]

    out = filtered("openai_chat", asking("openai_chat") | {"tools": tools}, "alpha")

    assert out["tools"] == [function("alpha") | {"cache_control": MARK}]


@pytest.mark.requirement("anthropic.defer-loading")
@pytest.mark.requirement("P21")
def test_deferred_tools_and_what_searches_them_are_left_alone() -> None:
    deferred = [anthropic_tool(name, defer_loading=True) for name in NAMES]
    body = asking("anthropic") | {"tools": [SEARCH, anthropic_tool("open"), anthropic_tool("shut"), *deferred]}

    out = filtered("anthropic", body, "open")

    assert out["tools"] == [SEARCH, anthropic_tool("open"), *deferred]
    assert left_alone(parsed("anthropic", body | {"tools": [SEARCH, *deferred]})) != ""


@pytest.mark.requirement("P21")
@pytest.mark.parametrize("name", ["openai_responses", "anthropic"])
def test_deferred_tools_without_a_hosted_search_are_left_alone_with_all_others(name: str) -> None:
    """One of the others finds them, and nothing says which."""
    body = asking(name)
    body["tools"][0]["defer_loading"] = True

    assert "deferred" in left_alone(parsed(name, body))


@pytest.mark.requirement("P21")
@pytest.mark.parametrize("nested", [False, True])
def test_a_tool_that_the_history_refers_to_stays(nested: bool) -> None:
    body = asking("anthropic")
    body["messages"] += having_found("gamma", nested=nested)

    out = filtered("anthropic", body, "alpha")

    assert names_of("anthropic", out) == [*([SEARCH["name"]] if nested else []), "alpha", "gamma"]
    assert PROBLEMS["anthropic"](out) == []


@pytest.mark.requirement("P21")
@pytest.mark.parametrize("kept", [("alpha",), ("alpha", "beta", "gamma", "delta")], ids=["filtered", "unfiltered"])
@pytest.mark.parametrize("nested", [False, True])
def test_a_reference_to_a_tool_that_the_caller_took_away_goes(nested: bool, kept: tuple[str, ...]) -> None:
    body = asking("anthropic")
    body["messages"] += having_found("gone", "alpha", "gone too", nested=nested)
    body["messages"][-1]["content"].append({"type": "text", "text": "tool_reference: gone"})

    out = filtered("anthropic", body, *kept)

    assert PROBLEMS["anthropic"](body) != []
    assert PROBLEMS["anthropic"](out) == []
    assert names_of("anthropic", out) == [*([SEARCH["name"]] if nested else []), *kept]
    said = json.dumps(out["messages"])
    assert '"tool_name": "alpha"' in said
    assert '"tool_name": "gone' not in said
    assert "tool_reference: gone" in said


@pytest.mark.requirement("P21")
def test_a_tool_that_a_search_has_loaded_stays() -> None:
    body = asking("openai_responses")
    body["input"].append({"type": "tool_search_output", "tools": [{"type": "function", "name": "gamma"}]})

    assert names_of("openai_responses", filtered("openai_responses", body, "alpha")) == ["alpha", "gamma"]


@pytest.mark.requirement("P22")
def test_nested_and_flat_tools_go_out_as_they_came() -> None:
    flat = {"name": "beta", "parameters": {"type": "object"}}
    custom = {"type": "custom", "custom": {"name": "gamma", "format": {"type": "text"}}}
    body = asking("openai_chat") | {"tools": [function("alpha", strict=True), flat, custom, function("delta")]}

    assert filtered("openai_chat", body, "beta", "gamma")["tools"] == [flat, custom]


def allowing(name: str, mode: str, *tools: str) -> dict[str, Any]:
    if name == "openai_chat":
        listed = {"mode": mode, "tools": [function(tool) for tool in tools]}
        return {"tool_choice": {"type": "allowed_tools", "allowed_tools": listed}}
    if name == "openai_responses":
        listed = {"mode": mode, "tools": [{"type": "function", "name": tool} for tool in tools]}
        return {"tool_choice": {"type": "allowed_tools"} | listed}
    names = {"mode": "ANY" if mode == "required" else "VALIDATED", "allowedFunctionNames": list(tools)}
    return {"toolConfig": {"functionCallingConfig": names}}


@pytest.mark.requirement("P8", "P10", "P26")
@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "gemini"])
@pytest.mark.parametrize("mode", ["auto", "required"])
def test_of_allowed_tools_the_relevant_ones_stay_and_no_other_is_named(name: str, mode: str) -> None:
    body = asking(name, **allowing(name, mode, "beta", "gamma", "delta"))

    out = filtered(name, body, "alpha", "beta", "gamma")

    assert names_of(name, out) == ["beta", "gamma"]
    assert out == asking(name, tools=["beta", "gamma"], **allowing(name, mode, "beta", "gamma"))


@pytest.mark.requirement("P9", "P12")
@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "gemini"])
def test_where_no_allowed_tool_is_relevant_all_allowed_ones_stay(name: str) -> None:
    body = asking(name, **allowing(name, "required", "beta", "gamma"))

    assert names_of(name, filtered(name, body, "alpha", when_none="none")) == ["beta", "gamma"]


@pytest.mark.requirement("P26")
def test_a_list_of_names_in_another_mode_than_any_means_nothing_and_is_not_ours_to_mend() -> None:
    config = {"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["beta"]}}
    body = asking("gemini", toolConfig=config)

    assert parsed("gemini", body).choice.names is None
    assert filtered("gemini", body, "alpha") == asking("gemini", tools=["alpha"], toolConfig=config)


@pytest.mark.requirement("P26")
@pytest.mark.parametrize("mode", ["AUTO", "ANY", "NONE", "VALIDATED"])
def test_no_mode_gains_a_list_of_names(mode: str) -> None:
    config = {"functionCallingConfig": {"mode": mode}}

    assert filtered("gemini", asking("gemini", toolConfig=config), "alpha")["toolConfig"] == config


def test_cached_content_has_its_own_tools_and_is_left_alone() -> None:
    assert "cached" in left_alone(parsed("gemini", asking("gemini", cachedContent="caches/1")))


@formats
def test_without_a_tool_to_filter_a_request_is_left_alone(name: str) -> None:
    body = asking(name)

    assert left_alone(parsed(name, {key: value for key, value in body.items() if key != "tools"})) != ""
    assert left_alone(parsed(name, body | {"tools": None})) != ""
    assert left_alone(parsed(name, body | {"tools": HOSTED[name]})) != ""


def test_barred_tools_go_but_for_what_the_request_itself_asks_for() -> None:
    body = after_a_call("openai_chat", "alpha")

    assert names_of("openai_chat", filtered("openai_chat", body, "alpha", "beta", barred=[0, 1])) == [
        "alpha",
        "gamma",
        "delta",
    ]
