"""The gateway article's policy: query and tools by JSONPath, or in tags within a text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from model_requests import TEXTS, chat_bodies, gemini_bodies, written, written_requests
from pegboard.errors import RequestNotUnderstood
from pegboard.gateways.llm.formats.generic.payload_policy import SemanticToolFiltering
from pegboard.gateways.llm.formats.generic.request import Generic
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_choice import apply_tool_choice, must_stay

ASK = "I'm planning a corporate retreat in Denver next weekend"
WEATHER = {"name": "get_weather", "description": "Get current weather and 7-day forecast for a location"}
VENUE = {"name": "book_venue", "description": "Reserve meeting spaces"}
FLIGHT = {"name": "book_flight", "description": "Search and book airline tickets"}
TEXT = (
    "You have <toolname>get_weather</toolname> (<tooldescription>Get current weather and 7-day forecast for a location"
    "</tooldescription>), <toolname>book_venue</toolname>:\n<tooldescription>Reserve meeting spaces</tooldescription> "
    'and "<toolname>book_flight</toolname>".\n<userq>' + ASK + "</userq>"
)


def codec(**parameters: Any) -> Generic:
    return Generic(SemanticToolFiltering.model_validate(parameters))


def asked(request: LlmRequest) -> str:
    return request.turn.messages[-1].text


def names(request: LlmRequest) -> list[str]:
    return [tool.name for tool in request.tools]


SAID = {"messages": [{"content": "old"}, {"content": ASK}]}
ALL = [WEATHER, VENUE, FLIGHT]
LAYOUTS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "flat": ({}, SAID | {"tools": ALL}),
    "nested": (
        {"toolsJSONPath": "$.tools[*].function"},
        SAID | {"tools": [{"type": "function", "function": each} for each in ALL]},
    ),
    "Gemini": (
        {"queryJSONPath": "$.contents[0].parts[0].text", "toolsJSONPath": "$.tools[0].function_declarations"},
        {"contents": [{"parts": [{"text": ASK}]}], "tools": [{"function_declarations": ALL}]},
    ),
    "several arrays": (
        {"toolsJSONPath": "$.deep.groups[*].tools"},
        SAID | {"deep": {"groups": [{"tools": ALL[:2]}, {"tools": ALL[2:]}]}},
    ),
}


@pytest.mark.requirement("003.json-paths", "003.query")
@pytest.mark.parametrize(("paths", "body"), LAYOUTS.values(), ids=LAYOUTS)
def test_query_and_tools_are_found_by_path_and_the_tools_replaced_in_place(paths: Any, body: Any) -> None:
    text = json.dumps(body, indent=1).encode()

    request = codec(**paths).parse(text, "/any")
    out = json.loads(codec(**paths).rewrite(request, (0, 2)))

    assert asked(request) == ASK
    assert names(request) == ["get_weather", "book_venue", "book_flight"]
    assert out == json.loads(text, object_hook=_without_venue)


def _without_venue(value: dict[str, Any]) -> dict[str, Any]:
    """The JSON without the second tool, in whatever shape."""
    return {
        key: [each for each in items if each != VENUE and each != {"type": "function", "function": VENUE}]
        if isinstance(items, list)
        else items
        for key, items in value.items()
    }


@pytest.mark.requirement("003.rewrite", "P23")
def test_bytes_around_the_tools_are_kept_whatever_the_payload() -> None:
    body = b'{ "x":1e5, "tools" : [ {"name":"a"} , {"name":"b" , "n":12345678901234567890123}],"q":"\\u00e9" }'
    of = codec(queryJSONPath="$.q")

    request = of.parse(body, "")

    assert (
        of.rewrite(request, (1,))
        == b'{ "x":1e5, "tools" : [ {"name":"b" , "n":12345678901234567890123}],"q":"\\u00e9" }'
    )
    assert of.rewrite(request, (0, 1)) == body


@pytest.mark.requirement("003.text-tags")
def test_in_a_text_tags_go_and_so_do_the_tools_that_are_not_kept() -> None:
    path = "$.contents[0].parts[0].text"
    of = codec(queryJSONPath=path, toolsJSONPath=path, userQueryIsJson=False, toolsIsJson=False)
    request = of.parse(json.dumps({"contents": [{"parts": [{"text": TEXT}]}]}).encode(), "")

    out = json.loads(of.rewrite(request, (1,)))

    assert asked(request) == ASK
    assert [json.loads(tool.definition) for tool in request.tools] == [
        WEATHER,
        VENUE,
        {"name": "book_flight", "description": ""},
    ]
    assert out == {
        "contents": [{"parts": [{"text": f'You have  (), book_venue:\nReserve meeting spaces and "".\n{ASK}'}]}]
    }


@pytest.mark.requirement("003.text-tags")
@pytest.mark.parametrize(("query_is_json", "tools_is_json"), [(True, False), (False, True)])
def test_query_and_tools_need_not_share_a_format(query_is_json: bool, tools_is_json: bool) -> None:
    said = ASK if query_is_json else f"Please: <userq>{ASK}</userq>"
    text = TEXT.partition("<userq>")[0]
    of = codec(
        toolsJSONPath="$.tools" if tools_is_json else "$.messages[0].content",
        userQueryIsJson=query_is_json,
        toolsIsJson=tools_is_json,
    )
    body = {"messages": [{"content": "" if tools_is_json else text}, {"content": said}]}
    body |= {"tools": [WEATHER, VENUE, FLIGHT]} if tools_is_json else {}

    request = of.parse(json.dumps(body).encode(), "")
    out = json.loads(of.rewrite(request, (0,)))

    assert asked(request) == ASK
    assert names(request) == ["get_weather", "book_venue", "book_flight"]
    assert out["messages"][1]["content"] == (ASK if query_is_json else f"Please: {ASK}")
    if tools_is_json:
        assert out["tools"] == [WEATHER]
    else:
        assert "get_weather" in out["messages"][0]["content"]
        assert not any(gone in out["messages"][0]["content"] for gone in ("book_venue", "toolname", "Reserve"))


@pytest.mark.requirement("003.text-tags")
def test_a_payload_that_is_no_json_is_the_text_itself() -> None:
    of = codec(userQueryIsJson=False, toolsIsJson=False)

    request = of.parse(TEXT.encode(), "")

    assert asked(request) == ASK
    assert of.rewrite(request, (1,)).decode() == f'You have  (), book_venue:\nReserve meeting spaces and "".\n{ASK}'
    with pytest.raises(RequestNotUnderstood):
        of.parse(b"\xff\xfe<toolname>x</toolname>", "")


@pytest.mark.requirement("003.text-tags", "P23")
@given(around=st.lists(st.sampled_from(TEXTS), min_size=3, max_size=3), seed=st.integers(0, 500), keep=st.booleans())
def test_every_byte_beside_the_tags_stays_as_it_was_escaped(around: list[str], seed: int, keep: bool) -> None:
    before, between, after = (text.replace("<toolname>", "") for text in around)
    pair = "<toolname>f</toolname>", "<tooldescription>é\n🤖</tooldescription>"
    body = written({"a": [1e5, {"t": f"{before}{pair[0]}{between}{pair[1]}{after}"}]}, seed)
    of = codec(toolsJSONPath="$.a[1].t", toolsIsJson=False)

    out = of.rewrite(of.parse(body, ""), (0,) if keep else ())

    kept = f"{before}f{between}é\n🤖{after}" if keep else f"{before}{between}{after}"
    assert json.loads(out) == {"a": [1e5, {"t": kept}]}
    assert _is_subsequence(out, body)


def _is_subsequence(part: bytes, whole: bytes) -> bool:
    rest = iter(whole)
    return all(byte in rest for byte in part)


@pytest.mark.parametrize(
    "text",
    [
        "<toolname>never closed",
        "</toolname><tooldescription>x</tooldescription>",
        "<toolname>" * 20_000,
        "no tags at all",
    ],
)
def test_tags_that_make_no_tool_are_text(text: str) -> None:
    of = codec(toolsJSONPath="$.t", toolsIsJson=False)
    body = json.dumps({"t": text}).encode()

    request = of.parse(body, "")

    assert request.tools == ()
    assert of.rewrite(request, ()) == body


@pytest.mark.requirement("P8", "P9", "P12")
def test_what_a_payload_says_about_calling_tools_is_obeyed_where_it_says_it_as_providers_do() -> None:
    of = codec()
    tools = {"tools": [WEATHER, VENUE, FLIGHT]}
    forced = of.parse(json.dumps(tools | {"tool_choice": {"type": "function", "name": "book_venue"}}).encode(), "")
    listed = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["get_weather", "book_venue"]}}
    allowed = of.parse(json.dumps(tools | {"toolConfig": listed}).encode(), "")

    assert apply_tool_choice(forced, {0: "relevant"}).places == (0, 1)
    assert set(must_stay(allowed)) == {0, 1}
    assert apply_tool_choice(of.parse(json.dumps(tools).encode(), ""), {}, when_none="none").places == (0, 1, 2)


@pytest.mark.requirement("003.rewrite", "P23")
@given(data=st.data(), wanted=st.sets(st.integers(0, 8), min_size=1))
def test_payloads_of_known_formats_keep_their_bytes_by_policy_too(data: st.DataObject, wanted: set[int]) -> None:
    path, bodies = data.draw(
        st.sampled_from([("$.tools", chat_bodies()), ("$.tools[*].function_declarations", gemini_bodies())])
    )
    body = data.draw(written_requests(bodies))
    of = codec(toolsJSONPath=path)
    request = of.parse(body, "")

    out = of.rewrite(request, apply_tool_choice(request, dict.fromkeys(wanted, "relevant")).places)

    assert of.rewrite(request, range(len(request.tools))) == body
    assert {tool.definition for tool in of.parse(out, "").tools} <= {tool.definition for tool in request.tools}


@pytest.mark.parametrize("body", [b'{"tools": "x"}', b'{"tools": [1]}', b'{"tools": {"name": "x"}}'])
def test_what_is_no_array_of_tools_is_not_understood(body: bytes) -> None:
    with pytest.raises(RequestNotUnderstood):
        codec().parse(body, "")


def test_where_the_paths_lead_nowhere_there_is_nothing_to_filter() -> None:
    request = codec().parse(b'{"other": 1}', "")

    assert request.tools == ()
    assert asked(request) == ""


@pytest.mark.requirement("003.rank", "003.threshold")
def test_the_parameters_have_the_names_and_defaults_of_the_seed() -> None:
    default = SemanticToolFiltering()
    by_threshold = SemanticToolFiltering.model_validate({"selectionMode": "By Threshold", "threshold": "0.9"})

    assert (default.query_json_path, default.tools_json_path) == ("$.messages[-1].content", "$.tools")
    assert (default.user_query_is_json, default.tools_is_json) == (True, True)
    assert (default.profile.name, default.profile.k, default.profile.threshold) == ("semantic", 5, None)
    assert (by_threshold.profile.k, by_threshold.profile.threshold) == (None, 0.9)
    assert SemanticToolFiltering.model_validate({"selectionMode": "By Threshold"}).profile.threshold == 0.7
    assert SemanticToolFiltering.model_validate({"Limit": "2", "userQueryIsJson": "false"}).profile.k == 2


@pytest.mark.parametrize(
    "wrong",
    [{"limit": 0}, {"threshold": 1.5}, {"selectionMode": "By Luck"}, {"queryJSONPath": "$.["}, {"unknown": 1}],
)
def test_a_parameter_without_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SemanticToolFiltering.model_validate(wrong)
