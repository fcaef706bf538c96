"""What only some SDKs can say, and what they make of what the gateway says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from model_bodies import anthropic_tool, function
from model_doors import Gateway
from sdk_drivers import JOBS, RENEW, SCHEMA

pytest.importorskip("langchain_google_genai", reason="pip install --group sdks")

import anthropic
import openai
from google import genai
from google.genai import types
from langchain_anthropic import ChatAnthropic
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

CHAT = [function(name, description=said, parameters=SCHEMA) for name, said in JOBS.items()]
FLAT: list[Any] = [
    {"type": "function", "name": name, "description": said, "parameters": SCHEMA, "strict": False}
    for name, said in JOBS.items()
]
CLAUDES: list[Any] = [anthropic_tool(name, description=said) for name, said in JOBS.items()]
DECLARED = [types.FunctionDeclaration(name=name, description=said) for name, said in JOBS.items()]


@pytest.fixture
def gpt(gateway: Gateway) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{gateway.url}/openai/v1", api_key="sk-mine", max_retries=0) as client:
        yield client


@pytest.fixture
def claude(gateway: Gateway) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=f"{gateway.url}/anthropic", api_key="sk-mine", max_retries=0) as client:
        yield client


@pytest.fixture
def gemini(gateway: Gateway) -> Iterator[genai.Client]:
    options = types.HttpOptions(base_url=f"{gateway.url}/gemini")
    with genai.Client(api_key="sk-mine", http_options=options) as client:
        yield client


def user(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def names(gateway: Gateway) -> list[str]:
    """Of the tools in the last request that arrived, in the flat formats; a hosted one's type."""
    assert gateway.mock.refused == []
    return [tool.get("name") or tool["type"] for tool in gateway.mock.last.json.get("tools", ())]


def test_the_answers_headers_say_what_was_kept(
    gpt: openai.OpenAI, claude: anthropic.Anthropic, gemini: genai.Client, gateway: Gateway
) -> None:
    chat = gpt.chat.completions.with_raw_response.create(model="m", messages=user(RENEW), tools=CHAT)  # type: ignore[arg-type]
    messages = claude.messages.with_raw_response.create(model="m", max_tokens=9, messages=user(RENEW), tools=CLAUDES)
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=DECLARED)])
    content = gemini.models.generate_content(model="m", contents=RENEW, config=config)
    assert content.sdk_http_response is not None
    model = ChatOpenAI(
        model="m", base_url=f"{gateway.url}/openai/v1", api_key="sk-mine", include_response_headers=True
    ).bind_tools(CHAT)
    metadata = model.invoke(RENEW).response_metadata

    for headers in (chat.headers, messages.headers, content.sdk_http_response.headers, metadata["headers"]):
        assert headers is not None
        assert headers["x-pegboard-filter"] == "filtered"
        assert headers["x-pegboard-tools"] == "2/10"
        assert headers["x-pegboard-decision"]
        assert float(headers["x-pegboard-time-ms"]) > 0


def test_a_request_may_ask_for_fewer_tools_and_its_wish_goes_no_further(gpt: openai.OpenAI, gateway: Gateway) -> None:
    wish = {"x-pegboard-k": "1", "x-other": "goes on"}
    gpt.responses.create(model="m", input=RENEW, tools=FLAT, extra_headers=wish)

    assert names(gateway) == ["renew_loan"]
    assert gateway.mock.last.header("x-other") == "goes on"
    assert gateway.mock.last.header("x-pegboard-k") is None


def test_the_callers_key_goes_to_the_provider_as_it_came(
    gpt: openai.OpenAI, claude: anthropic.Anthropic, gemini: genai.Client, gateway: Gateway
) -> None:
    gpt.models.list()
    assert gateway.mock.last.header("authorization") == "Bearer sk-mine"
    assert gateway.mock.last.target == "/v1/models"
    claude.messages.count_tokens(model="m", messages=user("Hello"))
    assert gateway.mock.last.header("authorization") == "Bearer sk-mine"
    gemini.models.generate_content(model="m", contents="Hello")
    assert gateway.mock.last.header("x-goog-api-key") == "sk-mine"


