"""One tool for all through the real gateway, with real SDKs and scripted models: the client sees native calls alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import httpx2
import pytest

from mock_providers.scripted import USED, Calls, Model, Says, Seen, signature
from model_bodies import CODECS, PATH, anthropic_tool
from model_doors import Gateway, gateway_beside
from one_tool_models import OWN, by_call_tool, history, inner
from pegboard.events import ModelRequestServed
from sdk_agents import AGENTS, CHAINS, Agent, Job, Step
from sdk_drivers import JOBS, RENEW, SCHEMA

pytest.importorskip("langchain_google_genai", reason="pip install --group sdks")

import anthropic
import openai
from google import genai
from google.genai import types

FLY = Calls(tool="book_flight", arguments={"what": "Rome"})
LOAN = Calls(tool="renew_loan", arguments={"what": 'the book "Zoë"'})
WATER = Calls(tool="water_plants", arguments={"what": "the roses"})
GUESS = Calls(tool="book_flight", arguments={"guess": 1, "what": 3})
NOBODY = Calls(tool="nobody_has_this", arguments={"x": 1})
END = Says(text="All of it is done. ✓")


@pytest.fixture(scope="session")
def one_tool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Two tools are shown a message; models called `off-…` are not filtered."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PEGBOARD_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        environment.setenv("PEGBOARD_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        rules = [{"model": "off-*", "filter": False}, {"model": "never-*", "never": ["book_*"]}]
        with gateway_beside(policy={"k": 2, "ways": ["call_tool"], "way_back": True}, rules=rules) as found:
            yield found


@pytest.fixture
def gateway(one_tool: Gateway) -> Iterator[Gateway]:
    """With nothing noted yet."""
    one_tool.mock.received.clear()
    one_tool.mock.refused.clear()
    one_tool.noting.said.clear()
    yield one_tool
    one_tool.mock.model = None


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> Agent:
    return AGENTS[request.param]


@pytest.fixture(params=[name for name, each in AGENTS.items() if each.format != "gemini"])
def careful(request: pytest.FixtureRequest) -> Agent:
    """One whose tools have parameters."""
    return AGENTS[request.param]


@pytest.fixture(params=CHAINS)
def chain(request: pytest.FixtureRequest) -> Agent:
    return CHAINS[request.param]


def does(*steps: Calls | tuple[Calls, ...], say: str = "") -> Model:
    """A model that makes these calls, in steps."""

    def model(seen: Seen) -> Says:
        for step in steps:
            calls = step if isinstance(step, tuple) else (step,)
            if not all(call.tool in seen.answered for call in calls):
                return Says(text=say, calls=calls)
        return END

    return by_call_tool(model)


def at_first(wrong: Says, then: Model) -> Model:
    """A model that says something wrong before it does what it should."""

    def model(seen: Seen) -> Says:
        return then(seen) if OWN not in seen.tools or history(seen.body) else by_call_tool(lambda _: wrong)(seen)

    return model


def unfiltered(gateway: Gateway, agent: Agent, job: Job, model: Model) -> list[Step]:
    gateway.mock.model = model
    steps = agent.run(gateway.url, Job(ask=job.ask, tools=job.tools, choice=job.choice, model="off-model"))
    gateway.mock.received.clear()
    gateway.noting.said.clear()
    return steps


def asked(gateway: Gateway, agent: Agent) -> list[tuple[str, ...]]:
    """The tools of each request that arrived; the provider had nothing to complain about."""
    assert gateway.mock.refused == []
    codec = CODECS[agent.format]
    return [tuple(tool.name for tool in codec.parse(sent.body, PATH).tools) for sent in gateway.mock.received]


def served(gateway: Gateway, number: int) -> list[ModelRequestServed]:
    """The events of the last answers; one is told right after its answer has ended."""
    httpx2.get(f"{gateway.url}/openai/v1/models")  # is served after them
    events = gateway.events.of(ModelRequestServed)
    told = [event for event in events if event.outcome != "passed"]
    return told[-number:]


@pytest.mark.parametrize("say", ["", "So:"])
@pytest.mark.parametrize("steps", [(LOAN, FLY), ((LOAN, FLY), WATER), ((LOAN, LOAN),)], ids=["two", "at once", "same"])
def test_the_client_sees_what_it_would_have_seen_without_a_filter(
    gateway: Gateway, agent: Agent, steps: Any, say: str
) -> None:
    job, model = Job(ask=RENEW), does(*steps, say=say)
    expected = unfiltered(gateway, agent, job, model)

    found = agent.run(gateway.url, job)

    assert found == expected
    assert asked(gateway, agent) == [(OWN,)] * len(expected)
    assert [step.used for step in found] == [tuple(USED.values())] * len(expected)
    assert [event.called for event in served(gateway, len(found))] == [
        tuple(name for name, _ in step.calls) for step in expected
    ]
    assert all(said["x-pegboard-cache"].startswith("call_tool; ") for said in gateway.noting.said[: len(found)])


def test_so_does_langchain(gateway: Gateway, chain: Agent) -> None:
    job, model = Job(ask=RENEW), does(LOAN, (FLY, WATER))
    expected = unfiltered(gateway, chain, job, model)

    assert chain.run(gateway.url, job) == expected
    assert asked(gateway, chain) == [(OWN,)] * len(expected)


def test_an_answer_without_calls_is_the_bytes_that_came(gateway: Gateway, agent: Agent) -> None:
    job, model = Job(ask=RENEW), by_call_tool(lambda _: END)
    expected = unfiltered(gateway, agent, job, model)

    assert agent.run(gateway.url, job) == expected


def test_a_call_of_a_tool_that_was_not_shown_passes_where_its_arguments_fit(gateway: Gateway, agent: Agent) -> None:
    job, model = Job(ask=RENEW), does(FLY)
    expected = unfiltered(gateway, agent, job, model)

    assert agent.run(gateway.url, job) == expected
    first, *_ = gateway.mock.received
    assert '"book_flight\\",' not in first.body.decode()
    assert len(gateway.mock.received) == len(expected)


def test_where_they_do_not_fit_the_model_gets_its_definition_and_calls_again(gateway: Gateway, careful: Agent) -> None:
    job, model = Job(ask=RENEW), does(FLY)
    expected = unfiltered(gateway, careful, job, model)
    gateway.mock.model = at_first(Says(text="", calls=[GUESS]), model)

    assert careful.run(gateway.url, job) == expected
    assert asked(gateway, careful) == [(OWN,)] * (len(expected) + 1)
    (call, result), *_ = history(gateway.mock.received[1].json)
    assert inner(call) == {"name": "book_flight", "arguments": GUESS.arguments}
    assert SCHEMA["properties"].keys() <= read_result(result)["tools"][0]["parameters"]["properties"].keys()
    assert served(gateway, 2)[0].brought_back == ("book_flight",)


def test_calls_without_a_name_between_others_are_left_out_and_the_others_are_read(
    gateway: Gateway, agent: Agent
) -> None:
    nameless = Calls(tool=OWN, arguments={"x": 1})
    gateway.mock.model = at_first(Says(text="So:", calls=[LOAN, NOBODY, nameless, nameless, NOBODY]), does())

    first, last = agent.run(gateway.url, Job(ask=RENEW))

    assert sorted(name for name, _ in first.calls) == sorted([LOAN.tool, NOBODY.tool, NOBODY.tool])
    assert [dict(arguments) for name, arguments in first.calls if name == NOBODY.tool] == [NOBODY.arguments] * 2
    assert last.text == END.text


@pytest.mark.parametrize("streams", [False, True])
def test_a_conversation_whose_intents_change_reads_the_same_and_its_prompts_go_on_from_each_other(
    gateway: Gateway, *, streams: bool
) -> None:
    asks = [(JOBS[call.tool], call) for call in (LOAN, FLY, WATER, LOAN)]

    def model(seen: Seen) -> Says:
        said = [message for message in seen.body["messages"] if message["role"] == "user"]
        text = str(said[-1]["content"])
        return Says(
            text="So:", calls=[dict(asks)[next(ask for ask, _ in asks if ask in text.rpartition("</tools>")[2])]]
        )

    def conversation(name: str) -> list[Any]:
        messages: list[Any] = []
        found = []
        with anthropic.Anthropic(base_url=f"{gateway.url}/anthropic", api_key="sk-mine", max_retries=0) as client:
            for ask, _ in asks:
                messages.append({"role": "user", "content": ask})
                tools = [anthropic_tool(tool, description=said) for tool, said in JOBS.items()]
                asked: dict[str, Any] = {"model": name, "max_tokens": 9, "messages": messages, "tools": tools}
                if streams:
                    with client.messages.stream(**asked) as stream:
                        message = stream.get_final_message()
                else:
                    message = client.messages.create(**asked)
                content = [block.model_dump(exclude_none=True, exclude={"parsed_output"}) for block in message.content]
                found.append([{**block, "id": ""} for block in content] + [message.stop_reason])
                results = [
                    {"type": "tool_result", "tool_use_id": block["id"], "content": "done"}
                    for block in content
                    if block["type"] == "tool_use"
                ]
                messages += [{"role": "assistant", "content": content}, {"role": "user", "content": results}]
                messages.append({"role": "assistant", "content": "Done."})
        return found

    gateway.mock.model = by_call_tool(model)
    expected = conversation("off-model")
    gateway.mock.received.clear()

    assert conversation("m") == expected
    assert gateway.mock.refused == []
    arrived = [each.json for each in gateway.mock.received]
    for before, after in pairwise(arrived):
        assert after["tools"] == before["tools"]
        assert after["messages"][: len(before["messages"])] == before["messages"]


@pytest.mark.parametrize("streams", [False, True])
def test_nor_does_a_gemini_client_see_a_call_that_does_not_fit_or_lose_a_thoughts_signature(
    gateway: Gateway, *, streams: bool
) -> None:
    def model(seen: Seen) -> Says:
        return Says(thought=f"Round {len(history(seen.body))}", calls=[FLY if history(seen.body) else GUESS])

    gateway.mock.model = by_call_tool(model)
    what = types.Schema(type="OBJECT", properties={"what": types.Schema(type="STRING", nullable=True)})
    declared = [types.FunctionDeclaration(name=name, description=said, parameters=what) for name, said in JOBS.items()]
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=declared)])
    with genai.Client(api_key="sk-mine", http_options=types.HttpOptions(base_url=f"{gateway.url}/gemini")) as client:
        ask = client.models.generate_content_stream if streams else client.models.generate_content
        answer = ask(model="m", contents=RENEW, config=config)
        parts = [part for each in (answer if streams else [answer]) for part in each.candidates[0].content.parts]

    (call,) = [part for part in parts if part.function_call]
    assert (call.function_call.name, call.function_call.args) == (FLY.tool, FLY.arguments)
    assert call.thought_signature == signature("Round 1").encode()
    assert gateway.mock.refused == []
    (asked_again,) = history(gateway.mock.last.json)
    assert "what" in read_result(asked_again[1])["tools"][0]["parameters"]["properties"]


@pytest.mark.parametrize("streams", [False, True])
def test_signed_thoughts_stay_with_the_calls_that_they_led_to(gateway: Gateway, *, streams: bool) -> None:
    def model(seen: Seen) -> Says:
        if history(seen.body):
            return Says(thought="There it is.", calls=[FLY])
        return Says(thought="I need a flight.", text="Let me look.", calls=[GUESS])

    gateway.mock.model = by_call_tool(model)
    tools = [
        anthropic_tool(name, description=said) | {"input_schema": SCHEMA | {"required": ["what"]}}
        for name, said in JOBS.items()
    ]
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": RENEW}], "tools": tools}
    with anthropic.Anthropic(base_url=f"{gateway.url}/anthropic", api_key="sk-mine", max_retries=0) as client:
        if streams:
            with client.messages.stream(**asked) as stream:
                message = stream.get_final_message()
        else:
            message = client.messages.create(**asked)

    assert [block.type for block in message.content] == ["thinking", "text", "thinking", "tool_use"]
    thoughts = [block for block in message.content if block.type == "thinking"]
    assert [thought.signature for thought in thoughts] == [signature(thought.thinking) for thought in thoughts]
    assert (message.content[-1].name, message.content[-1].input) == (FLY.tool, FLY.arguments)


def test_of_an_answer_that_the_provider_keeps_tools_are_called_natively(gateway: Gateway) -> None:
    gateway.mock.model = lambda _: END
    tools: list[Any] = [
        {"type": "function", "name": name, "description": said, "parameters": SCHEMA, "strict": False}
        for name, said in JOBS.items()
    ]
    with openai.OpenAI(base_url=f"{gateway.url}/openai/v1", api_key="sk-mine", max_retries=0) as client:
        client.responses.create(model="m", input=RENEW, tools=tools)

    assert OWN not in gateway.mock.last.body.decode()
    assert gateway.said["x-pegboard-cache"].endswith("not by call_tool: the provider keeps the answer")


def test_a_tool_that_the_policy_never_keeps_is_not_known(gateway: Gateway, agent: Agent) -> None:
    gateway.mock.model = at_first(Says(calls=[FLY]), does(LOAN))

    first, *_ = agent.run(gateway.url, Job(ask=RENEW, model="never-model"))

    assert first.calls == ((LOAN.tool, LOAN.arguments),)
    assert "book_flight" not in gateway.mock.received[0].body.decode()


def test_a_call_of_no_known_tool_is_refused_by_the_guard(gateway: Gateway, agent: Agent) -> None:
    job, model = Job(ask=RENEW), does(LOAN)
    expected = unfiltered(gateway, agent, job, model)
    gateway.mock.model = at_first(Says(calls=[NOBODY, NOBODY]), model)

    assert agent.run(gateway.url, job) == expected
    found = history(gateway.mock.received[1].json)
    assert [read_result(result)["error"] for _, result in found] == ["tool_not_available"] * 2


def test_a_model_that_never_stops_calling_it_is_heard_in_the_end(gateway: Gateway, agent: Agent) -> None:
    def model(seen: Seen) -> Says:
        return END if len(history(seen.body)) > 3 or "off" in str(seen.body.get("model")) else Says(calls=[NOBODY])

    gateway.mock.model = by_call_tool(model)

    first, *_ = agent.run(gateway.url, Job(ask=RENEW))

    assert first.calls == ((NOBODY.tool, NOBODY.arguments),)
    assert len(gateway.mock.received) >= 4
    assert gateway.mock.refused == []
    assert first.used == tuple(4 * used for used in USED.values())


def test_beside_a_call_that_fits_one_that_does_not_goes_to_the_client_too(gateway: Gateway, agent: Agent) -> None:
    gateway.mock.model = at_first(Says(text="Hm.", calls=[LOAN, NOBODY, GUESS]), does(LOAN))

    first, *_ = agent.run(gateway.url, Job(ask=RENEW))

    assert sorted(name for name, _ in first.calls) == sorted(call.tool for call in (LOAN, NOBODY, GUESS))
    assert dict(first.calls) == {call.tool: call.arguments for call in (LOAN, NOBODY, GUESS)}
    assert gateway.mock.refused == []


def test_a_call_that_names_no_tool_never_reaches_the_client(gateway: Gateway, agent: Agent) -> None:
    gateway.mock.model = lambda _: Says(text="Hm.", calls=[Calls(tool=OWN, arguments={"what": 1})])

    (only,) = agent.run(gateway.url, Job(ask=RENEW))

    assert only.calls == ()
    assert only.stop in ("stop", "end_turn", "completed", "STOP")
    assert len(gateway.mock.received) == 4


@pytest.mark.parametrize("arguments", [json.dumps(LOAN.arguments), LOAN.arguments])
def test_arguments_may_be_json_in_a_string_or_stand_beside_the_name(
    gateway: Gateway, agent: Agent, arguments: Any
) -> None:
    said = {"arguments": arguments} if isinstance(arguments, str) else arguments
    gateway.mock.model = lambda seen: (
        END if history(seen.body) else Says(calls=[Calls(tool=OWN, arguments={"name": LOAN.tool, **said})])
    )

    first, _ = agent.run(gateway.url, Job(ask=RENEW))

    assert first.calls == ((LOAN.tool, LOAN.arguments),)


def test_where_a_call_is_required_this_tool_is_one(gateway: Gateway, agent: Agent) -> None:
    job, model = Job(ask=RENEW, choice="required"), does(LOAN)
    expected = unfiltered(gateway, agent, job, model)

    assert agent.run(gateway.url, job) == expected
    assert asked(gateway, agent)[0] == (OWN,)


def test_where_none_may_be_called_the_tools_are_the_same(gateway: Gateway, agent: Agent) -> None:
    gateway.mock.model = lambda _: END

    agent.run(gateway.url, Job(ask=RENEW, choice="none"))

    assert asked(gateway, agent) == [(OWN,)]


def test_where_one_is_forced_it_is_called_natively(gateway: Gateway, agent: Agent) -> None:
    gateway.mock.model = lambda seen: END if seen.answered else Says(calls=[LOAN])

    agent.run(gateway.url, Job(ask=RENEW, choice=LOAN.tool))

    assert LOAN.tool in asked(gateway, agent)[0]
    assert gateway.noting.said[0]["x-pegboard-cache"].endswith("not by call_tool: it says which tools may be called")


def test_a_callers_tool_of_that_name_keeps_it_and_ours_has_another(gateway: Gateway, agent: Agent) -> None:
    tools = JOBS | {OWN: "Call the janitor on the telephone."}
    janitor = Calls(tool=OWN, arguments={"what": "the janitor"})

    def script(seen: Seen) -> Says:
        return END if OWN in seen.answered else Says(calls=[janitor])

    def model(seen: Seen) -> Says:
        return script(seen) if len(seen.tools) > 1 else by_call_tool(as_ours, "call_tool_2")(seen)

    def as_ours(seen: Seen) -> Says:
        return script(seen)

    job = Job(ask="Call the janitor on the telephone, please.", tools=tools)
    gateway.mock.model = model
    expected = unfiltered(gateway, agent, job, model)

    assert agent.run(gateway.url, job) == expected
    assert asked(gateway, agent) == [(OWN, "call_tool_2")] * len(expected)


def read_result(result: str) -> dict[str, Any]:
    """A result that the gateway gave, in any format."""
    found = json.loads(result)
    return found.get("result", found) if isinstance(found, Mapping) else found
