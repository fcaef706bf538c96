"""Bedrock, Vertex AI, Azure OpenAI, Cohere and Mistral: their paths, bodies, streams, keys and errors."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_bodies import SIZED
from model_doors import model_door
from model_upstream import model_upstream
from more_provider_bodies import CODECS, CONVERSE, NAMES, POINT, chat, converse, frame, function, specified
from pegboard.events import ModelRequestServed
from pegboard.gateways.llm.formats.bedrock.event_frames import EventFrames
from pegboard.gateways.llm.formats.bedrock.request import BedrockConverse
from pegboard.gateways.llm.formats.cohere.request import CohereChat
from pegboard.gateways.llm.formats.protocol import AnswerStarted, LlmRequest, Observer, ToolCalled
from pegboard.gateways.llm.formats.registry import codec_for, counts, priced_as
from pegboard.gateways.llm.formats.tool_choice import apply_tool_choice
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from pegboard.token_usage import TokenUsage
from processes import until
from strict_upstreams import PROBLEMS

STREAM = b"".join(
    [
        frame("messageStart", {"role": "assistant"}),
        frame(
            "contentBlockStart",
            {"start": {"toolUse": {"toolUseId": "t1", "name": "renew_loan"}}, "contentBlockIndex": 0},
        ),
        frame("contentBlockDelta", {"delta": {"toolUse": {"input": '{"what":"it"}'}}, "contentBlockIndex": 0}),
        frame("contentBlockStop", {"contentBlockIndex": 0}),
        frame("messageStop", {"stopReason": "tool_use"}),
        frame("metadata", {"usage": {"inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 7}, "metrics": {}}),
    ]
)
DOCUMENT = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "t1", "name": "renew_loan", "input": {}}}],
        }
    },
    "stopReason": "tool_use",
    "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 22, "cacheReadInputTokens": 7},
}
SEEN = [ToolCalled(name="renew_loan", id="t1"), TokenUsage(input=17, output=5, cache_read=7)]


def observed(observer: Observer, data: bytes, size: int = 7) -> list[object]:
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return [seen for piece in pieces for seen in observer.feed(piece)] + list(observer.finish())


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (CONVERSE, "bedrock"),
        (f"{CONVERSE}-stream", "bedrock"),
        ("/model/arn%3Aaws%3Abedrock%3Aeu%3A1%3Ainference-profile%2Fp/converse", "bedrock"),
        ("/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke", "anthropic"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict", "anthropic"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/claude-opus-4-5:streamRawPredict", "anthropic"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict", "anthropic"),
        ("/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:generateContent", "gemini"),
        ("/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:streamGenerateContent", "gemini"),
        ("/openai/deployments/mine/chat/completions", "openai_chat"),
        ("/openai/v1/responses", "openai_responses"),
        ("/v1/chat/completions", "openai_chat"),
        ("/v2/chat", "cohere"),
    ],
)
def test_each_path_has_its_format(path: str, name: str) -> None:
    found = codec_for(path)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "path",
    [
        "/model/amazon.nova-pro-v1%3A0/invoke",
        "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream",
        "/v1/projects/p/locations/l/publishers/mistralai/models/m:rawPredict",
        "/v2/embed",
    ],
)
def test_bodies_of_other_kinds_pass_unread(path: str) -> None:
    assert codec_for(path) is None


def test_what_counts_tokens_on_vertex_counts() -> None:
    assert counts("/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict")
    assert not counts("/v1/projects/p/locations/l/publishers/anthropic/models/claude-opus-4-5:rawPredict")


def test_azures_prompt_cache_is_priced_as_openais() -> None:
    assert [priced_as(each) for each in ("azure", "openai", "bedrock")] == ["openai", "openai", "bedrock"]


@pytest.mark.parametrize(
    ("path", "model"),
    [
        (CONVERSE, "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("/model/anthropic.claude-x-v1%3A0/invoke", "anthropic.claude-x-v1:0"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/claude-opus-4-5@1:rawPredict", "claude-opus-4-5@1"),
    ],
)
def test_a_model_that_only_the_path_names_is_known(path: str, model: str) -> None:
    codec = codec_for(path)
    assert codec is not None
    assert codec.parse(json.dumps({"messages": []}).encode(), path).model == model


@pytest.mark.parametrize(("kind", "data"), [("application/vnd.amazon.eventstream", STREAM), ("application/json", b"")])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_answers_of_converse_are_read_however_they_are_cut(kind: str, data: bytes, size: int) -> None:
    answer = data or json.dumps(DOCUMENT).encode()

    assert observed(BedrockConverse().observe(kind), answer, size) == SEEN


@given(st.binary(max_size=300))
def test_a_stream_that_is_none_is_given_up_without_an_error(data: bytes) -> None:
    observer = BedrockConverse().observe("application/vnd.amazon.eventstream")

    assert observed(observer, b"\xff" * 12 + data) == []


def test_no_more_than_the_most_is_held_of_a_frame() -> None:
    frames = EventFrames(most=64)

    assert list(frames.feed(frame("metadata", {"usage": {"inputTokens": 1} | {str(n): n for n in range(50)}}))) == []
    assert list(frames.feed(frame("messageStop", {}))) == []


COHERES = [
    {"id": "a1", "type": "message-start", "delta": {"message": {"role": "assistant", "tool_calls": []}}},
    {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I will"}}},
    {
        "type": "tool-call-start",
        "index": 0,
        "delta": {
            "message": {
                "tool_calls": {"id": "t1", "type": "function", "function": {"name": "renew_loan", "arguments": ""}}
            }
        },
    },
    {"type": "tool-call-delta", "index": 0, "delta": {"message": {"tool_calls": {"function": {"arguments": "{}"}}}}},
    {
        "type": "message-end",
        "delta": {"finish_reason": "TOOL_CALL", "usage": {"tokens": {"input_tokens": 17, "output_tokens": 5}}},
    },
]


def test_answers_of_cohere_are_read_streamed_or_whole() -> None:
    streamed = b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in COHERES)
    whole = {
        "id": "a1",
        "message": {"role": "assistant", "tool_calls": [function("renew_loan") | {"id": "t1"}]},
        "usage": {"tokens": {"input_tokens": 17, "output_tokens": 5}},
    }
    seen = [AnswerStarted(id="a1"), ToolCalled(name="renew_loan", id="t1"), TokenUsage(input=17, output=5)]

    assert observed(CohereChat().observe("text/event-stream"), streamed) == seen
    assert observed(CohereChat().observe("application/json"), json.dumps(whole).encode()) == seen


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (
            {
                "billed_units": {"input_tokens": 5, "output_tokens": 8},
                "tokens": {"input_tokens": 71, "output_tokens": 9},
            },
            TokenUsage(input=5, output=8),
        ),
        ({"billed_units": {"output_tokens": 8.0}, "tokens": {"input_tokens": 71.0}}, TokenUsage(input=71, output=8)),
        ({"billed_units": {"input_tokens": 5, "output_tokens": 8}}, TokenUsage(input=5, output=8)),
        (
            {"billed_units": {"input_tokens": 11}, "tokens": {"input_tokens": 507}, "cached_tokens": 464},
            TokenUsage(input=11, cache_read=11),
        ),
    ],
)
def test_of_cohere_those_tokens_count_that_are_billed(usage: dict[str, Any], counted: TokenUsage) -> None:
    end = {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": usage}}

    assert observed(CohereChat().observe("text/event-stream"), f"data: {json.dumps(end)}\n\n".encode()) == [counted]
    assert observed(CohereChat().observe("application/json"), json.dumps({"usage": usage}).encode()) == [counted]


def test_a_cache_point_stays_only_behind_a_tool_that_stays() -> None:
    tools = [specified("a"), POINT, specified("b"), specified("c"), POINT, {"systemTool": {"name": "nova_grounding"}}]
    codec = BedrockConverse()
    request = codec.parse(json.dumps(converse(tools=tools)).encode(), CONVERSE)

    def kept(*places: int) -> list[Any]:
        found: list[Any] = json.loads(codec.rewrite(request, places))["toolConfig"]["tools"]
        return found

    assert [tool.hosted for tool in request.tools] == [False, False, False, True]
    assert kept(1, 3) == [tools[2], POINT, tools[5]]
    assert kept(0, 3) == [tools[0], POINT, tools[5]]
    assert kept(3) == [tools[5]]
    assert codec.rewrite(request, range(4)) == request.body
    assert "toolConfig" not in json.loads(codec.rewrite(request, ()))


def test_who_said_what_in_converse() -> None:
    body = converse()
    body["messages"] += [
        {
            "role": "assistant",
            "content": [{"reasoningContent": {}}, {"toolUse": {"toolUseId": "t", "name": "renew_loan", "input": {}}}],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "t", "content": [{"text": "renewed"}]}},
                {"text": "and the other"},
            ],
        },
    ]
    request = BedrockConverse().parse(json.dumps(body).encode(), f"{CONVERSE}-stream")

    said = [(message.role, message.text) for message in request.turn.messages if message.text]
    assert said == [("system", "Be kind."), ("user", "renew the loan"), ("user", "and the other")]
    assert [part.text for message in request.turn.messages if message.role == "tool" for part in message.parts] == [
        "renewed"
    ]
    assert (request.called, request.streams, request.has_tool_history) == ({"renew_loan"}, True, True)


@pytest.mark.parametrize(
    ("name", "body", "mode", "names"),
    [
        ("bedrock", converse(toolChoice={"auto": {}}), "auto", None),
        ("bedrock", converse(toolChoice={"any": {}}), "required", None),
        ("bedrock", converse(toolChoice={"tool": {"name": "call_taxi"}}), "required", {"call_taxi"}),
        ("cohere", chat(tool_choice="REQUIRED"), "required", None),
        ("cohere", chat(tool_choice="NONE"), "none", None),
        ("cohere", chat(), "auto", None),
    ],
)
def test_the_choice_of_a_tool_is_read(name: str, body: dict[str, Any], mode: str, names: set[str] | None) -> None:
    codec, path = CODECS[name]
    choice = codec.parse(json.dumps(body).encode(), path).choice

    assert (choice.mode, choice.names) == (mode, names)


histories = st.booleans()
CHOICES: dict[str, list[dict[str, Any]]] = {
    "bedrock": [
        {},
        {"toolChoice": {"auto": {}}},
        {"toolChoice": {"any": {}}},
        {"toolChoice": {"tool": {"name": "call_taxi"}}},
    ],
    "cohere": [{}, {"tool_choice": "REQUIRED"}, {"tool_choice": "NONE"}, {"strict_tools": True}],
}


@given(data=st.data(), name=st.sampled_from(["bedrock", "cohere"]), used=histories)
def test_what_was_valid_stays_valid_with_any_tools(data: st.DataObject, name: str, used: bool) -> None:
    codec, path = CODECS[name]
    choice = data.draw(st.sampled_from(CHOICES[name]))
    body = converse(**choice) if name == "bedrock" else chat(**choice)
    if name == "bedrock":
        for at in sorted(data.draw(st.sets(st.integers(1, len(NAMES)), max_size=2)), reverse=True):
            body["toolConfig"]["tools"].insert(at, POINT)
    if used and name == "bedrock":
        body["messages"].append(
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "call_taxi", "input": {}}}]}
        )
        body["messages"].append(
            {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [{"json": {}}]}}]}
        )
    assert PROBLEMS[name](body) == []
    request: LlmRequest = codec.parse(json.dumps(body).encode(), path)
    wanted = dict.fromkeys(data.draw(st.sets(st.integers(0, len(NAMES) - 1))), "relevant")

    sent = json.loads(codec.rewrite(request, apply_tool_choice(request, wanted, when_none="none").places))

    assert PROBLEMS[name](sent) == []
    assert {key: value for key, value in sent.items() if key in ("messages", "system", "model", "inferenceConfig")} == {
        key: value for key, value in body.items() if key in ("messages", "system", "model", "inferenceConfig")
    }


UPSTREAMS: dict[str, dict[str, Any]] = {
    "bedrock": {"format": "bedrock", "api_key_env": "BEDROCK_KEY"},
    "azure": {"format": "azure", "api_key_env": "AZURE_KEY"},
    "cohere": {"format": "cohere"},
    "mistral": {"format": "openai"},
    "vertex": {"format": "anthropic"},
}
MESSAGES = {
    "anthropic_version": "vertex-2023-10-16",
    "max_tokens": 10,
    "messages": [{"role": "user", "content": "renew the loan"}],
    "tools": [{"name": name, "description": name.replace("_", " "), "input_schema": SIZED} for name in NAMES],
}
RAW = "/vertex/v1/projects/p/locations/l/publishers/anthropic/models/claude-opus-4-5@1:rawPredict"


async def test_each_provider_gets_the_tools_that_its_request_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEDROCK_KEY", "bedrock-api-key-1")
    monkeypatch.setenv("AZURE_KEY", "azure-1")
    parts: dict[str, Any] = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    async with model_upstream() as upstream:
        upstreams = {name: {"url": upstream.url, **said} for name, said in UPSTREAMS.items()}
        async with (
            model_door(upstreams, parts=parts, policy={"profile": "semantic", "k": 1}) as (address, _, events),
            httpx2.AsyncClient(base_url=f"http://{address}", trust_env=False, timeout=60) as http,
        ):
            upstream.body, upstream.kind = STREAM, "application/vnd.amazon.eventstream"
            streamed = await http.post(f"{CONVERSE}-stream", json=converse())
            upstream.body, upstream.kind = json.dumps(DOCUMENT).encode(), "application/json"
            named = await http.post(f"/bedrock{CONVERSE}", json=converse())
            azure = await http.post("/azure/openai/deployments/d/chat/completions?api-version=2024-10-21", json=chat())
            cohere = await http.post("/cohere/v2/chat", json=chat(), headers={"authorization": "Bearer mine"})
            mistral = await http.post("/mistral/v1/chat/completions", json=chat(tool_choice="auto", safe_prompt=True))
            vertex = await http.post(RAW, json=MESSAGES, headers={"authorization": "Bearer ya29"})
            refused = await http.get("/model/x/nothing/at/../../../../..")
            await until(lambda: len(events.of(ModelRequestServed)) == 6)

    assert [each.status_code for each in (streamed, named, azure, cohere, mistral, vertex)] == [200] * 6
    assert streamed.content == STREAM
    kept = [json.loads(each.body) for each in upstream.sent]
    assert [each["toolConfig"]["tools"] for each in kept[:2]] == [[specified("renew_loan")]] * 2
    assert [each["tools"] for each in kept[2:5]] == [[function("renew_loan")]] * 3
    assert [each["name"] for each in kept[5]["tools"]] == ["renew_loan"]
    assert [each.headers.get("authorization") for each in upstream.sent[:2]] == ["Bearer bedrock-api-key-1"] * 2
    assert (upstream.sent[2].headers["api-key"], "authorization" in upstream.sent[2].headers) == ("azure-1", False)
    assert upstream.sent[2].target == "/openai/deployments/d/chat/completions?api-version=2024-10-21"
    assert [each.headers.get("authorization") for each in upstream.sent[3:]] == ["Bearer mine", None, "Bearer ya29"]
    served = [each for each in events.of(ModelRequestServed) if isinstance(each, ModelRequestServed)]
    assert [each.called for each in served[:2]] == [("renew_loan",)] * 2
    assert served[0].model == "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    assert refused.status_code == 404


async def test_a_signed_request_is_left_as_it_is() -> None:
    """A signature covers the body: with another one, Bedrock would refuse the request."""
    body = json.dumps(converse(), indent=3).encode()
    signature = "AWS4-HMAC-SHA256 Credential=AKIA/20261123/eu/bedrock/aws4_request, SignedHeaders=host, Signature=0"
    async with (
        model_upstream() as upstream,
        model_door({"bedrock": {"url": upstream.url, "format": "bedrock"}}) as (address, noting, _),
        httpx2.AsyncClient(base_url=f"http://{address}", trust_env=False, timeout=60) as http,
    ):
        answer = await http.post(f"/bedrock{CONVERSE}", content=body, headers={"authorization": signature})

    assert answer.status_code == 200
    assert upstream.sent[-1].body == body
    assert upstream.sent[-1].headers["authorization"] == signature
    assert noting.said[-1]["x-pegboard-filter"] == "unchanged"
    assert "SigV4" in noting.said[-1]["x-pegboard-reason"]


async def test_twenty_megabytes_with_images_are_filtered_by_their_tools_alone() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 480_000}}
    content = [{"type": "text", "text": "renew the loan"}, *[image] * 4]
    body = chat() | {"messages": [{"role": "user", "content": content}]}
    async with model_upstream() as upstream:
        parts: dict[str, Any] = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
        async with (
            model_door({"one": {"url": upstream.url}}, parts=parts, policy={"profile": "semantic", "k": 1}) as door,
            httpx2.AsyncClient(base_url=f"http://{door[0]}", trust_env=False, timeout=60) as http,
        ):
            answer = await http.post("/one/v1/chat/completions", json=body)

    assert answer.status_code == 200
    assert len(upstream.sent[-1].body) > 20 * 2**20
    assert json.loads(upstream.sent[-1].body)["messages"] == body["messages"]
    assert upstream.tools == ["renew_loan"]


async def test_the_azure_client_of_openai_is_served() -> None:
    """Its path names the deployment; a key of the caller's passes in `api-key`."""
    parts: dict[str, Any] = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    whole = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": []}
    async with model_upstream() as upstream:
        upstream.body = json.dumps(whole).encode()
        azure = {"azure": {"url": upstream.url, "format": "azure"}}
        async with model_door(azure, parts=parts, policy={"profile": "semantic", "k": 1}) as (address, _, _):
            client = openai.AsyncAzureOpenAI(
                azure_endpoint=f"http://{address}/azure",
                api_key="mine",
                api_version="2024-10-21",
                max_retries=0,
                timeout=60,
            )
            async with client:
                tools: Any = [function(name) for name in NAMES]
                said: Any = [{"role": "user", "content": "renew the loan"}]
                answer = await client.chat.completions.create(model="deployed", messages=said, tools=tools)

    assert answer.id == "c1"
    assert upstream.tools == ["renew_loan"]
    assert upstream.sent[-1].target == "/openai/deployments/deployed/chat/completions?api-version=2024-10-21"
    assert upstream.sent[-1].headers["api-key"] == "mine"