@pytest.mark.parametrize("streams", [False, True])
def test_a_conversation_that_the_provider_keeps_goes_on_with_the_tools_of_its_intent(
    gpt: openai.OpenAI, gateway: Gateway, streams: bool
) -> None:
    def respond(**asked: Any) -> Any:
        if not streams:
            return gpt.responses.create(model="m", tools=FLAT, **asked)
        with gpt.responses.stream(model="m", tools=FLAT, **asked) as stream:
            return stream.get_final_response()

    first = respond(input=RENEW)
    result = {"type": "function_call_output", "call_id": first.output[0].call_id, "output": "Send an email."}
    second = respond(input=[result], previous_response_id=first.id)
    kept = names(gateway)
    respond(input="and the other one?", previous_response_id=second.id)

    assert gateway.said["x-pegboard-filter"] == "filtered"
    for offered in (kept, names(gateway)):
        assert {"renew_loan", *(call.name for call in first.output)} <= set(offered)
        assert "send_email" not in offered


def test_a_conversation_that_is_not_known_here_is_left_alone(gpt: openai.OpenAI, gateway: Gateway) -> None:
    gateway.mock.answers.add("resp_of_another_gateway")

    gpt.responses.create(model="m", input="and now?", tools=FLAT, previous_response_id="resp_of_another_gateway")

    assert names(gateway) == list(JOBS)
    assert "not known here" in gateway.said["x-pegboard-reason"]


def test_an_answer_that_its_provider_does_not_keep_is_not_remembered(gpt: openai.OpenAI, gateway: Gateway) -> None:
    chat = gpt.chat.completions.create(model="m", messages=user(RENEW), tools=CHAT)  # type: ignore[arg-type]

    gpt.responses.create(model="m", input="and now?", tools=FLAT, previous_response_id=chat.id)

    assert names(gateway) == list(JOBS)
    assert "not known here" in gateway.said["x-pegboard-reason"]


@pytest.mark.requirement("P15")
def test_hosted_tools_arrive_beside_the_relevant_ones(
    gpt: openai.OpenAI, claude: anthropic.Anthropic, gemini: genai.Client, gateway: Gateway
) -> None:
    gpt.responses.create(model="m", input=RENEW, tools=[{"type": "web_search"}, *FLAT])
    assert names(gateway)[0] == "web_search"
    assert len(names(gateway)) == 3

    search: Any = {"type": "web_search_20250305", "name": "web_search"}
    claude.messages.create(model="m", max_tokens=9, messages=user(RENEW), tools=[*CLAUDES, search])
    assert names(gateway)[-1] == "web_search"
    assert len(names(gateway)) == 3

    tools: Any = [types.Tool(google_search=types.GoogleSearch()), types.Tool(function_declarations=DECLARED)]
    gemini.models.generate_content(model="m", contents=RENEW, config=types.GenerateContentConfig(tools=tools))
    arrived, declared = gateway.mock.last.json["tools"]
    assert arrived == {"googleSearch": {}}
    assert len(declared["functionDeclarations"]) == 2
    assert gateway.mock.refused == []


def test_of_allowed_tools_the_relevant_ones_stay_allowed(gpt: openai.OpenAI, gateway: Gateway) -> None:
    allowed: Any = [{"type": "function", "name": name} for name in ("renew_loan", "play_song", "send_email")]
    choice: Any = {"type": "allowed_tools", "mode": "auto", "tools": allowed}

    gpt.responses.create(model="m", input=RENEW, tools=FLAT, tool_choice=choice, extra_headers={"x-pegboard-k": "1"})

    assert names(gateway) == ["renew_loan"]
    assert gateway.mock.last.json["tool_choice"]["tools"] == [{"type": "function", "name": "renew_loan"}]


