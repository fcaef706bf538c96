"""The HTTP API on a real socket: what it answers, to whom, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from threading import Event, Semaphore
from typing import Any

import pytest

from index_threads import SECONDS
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.http_api.openapi_document import PATH, openapi_document
from pegboard.model import Decision
from pegboard.retrieval import Retriever, index_thread
from pegboard.retrieval.index_thread import MANY
from pegboard.routing_board import RoutingBoard
from served import Gateway, OpenGateway

ROOT = Path(__file__).parents[3]
LISTED = str(ROOT / "tests" / "servers" / "listed.py")
RAIL = [
    {"name": "timetable", "description": "When trains leave a station", "inputSchema": {"type": "object"}},
    {"name": "ticket_price", "description": "What a train ticket costs", "inputSchema": {"type": "object"}},
]
BANK = [{"name": "transfer", "description": "Transfer money to an account", "inputSchema": {"type": "object"}}]
OWN = [
    {
        "name": "tide.high",
        "description": "When the tide is high at a harbour",
        "inputSchema": {"type": "object", "properties": {"harbour": {"type": "string"}}},
    },
    {"name": "wind", "description": "How strong the wind blows", "inputSchema": {"type": "object"}},
]
ACCESS = {
    "ann": {"hash": hashed("ann's"), "tools": ["rail/*"]},
    "root": {"hash": hashed("root's"), "scopes": ["money"]},
}
ANN, ROOT_TOKEN = {"authorization": "Bearer ann's"}, {"authorization": "Bearer root's"}


@pytest.fixture
def servers(tmp_path: Path) -> dict[str, Any]:
    """Two servers: trains, and a bank."""
    found: dict[str, Any] = {}
    for name, tools in (("rail", RAIL), ("bank", BANK)):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps({"title": name, "instructions": "", "tools": tools}), "utf-8")
        found[name] = {"command": sys.executable, "args": [LISTED, str(file)]}
    return {"servers": found, "start_wait": 20.0, "api": {"patience": 20.0}}


async def asked(
    gateway: Gateway, path: str, body: dict[str, Any], headers: dict[str, str] | None = None, status: int = 200
) -> Any:
    answer = await gateway.http.post(f"/v1/{path}", json=body, headers=headers or {})
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


async def test_a_turn_gets_the_tools_that_it_needs_of_the_gateways_servers(
    gateway_of: OpenGateway, servers: dict[str, Any]
) -> None:
    async with gateway_of(**servers) as gateway:
        found = await asked(gateway, "route", {"query": "when do trains leave for Oslo?"})

        assert found["candidates"][0]["name"] == "timetable"
        assert "timetable" in found["active"]
        assert {"name": "timetable", **RAIL[0]} in found["tools"]
        assert found["reachable"] == 3
        assert found["tokens"]["all"] >= found["tokens"]["active"] > 0


async def test_tools_that_go_while_a_turn_is_decided_are_left_out_of_its_answer(
    gateway_of: OpenGateway, servers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    route = RoutingBoard.route

    async def changing(board: RoutingBoard, *asked: Any) -> Decision:
        decision = await route(board, *asked)
        board.replace_catalog(board.catalog.without_server("rail"))
        return decision

    async with gateway_of(**servers) as gateway:
        assert (await asked(gateway, "route", {"query": "when do trains leave for Oslo?"}))["reachable"] == 3
        monkeypatch.setattr(RoutingBoard, "route", changing)
        found = await asked(gateway, "route", {"query": "when do trains leave for Oslo?"})

    assert "timetable" not in json.dumps(found)
    assert found["reachable"] == 1


@pytest.mark.requirement("scale.tenants")
async def test_boards_whose_words_are_read_take_no_place_from_others(
    gateway_of: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two places on two cores, and two callers with large boards, each on a thread of its own."""
    reading, read_on, index_words = Semaphore(0), Event(), Retriever.index_words

    def slowly(retriever: Retriever) -> None:
        if len(retriever.tools) > MANY:
            reading.release()
            assert read_on.wait(SECONDS)
        index_words(retriever)

    monkeypatch.setattr(Retriever, "index_words", slowly)
    monkeypatch.setattr(index_thread, "LARGE", MANY + 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    many = [{**OWN[1], "name": f"wind_{number}"} for number in range(MANY + 2)]
    async with gateway_of(access=ACCESS, api={"patience": 0.05}) as gateway:

        async def routed(tools: list[dict[str, Any]], headers: dict[str, str]) -> Any:
            return await asked(gateway, "route", {"query": "strong wind?", "tools": tools}, headers)

        waiting = [
            asyncio.create_task(routed(many[:-1], ANN)),
            asyncio.create_task(routed(many, ROOT_TOKEN)),
        ]
        try:
            for _ in waiting:
                assert await asyncio.to_thread(reading.acquire, timeout=SECONDS)
            await asyncio.sleep(0.5)  # beyond the patience: both want a place
            async with asyncio.timeout(SECONDS / 2):
                assert (await routed(OWN, ANN))["candidates"][0]["name"] == "wind"
        finally:
            read_on.set()
        assert all([(await each)["candidates"] for each in waiting])


async def test_messages_of_an_agent_are_a_turn_and_definitions_come_in_the_form_that_was_asked_for(
    gateway_of: OpenGateway, servers: dict[str, Any]
) -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "What does a train ticket cost?"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "ticket_price", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "transfer money"}]},
    ]
    async with gateway_of(**servers) as gateway:
        for form, key in (("openai", "function"), ("anthropic", "input_schema"), ("gemini", "functionDeclarations")):
            found = await asked(gateway, "route", {"messages": messages, "format": form})
            assert found["candidates"][0]["name"] == "ticket_price"
            assert all(key in tool for tool in found["tools"])
        assert (await asked(gateway, "route", {"messages": messages, "format": "none"}))["tools"] == []


