from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from pegboard import Catalog, ToolId
from pegboard.gateways.langchain.scripted_model import ScriptedRequest
from pegboard.model import Server, ServerName
from pegboard.routing import check_arguments_now
from pegboard.testing import FakeEncoder, fake_tool
from pegboard_bench.agents.contenders import bigtool, full, llm_selector, local_tools, pegboard
from pegboard_bench.agents.play import play, total
from pegboard_bench.agents.script import Ask, Behaviour, conversation, fitting, offered, shuffled, with_arguments

SCHEMA = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
JOBS = {
    "get_tides": "Get the high tide times of a harbour",
    "renew_loan": "Renew a loan of a library book",
    "send_letter": "Send a letter by post to an address",
}
ASKS = [
    Ask(text="get the high tide times of a harbour", tools=(ToolId("town", "get_tides"),)),
    Ask(text="renew a loan of a library book", tools=(ToolId("town", "renew_loan"),)),
    Ask(text="get the high tide times of a harbour", tools=(ToolId("town", "send_letter"),)),
]


@pytest.fixture(scope="module")
def harbour_town() -> Catalog:
    tools = [fake_tool(name, said, server="town", schema=SCHEMA) for name, said in JOBS.items()]
    return Catalog.build([(Server(name=ServerName("town")), tools)])


def made(name: str, catalog: Catalog, folder: Path) -> Any:
    tools, encoder = local_tools(catalog), FakeEncoder()
    options = {"encoder": encoder, "cache_dir": folder, "profile": "attention", "k": 1, "threshold": 0.0}
    match name:
        case "full":
            return full(tools)
        case "llm_selector":
            return llm_selector(tools)
        case "bigtool":
            return bigtool(tools, lambda texts: [encoder._vector(text).tolist() for text in texts], 256)
    return pegboard(tools, rendering=name, **options)


@pytest.mark.parametrize(
    ("name", "requests", "first", "called", "refused"),
    [
        ("full", 6, 3, 3, 0),
        ("native", 8, 2, 3, 2),
        ("text", 8, 2, 3, 2),
        ("llm_selector", 6, 3, 3, 0),
        ("bigtool", 7, 2, 3, 0),
    ],
)
def test_each_way_plays_the_conversation_and_is_counted(
    name: str, requests: int, first: int, called: int, refused: int, harbour_town: Catalog, tmp_path: Path
) -> None:
    contender = made(name, harbour_town, tmp_path)

    played = play(contender, with_arguments(ASKS, harbour_town))
    contender.close()

    found = [total(played.turns, each) for each in ("requests", "at_first_sight", "called", "refused")]
    assert found == [requests, first, called, refused]
    assert played.prefix_kept is (name in ("full", "text"))
    assert sum(len(turn.selecting) for turn in played.turns) == (6 if name == "llm_selector" else 0)
    assert all(0 < turn.about_tools < turn.sent for turn in played.turns)


def test_a_model_that_sees_no_such_tool_asks_the_user_and_after_three_errors_too() -> None:
    behaviour = Behaviour(ask=Ask(text="x", tools=(ToolId("town", "fly"),), arguments=({},)))
    user = HumanMessage("x")
    wrong = AIMessage("", tool_calls=[{"name": "fly", "args": {}, "id": "1"}])
    failed = ToolMessage("no", tool_call_id="1", status="error")

    assert behaviour(ScriptedRequest(messages=(SystemMessage("none"), user), tools=())) == "Which tool do you mean?"
    insisting = behaviour(ScriptedRequest(messages=(SystemMessage("fly: away"), user), tools=()))
    assert isinstance(insisting, AIMessage)
    assert insisting.tool_calls[0]["name"] == "fly"
    tired = ScriptedRequest(messages=(SystemMessage("fly: away"), user, wrong, failed, failed, failed), tools=())
    assert behaviour(tired) == "Which tool do you mean?"


def test_the_conversations_have_thirty_asks_and_each_seed_its_own_order() -> None:
    for name in ("real120", "live"):
        asks = conversation(name)
        assert len(asks) == 30
        assert shuffled(asks, 0) == asks
        assert shuffled(asks, 1) != shuffled(asks, 2) != asks


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "array"}}, "required": ["a", "b"]},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "integer", "minimum": 3}]}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^[A-Z]+-[0-9]+$"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": ["boolean", "null"]}}, "required": ["a"]},
    ],
)
def test_made_up_arguments_fit_their_schema(schema: Any) -> None:
    check_arguments_now(fake_tool("t", schema=schema), fitting(schema))


def test_what_can_be_called_is_read_off_the_latest_text() -> None:
    one = {"function": {"name": "call_tool"}}
    said = [HumanMessage(f"Tools that can be called now: {names}\n\nhello") for names in ("a, b", "c")]

    assert offered(ScriptedRequest(messages=tuple(said), tools=(one,))) == ["c"]
    assert offered(ScriptedRequest(messages=(), tools=(one,))) == []
