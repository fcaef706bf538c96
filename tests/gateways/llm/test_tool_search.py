"""The way back through the real gateway, with real SDKs and scripted models: the client sees what it would have seen.

The models look for tools they are not offered, and call tools they were not told of; providers are strict.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx2
import pytest

from mock_providers.scripted import USED, Calls, Model, Says, Seen, signature
from model_bodies import CODECS, PATH, anthropic_tool
from model_doors import Gateway, gateway_beside
from pegboard.events import ModelRequestServed
from pegboard.gateways.llm.formats.tool_search import MOST_ROUNDS
from sdk_agents import AGENTS, CHAINS, Agent, Job, Step, chat_tools
from sdk_drivers import JOBS, RENEW, SCHEMA

pytest.importorskip("langchain_google_genai", reason="pip install --group sdks")

import anthropic
import openai
from google import genai
from google.genai import types

FLAT: list[Any] = [
    {"type": "function", "name": name, "description": said, "parameters": SCHEMA, "strict": False}
    for name, said in JOBS.items()
]
FLY = Calls(tool="book_flight", arguments={"what": "Rome"})
LOAN = Calls(tool="renew_loan", arguments={"what": "the book"})
WATER = Calls(tool="water_plants", arguments={"what": "the roses"})
SIGNED = [name for name, each in AGENTS.items() if each.format in ("gemini", "openai_chat")]
END = Says(text="All of it is done. ✓")


def search(tool: str) -> Calls:
    return Calls(tool="search_tools", arguments={"query": JOBS[tool]})


@pytest.fixture(scope="session")
def way_back(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Two tools a request, and a way back to the others; models called `off-…` are not filtered."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PEGBOARD_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        environment.setenv("PEGBOARD_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        rules = [
            {"model": "off-*", "filter": False},
            {"model": "guard-*", "hidden_call": "guard"},
            {"model": "pass-*", "hidden_call": "pass"},
            {"model": "none-*", "profile": "semantic", "threshold": 0.99, "when_none": "none"},
        ]
        with gateway_beside(policy={"k": 2, "ways": ["tools"], "way_back": True}, rules=rules) as found:
            yield found


@pytest.fixture
def gateway(way_back: Gateway) -> Iterator[Gateway]:
    """With nothing noted yet."""
    way_back.mock.received.clear()
    way_back.mock.refused.clear()
    way_back.noting.said.clear()
    yield way_back
    way_back.mock.model = None


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> Agent:
    return AGENTS[request.param]


@pytest.fixture(params=CHAINS)
def chain(request: pytest.FixtureRequest) -> Agent:
    return CHAINS[request.param]


def does(*steps: Calls | tuple[Calls, ...], look: Callable[[str], Calls | None] = search, say: str = "") -> Model:
    """A model that makes these calls, in steps, and looks for the tools of a step that it is not offered."""

    def model(seen: Seen) -> Says:
        for step in steps:
            calls = step if isinstance(step, tuple) else (step,)
            if all(call.tool in seen.answered for call in calls):
                continue
            missing = [found for call in calls if call.tool not in seen.tools and (found := look(call.tool))]
            return Says(text=say, calls=missing) if missing else Says(calls=calls)
        return END

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


def test_a_search_in_mid_conversation_leads_to_the_call_that_would_have_been_made_without_a_filter(
    gateway: Gateway, agent: Agent
) -> None:
    job, model = Job(ask=RENEW), does(LOAN, FLY)
    expected = unfiltered(gateway, agent, job, model)

    steps = agent.run(gateway.url, job)

    assert steps == expected
    first, second, third, fourth = asked(gateway, agent)
    assert "book_flight" not in first
    assert {"renew_loan", "search_tools"} <= set(first) & set(second)
    assert {"renew_loan", "book_flight", "search_tools"} <= set(third)
    assert {"renew_loan", "book_flight"} <= set(fourth)
    assert [step.used for step in steps] == [(100, 20), (200, 40), (100, 20)]
    assert [(event.searches, "book_flight" in event.brought_back) for event in served(gateway, 3)] == [
        (0, False),
        (1, True),
        (0, False),
    ]


@pytest.mark.parametrize("look", [search, lambda tool: Calls(tool=tool)], ids=["search", "call"])
def test_langchain_sees_no_more_of_it(gateway: Gateway, chain: Agent, look: Callable[[str], Calls]) -> None:
    job, model = Job(ask=RENEW), does(LOAN, (FLY, WATER), look=look)
    expected = unfiltered(gateway, chain, job, model)

    steps = chain.run(gateway.url, job)

    assert steps == expected
    assert "book_flight" not in asked(gateway, chain)[0]
    assert len(asked(gateway, chain)) == len(expected) + 1


def test_text_before_a_search_is_kept_and_what_follows_goes_on_from_it(gateway: Gateway, agent: Agent) -> None:
    gateway.mock.model = does(FLY, say="Let me look for that.")

    first, last = agent.run(gateway.url, Job(ask=RENEW))

    assert first == Step(text="Let me look for that.", calls=as_heard(FLY), stop=first.stop)
    assert last.text == END.text
    assert asked(gateway, agent)[1:]


def test_text_on_both_sides_of_a_search_is_one_text(gateway: Gateway, agent: Agent) -> None:
    def model(seen: Seen) -> Says:
        if "search_tools" not in seen.answered:
            return Says(text="Let me look.", calls=[search("book_flight")])
        return Says(text="There it is.")

    gateway.mock.model = model

    (only,) = agent.run(gateway.url, Job(ask=RENEW))

    assert only.text.replace("\n\n", "") == "Let me look.There it is."
    assert only.stop in ("stop", "end_turn", "completed", "STOP")


def test_two_searches_at_once_find_the_tools_of_both(gateway: Gateway, agent: Agent) -> None:
    job, model = Job(ask="Say something."), does((FLY, WATER))
    expected = unfiltered(gateway, agent, job, model)

    steps = agent.run(gateway.url, job)

    assert steps == expected
    assert {"book_flight", "water_plants"} <= set(asked(gateway, agent)[1])
    assert served(gateway, 2)[0].searches == 2


def test_searches_one_after_the_other_add_up_and_the_last_time_none_is_offered(gateway: Gateway, agent: Agent) -> None:
    words = iter(["weather", "email", "music", "pictures"])
    gateway.mock.model = lambda seen: curious(seen, next(words))
    many = JOBS | {f"read_sensor_{number}": f"Read sensor {number} of the engine" for number in range(20)}

    (only,) = agent.run(gateway.url, Job(ask=RENEW, tools=many))

    assert only == Step(text=END.text, stop=only.stop)
    assert only.used == (4 * USED["input"], 4 * USED["output"])
    lists = asked(gateway, agent)
    assert ["search_tools" in tools for tools in lists] == [True, True, True, False]
    assert len(lists[3]) > len(lists[0])


def curious(seen: Seen, query: str) -> Says:
    """Searches as long as it may."""
    if "search_tools" not in seen.tools:
        return END
    return Says(calls=[Calls(tool="search_tools", arguments={"query": query})])


def test_where_everything_was_found_no_search_is_offered(gateway: Gateway, agent: Agent) -> None:
    gateway.mock.model = lambda seen: curious(seen, "anything")

    (only,) = agent.run(gateway.url, Job(ask=RENEW))

    assert only.text == END.text
    *before, after = asked(gateway, agent)
    assert 1 <= len(before) < MOST_ROUNDS
    assert all("search_tools" in tools for tools in before)
    assert {*after} == {*JOBS}


def test_a_model_that_never_stops_searching_gets_no_further_and_the_client_sees_nothing_of_it(
    gateway: Gateway, agent: Agent
) -> None:
    gateway.mock.model = lambda _: Says(text="Hm.", calls=[search("book_flight")])

    (only,) = agent.run(gateway.url, Job(ask=RENEW))

    assert set(only.text.replace("\n\n", "").split(".")) == {"Hm", ""}
    assert only.calls == ()
    assert only.stop in ("stop", "end_turn", "completed", "STOP")
    assert len(asked(gateway, agent)) == 4


def test_beside_a_call_of_the_clients_own_a_search_is_dropped_and_made_again_with_the_next_request(
    gateway: Gateway, agent: Agent
) -> None:
    job, model = Job(ask=RENEW), does((LOAN, FLY))

    def both(seen: Seen) -> Says:
        if "book_flight" in seen.tools or not seen.answered:
            return Says(calls=[search("book_flight"), LOAN]) if not seen.answered else model(seen)
        return does(FLY)(seen)

    gateway.mock.model = both

    first, second, *_ = agent.run(gateway.url, job)

    assert first.calls == as_heard(LOAN)
    assert ("book_flight", FLY.arguments) in second.calls
    assert len(asked(gateway, agent)[0]) == 3


@pytest.mark.parametrize("name", SIGNED)
def test_the_calls_beside_a_search_that_gemini_signed_are_signed_for_the_next_request(
    gateway: Gateway, name: str
) -> None:
    model = does((LOAN, WATER), FLY)
    gateway.mock.model = lambda seen: (
        Says(calls=[search("book_flight"), LOAN, WATER]) if not seen.answered else model(seen)
    )

    steps = AGENTS[name].run(gateway.url, Job(ask=RENEW, model="gemini-3-pro"))

    assert [step.calls for step in steps] == [as_heard(LOAN, WATER), as_heard(FLY), ()]
    assert asked(gateway, AGENTS[name])[1:]


@pytest.mark.parametrize("name", SIGNED)
def test_a_signed_call_of_a_tool_that_was_filtered_out_stays_before_those_beside_it(
    gateway: Gateway, name: str
) -> None:
    gateway.mock.model = does((FLY, LOAN), look=lambda _: None)

    steps = AGENTS[name].run(gateway.url, Job(ask=RENEW, model="gemini-3-pro"))

    assert [step.calls for step in steps] == [as_heard(FLY, LOAN), ()]
    assert "book_flight" not in asked(gateway, AGENTS[name])[0]


def test_a_call_of_a_tool_that_was_filtered_out_is_asked_again_with_it(gateway: Gateway, agent: Agent) -> None:
    job, model = Job(ask=RENEW), does(LOAN, FLY, look=lambda tool: Calls(tool=tool, arguments={"guess": 1}))
    expected = unfiltered(gateway, agent, job, model)

    steps = agent.run(gateway.url, job)

    assert steps == expected
    first, second, third, _ = asked(gateway, agent)
    assert "book_flight" not in first + second
    assert "book_flight" in third
    assert [event.brought_back for event in served(gateway, 3)] == [(), ("book_flight",), ()]


def test_such_a_call_beside_one_of_a_listed_tool_goes_to_the_client_which_offered_both(
    gateway: Gateway, agent: Agent
) -> None:
    job, model = Job(ask=RENEW), does((LOAN, FLY), look=lambda _: None)
    expected = unfiltered(gateway, agent, job, model)

    steps = agent.run(gateway.url, job)

    assert steps == expected
    assert "book_flight" not in asked(gateway, agent)[0]


def test_the_guard_answers_such_a_call_where_it_is_to(gateway: Gateway, agent: Agent) -> None:
    told: list[str] = []

    def model(seen: Seen) -> Says:
        told.append(json.dumps(seen.body))
        return END if seen.answered else Says(calls=[FLY])

    gateway.mock.model = model

    (only,) = agent.run(gateway.url, Job(ask=RENEW, model="guard-model"))

    assert only == Step(text=END.text, stop=only.stop)
    assert "tool_not_available" in told[1]
    assert all("book_flight" not in tools for tools in asked(gateway, agent))


def test_such_a_call_passes_where_the_policy_says_so(gateway: Gateway, agent: Agent) -> None:
    gateway.mock.model = does(FLY, look=lambda _: None)

    first, _ = agent.run(gateway.url, Job(ask=RENEW, model="pass-model"))

    assert first.calls == as_heard(FLY)
    assert "book_flight" not in asked(gateway, agent)[0]


@pytest.mark.requirement("P9")
def test_where_a_call_is_required_a_search_is_none_and_the_next_answer_has_to_be(
    gateway: Gateway, agent: Agent
) -> None:
    tools = JOBS | {"final_answer": "Give the final answer"}
    job, model = Job(ask=RENEW, choice="required", tools=tools), does(FLY)
    expected = unfiltered(gateway, agent, job, model)

    steps = agent.run(gateway.url, job)

    assert steps == expected
    first, second, *_ = asked(gateway, agent)
    assert "search_tools" in first
    assert "search_tools" not in second


@pytest.mark.requirement("P9")
def test_where_a_call_is_required_one_that_the_guard_refused_leaves_the_search_that_it_names(
    gateway: Gateway, agent: Agent
) -> None:
    tools = JOBS | {"final_answer": "Give the final answer"}
    told: list[str] = []

    def model(seen: Seen) -> Says:
        told.append(json.dumps(seen.body))
        if not seen.answered:
            return Says(calls=[FLY])
        missing = "book_flight" not in seen.tools
        return Says(calls=[search("book_flight") if missing else FLY]) if len(seen.answered) < 3 else END

    gateway.mock.model = model

    steps = agent.run(gateway.url, Job(ask=RENEW, choice="required", tools=tools, model="guard-model"))

    assert steps[0].calls == as_heard(FLY)
    first, second, third, *_ = asked(gateway, agent)
    assert "book_flight" not in first
    assert ("search_tools" in first, "search_tools" in second, "search_tools" in third) == (True, True, False)
    assert "find others with 'search_tools'" in told[1]


def test_where_a_call_is_required_the_guard_names_no_search_that_was_made_in_the_same_answer(
    gateway: Gateway, agent: Agent
) -> None:
    tools = JOBS | {"final_answer": "Give the final answer"}
    told: list[str] = []

    def model(seen: Seen) -> Says:
        told.append(json.dumps(seen.body))
        if not seen.answered:
            return Says(calls=[FLY, search("book_flight")])
        return Says(calls=[FLY]) if len(seen.answered) < 3 else END

    gateway.mock.model = model

    steps = agent.run(gateway.url, Job(ask=RENEW, choice="required", tools=tools, model="guard-model"))

    assert steps[0].calls == as_heard(FLY)
    first, second, *_ = asked(gateway, agent)
    assert "book_flight" not in first
    assert ("search_tools" in first, "search_tools" in second) == (True, False)
    assert "tool_not_available" in told[1]
    assert "find others with" not in told[1]


@pytest.mark.requirement("P8")
@pytest.mark.parametrize("choice", ["renew_loan", "none"])
def test_no_search_is_offered_where_the_request_says_what_to_call(gateway: Gateway, agent: Agent, choice: str) -> None:
    gateway.mock.model = lambda seen: Says(calls=[LOAN]) if choice != "none" and not seen.answered else END

    agent.run(gateway.url, Job(ask=RENEW, choice=choice))

    assert "search_tools" not in asked(gateway, agent)[0]


@pytest.mark.requirement("P12", "P14")
def test_with_no_tool_left_the_search_is_the_only_one_and_what_it_finds_follows(gateway: Gateway, agent: Agent) -> None:
    job, model = Job(ask=RENEW, model="none-model"), does(FLY)
    expected = unfiltered(gateway, agent, job, model)

    steps = agent.run(gateway.url, job)

    assert steps == expected
    assert asked(gateway, agent)[0] == ("search_tools",)


def test_a_callers_tool_of_that_name_keeps_it_and_ours_has_another(gateway: Gateway, agent: Agent) -> None:
    tools = JOBS | {"search_tools": "Search the shed for a hammer."}
    hammer = Calls(tool="search_tools", arguments={"what": "a hammer"})
    job = Job(ask="Search the shed for a hammer, please.", tools=tools)

    def ours(tool: str) -> Calls:
        return Calls(tool="search_tools_2", arguments={"query": JOBS[tool]})

    model = does(hammer, FLY, look=ours)
    expected = unfiltered(gateway, agent, job, model)

    steps = agent.run(gateway.url, job)

    assert steps == expected
    assert {"search_tools", "search_tools_2"} <= set(asked(gateway, agent)[0])


def test_the_search_tool_says_what_was_filtered_out_and_a_whole_answer_how_often_it_was_used(
    gateway: Gateway, agent: Agent
) -> None:
    gateway.mock.model = does(FLY)

    agent.run(gateway.url, Job(ask=RENEW))

    body = gateway.mock.received[0].body.decode()
    assert all(json.dumps(said)[1:-1] in body for said in JOBS.values())
    told = [said.get("x-pegboard-searches") for said in gateway.noting.said]
    assert told == ([None, None] if agent.streams else ["1", "0"])


def as_heard(*calls: Calls) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    return tuple((call.tool, call.arguments) for call in calls)


@pytest.mark.parametrize("streams", [False, True])
def test_signed_thoughts_go_back_as_they_were_and_stay_with_what_the_client_gets(
    gateway: Gateway, *, streams: bool
) -> None:
    def model(seen: Seen) -> Says:
        if "book_flight" in seen.tools:
            return Says(thought="There it is.", calls=[FLY])
        return Says(thought="I need a flight.", text="Let me look.", calls=[search("book_flight")])

    gateway.mock.model = model
    tools = [anthropic_tool(name, description=said) | {"input_schema": SCHEMA} for name, said in JOBS.items()]
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
    thinking, text, call = gateway.mock.last.json["messages"][1]["content"]
    assert thinking == {
        "type": "thinking",
        "thinking": "I need a flight.",
        "signature": signature("I need a flight."),
    }
    assert (text["text"], call["name"], call["input"]) == (
        "Let me look.",
        "search_tools",
        search("book_flight").arguments,
    )
    assert message.usage.cache_read_input_tokens == 20


@pytest.mark.parametrize("streams", [False, True])
def test_the_signature_of_a_thought_goes_back_with_the_call_that_it_led_to(gateway: Gateway, *, streams: bool) -> None:
    def model(seen: Seen) -> Says:
        found = "book_flight" in seen.tools
        return Says(thought=f"It is there: {found}", calls=[FLY if found else search("book_flight")])

    gateway.mock.model = model
    declared = [
        types.FunctionDeclaration(name=name, description=said, parameters_json_schema=SCHEMA)
        for name, said in JOBS.items()
    ]
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=declared)])
    options = types.HttpOptions(base_url=f"{gateway.url}/gemini")
    with genai.Client(api_key="sk-mine", http_options=options) as client:
        ask = client.models.generate_content_stream if streams else client.models.generate_content
        answer = ask(model="m", contents=RENEW, config=config)
        parts = [part for each in (answer if streams else [answer]) for part in each.candidates[0].content.parts]

    (call,) = [part for part in parts if part.function_call]
    assert (call.function_call.name, call.thought_signature) == ("book_flight", signature("It is there: True").encode())
    said, results = gateway.mock.last.json["contents"][1:]
    assert said["parts"][0]["functionCall"]["name"] == "search_tools"
    assert b64decode(said["parts"][0]["thoughtSignature"]).decode() == signature("It is there: False")
    assert results["parts"][0]["functionResponse"]["response"]["found"][0]["name"] == "book_flight"


@pytest.mark.parametrize("include", [[], ["reasoning.encrypted_content"]])
def test_thoughts_that_are_not_stored_go_back_where_they_came_encrypted(gateway: Gateway, include: list[str]) -> None:
    gateway.mock.model = lambda seen: (
        END if seen.answered else Says(thought="I need a flight.", calls=[search("book_flight")])
    )
    asked: dict[str, Any] = {"model": "m", "input": RENEW, "tools": FLAT, "store": False, "include": include}
    with openai.OpenAI(base_url=f"{gateway.url}/openai/v1", api_key="sk-mine", max_retries=0) as client:
        response = client.responses.create(**asked)

    assert gateway.mock.refused == []
    assert response.output_text == END.text
    sent = [item.get("type", "message") for item in gateway.mock.last.json["input"]]
    thoughts = ["reasoning"] if include else []
    assert sent == ["message", *thoughts, "function_call", "function_call_output"]


def test_of_an_answer_that_the_provider_keeps_there_is_a_way_back_too(gateway: Gateway) -> None:
    gateway.mock.model = lambda _: END
    with openai.OpenAI(base_url=f"{gateway.url}/openai/v1", api_key="sk-mine", max_retries=0) as client:
        client.responses.create(model="m", input=RENEW, tools=FLAT)

    assert gateway.said["x-pegboard-filter"] == "filtered"
    assert "search_tools" in gateway.mock.last.body.decode()


def test_of_several_answers_at_once_there_is_no_way_back(gateway: Gateway) -> None:
    gateway.mock.model = lambda _: END
    with openai.OpenAI(base_url=f"{gateway.url}/openai/v1", api_key="sk-mine", max_retries=0) as client:
        client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": RENEW}], tools=chat_tools(JOBS), n=2
        )

    assert gateway.said["x-pegboard-filter"] == "filtered"
    assert "search_tools" not in gateway.mock.last.body.decode()


def test_what_is_counted_is_what_would_be_sent_with_the_search_tool(gateway: Gateway) -> None:
    with anthropic.Anthropic(base_url=f"{gateway.url}/anthropic", api_key="sk-mine", max_retries=0) as client:
        tools: list[Any] = [
            anthropic_tool(name, description=said) | {"input_schema": SCHEMA} for name, said in JOBS.items()
        ]
        counted = client.messages.count_tokens(model="m", messages=[{"role": "user", "content": RENEW}], tools=tools)

    assert counted.input_tokens > 0
    assert gateway.mock.last.json["tools"][-1]["name"] == "search_tools"
    assert int(gateway.said["x-pegboard-tokens"].split("/")[0]) > 100


def test_a_request_may_do_without(gateway: Gateway) -> None:
    gateway.mock.model = lambda _: END
    with openai.OpenAI(base_url=f"{gateway.url}/openai/v1", api_key="sk-mine", max_retries=0) as client:
        client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": RENEW}],
            tools=chat_tools(JOBS),
            extra_headers={"x-pegboard-way-back": "off"},
        )

    assert gateway.said["x-pegboard-filter"] == "filtered"
    assert "x-pegboard-searches" not in gateway.said
    assert "search_tools" not in gateway.mock.last.body.decode()
