"""Nothing is lost between clients and servers of either era, whatever they speak and however a tool is called.

One `pegboard serve`; behind it a talkative server of each era on each transport; before it SDK clients of each era.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from pydantic import TypeAdapter

from pegboard_bench.ports import free_port
from processes import eventually, listening, until
from servers_at_hand import get

TALKATIVE = str(Path(__file__).parents[2] / "servers" / "talkative.py")
ANY: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
ERAS = ("legacy", "modern")
TRANSPORTS = ("stdio", "http")

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")]


@pytest.fixture(scope="module", params=TRANSPORTS)
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The gateway before a server of each era, all on one transport."""
    folder, port = tmp_path_factory.mktemp("gateway"), free_port()
    with ExitStack() as stack:
        servers: dict[str, Any] = {
            era: {"command": sys.executable, "args": [TALKATIVE, era]}
            if request.param == "stdio"
            else {"url": f"{stack.enter_context(listening(TALKATIVE, era))}/mcp"}
            for era in ERAS
        }
        own = {"exposure": "static", "profile": "keyword", "start_wait": 30}
        config = folder / "servers.json"
        config.write_text(json.dumps({"mcpServers": servers, "pegboard": own}))
        command = [sys.executable, "-m", "pegboard", "serve", "--config", str(config), "--port", str(port)]
        kept = {"PEGBOARD_STATE_DIR": str(folder), "PEGBOARD_CACHE_DIR": str(folder)}
        process = stack.enter_context(subprocess.Popen(command, env=os.environ | kept))
        stack.callback(process.terminate)
        assert eventually(lambda: get(f"http://127.0.0.1:{port}/healthz") == 200)
        yield f"http://127.0.0.1:{port}/mcp"


@dataclass
class Person:
    """A client, what it answers, and what it is told."""

    name: str
    heard: list[str] = field(default_factory=list)
    news: list[types.ServerNotification] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    client: Client = field(init=False)

    @asynccontextmanager
    async def at(self, url: str, mode: str, **without: None) -> AsyncIterator[Person]:
        ways: dict[str, Any] = {
            "elicitation_callback": self.elicited,
            "sampling_callback": self.sampled,
            "list_roots_callback": self.rooted,
        }
        async with Client(
            url,
            mode="auto" if mode == "modern" else "legacy",
            cache=None,
            logging_callback=self.logged,
            message_handler=self.told,
            log_level="debug" if mode == "modern" else None,
            **(ways | without),
        ) as self.client:
            yield self

    async def elicited(self, _ctx: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(params.message)
        return types.ElicitResult(action="accept", content={"word": f"{self.name}{len(self.asked)}"})

    async def sampled(self, _ctx: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        content = types.TextContent(text=f"{self.name} goes on for {params.max_tokens}")
        return types.CreateMessageResult(role="assistant", content=content, model="m")

    async def rooted(self, _ctx: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=f"file:///{self.name}")])

    async def logged(self, params: types.LoggingMessageNotificationParams) -> None:
        self.heard.append(params.data["said"])

    async def told(self, message: Any) -> None:
        if not isinstance(message, Exception):
            self.news.append(message)

    def has_heard(self, kind: type[Any]) -> bool:
        return any(isinstance(each, kind) for each in self.news)