@pytest.mark.parametrize("parallel", [False, True])
def test_calls_in_parallel_are_asked_for_as_the_request_says(
    gpt: openai.OpenAI, claude: anthropic.Anthropic, gateway: Gateway, parallel: bool
) -> None:
    chat = gpt.chat.completions.create(model="m", messages=user(RENEW), tools=CHAT, parallel_tool_calls=parallel)  # type: ignore[arg-type]
    response = gpt.responses.create(model="m", input=RENEW, tools=FLAT, parallel_tool_calls=parallel)
    choice: Any = {"type": "auto", "disable_parallel_tool_use": not parallel}
    message = claude.messages.create(model="m", max_tokens=9, messages=user(RENEW), tools=CLAUDES, tool_choice=choice)

    for calls in (chat.choices[0].message.tool_calls, response.output, message.content):
        assert len(calls or ()) == 1 + parallel
    assert gateway.mock.refused == []


@pytest.mark.requirement("P20")
@pytest.mark.parametrize("streams", [False, True])
def test_the_cache_breakpoint_on_the_last_tool_moves_to_the_last_that_stays(
    claude: anthropic.Anthropic, gateway: Gateway, streams: bool
) -> None:
    tools: Any = [*CLAUDES[:-1], anthropic_tool("play_chess") | {"cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    system: Any = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    asked: Any = {"model": "m", "max_tokens": 9, "system": system, "messages": user(RENEW), "tools": tools}

    if streams:
        with claude.messages.stream(**asked) as stream:
            stream.until_done()
    else:
        claude.messages.create(**asked)

    marked = [tool.get("cache_control") for tool in gateway.mock.last.json["tools"]]
    assert marked == [None, {"type": "ephemeral", "ttl": "1h"}]
    assert gateway.mock.last.json["system"] == system
    assert "play_chess" not in names(gateway)


def test_tokens_are_counted_of_what_would_be_sent(claude: anthropic.Anthropic, gateway: Gateway) -> None:
    claude.messages.create(model="m", max_tokens=9, messages=user(RENEW), tools=CLAUDES)
    sent = gateway.mock.last.json["tools"]
    counted = claude.messages.count_tokens(model="m", messages=user(RENEW), tools=CLAUDES)

    assert gateway.mock.last.target == "/v1/messages/count_tokens"
    assert gateway.mock.last.json["tools"] == sent
    assert counted.input_tokens < len(json.dumps(CLAUDES)) // 4


@pytest.mark.requirement("P21")
def test_deferred_tools_and_those_a_search_found_arrive(claude: anthropic.Anthropic, gateway: Gateway) -> None:
    search: Any = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    deferred = [tool | {"defer_loading": True} for tool in CLAUDES[:5]]
    found = {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": CLAUDES[6]["name"]}],
    }
    history: Any = [
        *user("Tell somebody."),
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "s1", "name": "tool_search_tool_bm25", "input": {"query": "mail"}},
                {"type": "tool_search_tool_result", "tool_use_id": "s1", "content": found},
            ],
        },
        *user("Play a song on the speakers."),
    ]

    claude.messages.create(
        model="m",
        max_tokens=9,
        messages=history,
        tools=[search, *deferred, *CLAUDES[5:]],
        extra_headers={"x-pegboard-k": "1"},
    )

    assert names(gateway) == [search["name"], *list(JOBS)[:5], "send_email", "play_song"]


@pytest.mark.requirement("P26")
def test_geminis_list_of_allowed_names_holds_what_stays(gemini: genai.Client, gateway: Gateway) -> None:
    allowed = ["play_song", "renew_loan", "send_email"]
    calling = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=allowed)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=DECLARED)],
        tool_config=types.ToolConfig(function_calling_config=calling),
        http_options=types.HttpOptions(headers={"x-pegboard-k": "1"}),
    )

    gemini.models.generate_content(model="m", contents=RENEW, config=config)

    body = gateway.mock.last.json
    assert [each["name"] for each in body["tools"][0]["functionDeclarations"]] == ["renew_loan"]
    assert body["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"] == ["renew_loan"]
    assert gateway.mock.refused == []


