"""Clients of OpenAI's SDK that continue stored answers by id, before gateways that share one store of sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from mock_providers import MockProviders
from mock_providers.scripted import Calls, Says, Seen
from model_doors import Noting, model_door, served
from pegboard.clock import SYSTEM_CLOCK
from pegboard.stores import MemoryEmbeddings, MemorySessions
from pegboard.testing import FakeEncoder

openai = pytest.importorskip("openai", reason="pip install --group sdks")

JOBS = {
    "renew_loan": "Extend the due date of a borrowed book",
    "weather_forecast": "Weather of the coming days at a place",
    "convert_currency": "Convert an amount of money into another currency",
    "water_plants": "Open the valve of one garden bed",
    **{f"unit_{number}": f"Read sensor {number} of engine {number}" for number in range(296)},
}
FLAT: list[Any] = [
    {"type": "function", "name": name, "description": said, "parameters": {"type": "object"}, "strict": False}
    for name, said in JOBS.items()
]
OFFICE: list[Any] = [{"type": "namespace", "name": "mcp__office", "description": "The office.", "tools": FLAT}]
FEW, FEW_OFFICE = FLAT[:60], [OFFICE[0] | {"tools": FLAT[:60]}]
"""As many as the provider takes at once."""
SESSION = ["weather_forecast", "renew_loan", "water_plants", "renew_loan", "weather_forecast"]
SEARCH = "tool_search"
SILENT, TALKS = "gpt-5.4", "gpt-5.5"
"""The second writes a text before it searches."""
SEARCHES = ("search_tools", SEARCH)
DEFER: dict[str, Any] = {"k": 1, "ways": ("defer",)}
PICKED: dict[str, Any] = {"k": 1, "ways": ("tools",), "way_back": True}


def wants(name: str) -> str:
    """Says what the tool does: the router finds it."""
    return f"{JOBS[name]}, please"


def hints(name: str) -> str:
    """Says nothing of what the tool does: the model has to search."""
    return f"Number {[*JOBS].index(name)} on our list"


def model(seen: Seen, search: str = SEARCH) -> Says:
    """Calls the tool that the user means, having searched for one that it does not see; then it is done."""
    items = seen.body["input"]
    last = max(place for place, item in enumerate(items) if item.get("role") == "user")
    words = items[last]["content"]
    name = next((name for name in JOBS if words in (wants(name), hints(name))), "")
    if not name or any(item.get("type") == "function_call" and item["name"] == name for item in items[last:]):
        return Says(text="Done.")
    there = [tool for tool in seen.tools if tool.rpartition(".")[2] == name]
    if there:
        return Says(thought="Now.", calls=[Calls(tool=there[0])])
    text = "Let me look." if seen.body.get("model") == TALKS else ""
    return Says(thought="Hm.", text=text, calls=[Calls(tool=search, arguments={"query": JOBS[name]})])


def hasty(seen: Seen) -> Says:
    """Calls the tool that the user names and searches for the next one in the list, in one answer; then calls that."""
    items = seen.body["input"]
    last = max(place for place, item in enumerate(items) if item.get("role") == "user")
    first = next((place for place, name in enumerate(JOBS) if items[last]["content"] == wants(name)), None)
    if first is None:
        return Says(text="Done.")
    since = {item["name"] for item in items[last:] if item.get("type") == "function_call"} - {*SEARCHES}
    name, after = [*JOBS][first], [*JOBS][first + 1]
    there = {tool.rpartition(".")[2]: tool for tool in seen.tools}
    text = "Let me see." if seen.body.get("model") == TALKS else ""
    search = next((each for each in SEARCHES if each in seen.tools), "")
    searches = [Calls(tool=search, arguments={"query": JOBS[after]})] if search else []
    if not since:
        return Says(thought="Both.", text=text, calls=[Calls(tool=there[name]), *searches])
    if after in since:
        return Says(text="Done.")
    return Says(thought="Now.", calls=[Calls(tool=there[after])] if after in there else searches)


@dataclass
class Doors:
    """Gateways before one provider, with one store of sessions."""

    mock: MockProviders
    sessions: MemorySessions
    addresses: list[str] = field(default_factory=list)
    noting: list[Noting] = field(default_factory=list)


@asynccontextmanager
async def opening(
    policies: list[dict[str, Any]], mock: MockProviders | None = None, **parts: Any
) -> AsyncIterator[Doors]:
    mock = mock or MockProviders(model=model)
    doors = Doors(mock, MemorySessions(SYSTEM_CLOCK))
    async with AsyncExitStack() as stack:
        behind = await stack.enter_async_context(served(mock))
        upstreams = {"openai": {"url": f"http://{behind}", "format": "openai"}}
        for policy in policies:
            made = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings(), "sessions": doors.sessions} | parts
            address, noting, _ = await stack.enter_async_context(model_door(upstreams, parts=made, policy=policy))
            doors.addresses.append(address)
            doors.noting.append(noting)
        yield doors


@contextmanager
def opened(*policies: dict[str, Any], **parts: Any) -> Iterator[Doors]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opening([*policies], **parts)) as doors:
        yield doors


class Talk:
    """A client that runs tools and sends only what is new; each request goes to the next door."""

    def __init__(self, doors: Doors, *, streams: bool = False, model: str = SILENT, tools: list[Any] = FLAT) -> None:
        self.doors, self.streams, self.model, self.tools = doors, streams, model, tools
        self.next = cycle(doors.addresses)
        self.before: str | None = None
        self.called: list[tuple[str, str | None]] = []

    def said(self, text: str) -> Any:
        """The last answer to what the user says."""
        return self.done(self.answer([{"role": "user", "content": text}]))

    def done(self, response: Any) -> Any:
        """The last answer after an answer whose tools are run."""
        while calls := [item for item in response.output if item.type == "function_call"]:
            self.called += [(call.name, getattr(call, "namespace", None)) for call in calls]
            response = self.answer(
                [{"type": "function_call_output", "call_id": each.call_id, "output": "ok"} for each in calls]
            )
        return response

    def answer(self, items: list[Any], **more: Any) -> Any:
        asked: dict[str, Any] = {"model": self.model, "input": items, "tools": self.tools}
        asked |= {"previous_response_id": self.before} | more
        with self.client() as client:
            if self.streams:
                with client.responses.stream(**asked) as stream:
                    ids = {event.response.id for event in stream if hasattr(event, "response")}
                    response = stream.get_final_response()
                assert ids == {response.id}
            else:
                response = client.responses.create(**asked)
        assert {item.type for item in response.output} <= {"reasoning", "function_call", "message"}
        self.before = response.id
        return response

    def client(self) -> Any:
        return openai.OpenAI(base_url=f"http://{next(self.next)}/openai/v1", api_key="sk-mine", max_retries=0)


def longest(doors: Doors) -> list[Any]:
    """The provider's longest history; it had nothing to complain about."""
    assert doors.mock.refused == []
    return max(doors.mock.stored.values(), key=len)


@contextmanager
def restarted(doors: Doors, policy: dict[str, Any]) -> Iterator[list[str]]:
    """The address of a gateway that begins with nothing but the store."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(opening([policy], sessions=doors.sessions, mock=doors.mock)) as again,
    ):
        yield again.addresses
