"""Requests with the extra tool, and requests that are asked again: valid, and every other byte as it came."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal, Required, get_args, get_origin, get_type_hints

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mock_providers.scripted import SCRIPTED, STREAMS, Calls, Says
from model_bodies import CODECS, NAMES, PATH, TOOL_SEARCH, asking, parsed
from model_requests import BODIES, written_requests
from pegboard.catalog import BpeCounter
from pegboard.gateways.llm.formats.json_spans import members
from pegboard.gateways.llm.formats.tool_choice import apply_tool_choice, left_alone
from pegboard.gateways.llm.formats.tool_search import SearchExchange, SearchTool
from pegboard.gateways.llm.tool_search import tool as search
from pegboard.gateways.llm.tool_search.round_trip import may_search
from pegboard.testing import fake_tool
from strict_upstreams import PROBLEMS

TOOL = SearchTool(name="search_tools", description='Find "more" tools.\nNot listed: größe')
SEARCH = Calls(tool="search_tools", arguments={"query": "größe"})
MENDED = {"tools", "functions", "tool_choice", "function_call", "parallel_tool_calls", "toolConfig", "tool_config"}
CONVERSATION = {"messages", "input", "contents"}

formats = pytest.mark.parametrize("name", TOOL_SEARCH)


@pytest.mark.requirement("P22", "P23")
@formats
def test_with_the_extra_tool_what_was_valid_stays_so_and_every_other_byte_as_it_was(name: str) -> None:
    codec, format_ = CODECS[name], TOOL_SEARCH[name]

    @given(body=written_requests(BODIES[name]), data=st.data())
    def holds(body: bytes, data: st.DataObject) -> None:
        request = codec.parse(body, PATH)
        assume(not left_alone(request) and may_search(request) and request.layout != "functions")
        wanted = data.draw(st.sets(st.sampled_from(range(len(request.tools)))))
        kept = apply_tool_choice(request, dict.fromkeys(wanted, "relevant"), when_none="none").places
        filtered = codec.rewrite(request, kept)

        out = format_.offer(filtered, TOOL)

        assert PROBLEMS[name](json.loads(out)) == []
        tools = codec.parse(out, PATH).tools
        assert [tool.name for tool in tools if tool.name == "search_tools"] == ["search_tools"]
        assert [tool.definition for tool in tools if tool.name != "search_tools"] == [
            tool.definition for tool in codec.parse(filtered, PATH).tools
        ]
        assert others(out) == others(filtered)

    holds()


@pytest.mark.requirement("P23")
@formats
def test_what_is_asked_again_has_the_answer_and_its_results_behind_the_conversation_as_it_was(name: str) -> None:
    codec, format_ = CODECS[name], TOOL_SEARCH[name]
    asked = asking(name, **{STREAMS: False, "store": False})
    reply = SCRIPTED[name](lambda _: Says(text="Hm.", calls=[SEARCH, SEARCH]), asked, "a_0")
    calls = format_.calls(reply.document)
    exchange = SearchExchange(answer=reply.document, results=[(call, '{"found": []}') for call in calls])

    @given(body=written_requests(BODIES[name]))
    def holds(body: bytes) -> None:
        assume(CONVERSATION & members(body).keys())

        out = format_.continued(body, [exchange, exchange])

        before, after = codec.parse(body, PATH).turn.messages, codec.parse(out, PATH).turn.messages
        assert after[: len(before)] == before
        assert [part.tool for said in after[len(before) :] for part in said.parts if part.kind == "tool_call"] == (
            ["search_tools"] * 4
        )
        assert others(out, *CONVERSATION) == others(body, *CONVERSATION)

    holds()


@formats
def test_a_lone_half_of_an_emoji_in_a_body_keeps_its_place(name: str) -> None:
    body = json.dumps(asking(name, "cut \ud83d here")).encode()

    out = TOOL_SEARCH[name].offer(body, TOOL)

    assert b"cut \\ud83d here" in out
    names = [tool.name for tool in parsed(name, json.loads(out)).tools]
    assert names == [*NAMES, "search_tools"]


@formats
def test_without_any_tool_the_extra_one_is_alone(name: str) -> None:
    body = {key: value for key, value in asking(name).items() if key != "tools"}

    out = TOOL_SEARCH[name].offer(json.dumps(body).encode(), TOOL)

    assert PROBLEMS[name](json.loads(out)) == []
    assert [tool.name for tool in parsed(name, json.loads(out)).tools] == ["search_tools"]


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("openai_chat", {"n": 2}),
        ("openai_responses", {"conversation": "conv_1"}),
        ("openai_responses", {"background": True}),
        ("gemini", {"generationConfig": {"candidateCount": 2}}),
        ("gemini", {"generation_config": {"candidate_count": 2}}),
        ("anthropic", {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "{"}]}),
    ],
)
def test_some_requests_have_no_way_back(name: str, more: dict[str, Any]) -> None:
    assert TOOL_SEARCH[name].closed(parsed(name, asking(name) | more), "")


def test_nor_has_one_with_functions_of_old() -> None:
    body = {"messages": [{"role": "user", "content": "x"}], "functions": [{"name": "alpha"}]}

    assert TOOL_SEARCH["openai_chat"].closed(parsed("openai_chat", body), "")


def test_nor_has_a_stream_of_geminis_that_is_no_stream_of_events() -> None:
    path = PATH.replace(":generateContent", ":streamGenerateContent")
    request = CODECS["gemini"].parse(json.dumps(asking("gemini")).encode(), path)

    assert TOOL_SEARCH["gemini"].closed(request, "key=1")
    assert not TOOL_SEARCH["gemini"].closed(request, "alt=sse")


def test_a_call_of_a_shell_or_for_an_approval_is_the_clients() -> None:
    answer = {
        "output": [
            {"type": "local_shell_call", "call_id": "c1", "action": {}},
            {"type": "mcp_approval_request", "name": "alpha"},
            {"type": "function_call", "call_id": "c2", "name": "alpha", "namespace": "crm", "arguments": "{}"},
            {"type": "web_search_call", "id": "ws_1"},
            {"type": "custom_tool_call", "call_id": "c3", "name": "alpha", "input": "x"},
        ]
    }

    names = [call.name for call in TOOL_SEARCH["openai_responses"].calls(answer)]

    assert len(names) == 4
    assert [name for name in names if name == "alpha"] == ["alpha"]


def test_items_go_back_without_their_ids_but_where_the_provider_requires_them() -> None:
    types = pytest.importorskip("openai.types.responses.response_input_item_param", reason="pip install --group sdks")
    hints = [get_type_hints(each, include_extras=True) for each in get_args(types.ResponseInputItemParam)]
    typed = {kind: fields for fields in hints for kind in _literals(fields.get("type"))}
    required = {kind for kind, fields in typed.items() if get_origin(fields.get("id")) is Required}
    kinds = sorted(typed)
    output = [{"type": kind, "id": f"{kind}_1", "encrypted_content": "…"} for kind in kinds]

    body = TOOL_SEARCH["openai_responses"].continued(
        b'{"input":[]}', [SearchExchange(answer={"output": output, "store": False}, results=[])]
    )

    sent = json.loads(body)["input"]
    assert [item["type"] for item in sent] == kinds
    assert {item["type"] for item in sent if "id" in item} == required - {"message"}  # any message may be without
    assert {"image_generation_call", "mcp_list_tools", "web_search_call"} <= required


def _literals(hint: Any) -> tuple[str, ...]:
    """The texts of `Required[Literal[…]]`; none of anything else."""
    inside = get_args(hint) if get_origin(hint) is Required else ()
    return get_args(inside[0]) if inside and get_origin(inside[0]) is Literal else ()


def test_the_pool_keeps_to_its_budget_with_fewer_words_and_then_fewer_names() -> None:
    counter = BpeCounter()
    tools = [
        replace(fake_tool(f"tool_{number}"), summary=f"tool_{number}: Does all that is in it") for number in range(5)
    ]

    lines, names, few, none = (search.pool_of(tools, counter, budget) for budget in (None, 30, 10, 0))

    assert lines.splitlines() == [tool.summary for tool in tools]
    assert names == "tool_: 0, 1, 2, 3, 4"
    assert few == "tool_: 0, … 4 more"
    assert 0 < counter.count([few])[0] <= 10
    assert none == ""


def test_long_lists_that_callers_send_are_not_remembered() -> None:
    search._pool.cache_clear()
    for count in (1, 400):
        search.pool_of([fake_tool(f"tool_{number}_{'n' * 100}") for number in range(count)], BpeCounter(), 100)

    assert search._pool.cache_info().currsize == 1


def others(text: bytes, *besides: str) -> list[tuple[str, bytes]]:
    """The fields that neither tools nor these stand in, as they are written."""
    return [
        (key, text[each.start : each.end])
        for key, each in members(text).items()
        if key not in MENDED and key not in besides
    ]
