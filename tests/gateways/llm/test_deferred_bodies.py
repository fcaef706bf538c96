"""Deferred tools in Anthropic bodies: valid, with references where the history needs them, and nothing else changed."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mock_providers.tool_search import referenced
from model_bodies import CODECS, NAMES, PATH, anthropic_tool, asking, parsed
from model_requests import BODIES, written_requests
from pegboard.gateways.llm.formats.anthropic.tool_references import MessagesDeferral, split_at
from pegboard.gateways.llm.formats.json_spans import members
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.registry import FORMATS, deferral_of
from pegboard.gateways.llm.formats.tool_references import DeferredTools, ReferenceExchange
from pegboard.gateways.llm.formats.tool_search import FunctionCall, SearchTool
from pegboard.prompt_cache import deferral_rows
from strict_upstreams import PROBLEMS
from strict_upstreams.conversations import CONVERSATIONS

MARK = {"type": "ephemeral"}
LONG_MARK = {"type": "ephemeral", "ttl": "1h"}
NAME = "search_tools"
SEARCH = SearchTool(name=NAME, description="Finds tools.")
CODEC, DEFERRAL = CODECS["anthropic"], MessagesDeferral()
OK = {"role": "user", "content": "Hello"}


def deferring_request(
    request: LlmRequest,
    *loaded: str,
    kept: Collection[str] | None = None,
    pushed: Mapping[int, tuple[int, ...]] | None = None,
) -> bytes:
    places = [place for place, tool in enumerate(request.tools) if tool.name in loaded or tool.hosted]
    staying = [place for place, tool in enumerate(request.tools) if kept is None or tool.name in kept or tool.hosted]
    tools = DeferredTools(loaded=frozenset(places), kept=frozenset(staying), search=SEARCH, pushed=pushed or {})
    return DEFERRAL.deferred(request, tools)


def deferring(body: dict[str, Any], *loaded: str, **more: Any) -> Any:
    """The body that leaves when just these tools are in the prompt; nothing is wrong with it."""
    out = json.loads(deferring_request(parsed("anthropic", body), *loaded, **more))
    assert PROBLEMS["anthropic"](out) == []
    return out


def deferred(name: str, **more: Any) -> dict[str, Any]:
    return anthropic_tool(name, **more) | {"defer_loading": True}


def use(id_: str, name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": {}}


def result(id_: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": "ok"}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def thought(said: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": said, "signature": f"of {said}"}


def talk(*blocks: dict[str, Any]) -> dict[str, Any]:
    """A conversation in which the assistant said these blocks, and calls were answered."""
    results = [result(block["id"]) for block in blocks if block["type"] == "tool_use"]
    answered = [{"role": "user", "content": results}] if results else []
    return asking("anthropic") | {"messages": [OK, {"role": "assistant", "content": [*blocks]}, *answered]}


@pytest.mark.requirement("anthropic.defer-loading")
@pytest.mark.requirement("P21")
def test_what_is_not_loaded_is_deferred_and_one_tool_searches_for_it() -> None:
    search, *tools = deferring(asking("anthropic"), "beta")["tools"]

    assert (search["name"], search["input_schema"]["required"]) == (NAME, ["query"])
    assert tools == [deferred("alpha"), anthropic_tool("beta"), deferred("gamma"), deferred("delta")]


def test_a_flag_of_its_own_is_turned_where_it_stands() -> None:
    tools = [{"defer_loading": False, "name": "alpha", "input_schema": {"type": "object"}}, anthropic_tool("beta")]

    out = deferring(asking("anthropic") | {"tools": tools}, "beta")

    assert next(iter(out["tools"][1].items())) == ("defer_loading", True)
    assert out["tools"][2] == anthropic_tool("beta")


def test_a_flag_that_is_written_otherwise_is_turned_too() -> None:
    body = json.dumps(asking("anthropic", tools=("alpha", "beta")) | {"model": "m"})
    written = body.replace('"name": "alpha"', '"name": "alpha", "defer\\u005floading": false')

    out = deferring_request(CODEC.parse(written.encode(), PATH))

    assert out.count(b"loading") == 2
    assert json.loads(out)["tools"][1:] == [deferred("alpha"), deferred("beta")]


@pytest.mark.requirement("P20", "P21")
def test_the_breakpoint_of_a_deferred_tool_goes_to_the_last_loaded_one_before_it() -> None:
    tools = [*map(anthropic_tool, NAMES[:-1]), anthropic_tool("delta", cache_control=MARK)]

    out = deferring(asking("anthropic") | {"tools": tools}, "beta")

    assert out["tools"][2] == anthropic_tool("beta", cache_control=MARK)
    assert out["tools"][4] == deferred("delta")


@pytest.mark.requirement("P20", "P21")
@pytest.mark.parametrize("loaded", [(), ("delta",)])
def test_a_breakpoint_before_every_loaded_tool_goes_to_the_search(loaded: tuple[str, ...]) -> None:
    tools = [anthropic_tool("alpha", cache_control=LONG_MARK), anthropic_tool("beta", cache_control=MARK)]
    tools += [anthropic_tool("gamma"), anthropic_tool("delta")]

    out = deferring(asking("anthropic") | {"tools": tools}, *loaded)

    assert (out["tools"][0]["name"], out["tools"][0]["cache_control"]) == (NAME, LONG_MARK)


def test_what_may_not_be_found_is_left_out() -> None:
    out = deferring(asking("anthropic"), "beta", kept=("beta", "gamma"))

    assert out["tools"][1:] == [anthropic_tool("beta"), deferred("gamma")]


@pytest.mark.requirement("P18", "P21")
def test_what_is_relevant_to_a_message_is_referred_to_behind_it() -> None:
    out = deferring(talk(text("Hi.")) | {"tools": [anthropic_tool(name) for name in NAMES]}, pushed={0: (1, 3)})

    asked, search, found, said = out["messages"]
    assert (asked, said["content"]) == (OK, [text("Hi.")])
    assert [block["name"] for block in search["content"]] == [NAME]
    assert list(referenced([found])) == ["beta", "delta"]
    assert CONVERSATIONS["anthropic"](out) == []


@pytest.mark.requirement("P21")
def test_each_tool_is_referred_to_once_and_not_if_it_is_in_the_prompt() -> None:
    body = talk(text("Hi.")) | {"tools": [anthropic_tool(name) for name in NAMES]}
    body["messages"].append({"role": "user", "content": [text("More")]})

    out = deferring(body, "alpha", pushed={0: (0, 1), 1: (0, 1, 2)})

    assert list(referenced(out["messages"])) == ["beta", "gamma"]
    assert CONVERSATIONS["anthropic"](out) == []


@pytest.mark.requirement("P21")
def test_between_messages_of_the_user_nothing_is_inserted() -> None:
    """The results of one answer's calls may come in several messages."""
    body = asking("anthropic") | {"messages": [OK, {"role": "user", "content": [text("and this")]}]}

    out = deferring(body, pushed={0: (1,), 1: (2,)})

    assert [message["role"] for message in out["messages"]] == ["user", "user", "assistant", "user"]
    assert list(referenced(out["messages"])) == ["beta", "gamma"]