ASKED, MISLEADS = "What does a train ticket cost?", "transfer money to an account"
FORMS: dict[str, list[dict[str, Any]]] = {
    "Chat Completions": [
        {"role": "user", "content": ASKED},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "timetable", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": MISLEADS},
    ],
    "Responses": [
        {"role": "user", "content": [{"type": "input_text", "text": ASKED}]},
        {"type": "function_call", "call_id": "1", "name": "timetable", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": MISLEADS},
    ],
    "Anthropic": [
        {"role": "user", "content": ASKED},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "timetable", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": MISLEADS}]},
    ],
    "Gemini": [
        {"role": "user", "parts": [{"text": ASKED}]},
        {"role": "model", "parts": [{"functionCall": {"name": "timetable", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "timetable", "response": {"said": MISLEADS}}}]},
    ],
    "Bedrock": [
        {"role": "user", "content": [{"text": ASKED}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "timetable", "input": {}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": MISLEADS}]}}]},
    ],
    "LangChain": [
        {"type": "human", "content": ASKED},
        {"type": "ai", "content": "", "tool_calls": [{"id": "1", "name": "timetable", "args": {}}]},
        {"type": "tool", "tool_call_id": "1", "content": MISLEADS},
    ],
}


async def test_the_document_names_the_forms_of_messages_that_are_read(
    gateway_of: OpenGateway, servers: dict[str, Any]
) -> None:
    schema = openapi_document("0")["components"]["schemas"]["RouteRequest"]["properties"]["messages"]
    async with gateway_of(**servers) as gateway:
        for form, messages in FORMS.items():
            assert form in schema["description"]
            found = await asked(gateway, "route", {"messages": messages})
            assert found["candidates"][0]["name"] == "ticket_price", form
    assert "Vercel" not in schema["description"]  # @pegboard/ai puts that SDK's messages into another form


async def test_tools_of_the_callers_own_are_ranked_under_their_own_names(gateway_of: OpenGateway) -> None:
    async with gateway_of(api={"patience": 20.0}) as gateway:
        found = await asked(gateway, "route", {"query": "when is the tide high in Bergen?", "tools": OWN})

        assert found["candidates"][0]["name"] == "tide.high"
        assert OWN[0] in found["tools"]
        assert found["ranked_by"] == "meaning"


@pytest.mark.requirement("library.http-api")
async def test_what_a_token_does_not_grant_is_neither_offered_found_nor_counted(
    gateway_of: OpenGateway, servers: dict[str, Any]
) -> None:
    async with gateway_of(access=ACCESS, **servers) as gateway:
        ann = await asked(gateway, "route", {"query": "transfer money to an account"}, ANN)
        everything = await asked(gateway, "route", {"query": "transfer money to an account"}, ROOT_TOKEN)
        assert everything["candidates"][0]["name"] == "transfer"
        assert "transfer" not in [*ann["active"], *(each["name"] for each in ann["candidates"])]
        assert ann["reachable"] == 2

        found = await asked(gateway, "search", {"query": "transfer money"}, ANN)
        assert "transfer" not in json.dumps(found)
        assert (await asked(gateway, "search", {"query": "transfer money"}, ROOT_TOKEN))["tools"][0][
            "name"
        ] == "transfer"

        outcome = {"tool": "transfer", "success": True}
        refused = await asked(gateway, "outcome", outcome, ANN, 404)
        assert refused["error"] == "tool_not_available"
        await asked(gateway, "outcome", outcome, ROOT_TOKEN, 204)


async def test_without_a_token_where_one_is_needed_nothing_is_answered(
    gateway_of: OpenGateway, servers: dict[str, Any]
) -> None:
    async with gateway_of(access=ACCESS, **servers) as gateway:
        for path, body in (("route", {"query": "x"}), ("search", {"query": "x"}), ("outcome", {"tool": "transfer"})):
            for headers in ({}, {"authorization": "Bearer wrong"}):
                answer = await gateway.http.post(f"/v1/{path}", json=body, headers=headers)
                assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")
                assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.requirement("signing-in.rates")
async def test_a_request_beyond_the_rate_is_refused_before_its_body_is_read(
    gateway_of: OpenGateway, servers: dict[str, Any]
) -> None:
    rates = [{"calls": 2, "seconds": 3_600, "of": "requests"}]
    async with gateway_of(access=ACCESS, rates=rates, **servers) as gateway:
        await asked(gateway, "route", {"query": "trains"}, ANN)
        await asked(gateway, "search", {"query": "trains"}, ANN)
        for path in ("route", "search", "outcome"):
            answer = await gateway.http.post(f"/v1/{path}", content=b"no JSON", headers=ANN)
            assert (answer.status_code, answer.json()["error"]) == (429, "rate_limited")
            assert 0 < int(answer.headers["retry-after"]) <= 1_800
        await asked(gateway, "route", {"query": "trains"}, ROOT_TOKEN)


async def test_a_toolset_needs_its_scope(gateway_of: OpenGateway, servers: dict[str, Any]) -> None:
    toolsets = {"money": {"servers": ["bank"], "scope": "money"}}
    async with gateway_of(access=ACCESS, toolsets=toolsets, **servers) as gateway:
        body = {"query": "transfer money", "toolset": "money"}
        assert (await asked(gateway, "route", body, ROOT_TOKEN))["reachable"] == 1
        assert (await asked(gateway, "route", body, ANN, 403))["error"] == "insufficient_scope"
        assert (await asked(gateway, "route", body | {"toolset": "none"}, ANN, 404))["error"] == "config_error"


@pytest.mark.requirement("library.http-api")
async def test_nobody_reports_for_anothers_turn(gateway_of: OpenGateway, servers: dict[str, Any]) -> None:
    async with gateway_of(access=ACCESS, **servers) as gateway:
        turn = (await asked(gateway, "route", {"query": "tide?", "tools": OWN}, ANN))["turn"]
        report = {"tool": "tide.high", "success": True, "turn": turn}
        assert (await asked(gateway, "outcome", report, ROOT_TOKEN, 404))["error"] == "unknown_turn"
        assert (await asked(gateway, "outcome", report | {"tool": "wave"}, ANN, 404))["error"] == "tool_not_available"
        await asked(gateway, "outcome", report, ANN, 204)


async def test_a_reported_success_opens_what_a_rule_asks_for_in_that_conversation_alone(
    gateway_of: OpenGateway, servers: dict[str, Any]
) -> None:
    rules = ({"tools": "bank/transfer", "requires": ["has_prior_tool_output:timetable"]},)
    async with gateway_of(rules=rules, **servers) as gateway:
        body = {"query": "transfer money to an account"}
        assert "transfer" not in (await asked(gateway, "route", body | {"session": "one"}))["active"]
        await asked(gateway, "outcome", {"tool": "timetable", "success": True, "session": "one"}, None, 204)
        assert "transfer" in (await asked(gateway, "route", body | {"session": "one"}))["active"]
        assert "transfer" not in (await asked(gateway, "route", body | {"session": "two"}))["active"]


async def test_a_failure_that_one_client_reports_hides_no_server_from_others(
    gateway_of: OpenGateway, servers: dict[str, Any]
) -> None:
    async with gateway_of(**servers) as gateway:
        report = {"tool": "transfer", "success": False, "failure": "server", "latency_ms": 10}
        for _ in range(10):
            await asked(gateway, "outcome", report, None, 204)
        assert (await asked(gateway, "route", {"query": "transfer money"}))["reachable"] == 3


async def test_a_search_over_own_tools_finds_by_words_and_says_when_nothing_matches(gateway_of: OpenGateway) -> None:
    async with gateway_of(api={"patience": 20.0}) as gateway:
        found = await asked(gateway, "search", {"query": "high tide at the harbour", "tools": OWN, "limit": 1})
        assert [tool["name"] for tool in found["tools"]] == ["tide.high"]
        assert "harbour" in found["tools"][0]["signature"]
        nothing = await asked(gateway, "search", {"query": "qwertz xyzzy", "tools": OWN})
        assert nothing["tools"] == []
        assert nothing["why"]


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("route", b"{", "Invalid JSON"),
        ("route", b"[]", "Input should be an object"),
        ("route", b"{}", "give either query or messages"),
        ("route", b'{"query": "a", "messages": []}', "give either query or messages"),
        ("route", b'{"query": "a", "quary": 1}', "quary"),
        ("route", b'{"messages": [{"role": "wizard", "content": "x"}]}', "wizard"),
        ("route", b'{"messages": [{"role": [1], "content": "x"}]}', "cannot be read: dict"),
        ("route", b'{"messages": [{"role": "user", "type": ["x"], "content": "x"}]}', "cannot be read: dict"),
        ("route", b'{"messages": [{"role": "user", "content": "x", "tool_calls": 5}]}', "cannot be read: dict"),
        ("route", b'{"messages": [{"role": "assistant", "tool_calls": ["x"]}]}', "cannot be read: dict"),
        ("route", b'{"messages": [{"role": "assistant", "tool_calls": [{"function": "x"}]}]}', "cannot be read: dict"),
        (
            "route",
            b'{"messages": [{"role": "user", "content": [{"toolResult": {"content": ["x"]}}]}]}',
            "cannot be read: dict",
        ),
        ("route", b'{"query": "a", "format": "wire"}', "format"),
        ("search", b'{"query": ""}', "query"),
        ("search", b'{"query": "a", "tools": [{"name": "x"}], "kind": "skill"}', "Own tools"),
        ("outcome", b'{"tool": "x", "success": "perhaps"}', "success"),
        ("outcome", b'{"tool": "x", "success": true, "latency_ms": Infinity}', "latency_ms"),
        ("outcome", b'{"tool": "x", "success": true, "latency_ms": 1e400}', "latency_ms"),
        ("outcome", b'{"tool": "x", "success": true, "latency_ms": 1e9}', "latency_ms"),
        ("route", b'{"query": "a", "max_price": Infinity}', "max_price"),
        ("route", b'{"query": "a", "deadline": 1e400}', "deadline"),
        ("route", b'{"query": "a", "refused": [%s""]}' % (b'"",' * 100), "at most 100 items"),
        ("route", b'{"query": "a", "milestones": [%s""]}' % (b'"",' * 100), "at most 100 items"),
        ("route", b'{"query": "a", "refused": ["%s"]}' % (b"x" * 201), "at most 200 characters"),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused_with_what_is_wrong(
    gateway_of: OpenGateway, path: str, body: bytes, said: str
) -> None:
    async with gateway_of() as gateway:
        answer = await gateway.http.post(f"/v1/{path}", content=body)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
        assert said in answer.json()["message"]
        assert answer.json()["remedy"]


async def test_tools_that_cannot_be_read_are_refused(gateway_of: OpenGateway) -> None:
    async with gateway_of(api={"most_tools": 2}) as gateway:
        for tools in (
            [{"description": "no name"}],
            [{"name": "x", "input_schema": 7}],
            [{"name": str(n)} for n in range(3)],
        ):
            assert (await asked(gateway, "route", {"query": "x", "tools": tools}, None, 422))[
                "error"
            ] == "catalog_error"


async def test_a_body_has_a_limit_whether_or_not_it_says_its_length(gateway_of: OpenGateway) -> None:
    async with gateway_of(api={"most_body": 1000}) as gateway:
        body = json.dumps({"query": "x" * 2000}).encode()

        async def stream() -> Any:
            yield body

        for content in (body, stream()):
            answer = await gateway.http.post("/v1/route", content=content)
            assert (answer.status_code, answer.json()["error"]) == (413, "body_too_large")


async def test_other_methods_are_refused_with_the_right_one(gateway_of: OpenGateway) -> None:
    async with gateway_of() as gateway:
        answer = await gateway.http.get("/v1/route")
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        assert (await gateway.http.post(PATH)).status_code == 405


async def test_a_page_of_another_origin_may_not_use_it(gateway_of: OpenGateway) -> None:
    async with gateway_of() as gateway:
        answer = await gateway.http.post("/v1/route", json={"query": "x"}, headers={"origin": "https://evil.example"})
        assert (answer.status_code, answer.json()["error"]) == (403, "origin_not_allowed")


async def test_it_can_be_turned_off(gateway_of: OpenGateway) -> None:
    async with gateway_of(api={"serves": False}) as gateway:
        assert (await asked(gateway, "route", {"query": "x"}, None, 404))["error"] == "api_off"


async def test_models_have_their_paths_as_before(gateway_of: OpenGateway) -> None:
    async with gateway_of() as gateway:
        answer = await gateway.http.post("/v1/chat/completions", json={"model": "m", "messages": []})
        assert answer.status_code == 200


@pytest.mark.requirement("library.http-api")
async def test_the_openapi_document_is_served_and_is_the_committed_one(gateway_of: OpenGateway) -> None:
    async with gateway_of(access=ACCESS) as gateway:
        served = (await gateway.http.get(PATH)).json()
    committed = json.loads((ROOT / "docs" / "assets" / "openapi.json").read_text("utf-8"))

    assert served == openapi_document(served["info"]["version"])
    assert served["paths"] == committed["paths"]
    assert served["components"] == committed["components"]


async def test_no_token_and_no_text_of_a_user_is_in_an_error(gateway_of: OpenGateway) -> None:
    async with gateway_of(access=ACCESS) as gateway:
        body = {"query": 7, "messages": "my secret"}
        answer = await gateway.http.post("/v1/route", json=body, headers=ANN)
        assert answer.status_code == 400
        assert "secret" not in answer.text
        assert "ann's" not in answer.text


async def test_a_large_body_is_read_beside_other_requests(gateway_of: OpenGateway) -> None:
    many = [
        {"name": f"task_{each}", "description": f"Do the task of number {each}. {'x' * 200}"} for each in range(500)
    ]
    async with gateway_of(api={"patience": 0.0}) as gateway:
        large, small = await asyncio.gather(
            asked(gateway, "route", {"query": "high tide at a harbour", "tools": [*many, *OWN]}),
            asked(gateway, "route", {"query": "high tide at a harbour", "tools": OWN}),
        )

    assert large["candidates"][0]["name"] == small["candidates"][0]["name"] == "tide.high"
    assert large["reachable"] == 502