def test_functions_of_python_are_called_by_the_sdk_until_the_model_is_done(
    gemini: genai.Client, gateway: Gateway
) -> None:
    called = []

    def renew_loan(book: str = "") -> str:
        """Extend the due date of a borrowed book."""
        called.append("renew_loan")
        return "renewed"

    def play_song(title: str = "") -> str:
        """Play a song on the speakers."""
        called.append("play_song")
        return "playing"

    options = types.HttpOptions(headers={"x-pegboard-k": "1"})
    config = types.GenerateContentConfig(tools=[renew_loan, play_song], http_options=options)
    answer = gemini.models.generate_content(model="m", contents=RENEW, config=config)

    assert called == ["renew_loan"]
    assert answer.text
    assert gateway.mock.refused == []


class Loan(BaseModel):
    """Extend the due date of a borrowed book."""

    book: str = ""


def test_structured_output_forces_its_tool_through(gateway: Gateway) -> None:
    gemini = ChatGoogleGenerativeAI(model="m", base_url=f"{gateway.url}/gemini", api_key="sk-mine")
    models: list[Any] = [
        ChatOpenAI(model="m", base_url=f"{gateway.url}/openai/v1", api_key="sk-mine"),
        ChatAnthropic(model="m", base_url=f"{gateway.url}/anthropic", api_key="sk-mine"),
        gemini,
    ]

    for model in models:
        assert model.with_structured_output(Loan, method="function_calling").invoke("Play a song.") == Loan()
    gemini.client.close()
    assert gateway.mock.refused == []


@pytest.mark.requirement("P25")
async def test_many_at_once_each_get_their_own_tools(gateway: Gateway) -> None:
    wishes = {"renew_loan": RENEW, "play_song": "Play a song.", "book_flight": "Book a flight to Rome."}
    async with openai.AsyncOpenAI(base_url=f"{gateway.url}/openai/v1", api_key="sk-mine") as client:

        async def ask(tool: str) -> bool:
            heard = await client.chat.completions.create(
                model="m", messages=user(wishes[tool]), tools=CHAT, extra_headers={"x-pegboard-k": "1"}
            )
            return [call.function.name for call in heard.choices[0].message.tool_calls or ()] == [tool]  # type: ignore[union-attr]

        assert all(await asyncio.gather(*(ask(tool) for tool in list(wishes) * 10)))


def test_what_the_provider_refuses_is_the_sdks_own_error_with_its_words(
    gpt: openai.OpenAI, claude: anthropic.Anthropic, gemini: genai.Client
) -> None:
    choice: Any = {"type": "function", "name": "nothing"}
    with pytest.raises(openai.BadRequestError, match="'nothing' not found"):
        gpt.responses.create(model="m", input=RENEW, tools=FLAT, tool_choice=choice)
    with pytest.raises(anthropic.BadRequestError, match="'nothing' not found"):
        claude.messages.create(
            model="m",
            max_tokens=9,
            messages=user(RENEW),
            tools=CLAUDES,
            tool_choice={"type": "tool", "name": "nothing"},
        )
    wrong = types.Tool(function_declarations=[types.FunctionDeclaration(name="not a name")])
    with pytest.raises(genai.errors.ClientError, match="does not match"):
        gemini.models.generate_content(model="m", contents=RENEW, config=types.GenerateContentConfig(tools=[wrong]))


def test_what_the_gateway_refuses_is_the_sdks_own_error_too(
    gpt: openai.OpenAI, claude: anthropic.Anthropic, gemini: genai.Client
) -> None:
    wish = {"x-pegboard-k": "many"}
    with pytest.raises(openai.BadRequestError, match="x-pegboard-k is 'many'"):
        gpt.responses.create(model="m", input=RENEW, tools=FLAT, extra_headers=wish)
    with pytest.raises(anthropic.BadRequestError, match="x-pegboard-k is 'many'"):
        claude.messages.create(model="m", max_tokens=9, messages=user(RENEW), tools=CLAUDES, extra_headers=wish)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=DECLARED)], http_options=types.HttpOptions(headers=wish)
    )
    with pytest.raises(genai.errors.ClientError, match="x-pegboard-k is 'many'"):
        gemini.models.generate_content(model="m", contents=RENEW, config=config)