@pytest.mark.requirement("P20", "P21")
def test_the_breakpoint_of_the_last_message_goes_behind_its_references() -> None:
    """So that the next request reads them from the cache."""
    body = asking("anthropic") | {"messages": [{"role": "user", "content": [text("Hi") | {"cache_control": MARK}]}]}

    out = deferring(body, pushed={0: (1,)})

    asked, _, found = out["messages"]
    assert asked["content"] == [text("Hi")]
    assert found["content"][0]["cache_control"] == MARK
    body["messages"] += [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": "And?"}]
    later = deferring(body, pushed={0: (1,)})
    assert later["messages"][0]["content"] == [text("Hi") | {"cache_control": MARK}]
    assert "cache_control" not in later["messages"][2]["content"][0]


SPLITS: dict[str, tuple[list[dict[str, Any]], int]] = {
    "a call": ([use("t", "beta")], 0),
    "text and a call": ([text("a"), use("t", "beta")], 1),
    "thoughts": ([thought("a"), use("t", "beta")], 1),
    "thoughts twice": ([thought("a"), text("b"), thought("c"), text("d"), use("t", "beta")], 2),
    "redacted thoughts": ([thought("a"), {"type": "redacted_thinking", "data": "x"}, use("t", "beta")], 2),
    "two calls": ([text("a"), use("s", "alpha"), use("t", "beta")], 1),
    "a tool of the provider's": (
        [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, text("a"), use("t", "beta")],
        0,
    ),
    "a call by code": ([text("a"), use("t", "beta") | {"caller": {"type": "code_execution_20260120"}}], 0),
}


@pytest.mark.requirement("P21")
@pytest.mark.parametrize(("blocks", "at"), SPLITS.values(), ids=SPLITS)
def test_a_call_of_a_deferred_tool_comes_after_a_search_that_found_it(blocks: list[dict[str, Any]], at: int) -> None:
    body = talk(*blocks)

    out = deferring(body, "alpha")

    assert split_at(blocks) == at
    _, before, found, after, _ = out["messages"]
    assert before["content"][:-1] == blocks[:at]
    assert before["content"][-1]["name"] == NAME
    assert list(referenced([found])) == ["beta"]
    assert after["content"] == blocks[at:]
    assert CONVERSATIONS["anthropic"](out) == []


def test_other_fields_of_a_message_stay_with_its_calls() -> None:
    body = talk(text("a"), use("t", "beta"))
    body["messages"][1] = {"content": body["messages"][1]["content"], "id": "m", "role": "assistant"}

    out = deferring(body)

    assert out["messages"][3] == {"content": [use("t", "beta")], "id": "m", "role": "assistant"}


@pytest.mark.requirement("P21")
def test_what_the_clients_own_history_refers_to_is_not_referred_to_again() -> None:
    found = {"type": "tool_result", "tool_use_id": "s", "content": [{"type": "tool_reference", "tool_name": "beta"}]}
    body = talk(use("s", "alpha"))
    body["messages"][2]["content"] = [found]
    body["messages"] += [
        {"role": "assistant", "content": [use("t", "beta")]},
        {"role": "user", "content": [result("t")]},
    ]

    out = deferring(body, "alpha", pushed={0: (2,)})

    assert list(referenced(out["messages"])) == ["gamma", "beta"]


@pytest.mark.requirement("P21")
def test_searches_are_answered_with_references_or_with_a_word() -> None:
    body = deferring_request(parsed("anthropic", asking("anthropic")))
    answer = {"content": [text(" "), text("Let me see."), use("s", NAME), use("t", NAME)]}
    results = [(FunctionCall(name=NAME, id="s"), ("alpha", "beta")), (FunctionCall(name=NAME, id="t"), "nothing")]

    exchange = ReferenceExchange(answer=answer, results=results)
    out = json.loads(DEFERRAL.continued(body, parsed("anthropic", asking("anthropic")), [exchange]))

    assert [block["type"] for block in out["messages"][-2]["content"]] == ["text", "tool_use", "tool_use"]
    assert list(referenced(out["messages"])) == ["alpha", "beta"]
    assert out["messages"][-1]["content"][1]["content"] == "nothing"
    assert PROBLEMS["anthropic"](out) + CONVERSATIONS["anthropic"](out) == []


def test_every_format_of_which_the_table_says_so_can_defer() -> None:
    says = {row.api for row in deferral_rows() if row.support.search != "none"}

    assert {each.name for each in FORMATS if deferral_of(each.codec) is not None} == says


@pytest.mark.requirement("P20", "P21", "P23")
@given(
    body=written_requests(BODIES["anthropic"]), picked=st.sets(st.integers(0, 12)), pushed=st.sets(st.integers(0, 6))
)
def test_of_any_valid_request_the_tools_are_deferred_and_every_other_byte_is_kept(
    body: bytes, picked: set[int], pushed: set[int]
) -> None:
    request = CODEC.parse(body, PATH)
    assume(request.tools and not DEFERRAL.closed(request) and not CONVERSATIONS["anthropic"](json.loads(body)))
    forced = request.choice.names or frozenset()
    loaded = frozenset(
        place for place, tool in enumerate(request.tools) if place in picked or tool.hosted or tool.name in forced
    )
    kept = frozenset(range(len(request.tools)))
    out_of = tuple(place for place in pushed if place in kept - loaded)
    tools = DeferredTools(loaded=loaded, kept=kept, search=SEARCH, pushed={0: out_of})

    written = DEFERRAL.deferred(request, tools)

    out = json.loads(written)
    assert PROBLEMS["anthropic"](out) + CONVERSATIONS["anthropic"](out) == []
    search, *after = out["tools"]
    assert search["name"] == NAME
    for place, (old, new) in enumerate(zip(json.loads(body)["tools"], after, strict=True)):
        assert new.get("defer_loading", False) is (place not in loaded)
        changing = {"defer_loading", "cache_control"}
        assert [item for item in old.items() if item[0] not in changing] == [
            item for item in new.items() if item[0] not in changing
        ]

    def others(text: bytes) -> list[tuple[str, bytes]]:
        changing = ("tools", "messages")
        return [(key, text[each.start : each.end]) for key, each in members(text).items() if key not in changing]

    assert others(written) == others(body)
    assert DEFERRAL.deferred(request, tools) == written


BLOCKS = st.lists(
    st.one_of(
        st.sampled_from(["a", "b"]).map(text),
        st.sampled_from(["c", "d"]).map(thought),
    ),
    max_size=4,
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Any]:
    """Turns of the user, loops of calls, thoughts; results in one message or with the user's words beside them."""
    messages: list[Any] = []
    for turn in range(draw(st.integers(1, 4))):
        said: list[Any] = [text(f"Turn {turn}")]
        for step in range(draw(st.integers(0, 3))):
            calls = [use(f"t{turn}_{step}_{n}", draw(st.sampled_from(NAMES))) for n in range(draw(st.integers(1, 2)))]
            messages.append({"role": "user", "content": said})
            messages.append({"role": "assistant", "content": [*draw(BLOCKS), *calls]})
            said = [result(call["id"]) for call in calls]
            said += [text("And also this.")] if draw(st.booleans()) else []
        messages.append({"role": "user", "content": said})
        messages.append({"role": "assistant", "content": draw(st.sampled_from(["Done.", [text("Done.")]]))})
    return messages[:-1]


@pytest.mark.requirement("anthropic.defer-loading")
@pytest.mark.requirement("P18", "P21")
@given(
    messages=conversations(),
    loaded=st.sets(st.sampled_from(NAMES)),
    pushes=st.dictionaries(st.integers(0, 12), st.lists(st.integers(0, 3), unique=True).map(tuple)),
)
def test_over_any_conversation_bodies_are_valid_and_each_begins_as_the_one_before(
    messages: list[Any], loaded: set[str], pushes: dict[int, tuple[int, ...]]
) -> None:
    """Every request of a conversation is rewritten on its own, as by another replica each time."""
    sent: list[list[Any]] = []
    for end in [place + 1 for place, each in enumerate(messages) if each["role"] == "user"]:
        body = asking("anthropic") | {"messages": messages[:end]}
        out = deferring(body, *loaded, pushed=pushes)
        assert CONVERSATIONS["anthropic"](out) == []
        sent.append(out["messages"])
        found = list(referenced(out["messages"]))
        assert len(found) == len(set(found))
        called = {block["name"] for each in messages[:end] for block in each["content"] if "name" in block}
        assert called - loaded <= set(found)
    for before, after in pairwise(sent):
        assert after[: len(before)] == before
