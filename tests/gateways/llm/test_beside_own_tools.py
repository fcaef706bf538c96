"""An agent with tools of its own: they stay as they are, those of its servers are called through one beside them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import pytest

from back_office import JOBS, LOAN, MONEY, NOTE, PATHS, WEATHER, asking, spoken
from mock_providers.scripted import Calls, Says
from model_bodies import CODECS, FORMATS, PATH, called
from model_doors import Gateway, gateway
from pegboard.model import Floats
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder

OWN = ("list_directory", "read_file", "grep_search", "glob", "replace", "write_file", "run_shell_command")
GEMINI_CLI = {"user-agent": "GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64; terminal)"}

formats = pytest.mark.parametrize("name", FORMATS)


@pytest.fixture
async def door() -> AsyncIterator[Gateway]:
    async with gateway(parts={"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}) as found:
        yield found


def working(name: str, said: list[str], *more: dict[str, Any]) -> dict[str, Any]:
    """A request of an agent with tools of its own and those of a server."""
    body = asking(name, said, *more)
    tools = body["tools"][0]["functionDeclarations"] if name == "gemini" else body["tools"]
    own = []
    for job in OWN:
        entry = json.loads(json.dumps(tools[0]).replace("renew_loan", job))
        entry.get("function", entry)["description"] = f"{job}, of the agent's own."
        own.append(entry)
    for tool in tools:
        function = tool.get("function", tool)
        function["name"] = f"mcp_office_{function['name']}"
    tools[:0] = own
    return body | ({"store": False} if name == "openai_responses" else {})


async def sent(door: Gateway, name: str, body: dict[str, Any], path: str = "") -> tuple[list[str], Any]:
    """The tools that arrive, and the answer."""
    async with httpx2.AsyncClient(base_url=door.url, trust_env=False, timeout=60) as client:
        answer = await client.post(path or PATHS[name], json=body, headers=GEMINI_CLI)
    assert answer.status_code == 200, answer.text
    return [tool.name for tool in CODECS[name].parse(door.mock.last.body, PATH).tools], answer.json()


@formats
async def test_what_the_agent_brings_stays_native_and_the_beginning_never_changes(door: Gateway, name: str) -> None:
    talk = [WEATHER, LOAN, MONEY]
    arrived = [(await sent(door, name, working(name, talk[:turn])))[0] for turn in (1, 2, 3)]
    heads = {json.dumps(each.json["tools"]) for each in door.mock.received}

    assert arrived[0] == [*OWN, "call_tool"]
    assert len(heads) == 1
    assert all(f"mcp_office_{job}" in heads.copy().pop() for job in JOBS)
    assert door.said["x-pegboard-cache"].startswith("call_tool; ")


@formats
async def test_a_turn_in_which_a_call_is_required_changes_no_byte_of_the_tools(door: Gateway, name: str) -> None:
    """Any call will do, and `call_tool` is one."""
    choice: dict[str, Any] = {"tool_choice": {"type": "any"} if name == "anthropic" else "required"}
    if name == "gemini":
        choice = {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}

    for turn, more in ((1, {}), (2, choice), (3, {})):
        arrived, _ = await sent(door, name, working(name, [WEATHER, LOAN, MONEY][:turn]) | more)
        assert arrived == [*OWN, "call_tool"]

    assert len({json.dumps(each.json["tools"]) for each in door.mock.received}) == 1


@formats
async def test_a_call_of_any_other_tool_reaches_the_agent_as_its_own_name(door: Gateway, name: str) -> None:
    arguments: Any = {"name": "mcp_office_unit_17", "arguments": {"what": "now"}}
    door.mock.model = lambda seen: Says(calls=[Calls(tool="call_tool", arguments=arguments)])

    _, answer = await sent(door, name, working(name, [WEATHER]))

    assert "mcp_office_unit_17" in json.dumps(answer)
    assert "call_tool" not in json.dumps(answer.get("output", answer))


@formats
async def test_calls_in_the_history_are_told_in_the_same_terms_and_own_ones_as_they_were(
    door: Gateway, name: str
) -> None:
    steps = [*called(name, "read_file"), spoken(name, "assistant", "Read."), spoken(name, "user", LOAN)]

    await sent(door, name, working(name, [WEATHER], *steps))

    said = json.dumps({key: value for key, value in door.mock.last.json.items() if key != "tools"})
    assert '"name": "read_file"' in said
    assert '"name": "call_tool"' not in said


async def test_where_next_to_nothing_would_be_saved_such_a_request_is_left_alone(door: Gateway) -> None:
    body = working("openai_chat", [WEATHER])
    body["tools"] = body["tools"][: len(OWN) + 1]

    arrived, _ = await sent(door, "openai_chat", body)

    assert len(arrived) == len(OWN) + 1
    assert "call_tool" not in arrived


class Late(FakeEncoder):
    """An encoder that answers once it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()

    async def encode(self, texts: Sequence[str]) -> Floats:
        await self.may.wait()
        return await super().encode(texts)


@pytest.mark.requirement("A12")
@formats
@pytest.mark.parametrize(("longer", "second"), [(20, [*OWN, "call_tool"]), (0, None)], ids=["large", "small"])
async def test_a_conversation_that_began_with_all_tools_for_lack_of_time_leaves_them_where_that_pays(
    name: str, longer: int, second: list[str] | None
) -> None:
    def body(*said: str) -> dict[str, Any]:
        made = json.dumps(working(name, list(said)))
        return dict(json.loads(made.replace(NOTE, NOTE * (1 + longer))))

    encoder = Late()
    parts = {"encoder": encoder, "embeddings": MemoryEmbeddings()}
    async with gateway(parts=parts, patience=0, policy={"profile": "semantic"}) as door:
        begun, _ = await sent(door, name, body(WEATHER))
        why = door.said["x-pegboard-filter"], door.said["x-pegboard-reason"]
        encoder.may.set()
        while door.said["x-pegboard-filter"] == "failed":
            later, _ = await sent(door, name, body(WEATHER, LOAN))

    assert why == ("failed", "The request's tools are still being embedded.")
    assert len(begun) == len(OWN) + len(JOBS)
    assert later == (second or begun)
