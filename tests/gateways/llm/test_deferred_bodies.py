"""Deferred tools in Anthropic bodies: valid, once searched for, and nothing else changed."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mock_providers.tool_search import NAME
from model_bodies import CODECS, NAMES, PATH, anthropic_tool, asking, parsed
from model_requests import BODIES, written_requests
from pegboard.catalog import BpeCounter
from pegboard.gateways.llm.formats.anthropic.defer_loading import is_without
from pegboard.gateways.llm.formats.json_spans import members
from pegboard.gateways.llm.selection.deferral import SEARCH_TOKENS
from strict_upstreams import PROBLEMS

MARK = {"type": "ephemeral"}
LONG_MARK = {"type": "ephemeral", "ttl": "1h"}
SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": NAME}
CODEC = CODECS["anthropic"]


def deferring(body: dict[str, Any], *loaded: str, kept: Collection[str] | None = None) -> Any:
    """The body that leaves when just these tools are in the prompt; None where that cannot be said."""
    request = parsed("anthropic", body)
    places = [place for place, tool in enumerate(request.tools) if tool.name in loaded or tool.hosted]
    staying = [place for place, tool in enumerate(request.tools) if kept is None or tool.name in kept or tool.hosted]
    written = CODEC.defer(request, places, staying)
    return None if written is None else json.loads(written)


def deferred(name: str, **more: Any) -> dict[str, Any]:
    return anthropic_tool(name, **more) | {"defer_loading": True}


@pytest.mark.requirement("P21")
def test_what_is_not_loaded_is_deferred_and_one_tool_searches_for_it() -> None:
    out = deferring(asking("anthropic"), "beta")

    assert out["tools"] == [SEARCH, deferred("alpha"), anthropic_tool("beta"), deferred("gamma"), deferred("delta")]
    assert PROBLEMS["anthropic"](out) == []


@pytest.mark.requirement("P21")
def test_with_nothing_loaded_the_search_is_what_is_not_deferred() -> None:
    out = deferring(asking("anthropic"))

    assert [tool["name"] for tool in out["tools"] if not tool.get("defer_loading")] == [NAME]
    assert PROBLEMS["anthropic"](out) == []


def test_a_flag_of_its_own_is_turned_where_it_stands() -> None:
    tools = [{"defer_loading": False, "name": "alpha", "input_schema": {"type": "object"}}, anthropic_tool("beta")]

    out = deferring(asking("anthropic") | {"tools": tools}, "beta")

    assert next(iter(out["tools"][1].items())) == ("defer_loading", True)
    assert out["tools"][2] == anthropic_tool("beta")


def test_a_flag_that_is_written_otherwise_is_turned_too() -> None:
    body = json.dumps(asking("anthropic", tools=("alpha", "beta")) | {"model": "m"})
    written = body.replace('"name": "alpha"', '"name": "alpha", "defer\\u005floading": false')

    out = CODEC.defer(CODEC.parse(written.encode(), PATH), (), (0, 1))

    assert out is not None
    assert out.count(b"loading") == 2
    assert json.loads(out)["tools"][1:] == [deferred("alpha"), deferred("beta")]


@pytest.mark.requirement("P20", "P21")
def test_the_breakpoint_of_a_deferred_tool_goes_to_the_last_loaded_one_before_it() -> None:
    tools = [*map(anthropic_tool, NAMES[:-1]), anthropic_tool("delta", cache_control=MARK)]

    out = deferring(asking("anthropic") | {"tools": tools}, "beta")

    assert out["tools"][2] == anthropic_tool("beta", cache_control=MARK)
    assert out["tools"][4] == deferred("delta")
    assert PROBLEMS["anthropic"](out) == []


@pytest.mark.requirement("P20", "P21")
@pytest.mark.parametrize("loaded", [(), ("delta",)])
def test_a_breakpoint_before_every_loaded_tool_goes_to_the_search(loaded: tuple[str, ...]) -> None:
    tools = [anthropic_tool("alpha", cache_control=LONG_MARK), anthropic_tool("beta", cache_control=MARK)]
    tools += [anthropic_tool("gamma"), anthropic_tool("delta")]

    out = deferring(asking("anthropic") | {"tools": tools}, *loaded)

    assert out["tools"][0] == SEARCH | {"cache_control": LONG_MARK}
    assert PROBLEMS["anthropic"](out) == []


@pytest.mark.requirement("P21")
def test_the_callers_own_search_is_the_only_one() -> None:
    own = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
    tools = [anthropic_tool("alpha"), own, anthropic_tool("beta", cache_control=MARK)]

    out = deferring(asking("anthropic") | {"tools": tools}, "alpha")

    assert out["tools"] == [anthropic_tool("alpha"), own | {"cache_control": MARK}, deferred("beta")]
    assert PROBLEMS["anthropic"](out) == []


def test_what_may_not_be_found_is_left_out() -> None:
    out = deferring(asking("anthropic"), "beta", kept=("beta", "gamma"))

    assert out["tools"] == [SEARCH, anthropic_tool("beta"), deferred("gamma")]


@pytest.mark.requirement("P21")
def test_a_tool_that_has_the_name_of_the_search_keeps_it() -> None:
    assert deferring(asking("anthropic", tools=(NAME, "alpha"))) is None


@pytest.mark.parametrize(
    ("model", "without"),
    [
        ("claude-3-7-sonnet-20250219", True),
        ("claude-opus-4-1-20250805", True),
        ("claude-opus-4-20250514", True),
        ("claude-sonnet-4@20250514", True),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", True),
        ("claude-sonnet-4-5-20250929", False),
        ("claude-haiku-4-5", False),
        ("claude-opus-4-8", False),
        ("claude-fable-5", False),
        ("a-name-of-ours", False),
        ("", False),
    ],
)
def test_models_from_before_the_search_are_known(model: str, without: bool) -> None:
    assert is_without(model) is without
    assert (deferring(asking("anthropic") | {"model": model}) is None) is without


@pytest.mark.parametrize("name", [name for name in CODECS if name != "anthropic"])
def test_no_other_format_has_a_word_for_it(name: str) -> None:
    request = parsed(name, asking(name))

    assert CODECS[name].defer(request, (0,), range(len(request.tools))) is None


def test_the_search_counts_as_what_it_is_written_as() -> None:
    written = json.dumps(SEARCH, separators=(",", ":"))

    assert list(BpeCounter().count([written])) == [SEARCH_TOKENS]


@pytest.mark.requirement("P20", "P21", "P23")
@given(body=written_requests(BODIES["anthropic"]), picked=st.sets(st.integers(0, 12)))
def test_of_any_valid_request_the_tools_are_deferred_and_every_other_byte_is_kept(
    body: bytes, picked: set[int]
) -> None:
    request = CODEC.parse(body, PATH)
    assume(request.tools and not any(tool.deferred for tool in request.tools))
    forced = request.choice.names or frozenset()
    places = [
        place for place, tool in enumerate(request.tools) if place in picked or tool.hosted or tool.name in forced
    ]

    written = CODEC.defer(request, places, range(len(request.tools)))

    assert written is not None
    out = json.loads(written)
    assert PROBLEMS["anthropic"](out) == []
    after = [tool for tool in out["tools"] if tool["name"] != NAME]
    before = [tool for tool in json.loads(body)["tools"] if tool["name"] != NAME]
    assert len(out["tools"]) == len(after) + 1
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        assert new.get("defer_loading", False) is (place + len(request.tools) - len(before) not in places)
        changing = {"defer_loading", "cache_control"}
        assert [item for item in old.items() if item[0] not in changing] == [
            item for item in new.items() if item[0] not in changing
        ]

    def others(text: bytes) -> list[tuple[str, bytes]]:
        return [(key, text[each.start : each.end]) for key, each in members(text).items() if key != "tools"]

    assert others(written) == others(body)
    assert CODEC.defer(request, places, range(len(request.tools))) == written