@dataclass(frozen=True)
class Way:
    """How a tool is called."""

    server: str
    invoked: bool

    def of(self, tool: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        name = f"{tool}_{self.server}"
        return (
            ("invoke_tool", {"name": name, "arguments": dict(arguments)}) if self.invoked else (name, dict(arguments))
        )

    async def raw(self, client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result on the wire."""
        name, given = self.of(tool, arguments)
        params = types.CallToolRequestParams(name=name, arguments=given)
        params.meta = {"vendor/x": [1, None]}  # type: ignore[assignment,typeddict-unknown-key]
        return await client.session.send_request(types.CallToolRequest(params=params), ANY)  # type: ignore[type-var]

    async def said(self, person: Person, tool: str, progress: Any = None, **arguments: Any) -> str:
        name, given = self.of(tool, arguments)
        result = await person.client.call_tool(name, given, progress_callback=progress)
        assert not result.is_error, result
        return str(result.content[0].text)  # type: ignore[union-attr]


@pytest.fixture(params=ERAS)
def client_era(request: pytest.FixtureRequest) -> str:
    return f"{request.param}"


@pytest.fixture(params=ERAS)
def server_era(request: pytest.FixtureRequest) -> str:
    return f"{request.param}"


@pytest.fixture(params=["direct", "invoked"])
def way(request: pytest.FixtureRequest, server_era: str) -> Way:
    return Way(server_era, request.param == "invoked")


@pytest.mark.requirement("M7")
@pytest.mark.requirement("M8")
async def test_results_and_errors_of_every_kind_arrive_as_the_server_made_them(
    url: str, client_era: str, way: Way
) -> None:
    async with Person("ann").at(url, client_era) as ann:
        parts = await way.raw(ann.client, "parts")
        meta = await way.raw(ann.client, "meta")
        fails = await way.raw(ann.client, "fails")
        with pytest.raises(MCPError) as raised:
            await way.raw(ann.client, "raises")

    bare = {key: each for key, each in parts.items() if key != "resultType"}
    assert ([each["type"] for each in bare["content"]], sorted(bare)) == (
        ["text", "image", "audio", "resource_link", "resource", "resource"],
        ["_meta", "content", "structuredContent"],
    )
    assert bare["content"][1]["_meta"] == {"vendor/part": 1}
    assert bare["structuredContent"] == {"n": 1, "nothing": None, "deep": [{"x": "y"}]}
    assert bare["_meta"]["vendor/y"] == [1, None]
    assert meta["structuredContent"] == {"vendor/x": [1, None]}
    assert (fails["isError"], fails["content"][0]["text"]) == (True, "it is broken")
    assert (raised.value.error.code, raised.value.error.message) == (-32050, "custom protocol error")
    assert raised.value.error.data == {"why": ["test", None]}


@pytest.mark.requirement("M17")
@pytest.mark.requirement("M21")
async def test_progress_and_logs_of_calls_at_once_reach_the_client_whose_call_it_was(
    url: str, client_era: str, way: Way
) -> None:
    """On standard streams a log does not say which call it is of: there one client at a time is asked to hear."""
    shared = way.server == "legacy" or "stdio" in os.environ.get("PYTEST_CURRENT_TEST", "")
    people = [Person("ann")] if shared else [Person("ann"), Person("bob")]

    async def talk(person: Person) -> None:
        async with person.at(url, client_era):
            steps: list[str | None] = []

            async def progress(_done: float, _total: float | None, message: str | None) -> None:
                steps.append(message)

            assert await way.said(person, "talk", progress, tag=person.name) == person.name
            expected = [f"{person.name} {step}" for step in (1, 2, 3)]
            await until(lambda: len(person.heard) == 3)
            assert (steps, person.heard) == (expected, expected)

    await asyncio.gather(*map(talk, people))


@pytest.mark.requirement("M21")
@pytest.mark.parametrize("what", ["elicit", "sample", "roots"])
async def test_what_a_server_asks_is_answered_by_the_client_whose_call_it_is(
    url: str, client_era: str, way: Way, what: str
) -> None:
    answer = {"elicit": "accept ann1", "sample": "ann goes on for 9", "roots": "file:///ann"}[what]
    async with Person("ann").at(url, client_era) as ann:
        assert await way.said(ann, "ask", what=what, tag="t") == f"t: {answer}"


@pytest.mark.requirement("M21")
async def test_two_questions_of_one_call_are_asked_one_after_the_other(url: str, client_era: str, way: Way) -> None:
    async with Person("ann").at(url, client_era) as ann:
        assert await way.said(ann, "two_questions") == "accept ann1 and accept ann2"


@pytest.mark.requirement("M21")
async def test_a_client_that_cannot_answer_is_not_asked(url: str, client_era: str, server_era: str) -> None:
    """The server is told so, in its own way, and the call ends."""
    async with Person("ann").at(url, client_era, elicitation_callback=None) as ann:
        with pytest.raises(MCPError):
            await Way(server_era, invoked=False).said(ann, "ask", what="elicit", tag="t")
    assert ann.asked == []


@pytest.mark.requirement("M17")
@pytest.mark.requirement("M22")
async def test_a_call_that_its_client_gives_up_is_given_up_at_the_server(
    url: str, client_era: str, way: Way, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    async with Person("ann").at(url, client_era) as ann:
        waiting = asyncio.create_task(way.said(ann, "wait", path=str(seen)))
        await until(lambda: seen.exists() and seen.read_text() == "started")
        waiting.cancel()
        await until(lambda: seen.read_text() == "cancelled")


async def test_resources_templates_and_prompts_of_all_servers_are_listed_read_and_completed(
    url: str, client_era: str, server_era: str
) -> None:
    async with Person("ann").at(url, client_era) as ann:
        client = ann.client
        resources = await client.session.send_request(types.ListResourcesRequest(), ANY)  # type: ignore[type-var]
        templates = (await client.list_resource_templates()).resource_templates
        prompts = (await client.list_prompts()).prompts
        texts = [await client.read_resource(f"{kind}://{server_era}/9") for kind in ("page", "note", "unlisted")]
        greeting = await client.get_prompt(f"greet_{server_era}", {"whom": "Ann"})
        of_prompt = await client.complete(
            types.PromptReference(name=f"greet_{server_era}"), {"name": "a", "value": "x"}
        )
        template = f"page://{server_era}/{{number}}"
        of_page = await client.complete(types.ResourceTemplateReference(uri=template), {"name": "number", "value": "y"})
        with pytest.raises(MCPError) as missing:
            await client.read_resource("nobody://has/this")
        with pytest.raises(MCPError) as unknown:
            await client.get_prompt("nobody_has_this")

    listed = [each["uri"] for each in resources["resources"]]
    assert listed == [f"note://{era}/{name}" for era in ERAS for name in ("note", "second")]
    assert resources["resources"][0]["_meta"] == {"vendor/r": 1}
    assert [each.uri_template for each in templates] == [f"page://{era}/{{number}}" for era in ERAS]
    assert {f"greet_{era}" for era in ERAS} <= {each.name for each in prompts}
    assert [str(each.contents[0].uri) for each in texts] == [
        f"{k}://{server_era}/9" for k in ("page", "note", "unlisted")
    ]
    assert [each.content.type for each in greeting.messages] == ["text", "image"]
    assert of_prompt.completion.values == [f"x…greet_{server_era}"]
    assert of_page.completion.values == [f"y…{template}"]
    assert (missing.value.error.code, missing.value.error.data) == (types.INVALID_PARAMS, {"uri": "nobody://has/this"})
    assert unknown.value.error.code == types.INVALID_PARAMS


@pytest.mark.requirement("M18")
async def test_changes_of_resources_and_lists_are_told_to_those_who_watch(
    url: str, client_era: str, server_era: str
) -> None:
    watched, direct = f"note://{server_era}/note", Way(server_era, invoked=False)
    async with Person("ann").at(url, client_era) as ann, Person("bob").at(url, client_era) as bob:
        if client_era == "legacy":
            await ann.client.subscribe_resource(watched)
            await bob.client.list_prompts()
            await touch_and_change(ann, bob, direct)
            assert not bob.has_heard(types.ResourceUpdatedNotification)
            await ann.client.unsubscribe_resource(watched)
        else:
            async with ann.client.listen(
                prompts_list_changed=True, resources_list_changed=True, resource_subscriptions=[watched]
            ):
                await touch_and_change(ann, bob, direct)
            assert bob.news == []
        names = {each.name for each in (await bob.client.list_prompts()).prompts}
    updated = next(each for each in ann.news if isinstance(each, types.ResourceUpdatedNotification))
    assert str(updated.params.uri) == watched
    assert any(name.startswith("later_") and name.endswith(server_era) for name in names)


async def touch_and_change(ann: Person, bob: Person, way: Way) -> None:
    await way.said(bob, "touch")
    await way.said(bob, "change")
    for kind in (
        types.ResourceUpdatedNotification,
        types.PromptListChangedNotification,
        types.ResourceListChangedNotification,
    ):
        await until(lambda kind=kind: ann.has_heard(kind))  # type: ignore[misc]


@pytest.mark.requirement("M21")
async def test_a_client_of_the_handshake_era_hears_as_much_as_it_asked_for(url: str, server_era: str) -> None:
    async with Person("ann").at(url, "legacy") as ann:
        await ann.client.set_logging_level("error")
        assert await Way(server_era, invoked=False).said(ann, "talk", tag="quiet") == "quiet"
        await ann.client.set_logging_level("debug")
        assert await Way(server_era, invoked=False).said(ann, "talk", tag="loud") == "loud"
        await until(lambda: len(ann.heard) == 3)
    assert ann.heard == ["loud 1", "loud 2", "loud 3"]
