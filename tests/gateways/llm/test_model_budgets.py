"""Budgets for models: what keys, tenants and models may cost, on one gateway, on two, and after a restart."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from model_bodies import SIZED, asking
from model_upstream import ModelUpstream
from more_provider_bodies import converse, frame
from page_cells import Cells
from pegboard.events import BudgetUsed, ModelRequestServed
from pegboard.gateways.access_keys import hashed, new_key
from pegboard.model_prices import shipped_prices
from pegboard.settings import Settings, load_settings
from pegboard.stores import MemoryEvents
from processes import until
from served import Gateway, OpenGateway
from services import POSTGRES, REDIS, delete_keys, drop_schema, needs_postgres, needs_redis

ANN, BOB = new_key(), new_key()
KEYS = {"ann": {"hash": hashed(ANN), "tenant": "acme"}, "bob": {"hash": hashed(BOB), "tenant": "acme"}}
CHAT = "/openai/v1/chat/completions"
PRICES = {"gpt-x": {"input": 1.0, "output": 10.0}, "dear-*": {"input": 100.0, "output": 1_000.0}}
UPSTREAMS = ("openai", "anthropic", "gemini", "bedrock")
OUTPUT = 5_000
"""Tokens of each answer: more than are held for it, so that requests at once can pass a budget."""
COST = 100 * 1_000 + OUTPUT * 10_000
"""Billionths of a dollar."""


def answer(prompt: int = 100, output: int = OUTPUT) -> bytes:
    usage = {"prompt_tokens": prompt, "completion_tokens": output}
    choice = {"message": {"role": "assistant", "content": "x"}}
    return json.dumps({"id": "c", "choices": [choice], "usage": usage}).encode()


def options(*budgets: dict[str, Any], keys: bool = False) -> dict[str, Any]:
    llm = {"budgets": budgets} | ({"keys": KEYS} if keys else {})
    return {"llm": llm, "activity": {"prices": PRICES}}


async def ask(gateway: Gateway, model: str = "gpt-x", key: str = "", **body: Any) -> Any:
    shown = {"x-pegboard-key": key} if key else {}
    asked = asking("openai_chat", "a", tools=["a"], model=model) | body
    return await gateway.http.post(CHAT, json=asked, headers=shown)


@pytest.fixture
def counting(upstream: ModelUpstream) -> ModelUpstream:
    upstream.body = answer()
    return upstream


SHAPES = {
    "openai_chat": (CHAT, lambda said: (said["error"]["type"], said["error"]["code"])),
    "anthropic": ("/anthropic/v1/messages", lambda said: (said["type"], said["error"]["type"])),
    "gemini": (
        "/gemini/v1beta/models/gpt-x:generateContent",
        lambda said: (said["error"]["code"], said["error"]["status"]),
    ),
}
IN_ALL = {
    "openai_chat": ("insufficient_quota", "model_budget_reached"),
    "anthropic": ("error", "billing_error"),
    "gemini": (402, "RESOURCE_EXHAUSTED"),
}
A_DAY = {
    "openai_chat": ("rate_limit_error", "model_day_budget_reached"),
    "anthropic": ("error", "rate_limit_error"),
    "gemini": (429, "RESOURCE_EXHAUSTED"),
}


@pytest.mark.requirement("observability.budgets")
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("per", ["day", "total"])
async def test_a_request_beyond_a_budget_is_answered_as_the_provider_would(
    gateway_of: OpenGateway, counting: ModelUpstream, events: MemoryEvents, name: str, per: str
) -> None:
    path, shape = SHAPES[name]
    async with gateway_of(**options({per: 0.0001})) as gateway:
        refused = await gateway.http.post(path, json=asking(name, "a", tools=["a"], model="gpt-x"))

    assert counting.sent == []
    assert refused.status_code == (429 if per == "day" else 402)
    assert shape(refused.json()) == (A_DAY if per == "day" else IN_ALL)[name]
    assert refused.headers["x-should-retry"] == "false"
    assert ("retry-after" in refused.headers) == (per == "day")
    if per == "day":
        assert 0 < int(refused.headers["retry-after"]) <= 86_400
    assert "$0.0001" in refused.text
    [told] = [each for each in events.of(BudgetUsed) if isinstance(each, BudgetUsed) and each.refused]
    assert (told.limit, told.per) == (100_000, "a day" if per == "day" else "in all")


@pytest.mark.requirement("observability.budgets")
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("openai_chat", "/openai/v1/chat/completion%73"),
        ("openai_chat", "/openai/v1/chat/completions//"),
        ("anthropic", "/anthropic/v1/messag%65s"),
        ("gemini", "/gemini/v1beta/models/gpt-x%3AgenerateContent"),
        ("gemini", "/gemini/v1beta/models/gpt-%78:generateConten%74"),
        ("openai_chat", "/openai/v1/chat%2Fcompletions"),
        ("openai_chat", "/openai/v1/Chat/Completions"),
        ("openai_chat", "/openai/openai/deployments/gpt-x/chat/completions"),
        ("anthropic", "/anthropic/publishers/anthropic/models/gpt-x%3ArawPredict"),
        ("anthropic", "/anthropic/model/anthropic.claude-x//invoke"),
        ("bedrock", "/bedrock/model/gpt-x//converse//"),
    ],
)
async def test_no_way_of_writing_a_path_escapes_a_budget(
    gateway_of: OpenGateway, counting: ModelUpstream, name: str, path: str
) -> None:
    budget = options({"total": 0.0001, "models": ["gpt-x", "anthropic.claude-x"]})
    budget["llm"]["upstreams"] = {each: {"url": counting.url, "format": each} for each in UPSTREAMS}
    budget["activity"]["prices"] = PRICES | {"anthropic.claude-x": PRICES["gpt-x"]}
    model = "other" if "gpt-x" in path or "claude-x" in path else "gpt-x"
    asked = converse("a") if name == "bedrock" else asking(name, "a", tools=["a"], model=model)
    async with gateway_of(**budget) as gateway:
        refused = await gateway.http.post(path, json=asked)

    assert (refused.status_code, counting.sent) == (402, [])


@pytest.mark.parametrize(("model", "status"), [("gpt-x", 402), ("other", 200)])
@pytest.mark.parametrize("path", ["/openai/deployments/{}/chat/completions", "/v1beta/models/{}:generateContent"])
async def test_a_payload_policy_leaves_budgets_to_the_model_that_the_path_names(
    gateway_of: OpenGateway, counting: ModelUpstream, path: str, model: str, status: int
) -> None:
    budget = options({"total": 0.0001, "models": ["gpt-x"]})
    filtering = {"url": counting.url, "format": "generic", "semantic_tool_filtering": {}}
    budget["llm"]["upstreams"] = {"legacy": filtering}
    async with gateway_of(**budget) as gateway:
        answered = await gateway.http.post(f"/legacy{path.format(model)}", json={"messages": [], "contents": []})

    assert (answered.status_code, len(counting.sent)) == (status, int(status == 200))


@pytest.mark.parametrize(("model", "other", "status"), [("gpt-x", "other", 402), ("other", "gpt-x", 200)])
@pytest.mark.parametrize(
    ("name", "root", "path"),
    [
        ("azure", "/openai/deployments/{}", "/chat/completions?api-version=1"),
        ("azure", "/openai/deployments/{}", "/openai/deployments/dear/chat/completions"),
        ("azure", "/openai/deployments/{}/v1", "/v1/responses"),
        ("bedrock", "/model/{}", "/converse"),
    ],
)
async def test_the_model_in_the_address_of_an_upstream_is_the_one_of_budgets(
    gateway_of: OpenGateway,
    counting: ModelUpstream,
    name: str,
    root: str,
    path: str,
    model: str,
    other: str,
    status: int,
) -> None:
    """Whatever the body and the rest of the path say: the provider goes by the deployment in its address."""
    budget = options({"total": 0.0001, "models": ["gpt-x"]})
    budget["llm"]["upstreams"] = {name: {"url": counting.url + root.format(model), "format": name}}
    codec = "openai_responses" if path.endswith("responses") else "openai_chat"
    asked = converse("a") if name == "bedrock" else asking(codec, "a", tools=["a"])
    async with gateway_of(**budget) as gateway:
        answered = await gateway.http.post(f"/{name}{path}", json={**asked, "model": other})

    assert (answered.status_code, len(counting.sent)) == (status, int(status == 200))


async def test_the_model_in_the_address_of_an_upstream_is_the_one_of_prices(
    gateway_of: OpenGateway, counting: ModelUpstream, events: MemoryEvents
) -> None:
    asked = asking("openai_chat", "a", tools=["a"], model="dear-x")
    upstream = {"url": f"{counting.url}/openai/deployments/gpt-x", "format": "azure"}
    async with gateway_of(llm={"upstreams": {"azure": upstream}}, activity={"prices": PRICES}) as gateway:
        await gateway.http.post("/azure/chat/completions", json=asked)

    [served] = [each for each in events.of(ModelRequestServed) if isinstance(each, ModelRequestServed)]
    assert (served.model, served.cost) == ("gpt-x", COST)


async def test_a_budget_of_a_model_holds_where_a_request_leaves_the_model_out(
    gateway_of: OpenGateway, counting: ModelUpstream
) -> None:
    """A server of one model answers with that."""
    asked = asking("openai_chat", "a", tools=["a"])
    async with gateway_of(**options({"total": 0.0001, "models": ["gpt-x"]})) as gateway:
        refused = await gateway.http.post(CHAT, json=asked)

    assert (refused.status_code, counting.sent) == (403, [])


async def test_a_deployment_whose_request_names_no_model_is_charged_by_its_own_name(
    gateway_of: OpenGateway, counting: ModelUpstream
) -> None:
    asked = asking("openai_chat", "a", tools=["a"])
    async with gateway_of(**options({"total": 1.0})) as gateway:
        answered = await gateway.http.post("/openai/openai/deployments/gpt-x/chat/completions", json=asked)

    assert (answered.status_code, len(counting.sent)) == (200, 1)


async def spent_by(gateways: list[Gateway], clients: int) -> int:
    """Requests that were answered, of clients that ask until they are refused."""

    async def client(number: int) -> int:
        done = 0
        while (answered := await ask(gateways[number % len(gateways)])).status_code == 200:
            done += 1
        assert answered.status_code == 402, answered.text
        return done

    return sum(await asyncio.gather(*map(client, range(clients))))


@pytest.mark.requirement("observability.budgets")
async def test_64_clients_at_once_keep_a_budget_and_so_they_do_after_a_restart(
    gateway_of: OpenGateway, counting: ModelUpstream
) -> None:
    """A request costs five times what is held for it: the budget is passed by requests in flight alone."""
    cap = 200 * COST
    async with gateway_of(**options({"by": "all", "total": cap / 1e9})) as gateway:
        done = await spent_by([gateway], 64)
    async with gateway_of(**options({"by": "all", "total": cap / 1e9})) as gateway:
        more = await spent_by([gateway], 64)

    assert done == len(counting.sent)
    assert more == 0
    assert cap - COST <= done * COST <= cap + 64 * COST


@pytest.fixture(params=[pytest.param("postgres", marks=needs_postgres), pytest.param("redis", marks=needs_redis)])
async def shared(request: pytest.FixtureRequest) -> AsyncIterator[dict[str, Any]]:
    prefix = f"test_{uuid4().hex}"
    yield {"url": POSTGRES if request.param == "postgres" else REDIS, "prefix": prefix, "timeout": 30}
    await (drop_schema(prefix) if request.param == "postgres" else delete_keys(prefix))


@pytest.mark.requirement("observability.budgets")
async def test_two_replicas_keep_a_budget_together(
    gateway_of: OpenGateway, counting: ModelUpstream, shared: dict[str, Any]
) -> None:
    cap = 100 * COST
    async with AsyncExitStack() as stack:
        both = [
            await stack.enter_async_context(gateway_of(state=shared, **options({"by": "all", "total": cap / 1e9})))
            for _ in range(2)
        ]
        done = await spent_by(both, 64)

    assert done == len(counting.sent)
    assert cap - COST <= done * COST <= cap + 64 * COST


@pytest.mark.requirement("observability.budgets")
async def test_keys_tenants_and_models_have_budgets_of_their_own(
    gateway_of: OpenGateway, counting: ModelUpstream
) -> None:
    usd = COST / 1e9
    budgets = [
        {"by": "caller", "callers": ["ann"], "models": ["gpt-*"], "day": 1.5 * usd},
        {"by": "tenant", "tenants": ["acme"], "models": ["GPT-*"], "total": 3.5 * usd},
        {"by": "all", "models": ["dear-*"], "total": 0},
    ]
    async with gateway_of(**options(*budgets, keys=True)) as gateway:
        ann = [(await ask(gateway, key=ANN)).status_code for _ in range(3)]
        bob = [(await ask(gateway, key=BOB)).status_code for _ in range(3)]
        dear = await ask(gateway, "dear-one", key=BOB)

    assert ann == [200, 200, 429]  # what is held is less than the answer costs
    assert bob == [200, 200, 402]
    assert dear.status_code == 402
    assert "all keys together" in dear.text


async def test_budgets_that_differ_in_their_amounts_alone_are_charged_once(
    gateway_of: OpenGateway, counting: ModelUpstream
) -> None:
    budgets = ({"day": 3.5 * COST / 1e9}, {"total": 100.0})
    async with gateway_of(**options(*budgets)) as gateway:
        statuses = [(await ask(gateway)).status_code for _ in range(5)]

    assert statuses == [*[200] * 4, 429]  # what is held is less than the answer costs


async def test_near_the_end_of_a_budget_answers_and_the_log_say_so_once_a_day(
    gateway_of: OpenGateway, counting: ModelUpstream, events: MemoryEvents, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with gateway_of(**options({"day": 10 * COST / 1e9, "warn": 0.5})) as gateway:
        said = [(await ask(gateway)).headers.get("x-pegboard-budget") for _ in range(8)]

    assert said == [None] * 5 + ["warn"] * 3
    assert [each.getMessage() for each in caplog.records if "budget" in each.getMessage()] == [
        "$0.2505 of the budget of $0.501 a day for all keys are spent or held."
    ]
    [told] = events.of(BudgetUsed)
    assert isinstance(told, BudgetUsed)
    assert (told.refused, told.used) == (False, 5 * COST)


@pytest.mark.requirement("observability.budgets")
async def test_a_request_whose_cost_cannot_be_known_is_not_sent(
    gateway_of: OpenGateway, counting: ModelUpstream
) -> None:
    signed = {"authorization": "AWS4-HMAC-SHA256 Credential=a/b/c/d/aws4_request, SignedHeaders=host, Signature=0"}
    async with gateway_of(**options({"models": ["gpt-*", "local-*"], "day": 100})) as gateway:
        unpriced = await ask(gateway, "local-model")
        body = asking("openai_chat", "a", tools=["a"], model="gpt-x")
        unread = await gateway.http.post(CHAT, json=body, headers=signed)
        sent = len(counting.sent)
        others = [
            (await ask(gateway, "uncovered-model")).status_code,
            (await gateway.http.get("/openai/v1/models")).status_code,
            (await gateway.http.post("/anthropic/v1/messages/count_tokens", json=asking("anthropic"))).status_code,
        ]

    assert sent == 0
    assert (unpriced.status_code, unread.status_code) == (403, 403)
    assert "'local-model' has no price" in unpriced.text
    assert "signature" in unread.text
    assert others == [200, 200, 200]


async def test_an_answer_in_the_background_is_refused_under_a_budget(
    gateway_of: OpenGateway, counting: ModelUpstream
) -> None:
    asked = asking("openai_responses", "a", tools=["a"], model="gpt-x")
    async with gateway_of(**options({"day": 100})) as gateway:
        statuses = [
            (await gateway.http.post("/openai/v1/responses", json=asked | {"background": given})).status_code
            for given in (True, False)
        ]

    assert statuses == [403, 200]
    assert len(counting.sent) == 1


async def test_the_dashboard_shows_what_is_spent_of_each_budget(
    gateway_of: OpenGateway, counting: ModelUpstream
) -> None:
    budgets = ({"day": 10.0}, {"by": "tenant", "total": COST / 1e9, "models": ("gpt-*",)}, {"by": "all", "day": 0.06})
    async with gateway_of(**options(*budgets, keys=True)) as gateway:
        assert (await ask(gateway, key=ANN)).status_code == 200
    async with gateway_of(**options(*budgets, keys=True)) as gateway:
        page = Cells((await gateway.http.get("/ui/clients")).text)

    [shown] = [table for table in page.tables if table[0][:2] == ["for", "of"]]
    assert shown[1:] == [
        ["tenant acme", "models gpt-*", "$0.0501", "", "$0.0501", "$0.0501", "100.0%", "used up"],
        ["all together", "all models", "$0.0501", "$0.06", "$0.0501", "", "83.5%", "nearly used up"],
        ["ann", "all models", "$0.0501", "$10", "$0.0501", "", "0.5%", ""],
        ["bob", "all models", "$0", "$10", "$0", "", "0.0%", ""],
    ]


async def test_a_budget_holds_where_nothing_is_filtered(gateway_of: OpenGateway, counting: ModelUpstream) -> None:
    chosen = options({"total": 1.5 * COST / 1e9})
    chosen["llm"] |= {"policy": {"filter": False}}
    async with gateway_of(**chosen) as gateway:
        statuses = [(await ask(gateway)).status_code for _ in range(3)]

    assert statuses == [200, 200, 402]
    assert json.loads(counting.sent[0].body) == asking("openai_chat", "a", tools=["a"], model="gpt-x")


async def test_an_error_of_the_provider_costs_nothing(gateway_of: OpenGateway, counting: ModelUpstream) -> None:
    counting.mood = "error"
    async with gateway_of(**options({"total": 1.1 * COST / 1e9})) as gateway:
        failed = [(await ask(gateway)).status_code for _ in range(20)]
        counting.mood = "ok"
        then = [(await ask(gateway)).status_code for _ in range(3)]

    assert failed == [529] * 20
    assert then == [200, 402, 402]


async def test_a_stream_that_nobody_counts_costs_what_came(gateway_of: OpenGateway, upstream: ModelUpstream) -> None:
    chunk = json.dumps({"choices": [{"delta": {"content": "x"}}]})
    upstream.body = b"".join(f"data: {chunk}\n\n".encode() for _ in range(OUTPUT)) + b"data: [DONE]\n\n"
    upstream.kind = "text/event-stream"
    async with gateway_of(**options({"total": 1.5 * COST / 1e9})) as gateway:
        statuses = [(await ask(gateway, stream=True)).status_code for _ in range(3)]

    assert statuses == [200, 200, 402]


async def test_a_picture_that_nobody_counts_costs_no_more_than_the_longest_answer(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    upstream.body = json.dumps({"choices": [], "data": "x" * 17 * 2**20}).encode()
    async with gateway_of(**options({"total": 2.0})) as gateway:
        statuses = [(await ask(gateway)).status_code for _ in range(3)]

    assert statuses == [200, 200, 402]


SEARCHES = {"profile": "semantic", "k": 1, "ways": ["tools"], "least_tools": 0, "least_tokens": 0, "way_back": True}
"""Requests with more than one tool are sent by a round trip."""
SEARCH = {
    "index": 0,
    "id": "s",
    "type": "function",
    "function": {"name": "search_tools", "arguments": '{"query": "gamma"}'},
}


def searching(*budgets: dict[str, Any]) -> dict[str, Any]:
    chosen = options(*budgets)
    chosen["llm"] |= {"policy": SEARCHES}
    return chosen


def search(**usage: int) -> bytes:
    """An answer that only searches."""
    choice = {"finish_reason": "tool_calls", "message": {"role": "assistant", "content": None, "tool_calls": [SEARCH]}}
    return json.dumps({"id": "s", "choices": [choice]} | ({"usage": usage} if usage else {})).encode()


def streamed(*deltas: dict[str, Any], finish: str = "stop") -> bytes:
    choices = [*({"index": 0, "delta": each} for each in deltas), {"index": 0, "delta": {}, "finish_reason": finish}]
    return b"".join(b"data: %s\n\n" % json.dumps({"id": "c", "choices": [each]}).encode() for each in choices)


async def ask_searching(gateway: Gateway, **body: Any) -> Any:
    return await ask(gateway, **(asking("openai_chat", "beta", schema=SIZED) | body))


async def test_a_stream_that_nobody_counts_costs_what_came_beside_a_way_back(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    upstream.body = streamed(*[{"content": "x"}] * OUTPUT) + b"data: [DONE]\n\n"
    upstream.kind = "text/event-stream"
    async with gateway_of(**searching({"total": 1.5 * COST / 1e9})) as gateway:
        statuses = [(await ask_searching(gateway, stream=True)).status_code for _ in range(3)]

    assert "search_tools" in upstream.tools
    assert statuses == [200, 200, 402]


@pytest.mark.parametrize("policy", [{"filter": False}, SEARCHES], ids=["passed", "way back"])
async def test_a_stream_of_converse_that_nobody_counts_costs_a_token_a_frame(
    gateway_of: OpenGateway, upstream: ModelUpstream, policy: dict[str, Any]
) -> None:
    piece = frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "x" * 100}})
    upstream.body, upstream.kind = piece * OUTPUT, "application/vnd.amazon.eventstream"
    chosen = options({"total": 1.5 * COST / 1e9})
    chosen["llm"] |= {"policy": policy, "upstreams": {"bedrock": {"url": upstream.url, "format": "bedrock"}}}
    async with gateway_of(**chosen) as gateway:
        statuses = [
            (await gateway.http.post("/bedrock/model/gpt-x/converse-stream", json=converse())).status_code
            for _ in range(3)
        ]

    assert statuses == [200, 200, 402]


async def test_an_error_in_a_later_round_is_charged_as_what_came_before_it(
    gateway_of: OpenGateway, upstream: ModelUpstream, events: MemoryEvents
) -> None:
    upstream.mood, upstream.bodies = "error", [search(prompt_tokens=100, completion_tokens=OUTPUT)]
    async with gateway_of(**searching({"total": 1.1 * COST / 1e9})) as gateway:
        statuses = [(await ask_searching(gateway)).status_code for _ in range(2)]

    assert len(upstream.sent) == 2
    assert statuses == [529, 402]
    served = [each for each in events.of(ModelRequestServed) if isinstance(each, ModelRequestServed)]
    assert [(each.metered, each.output_tokens, each.cost) for each in served] == [
        (True, OUTPUT, COST),
        (False, 0, None),
    ]


async def test_a_round_that_nobody_counts_costs_its_input_beside_one_that_is_counted(
    gateway_of: OpenGateway, counting: ModelUpstream
) -> None:
    text = "beta " * 40_000  # about 50,000 tokens, as much as the output of the second round
    async with gateway_of(**searching({"total": 2.5 * COST / 1e9, "warn": 1})) as gateway:
        statuses = []
        for number in range(2):
            counting.bodies = [search()]
            asked = asking("openai_chat", f"{number} {text}", schema=SIZED)
            statuses.append((await ask_searching(gateway, **asked)).status_code)

    assert len(counting.sent) == 2
    assert statuses == [200, 402]


async def test_each_prompt_of_a_round_trip_has_the_price_of_its_own_length(
    gateway_of: OpenGateway, upstream: ModelUpstream, events: MemoryEvents
) -> None:
    """Input above 272,000 tokens costs twice as much."""
    upstream.bodies, upstream.body = [search(prompt_tokens=200_000, completion_tokens=10)], answer(300_000, 10)
    async with gateway_of(**searching()) as gateway:
        assert (await ask_searching(gateway, model="gpt-5.4")).status_code == 200

    [served] = [each for each in events.of(ModelRequestServed) if isinstance(each, ModelRequestServed)]
    price = shipped_prices()["gpt-5.4"]
    assert price.beyond is not None
    prompts = 200_000 * price.input + 300_000 * price.beyond.input
    assert price.output is not None
    assert price.beyond.output is not None
    assert (served.searches, served.input_tokens) == (1, 500_000)
    assert served.prompt_cost == prompts * 1_000
    assert served.cost == (prompts + 10 * price.output + 10 * price.beyond.output) * 1_000


@pytest.mark.parametrize("rounds", [1, 2])
async def test_a_client_that_leaves_a_round_trip_pays_for_what_came(
    gateway_of: OpenGateway, upstream: ModelUpstream, events: MemoryEvents, rounds: int
) -> None:
    """A cent and a half is held for a request, and half a cent is charged for each round."""
    upstream.mood, upstream.kind = "stream", "text/event-stream"
    upstream.bodies = [streamed({"tool_calls": [SEARCH]}, finish="tool_calls")] * (rounds - 1)
    asked = asking("openai_chat", "beta " * 4_000, schema=SIZED, model="gpt-x") | {"stream": True}
    async with gateway_of(**searching({"total": 0.013 + 0.006 * rounds})) as gateway:
        async with gateway.http.stream("POST", CHAT, json=asked):
            await upstream.begun.wait()
        await until(lambda: bool(events.of(ModelRequestServed)))
        refused = await gateway.http.post(CHAT, json=asked)

    assert len(upstream.sent) == rounds
    assert refused.status_code == 402


async def test_a_client_that_goes_pays_for_what_it_asked(
    gateway_of: OpenGateway, upstream: ModelUpstream, events: MemoryEvents
) -> None:
    upstream.mood = "stream"
    text = "x" * 4 * 5_000  # about 5,000 tokens, half a cent
    held = {"total": 0.0265}  # a cent and a half is held for each, half a cent is charged
    async with gateway_of(**options(held)) as gateway:
        for number in range(3):
            upstream.begun.clear()
            body = asking("openai_chat", text, tools=["a"], model="gpt-x") | {"stream": True}
            async with gateway.http.stream("POST", CHAT, json=body) as answered:
                assert answered.status_code == 200, number
                await upstream.begun.wait()
            await until(lambda: len(events.of(ModelRequestServed)) == number + 1)  # noqa: B023
        refused = await gateway.http.post(CHAT, json=body)

    assert refused.status_code == 402


async def test_raising_a_budget_forgets_nothing_that_was_spent(
    gateway_of: OpenGateway, counting: ModelUpstream
) -> None:
    async with gateway_of(**options({"total": 1.5 * COST / 1e9})) as gateway:
        before = [(await ask(gateway)).status_code for _ in range(3)]
    async with gateway_of(**options({"total": 2.5 * COST / 1e9, "warn": 0.1})) as gateway:
        after = [(await ask(gateway)).status_code for _ in range(3)]

    assert before == [200, 200, 402]
    assert after == [200, 402, 402]


def test_a_budget_limits_something() -> None:

    with pytest.raises(ValueError, match="needs day or total"):
        Settings(llm={"budgets": [{"models": ["*"]}]})


def test_budgets_are_read_from_a_file(tmp_path: Path) -> None:

    path = tmp_path / "pegboard.toml"
    path.write_text('[[llm.budgets]]\nby = "tenant"\nmodels = ["claude-*"]\nday = 20\n')

    [budget] = load_settings([path]).llm.budgets

    assert (budget.by, budget.models, budget.day, budget.warn) == ("tenant", ("claude-*",), 20.0, 0.8)