async def test_claude_on_bedrock_is_served_to_its_client_with_an_api_key() -> None:
    """InvokeModel with the body of Messages, and the model in the path."""
    parts: dict[str, Any] = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    block = {"type": "tool_use", "id": "t1", "name": "renew_loan", "input": {}}
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [block], "usage": usage}
    async with model_upstream() as upstream:
        upstream.body = json.dumps(message | {"stop_reason": "tool_use", "stop_sequence": None}).encode()
        bedrock = {"claude": {"url": upstream.url, "format": "anthropic"}}
        async with model_door(bedrock, parts=parts, policy={"profile": "semantic", "k": 1}) as (address, _, events):
            client = anthropic.AsyncAnthropicBedrock(
                api_key="bedrock-1",
                aws_region="eu-west-1",
                base_url=f"http://{address}/claude",
                max_retries=0,
                timeout=60,
            )
            async with client:
                answer = await client.messages.create(
                    model="anthropic.claude-sonnet-4-5-20250929-v1:0",
                    max_tokens=10,
                    messages=[{"role": "user", "content": "renew the loan"}],
                    tools=MESSAGES["tools"],  # type: ignore[arg-type]
                )
            await until(lambda: bool(events.of(ModelRequestServed)))

    assert [block.type for block in answer.content] == ["tool_use"]
    assert upstream.sent[-1].headers["authorization"] == "Bearer bedrock-1"
    assert [tool["name"] for tool in json.loads(upstream.sent[-1].body)["tools"]] == ["renew_loan"]
    [served] = events.of(ModelRequestServed)
    assert served.model == "anthropic.claude-sonnet-4-5-20250929-v1:0"  # type: ignore[attr-defined]
